"""
Cancelling at any point of any composition: nothing new starts, nothing is left, the next runs.

Blocks here may hide their cancellation or fail in their clean-up, as real ones do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Failure, Handler, Runtime, action, define_flow, run_block, sequencer
from flowstate.define.handler import make_handler
from flowstate.errors import RequestCancelled
from flowstate.request.lifecycle import ENDED
from flowstate.request.run import Run
from flowstate.store.memory import MemoryStore
from flowstate.testing import compositions
from tests.properties.effort import examples

BACKENDS = ["asyncio", "trio"]


class Log:
    """What started and ended, and a hand on the run: it may cancel at an event of its choice."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, at: int | None = None) -> None:
        """A new example; ``at``: cancel when so many events have happened."""
        self.events: list[tuple[str, str]] = []
        self.at = at
        self.run: Run[Any] | None = None
        self.cancelled_at: int | None = None
        self.too_late: str | None = None

    def __call__(self, what: str, name: str) -> None:
        self.events.append((what, name))
        if self.at is not None and len(self.events) == self.at:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the run, and note when and whether it had been decided by then."""
        assert self.run is not None
        if self.cancelled_at is None:
            self.cancelled_at = len(self.events)
            outcome = self.run._execution.outcome
            self.too_late = None if outcome is None else outcome[0]
            self.run.cancel("by the law")

    @property
    def open(self) -> int:
        """How many blocks have started and not ended."""
        whats = [what for what, _ in self.events]
        return whats.count("start") - whats.count("end")

    def started_after(self) -> list[str]:
        """Whatever started after the cancel."""
        assert self.cancelled_at is not None
        return [name for what, name in self.events[self.cancelled_at :] if what == "start"]


LOG = Log()


def unruly_block(
    name: str, act: Callable[[int], int], *, waits: int = 0, recorder: object = None
) -> Handler[int, int]:
    """Like ``scripted_block``; by its number of waits it hides a cancellation, or fails at it."""

    async def run(value: int) -> int:
        LOG("start", name)
        try:
            for _ in range(waits):
                await anyio.lowlevel.checkpoint()
            return act(value)
        except anyio.get_cancelled_exc_class():
            if waits == 2:
                return value
            if waits == 3:
                raise ValueError("in clean-up") from None
            raise
        finally:
            LOG("end", name)

    return make_handler(run, name=name, input_type=int, output_type=int)


def noted_rescue(name: str, result: int, *, waits: int = 0) -> Handler[Failure[Exception], int]:
    """Like ``scripted_rescue``, noting that it started."""

    async def run(failure: Failure[Exception]) -> int:
        LOG("start", name)
        try:
            await anyio.lowlevel.checkpoint()
        finally:
            LOG("end", name)
        return result

    return make_handler(run, name=name, input_type=Failure[Exception], output_type=int)


@contextmanager
def unruly() -> Iterator[None]:
    """Within it, compositions are drawn of the blocks above."""
    with (
        patch.object(compositions, "scripted_block", unruly_block),
        patch.object(compositions, "scripted_rescue", noted_rescue),
    ):
        yield


def tasks() -> set[Any]:
    """All tasks of asyncio's loop; on trio there is nothing to look at."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return set()
    return set(asyncio.all_tasks())


@make_handler
async def follows(value: int) -> int:
    return value + 1


async def cancelled_in_the_middle(block: Any, value: int, ticks: int | None) -> None:
    """Run it, cancel it after so many ticks (or at the log's own event), and look at the rest."""
    go_on = anyio.Event()

    async def waits(given: int) -> int:
        await go_on.wait()
        return given

    gated = sequencer("law", int).step(make_handler(waits)).step(block)
    law = action("law", gated, concurrency="queue")
    after = action("after", follows, concurrency="queue")
    flow = define_flow("laws", actions=[law, after])
    store = MemoryStore()
    before = tasks()
    async with Runtime(flow, store=store) as runtime:
        inside = tasks()
        run = await runtime.dispatch(law, value, session="s")
        LOG.run = run
        next_run = await runtime.dispatch(after, 1, session="s")
        await run.started()
        go_on.set()
        if ticks is not None:
            for _ in range(ticks):
                await anyio.lowlevel.checkpoint()
            LOG.cancel()
        with anyio.fail_after(20):
            status = await run.finished()
            # Its place is free: what was queued behind it runs.
            assert await next_run.output() == 2
            await next_run.finished()
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        assert tasks() == inside
        record = await store.request(run.id)
    assert tasks() == before
    assert record is not None
    assert record.status == status
    assert LOG.open == 0
    if LOG.cancelled_at is None:
        assert status in ("completed", "failed")  # over before its time came
        return
    if status not in ENDED or LOG.too_late is None:
        assert status == "cancelled"
        assert LOG.started_after() == []
        with pytest.raises(RequestCancelled, match="by the law"):
            await run.output()
    else:
        # Its output had been decided: that stands, and only its side chains were ended.
        assert status == LOG.too_late
        assert LOG.started_after() == []


@pytest.mark.parametrize("backend", BACKENDS)
@examples(120)
@given(data=st.data(), value=st.integers(0, 9), at=st.integers(1, 25))
def test_cancelled_at_any_event_nothing_more_starts(
    backend: str, data: st.DataObject, value: int, at: int
) -> None:
    """The cancel comes out of the run's own task, as a block starts or ends."""
    with unruly():
        block = data.draw(compositions.sequencers())
    LOG.begin(at)
    anyio.run(cancelled_in_the_middle, block, value, None, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@examples(120)
@given(data=st.data(), value=st.integers(0, 9), ticks=st.integers(0, 25))
def test_cancelled_at_any_tick_nothing_more_starts(
    backend: str, data: st.DataObject, value: int, ticks: int
) -> None:
    """The cancel comes from outside, between two turns of the event loop."""
    with unruly():
        block = data.draw(compositions.sequencers())
    LOG.begin()
    anyio.run(cancelled_in_the_middle, block, value, ticks, backend=backend)


async def host_cancelled(block: Any, value: int, ticks: int) -> None:
    """Cancel the host's own scope around the Runtime, with two requests under way."""
    law = action("law", block, concurrency="queue")
    store = MemoryStore()
    before = tasks()
    runs: list[Run[Any]] = []
    with anyio.fail_after(20), anyio.CancelScope() as scope:
        async with Runtime(define_flow("laws", actions=[law]), store=store) as runtime:
            for _ in range(2):
                runs.append(await runtime.dispatch(law, value, session="s"))
            for _ in range(ticks):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.sleep_forever()
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert tasks() == before
    await store.open()
    for run in runs:
        record = await store.request(run.id)
        assert record is not None
        assert record.status == run.status
        assert run.status in ENDED
    assert LOG.open == 0


@pytest.mark.parametrize("backend", BACKENDS)
@examples(80)
@given(data=st.data(), value=st.integers(0, 9), ticks=st.integers(0, 20))
def test_a_cancelled_host_finds_every_request_ended_and_recorded(
    backend: str, data: st.DataObject, value: int, ticks: int
) -> None:
    """Whatever they were doing: no task is left, no block is open, and the rows say how."""
    with unruly():
        block = data.draw(compositions.sequencers())
    LOG.begin()
    anyio.run(host_cancelled, block, value, ticks, backend=backend)


async def scope_cancelled(block: Any, value: int, ticks: int) -> None:
    """Cancel a scope around a run without a Runtime."""
    before = tasks()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            ended = anyio.Event()

            async def runs() -> None:
                try:
                    await run_block(block, value)
                except Exception:  # the composition's own failure
                    pass
                finally:
                    ended.set()

            group.start_soon(runs)
            for _ in range(ticks):
                await anyio.lowlevel.checkpoint()
            if not ended.is_set():
                LOG.cancelled_at = len(LOG.events)
            group.cancel_scope.cancel()
    assert tasks() == before
    assert LOG.open == 0
    if LOG.cancelled_at is not None:
        assert not [name for name in LOG.started_after() if name.startswith("mend")]


@pytest.mark.parametrize("backend", BACKENDS)
@examples(80)
@given(data=st.data(), value=st.integers(0, 9), ticks=st.integers(0, 20))
def test_a_cancelled_scope_finds_nothing_running_and_no_rescue_saw_it(
    backend: str, data: st.DataObject, value: int, ticks: int
) -> None:
    """A run by itself, in a task of the caller's."""
    with unruly():
        block = data.draw(compositions.sequencers())
    LOG.begin()
    anyio.run(scope_cancelled, block, value, ticks, backend=backend)
