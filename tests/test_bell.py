"""The bell: a ring wakes whoever waits, is never missed, and leaves nobody lying there."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.bell import Bell

pytestmark = pytest.mark.anyio


async def test_a_ring_wakes_all_who_wait() -> None:
    """Whoever waits at that moment; it can be rung again at once, and again for the next."""
    bell, woken = Bell(), 0

    async def wait() -> None:
        nonlocal woken
        await bell.wait()
        woken += 1

    for expected in (3, 6):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert repr(bell) == "<Bell, 3 waiting>"
            bell.ring()
            bell.ring()
        assert woken == expected
    assert repr(bell) == "<Bell, 0 waiting>"


async def test_a_ring_that_nobody_heard_is_kept_for_the_next() -> None:
    """Once, however often it was rung: who waits after that sleeps."""
    bell = Bell()
    bell.ring()
    bell.ring()
    with anyio.fail_after(5):
        await bell.wait()
    with anyio.move_on_after(0.01) as scope:
        await bell.wait()
    assert scope.cancelled_caught


async def test_waiting_ends_when_its_time_is_over() -> None:
    """As if it had been rung, and a ring ends it sooner."""
    bell = Bell()
    with anyio.fail_after(5):
        await bell.wait(0.001)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bell.wait, 60)
            await anyio.wait_all_tasks_blocked()
            bell.ring()
    assert repr(bell) == "<Bell, 0 waiting>"


async def test_who_is_cancelled_waits_no_more_and_wakes_nobody() -> None:
    """The cancellation goes on, and the others sleep on until it is rung."""
    bell = Bell()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bell.wait)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await bell.wait()
        assert scope.cancelled_caught
        with anyio.move_on_after(0.001):
            await bell.wait(60)
        await anyio.wait_all_tasks_blocked()
        assert repr(bell) == "<Bell, 1 waiting>"
        bell.ring()


@given(st.lists(st.sampled_from(["put", "take", "pass"]), max_size=40))
async def test_nothing_put_before_a_ring_is_left_lying(moves: list[str]) -> None:
    """One who looks, and waits when there is nothing, takes all that is put with a ring."""
    bell, heap, taken = Bell(), 0, 0

    async def take(count: int) -> None:
        nonlocal heap, taken
        while taken < count:
            while heap == 0:
                await bell.wait()
            heap -= 1
            taken += 1

    puts = moves.count("put")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take, puts)
            for move in moves:
                if move == "put":
                    heap += 1
                    bell.ring()
                elif move == "pass":
                    await anyio.lowlevel.checkpoint()
                else:
                    bell.ring()
    assert (heap, taken) == (0, puts)
