"""
What an action does when another request of the same key is in flight: values, no behaviour.

``flowstate.admission`` decides by them. A policy arbitrates on a key; without a key there is
nothing to arbitrate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final, get_args

from flowstate.errors import DefinitionError
from flowstate.ids import Identity

Key: TypeAlias = Literal["session", "user"] | None | Callable[[Identity], str | None]
"""What requests are arbitrated on: the session (default), the user, nothing, or a function."""

PolicyName: TypeAlias = Literal["allow", "queue", "reject"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One concurrency policy with its settings."""

    name: PolicyName
    key: Key = "session"
    wait: float | None = None
    """Seconds a queued request waits for its turn before it fails with QueueTimeout."""


def allow() -> Policy:
    """Requests run side by side; nothing is arbitrated."""
    return Policy(name="allow", key=None)


def queue(*, wait: float = 30.0, key: Key = "session") -> Policy:
    """One at a time, in the order of acceptance; QueueTimeout after ``wait`` seconds."""
    if not wait > 0:
        raise DefinitionError("queue", f"wait={wait!r}", "Give seconds, more than 0.")
    return Policy(name="queue", key=key, wait=wait)


def reject(*, key: Key = "session") -> Policy:
    """One at a time; a request that comes while another runs is refused."""
    return Policy(name="reject", key=key)


def as_policy(value: Policy | PolicyName, where: str) -> Policy:
    """
    The policy that a name or a value stands for.

    Raises:
        DefinitionError: the name is none of ours.
    """
    match value:
        case Policy():
            return value
        case "allow":
            return allow()
        case "queue":
            return queue()
        case "reject":
            return reject()
        case _:
            names = ", ".join(repr(name) for name in get_args(PolicyName))
            raise DefinitionError(where, f"concurrency={value!r}", f"Use one of {names}.")
