"""
Choosing among items: by type, by role, and the last turns of a conversation for a model.

Pure functions over items in the order in which they were made, wherever they come from: a run's
events, or ``Runtime.session_items``. Nothing here reads a store, and nothing knows the form in
which any one model wants its messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, final

from pydantic import BaseModel

from flowstate.errors import InvalidValue
from flowstate.item.content import Container, Message, ToolOutput
from flowstate.item.item import Item, ItemStatus
from flowstate.item.visibility import Visibility

C = TypeVar("C", bound=BaseModel)

Role: TypeAlias = Literal["assistant", "user", "system"]

UNFINISHED: Final = "The call was not finished."
"""The output, in a history, of a call that has no result: models refuse a call without one."""

_OWN_CONVERSATION = frozenset({"sub_agent"})
"""Kinds of container whose items are another's conversation."""


def of_type(items: Iterable[Item], *types: type[BaseModel]) -> list[Item]:
    """
    The items whose content is of one of these types, in their order.

    >>> of_type([], Message)
    []
    """
    return [item for item in items if isinstance(item.content, types)]


def contents(items: Iterable[Item], kind: type[C]) -> list[C]:
    """What the items of this type hold, in their order."""
    return [item.content for item in items if isinstance(item.content, kind)]


def messages(items: Iterable[Item], *, role: Role | None = None) -> list[Item]:
    """The messages, in their order; of one role if given."""
    return [
        item
        for item in items
        if isinstance(item.content, Message) and role in (None, item.content.role)
    ]


# --- a conversation as a model is told it -------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something said in the conversation."""

    role: Role
    text: str
    """Never empty."""
    complete: bool = True
    """False: it was cut off, or is being said."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call with its result: one value, so that nothing comes between them."""

    call_id: str
    name: str
    arguments: Any = None
    """JSON."""
    output: Any = None
    """JSON; ``UNFINISHED`` for a call that never got a result."""
    is_error: bool = False
    complete: bool = True
    """False: it was cut off, or goes on."""

    @property
    def text(self) -> str:
        """The output as text: as it is if it is one, else its JSON."""
        if isinstance(self.output, str):
            return self.output
        return json.dumps(self.output, ensure_ascii=False, default=str)


Utterance: TypeAlias = Said | Called


def history(
    items: Iterable[Item], *, turns: int | None = None, visibility: Visibility = "client"
) -> list[Utterance]:
    """
    The last turns of a conversation, as a model is told them.

    A turn begins with a user's message; what stands before the first belongs to the first turn.
    Messages that say something and tool calls are told, in their order. Left out are all other
    types (statuses, traces, reasoning, errors, …), transient items, and what lies in a
    sub-agent's container, which is a conversation of its own.

    What was cut off is told as far as it went, marked ``complete=False``; a call without a result
    is told with ``UNFINISHED`` as its error.

    Args:
        items: in the order in which they were made.
        turns: at most so many; None: all.
        visibility: ``trace`` tells what hidden blocks said, too.

    Raises:
        InvalidValue: ``turns`` is less than 1.
    """
    if turns is not None and turns < 1:
        raise InvalidValue("history", "turns of 1 or more, or None", repr(turns), "no such window")
    told: list[Utterance] = []
    beginnings: list[int] = []
    apart: set[str] = set()
    for item in items:
        content = item.content
        parent = item.provenance.parent
        if parent in apart or (
            isinstance(content, Container) and content.kind in _OWN_CONVERSATION
        ):
            apart.add(item.id)
            continue
        if item.transient or (visibility == "client" and item.visibility != "client"):
            continue
        match content:
            case Message(text=text, role=role) if text:
                if role == "user":
                    beginnings.append(len(told))
                told.append(Said(role=role, text=text, complete=item.status == "completed"))
            case ToolOutput():
                told.append(_called(content, item.status))
            case _:
                pass
    return _last(told, beginnings, turns)


def _called(call: ToolOutput, status: ItemStatus) -> Called:
    ended = status in ("completed", "failed")
    unanswered = not ended and call.output is None
    return Called(
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
        output=UNFINISHED if unanswered else call.output,
        is_error=call.is_error or unanswered or status == "failed",
        complete=ended,
    )


def _last(told: list[Utterance], beginnings: Sequence[int], turns: int | None) -> list[Utterance]:
    if turns is None or len(beginnings) <= turns:
        return told
    return told[beginnings[-turns] :]
