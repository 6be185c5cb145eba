"""A listener hears of every node: its start, and how it ended."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate import handler, run_block, sequencer
from flowstate.run.frame import NodeEvent
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


def told(events: list[NodeEvent]) -> list[str]:
    """The events as text: what happened, where."""
    lines = []
    for what, frame, pc, turns, _ in events:
        place = frame.program.places[pc]
        lines.append(f"{what} {frame.path(place, turns)}")
    return lines


async def test_every_node_is_told_of_in_order() -> None:
    """Steps, maps, forks and their branches; not the jumps between them."""
    events: list[NodeEvent] = []
    built = (
        sequencer("turn", int)
        .step(add_one)
        .step_if(lambda value: value > 100, add_one)
        .parallel(only=add_one, max_concurrency=1)
        .map(len)
    )
    await run_block(built, 1, listener=events.append)
    assert told(events) == [
        "start turn/add_one",
        "end turn/add_one",
        "start turn/parallel",
        "start turn/parallel/only",
        "end turn/parallel/only",
        "end turn/parallel",
        "start turn/len",
        "end turn/len",
    ]


async def test_turns_and_entries_are_told_apart() -> None:
    """Each execution has its own path."""
    events: list[NodeEvent] = []
    each = sequencer("each", list[int]).for_each(add_one, max_concurrency=1)
    built = sequencer("turn", list[int]).do_until(lambda v: v[0] > 2, each, max_iterations=5)
    await run_block(built, [1, 1], listener=events.append)
    starts = [line for line in told(events) if line.startswith("start") and "item" in line]
    assert starts == [
        f"start turn/each/iter[{turn}]/add_one/item[{item}]" for turn in (0, 1) for item in (0, 1)
    ]


async def test_an_error_is_told_at_each_level_with_the_exception() -> None:
    """Where it was raised first, and the fork that it came out of."""
    events: list[NodeEvent] = []
    bad: Any = Journal().failing("bad", ValueError("x"))
    built = sequencer("turn", int).step_all(bad).map(len)
    with pytest.raises(ValueError, match="x") as caught:
        await run_block(built, 1, listener=events.append)
    errors = [event for event in events if event[0] == "error"]
    assert told(errors) == ["error turn/step_all/bad", "error turn/step_all"]
    assert all(event[4] is caught.value for event in errors)


async def test_listening_changes_no_result() -> None:
    """A for_each of one handler runs by another way when nobody listens; both give the same."""
    for built in (
        sequencer("turn", list[int]).for_each(add_one),
        sequencer("turn", list[int]).for_each(add_one, max_concurrency=1),
    ):
        silent = await run_block(built, [3, 1, 2])
        heard = await run_block(built, [3, 1, 2], listener=lambda event: None)
        assert silent == heard == [4, 2, 3]
