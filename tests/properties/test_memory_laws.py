"""
A long run needs no more memory than a short one: not for its turns, not for items kept nowhere.

What is counted is what the second half of a run adds to the first. Every day that is the memory
that Python handed out, over short runs with small buffers; under ``make soak`` it is the process's
resident memory, over a hundred thousand turns and a million items.
"""

from __future__ import annotations

import functools
import gc
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from flowstate import Block, Context, Runtime, action, define_flow, handler, sequencer
from flowstate.item.content import Component, Message
from flowstate.item.visibility import Visibility
from flowstate.request import execution
from flowstate.stream.outbox import Outbox

pytestmark = [pytest.mark.anyio, pytest.mark.may_block]  # it reads how large the process is

SOAK = bool(os.environ.get("FLOWSTATE_SOAK"))
STATM = Path("/proc/self/statm")
TURNS = 100_000 if SOAK else 4_000
FORKS = 100_000 if SOAK else 400
ITEMS = 1_000_000 if SOAK else 2_000
CHANGES = 1_000_000 if SOAK else 4_000
LOOKS = 3
"""How often the end of each half is looked at. The least counts: what is on its way passes."""
RESIDENT_GROWTH = 5_000_000
"""Bytes of resident memory that the second half may add; the allocator's own share."""
GROWTH = 100_000
"""Bytes of allocated memory that it may add: less than an object or two a turn or item."""

needs_statm = pytest.mark.skipif(
    SOAK and not STATM.exists(), reason="resident memory is read the way Linux tells it"
)


class Halves:
    """Measures the memory several times before the middle of so many things, and before the end."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.done = 0
        self.sizes: list[int] = []
        end_of_half = [count // 2 - look * count // 100 for look in range(LOOKS)]
        self._looks = {*end_of_half, *(done + count // 2 for done in end_of_half)}

    async def one_more(self) -> None:
        """Another thing was done."""
        self.done += 1
        if self.done in self._looks:
            for _ in range(50):  # what was told so far is stored and shown
                await anyio.lowlevel.checkpoint()
            gc.collect()
            self.sizes.append(_resident() if SOAK else tracemalloc.get_traced_memory()[0])

    def check(self) -> None:
        """The second half added next to nothing."""
        assert len(self.sizes) == 2 * LOOKS
        grown = min(self.sizes[LOOKS:]) - min(self.sizes[:LOOKS])
        allowed = RESIDENT_GROWTH if SOAK else GROWTH
        assert grown < allowed, f"{grown} bytes more after {self.count} than after half of it"


def _resident() -> int:
    return int(STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In short runs counts what is allocated, and lets a request's ring be full before the half."""
    if SOAK:
        yield
        return
    monkeypatch.setattr(execution, "Outbox", functools.partial(Outbox, capacity=1024))
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def _run(block: Block[int, int], *, trace: bool = False, readers: str = "none") -> None:
    """One request, with or without somebody who reads along."""
    turn = action("turn", block)
    async with Runtime(define_flow("f", actions=[turn]), trace=trace) as runtime:
        run = await runtime.dispatch(turn, 0, session="s1")
        if readers == "one that stopped":
            stopped = run.events(visibility="trace")
            await stopped.take()
        if readers == "one that keeps up":
            async for _ in run.events(visibility="trace"):
                pass
        await run.output()


def counting(halves: Halves) -> Block[int, int]:
    """A block that counts its calls."""

    @handler
    async def count(value: int) -> int:
        await halves.one_more()
        return value + 1

    return count


def a_plain_loop(halves: Halves) -> Block[int, int]:
    """A loop over one block."""
    return sequencer("turn", int).do_until(
        lambda n: n >= halves.count, counting(halves), max_iterations=None
    )


def a_loop_over_a_fork(halves: Halves) -> Block[int, int]:
    """Branches, an entry, a retry and a side chain in every turn."""

    @handler
    async def same(value: int) -> int:
        await anyio.lowlevel.checkpoint()
        return value

    body = (
        sequencer("body", int)
        .step_all(same, same)
        .for_each(same)
        .map(lambda values: values[0])
        .side_chain(same)
        .wait_for_side_chains()
        .step(counting(halves))
    )
    return sequencer("turn", int).do_until(lambda n: n >= halves.count, body, max_iterations=None)


@needs_statm
@pytest.mark.parametrize("loop", [a_plain_loop, a_loop_over_a_fork])
@pytest.mark.parametrize("trace", [False, True])
async def test_turns_of_a_loop_leave_nothing(
    loop: Callable[[Halves], Block[int, int]], trace: bool
) -> None:
    """Neither a plain turn, nor one that forks, nor the traces of it."""
    halves = Halves(TURNS if loop is a_plain_loop else FORKS)
    await _run(loop(halves), trace=trace)
    halves.check()


@needs_statm
@pytest.mark.parametrize("readers", ["none", "one that keeps up", "one that stopped"])
@pytest.mark.parametrize("visibility", ["client", "trace"])
async def test_items_kept_nowhere_leave_nothing(readers: str, visibility: Visibility) -> None:
    """However many are shown, streamed and settled, whoever may read them, and does or doesn't."""
    halves = Halves(ITEMS)

    @handler(transient=True, visibility=visibility)
    async def show(value: int, ctx: Context) -> int:
        for number in range(ITEMS):
            item = ctx.items.open(Message(text="one"))
            item.append(" more")
            item.settle()
            ctx.status.show("now")
            if not number % 30:
                await anyio.lowlevel.checkpoint()
            await halves.one_more()
        return value

    await _run(show, readers=readers)
    halves.check()


@needs_statm
async def test_changes_of_one_item_leave_nothing() -> None:
    """An item that is brought up to date again and again is as large as its last content."""
    halves = Halves(CHANGES)

    @handler
    async def change(value: int, ctx: Context) -> int:
        for number in range(CHANGES):
            ctx.items.upsert("card", Component(name="card", properties={"number": number}))
            if not number % 30:
                await anyio.lowlevel.checkpoint()
            await halves.one_more()
        return value

    await _run(change)
    halves.check()


async def test_the_measure_finds_what_is_kept() -> None:
    """A block that keeps a small thing a turn is found by it."""
    halves = Halves(TURNS)
    kept: list[object] = []

    @handler(inline=True)
    def keep(value: int) -> int:
        kept.append([value])
        return value

    built = sequencer("body", int).step(keep).step(counting(halves))
    await _run(sequencer("turn", int).do_until(lambda n: n >= TURNS, built, max_iterations=None))
    if not SOAK:  # a hundred thousand of them may fit into memory that was free
        with pytest.raises(AssertionError, match="bytes more"):
            halves.check()
