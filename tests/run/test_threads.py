"""Synchronous handlers: in worker threads, or inline; contexts copied; stopping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from flowstate import Context, handler, run_block, sequencer
from flowstate.errors import TimedOut
from flowstate.item.content import Message
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio

variable: ContextVar[str] = ContextVar("variable", default="unset")


async def test_a_synchronous_handler_runs_in_a_thread_and_an_inline_one_doesn_t() -> None:
    """The event loop's thread is left free, unless the author says that it is cheap."""

    @handler
    def apart(value: int) -> int:
        return threading.get_ident()

    @handler(inline=True)
    def here(value: int) -> int:
        return threading.get_ident()

    assert await run_block(apart, 1) != threading.get_ident()
    assert await run_block(here, 1) == threading.get_ident()


async def test_the_loop_goes_on_while_a_thread_works() -> None:
    """A blocking handler blocks nobody else."""
    release = threading.Event()

    @handler
    def blocks(value: int) -> int:
        assert release.wait(20)
        return value

    @handler
    async def lets_go(value: int) -> int:
        release.set()
        return value

    with anyio.fail_after(25):
        assert await run_block(sequencer("turn", int).step_all(blocks, lets_go), 1) == (1, 1)


async def test_a_thread_sees_the_context_variables_and_keeps_its_own() -> None:
    """They are copied in; what the thread sets stays there."""

    @handler
    def reads_and_sets(value: int) -> str:
        seen = variable.get()
        variable.set("by the thread")
        return seen

    token = variable.set("by the host")
    try:
        assert await run_block(sequencer("turn", int).step(reads_and_sets), 1) == "by the host"
        assert variable.get() == "by the host"
    finally:
        variable.reset(token)


async def test_a_thread_writes_items_and_state_of_its_step() -> None:
    """``ctx`` works from a thread: its items come out in order and are settled at its end."""

    @handler
    def says(value: int, ctx: Context) -> int:
        item = ctx.items.open(Message())
        for word in ("one", "two"):
            item.append(word)
        ctx.status.show("Working…")
        return value

    events: list[Any] = []
    await run_block(says, 1, emit=events.append)
    assert [event.kind for event in events] == [
        "added", "delta", "delta", "added", "settled", "settled",
    ]  # fmt: skip
    assert events[-1].item.content.text == "onetwo"
    assert events[-1].item.status == "incomplete"


async def test_an_error_in_a_thread_is_the_steps_error() -> None:
    """Bare, with the step's path."""

    @handler
    def fails(value: int) -> int:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread") as caught:
        await run_block(sequencer("turn", int).step(fails), 1)
    assert caught.value.__notes__ == ["in step turn/fails, input: int"]


async def _cancelled_in_a_thread(work: Callable[[Context], None]) -> Journal:
    """Run work in a handler's thread, cancel the run once it is there, and wait."""
    journal = Journal()
    there = anyio.Event()

    @handler
    def works(value: int, ctx: Context) -> int:
        anyio.from_thread.run_sync(there.set)
        try:
            work(ctx)
            journal.lines.append("finished")
        except BaseException as error:
            journal.lines.append(type(error).__name__)
            raise
        return value

    built = sequencer("turn", int).step(works).step(journal.block("next"))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await there.wait()
                scope.cancel()

            group.start_soon(cancel)
            await run_block(built, 1)
    assert scope.cancelled_caught
    return journal


async def test_a_thread_that_asks_is_stopped() -> None:
    """``check_cancelled`` raises the cancellation in the thread once there is one."""

    def work(ctx: Context) -> None:
        for _ in range(2000):
            ctx.check_cancelled()
            time.sleep(0.005)

    with anyio.fail_after(9):
        journal = await _cancelled_in_a_thread(work)
    assert journal.lines in (["CancelledError"], ["Cancelled"])


async def test_a_thread_that_doesn_t_ask_is_waited_for() -> None:
    """It can't be killed; what it gives is discarded and nothing behind it starts."""
    journal = await _cancelled_in_a_thread(lambda ctx: time.sleep(0.2))
    assert journal.lines == ["finished"]


async def test_an_inline_handler_may_ask_too() -> None:
    """There is nothing to raise on the event loop: the next await does."""

    @handler(inline=True)
    def asks(value: int, ctx: Context) -> int:
        ctx.check_cancelled()
        assert ctx.cancelled is None
        return value

    assert await run_block(sequencer("turn", int).step(asks), 1) == 1


async def test_a_thread_that_may_be_left_is_left_at_its_timeout() -> None:
    """The run goes on without it, and whatever it says later is ignored."""
    release = threading.Event()
    left = threading.Event()

    @handler(abandon=True, timeout=0.05)
    def slow(value: int, ctx: Context) -> int:
        item = ctx.items.open(Message(text="first"))
        release.wait(20)
        item.append("late")
        ctx.items.add(Message(text="later"))
        ctx.status.show("Still here")
        left.set()
        return value

    events: list[Any] = []
    try:
        with anyio.fail_after(10):
            with pytest.raises(TimedOut):
                await run_block(sequencer("turn", int).step(slow), 1, emit=events.append)
    finally:
        release.set()
    told = [(event.kind, event.item and event.item.status) for event in events]
    assert told == [("added", "in_progress"), ("settled", "incomplete")]
    assert await anyio.to_thread.run_sync(left.wait, 10)
    assert len(events) == 2


async def test_a_sequencers_limit_waits_for_its_thread_and_starts_no_other() -> None:
    """A thread under a limit is waited for; then the limit holds."""
    journal = Journal()

    @handler
    def slow(value: int) -> int:
        time.sleep(0.15)
        return value

    body = sequencer("body", int, timeout=0.05).step(slow).step(journal.block("next"))
    with pytest.raises(TimedOut):
        await run_block(sequencer("turn", int).step(body), 1)
    assert journal.lines == []
