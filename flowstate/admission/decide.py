"""
What a policy does: decisions only, from values to values. ``admit`` carries them out.

    policy   on arrival                     its turn    not its turn            its wait is over
    allow    starts, takes no place         –           –                       –
    queue    takes a place                  starts      waits                   fails, QueueTimeout
    reject   takes a place if key is free   starts      refused at arrival      –
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

from flowstate.define.policy import Policy
from flowstate.lease.protocol import Gone, No, Turn, Yes


@final
@dataclass(frozen=True, slots=True)
class StartNow:
    """Run it, without a place."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TakePlace:
    """Take a place; refused if it must be the only one and isn't."""

    only_if_empty: bool


@final
@dataclass(frozen=True, slots=True)
class Start:
    """Its turn has come."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait for a change, at most so many seconds; None: as long as it takes."""

    seconds: float | None
    behind: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """It has waited long enough."""

    behind: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Its place is gone."""

    reason: str


Arrival: TypeAlias = StartNow | TakePlace
Waiting: TypeAlias = Start | Wait | Expire | Lost


def on_arrival(policy: Policy, key: str | None) -> Arrival:
    """What to do with a request that arrives."""
    if policy.name == "allow" or key is None:
        return StartNow()
    return TakePlace(only_if_empty=policy.name == "reject")


def on_turn(policy: Policy, turn: Turn, waited: float) -> Waiting:
    """What to do with a request that holds a place; ``waited`` is in seconds."""
    match turn:
        case Yes():
            return Start()
        case Gone(reason=reason):
            return Lost(reason=reason)
        case No(behind=behind):
            if policy.wait is None:
                return Wait(seconds=None, behind=behind)
            left = policy.wait - waited
            return Wait(seconds=left, behind=behind) if left > 0 else Expire(behind=behind)
        case _:
            assert_never(turn)
