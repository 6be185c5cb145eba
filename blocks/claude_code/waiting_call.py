"""
A tool call that waits for a person, and the fingerprint by which it is known when it comes again.

A held call never runs: the agent has to make it anew, under another id. So a call is matched by its
tool and its input. Pure; it doesn't know who decides, or where waiting calls are written down.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from pydantic import BaseModel

from flowstate.blocks.claude_code.json_value import plain
from flowstate.harness.clean_text import clean_text
from flowstate.item.content import WIRE

MOST_WAITING: Final = 50
"""How many waiting calls are remembered of a conversation; the oldest are forgotten first."""


class WaitingCall(BaseModel):
    """A tool call that a person is to decide; it did not run."""

    model_config = WIRE
    tool_name: str
    input: dict[str, Any]
    """The call's arguments, as plain JSON."""
    call_id: str | None = None
    """The id of the call that was held, the same as on its tool_output item."""
    fingerprint: str
    """What the same call has when the agent makes it again; see ``fingerprint_of``."""


def fingerprint_of(tool_name: str, input: Mapping[str, Any]) -> str:
    """
    The fingerprint of a call: equal for the same tool with the same input, and for no other.

    The order of keys doesn't matter. Nor does Bash's ``description``, in which the model tells in
    words of its own, other ones each time, what the command is for.

    >>> one = fingerprint_of("Bash", {"command": "ls", "description": "List files"})
    >>> one == fingerprint_of("Bash", {"description": "Look around", "command": "ls"})
    True
    >>> one == fingerprint_of("Bash", {"command": "ls -a"})
    False
    """
    said = {k: v for k, v in input.items() if not (tool_name == "Bash" and k == "description")}
    text = json.dumps([tool_name, said], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def waiting_call(tool_name: str, input: Mapping[str, Any], call_id: str | None) -> WaitingCall:
    """A call that was held."""
    return WaitingCall(
        tool_name=clean_text(tool_name),
        input=cast("dict[str, Any]", plain(dict(input))),
        call_id=call_id,
        # Of the input as it came: what is made of it for a store might be equal for two.
        fingerprint=fingerprint_of(tool_name, input),
    )


def merged(before: Iterable[WaitingCall], more: Iterable[WaitingCall]) -> tuple[WaitingCall, ...]:
    """Both, oldest first; of a call that was held twice the later one."""
    calls: dict[str, WaitingCall] = {}
    for call in (*before, *more):
        calls.pop(call.fingerprint, None)
        calls[call.fingerprint] = call
    return tuple(calls.values())[-MOST_WAITING:]
