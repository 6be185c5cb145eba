"""Cancelling a request: at once, at every level, and never one that came later."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Context, Failure, Retry, Runtime, handler, run_block, sequencer
from flowstate.errors import RequestCancelled, RequestError
from flowstate.store.memory import MemoryStore
from tests.request.desk import Ledger, flow_of
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


async def test_a_cancelled_request_ends_cancelled() -> None:
    """Its output raises with the reason, its row says so, and its blocks have cleaned up."""
    journal = Journal()
    ledger = Ledger()
    flow, ask = flow_of(sequencer("turn", int).step(stuck(journal, "work", cleaning=3)))
    async with Runtime(flow, store=ledger) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        await run.started()
        run.cancel("changed my mind")
        with pytest.raises(RequestCancelled, match="changed my mind") as caught:
            await run.output()
        assert caught.value.reason == "changed my mind"
        assert await run.finished() == "cancelled"
        record = await ledger.request(run.id)
        assert record is not None
        assert (record.status, record.error) == ("cancelled", "changed my mind")
    assert journal.lines[-1] == "work is over"
    assert ledger.of(run.id) == ["accepted", "running", "cancelled"]


async def test_cancelling_twice_or_too_late_changes_nothing() -> None:
    """The first reason stands, and what has ended has ended."""
    journal = Journal()
    flow, ask = flow_of(stuck(journal, "work"))
    quick_flow, quick = flow_of(journal.block("quick"))
    quick_flow = type(quick_flow)(
        kind="quick", actions=quick_flow.actions, concurrency=quick_flow.concurrency
    )
    async with Runtime(flow, quick_flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        run.cancel("first")
        run.cancel("second")
        with pytest.raises(RequestCancelled, match="first"):
            await run.output()
        done = await runtime.dispatch(quick, 5, session="s1")
        await done.finished()
        done.cancel("late")
        assert done.status == "completed"
        assert await done.output() == 5


async def test_a_request_that_is_cancelled_before_it_starts_never_does() -> None:
    """No block of it runs."""
    journal = Journal()
    flow, ask = flow_of(journal.block("work"))
    async with Runtime(flow, max_running=1) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        run.cancel()
        assert await run.finished() == "cancelled"
        assert not await run.started()
    assert journal.lines == []


async def test_nested_levels_stop_within_a_step_innermost_first() -> None:
    """A loop in a sequencer in a sequencer: cancelled in the middle, it does no more steps."""
    seen: list[str] = []

    @handler
    async def step(value: int) -> int:
        seen.append("step")
        try:
            await anyio.sleep(0.002)
        finally:
            seen.append("step over")
        return value + 1

    loop = sequencer("loop", int).do_until(lambda v: v > 500, step, max_iterations=None)

    @handler
    async def outer(value: int) -> int:
        try:
            return await run_block(sequencer("inner", int).step_all(loop).map(sum), value)
        finally:
            seen.append("outer over")

    flow, ask = flow_of(sequencer("turn", int).step(sequencer("nested", int).step(outer)))
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        await anyio.sleep(0.05)
        steps = seen.count("step")
        run.cancel()
        assert await run.finished() == "cancelled"
        assert 0 < steps <= seen.count("step") <= steps + 1
        await anyio.sleep(0.02)
        assert seen.count("step") <= steps + 1
    assert seen[-2:] == ["step over", "outer over"]


async def test_no_retry_rescue_or_alternative_is_tried_for_a_cancelled_request() -> None:
    """Whatever stands around the block that is cancelled."""
    journal = Journal()
    retry = Retry(attempts=5, retry_on=(Exception,), delay=0.001)
    work = stuck(journal, "work", fails_cleaning=ValueError("turned"), retry=retry)
    built = (
        sequencer("turn", int, retry=retry)
        .step_any(work, journal.block("second"))
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
        .step(journal.block("next"))
    )
    flow, ask = flow_of(built)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        await run.started()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        run.cancel()
        assert await run.finished() == "cancelled"
        with pytest.raises(RequestCancelled):
            await run.output()
    assert journal.starts() == ["work"]


async def test_a_block_that_fails_while_it_is_cancelled_leaves_the_request_cancelled() -> None:
    """The error of its clean-up is an item, and not how the request ended."""
    journal = Journal()
    for beside in (False, True):
        work = stuck(journal, "work", fails_cleaning=ValueError("in clean-up"))
        built = sequencer("turn", int)
        if beside:
            built = built.side_chain(stuck(journal, "beside"))
        flow, ask = flow_of(built.step(work))
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.started()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            run.cancel("stop")
            with pytest.raises(RequestCancelled, match="stop"):
                await run.output()
            assert await run.finished() == "cancelled"
            items: list[Any] = [item async for item in run.items()]
        assert [(item.content.code, item.content.message) for item in items] == [
            ("ValueError", "in clean-up")
        ]


async def test_a_block_that_hides_its_cancellation_gets_no_further() -> None:
    """What it returns is discarded, at any depth."""
    journal = Journal()

    @handler
    async def hides(value: int) -> int:
        journal.lines.append("hides")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return value

    start = sequencer("turn", int)
    for around in (
        start.step(hides),
        start.step_all(hides, hides),
        start.race(hides, hides),
        start.step_any(hides, journal.block("second")),
        start.map(lambda v: [v]).for_each(hides),
        start.do_until(lambda _: False, hides, max_iterations=9),
        start.tap(hides),
        start.side_chain(sequencer("s", int).step(hides).step(journal.block("beside"))).step(hides),
    ):
        built: Any = around
        flow, ask = flow_of(built.map(lambda _: 1).step(journal.block("next")))
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.started()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            run.cancel()
            with anyio.fail_after(10):
                assert await run.finished() == "cancelled"
    assert journal.starts() == []
    assert journal.count("hides") >= 8


async def test_a_block_is_told_the_reason() -> None:
    """``ctx.cancelled`` is None before, and the reason then."""
    seen: list[str | None] = []

    @handler
    async def looks(value: int, ctx: Context) -> int:
        seen.append(ctx.cancelled)
        try:
            await anyio.sleep_forever()
        finally:
            seen.append(ctx.cancelled)
        return value

    flow, ask = flow_of(looks)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        await run.started()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        run.cancel("over")
        await run.finished()
    assert seen == [None, "over"]


async def test_a_cancel_in_the_moment_the_awaited_work_is_done_isn_t_lost() -> None:
    """Set the result and cancel in one tick, in both orders: never a run to the end."""
    for number in range(100):
        journal = Journal()
        done = anyio.Event()
        built = (
            sequencer("turn", int)
            .step(journal.block("waits", until=done))
            .step(journal.block("next", waits=1))
            .step(journal.block("last"))
        )
        flow, ask = flow_of(built)
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.started()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            if number % 2:
                done.set()
                run.cancel()
            else:
                run.cancel()
                done.set()
            assert await run.finished() == "cancelled"
        assert "next" not in journal.starts()


async def test_a_cancel_means_the_request_one_looked_at() -> None:
    """All its attempts stop; a later request, of whatever id, is another one."""
    journal = Journal()
    attempts: list[int] = []
    again = anyio.Event()
    retry = Retry(attempts=9, retry_on=(ValueError,), delay=0.001)

    @handler(retry=retry)
    async def flaky(value: int, ctx: Context) -> int:
        attempts.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("first")
        again.set()
        await anyio.sleep_forever()
        return value

    flow, ask = flow_of(flaky)
    async with Runtime(flow, store=MemoryStore()) as runtime:
        first = await runtime.dispatch(ask, 1, session="s1", request_id="r1")
        with anyio.fail_after(10):
            await again.wait()
            first.cancel("stop r1")
            assert await first.finished() == "cancelled"
        with pytest.raises(RequestError):
            await runtime.dispatch(ask, 1, session="s1", request_id="r1")
        later = await runtime.dispatch(ask, 1, session="s1", request_id="r2")
        await later.started()
        first.cancel("once more")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert later.status == "running"
        later.cancel()
    assert attempts[:2] == [1, 2]
    assert journal.lines == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_no_task_is_left_of_a_cancelled_request() -> None:
    """Branches, side chains, readers: all tasks before and after are the same."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .side_chain(stuck(journal, "beside", cleaning=2))
        .step_all(stuck(journal, "a", cleaning=2), stuck(journal, "b"))
        .map(len)
    )
    flow, ask = flow_of(built)
    before = asyncio.all_tasks()
    async with Runtime(flow) as runtime:
        inside = asyncio.all_tasks()
        run = await runtime.dispatch(ask, 1, session="s1")
        await run.started()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert len(asyncio.all_tasks()) > len(inside)
        run.cancel()
        await run.finished()
        await anyio.lowlevel.checkpoint()
        assert asyncio.all_tasks() == inside
    assert asyncio.all_tasks() == before
    assert journal.running == 0
