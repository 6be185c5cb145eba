"""What a policy decides, as a table."""

from __future__ import annotations

import pytest

from flowstate import allow, queue, reject
from flowstate.admission.decide import (
    Expire,
    Lost,
    Start,
    StartNow,
    TakePlace,
    Wait,
    on_arrival,
    on_turn,
)
from flowstate.define.policy import Policy
from flowstate.lease.protocol import Gone, No, Turn, Yes

BEHIND = No(position=2, behind="r1")


@pytest.mark.parametrize(
    ("policy", "key", "decision"),
    [
        (allow(), "k", StartNow()),
        (allow(), None, StartNow()),
        (queue(), "k", TakePlace(only_if_empty=False)),
        (queue(), None, StartNow()),
        (reject(), "k", TakePlace(only_if_empty=True)),
        (reject(), None, StartNow()),
    ],
)
def test_on_arrival(policy: Policy, key: str | None, decision: object) -> None:
    """Without a key nothing is arbitrated; reject wants the key for itself."""
    assert on_arrival(policy, key) == decision


@pytest.mark.parametrize(
    ("policy", "turn", "waited", "decision"),
    [
        (queue(), Yes(), 0.0, Start()),
        (queue(wait=5), Yes(), 99.0, Start()),
        (queue(wait=5), BEHIND, 0.0, Wait(seconds=5.0, behind="r1")),
        (queue(wait=5), BEHIND, 3.5, Wait(seconds=1.5, behind="r1")),
        (queue(wait=5), BEHIND, 5.0, Expire(behind="r1")),
        (queue(wait=5), BEHIND, 9.0, Expire(behind="r1")),
        (queue(), Gone(reason="lost"), 0.0, Lost(reason="lost")),
        (reject(), Yes(), 0.0, Start()),
        (reject(), BEHIND, 1e9, Wait(seconds=None, behind="r1")),
    ],
)
def test_on_turn(policy: Policy, turn: Turn, waited: float, decision: object) -> None:
    """The turn starts it, however long it waited; no turn waits for what is left of its wait."""
    assert on_turn(policy, turn, waited) == decision
