"""Waiting for a condition over a request's items: met, out of time, or cancelled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Context, Failure, Runtime, handler, run_block, sequencer
from flowstate.errors import TimedOut
from flowstate.item.content import Message
from flowstate.item.item import Item
from tests.request.desk import flow_of
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


def texts(items: Sequence[Item]) -> list[str]:
    """The texts of the messages, settled or not."""
    return [item.content.text for item in items if isinstance(item.content, Message)]


@handler
async def says(value: int, ctx: Context) -> int:
    for number in range(value):
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        ctx.items.add(Message(text=str(number)))
    return value


@handler
def says_in_a_thread(value: int, ctx: Context) -> int:
    for number in range(value):
        time.sleep(0.01)
        ctx.items.add(Message(text=str(number)))
    return value


@handler
async def zero(failure: Failure[TimedOut]) -> int:
    return 0


@pytest.mark.parametrize("speaker", [says, says_in_a_thread], ids=["task", "thread"])
async def test_it_goes_on_when_the_items_meet_the_condition(speaker: Any) -> None:
    """Items of a side chain, whatever thread they are made in; those made before count too."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(says)
        .side_chain(lambda _: 3, speaker)
        .wait_for_condition(lambda items: len(texts(items)) >= 4)
        .step(journal.block("next"))
    )
    with anyio.fail_after(10):
        assert await run_block(built, 2) == 2
    flow, ask = flow_of(built)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 2, session="s")
        with anyio.fail_after(10):
            assert await run.output() == 2
            assert await run.finished() == "completed"
    assert journal.count("next starts") == 2


async def test_the_condition_sees_each_item_as_it_is_now() -> None:
    """Streamed text included, in the order the items were made."""
    seen: list[list[str]] = []
    there, go_on = anyio.Event(), anyio.Event()

    @handler
    async def streams(value: int, ctx: Context) -> int:
        first = ctx.items.open(Message(text="a"))
        ctx.items.add(Message(text="z"))
        there.set()
        await go_on.wait()
        first.append("b")
        return value

    def condition(items: Sequence[Item]) -> bool:
        seen.append(texts(items))
        if seen[-1] == ["a", "z"]:
            go_on.set()
        return seen[-1] == ["ab", "z"]

    with anyio.fail_after(10):
        await run_block(sequencer("turn", int).side_chain(streams).wait_for_condition(condition), 1)
    assert seen[0] == []
    assert seen[-1] == ["ab", "z"]


async def test_a_condition_that_holds_already_is_no_wait() -> None:
    """Also of no items at all."""
    with anyio.fail_after(10):
        built = sequencer("turn", int).wait_for_condition(lambda items: not items)
        assert await run_block(built, 1) == 1


async def test_out_of_time_it_raises_or_goes_on() -> None:
    """As the author says."""
    start = sequencer("turn", int)
    with pytest.raises(TimedOut, match="turn/wait_for_condition"):
        await run_block(start.wait_for_condition(lambda _: False, timeout=0.02), 1)
    going = start.wait_for_condition(lambda _: False, timeout=0.02, on_timeout="go_on")
    assert await run_block(going, 1) == 1


async def test_cancelled_it_does_neither() -> None:
    """The cancellation goes on: no rescue of the timeout, no next step."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .wait_for_condition(lambda _: False, timeout=30)
        .rescue(TimedOut, zero)
        .step(journal.block("next"))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(built, 1)
    assert scope.cancelled_caught
    assert journal.lines == []


async def test_a_condition_that_raises_is_the_waits_failure() -> None:
    """Bare, at the step."""

    def broken(items: Sequence[Item]) -> bool:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken") as caught:
        await run_block(sequencer("turn", int).wait_for_condition(broken), 1)
    assert caught.value.__notes__ == ["in step turn/wait_for_condition, input: int"]
