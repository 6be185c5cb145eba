"""The laws over random compositions, under many schedules, cancels and failures."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from flowstate.testing.compositions import sequencers
from flowstate.testing.laws import assert_laws
from flowstate.testing.oracle import outcomes
from flowstate.testing.simulation import CANCELLED, simulate
from tests.properties.effort import examples

VALUES = st.integers(0, 9)
SEEDS = st.integers(0, 2**16)


def _allowed(block: Any, value: int) -> list[Any]:
    return anyio.run(outcomes, block, value)


@examples(200)
@given(block=sequencers(), value=VALUES, seed=SEEDS)
def test_every_schedule_gives_an_outcome_of_the_oracle(block: Any, value: int, seed: int) -> None:
    """Whatever task goes first, the outcome is one of the oracle's and nothing is left behind."""
    run = simulate(block, value, seed=seed)
    assert run.faults == ()
    assert run.outcome in _allowed(block, value)


@examples(200)
@given(block=sequencers(), value=VALUES, seed=SEEDS, data=st.data())
def test_a_cancel_at_any_point_stops_everything(
    block: Any, value: int, seed: int, data: st.DataObject
) -> None:
    """After a cancel no node starts and no task is left; the run ends cancelled, or just ended."""
    turns = simulate(block, value, seed=seed).turns
    point = data.draw(st.integers(1, turns), label="cancel_at")
    run = simulate(block, value, seed=seed, cancel_at=point)
    assert run.faults == ()
    assert run.outcome == CANCELLED or run.outcome in _allowed(block, value)


@examples(20)
@given(block=sequencers(max_steps=3, max_depth=1), value=VALUES)
def test_random_compositions_keep_all_laws(block: Any, value: int) -> None:
    """What a user asserts of a flow of theirs holds for any composition of ours."""
    assert_laws(block, value, seeds=range(3), cancels=10)
