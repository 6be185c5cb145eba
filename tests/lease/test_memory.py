"""Places in memory: in order, woken by hand-over, with tickets that only rise."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from flowstate.lease.memory import MemoryLease
from flowstate.lease.protocol import Busy, Gone, LeaseBackend, No, Place, Yes

pytestmark = pytest.mark.anyio


async def taken(lease: MemoryLease, key: str, request_id: str) -> Place:
    """A place that must be there to take."""
    place = await lease.take(key, request_id, only_if_empty=False)
    assert isinstance(place, Place)
    return place


async def test_the_first_has_the_turn_and_the_others_know_whom_they_wait_for() -> None:
    """Positions count from the turn; each knows who is just ahead."""
    lease = MemoryLease()
    a, b, c = [await taken(lease, "k", name) for name in "abc"]
    assert await lease.is_my_turn(a) == Yes()
    assert await lease.is_my_turn(b) == No(position=1, behind="a")
    assert await lease.is_my_turn(c) == No(position=2, behind="b")
    assert await lease.places("k") == (a, b, c)
    await lease.give_back(b)
    assert await lease.is_my_turn(c) == No(position=1, behind="a")
    await lease.give_back(a)
    assert await lease.is_my_turn(c) == Yes()


async def test_a_request_has_one_place_on_a_key() -> None:
    """Asking again gives the same one."""
    lease = MemoryLease()
    a = await taken(lease, "k", "a")
    assert await lease.take("k", "a", only_if_empty=False) == a
    assert await lease.take("k", "a", only_if_empty=True) == a
    assert await lease.places("k") == (a,)


async def test_a_key_that_is_held_is_busy_for_who_wants_it_alone() -> None:
    """The answer names the request that has the turn, however many wait."""
    lease = MemoryLease()
    a = await taken(lease, "k", "a")
    await taken(lease, "k", "b")
    assert await lease.take("k", "c", only_if_empty=True) == Busy(request_id="a")
    assert len(await lease.places("k")) == 2
    other = await lease.take("other", "c", only_if_empty=True)
    assert isinstance(other, Place)
    await lease.give_back(a)


async def test_a_place_given_back_is_gone_and_giving_it_back_again_does_nothing() -> None:
    """Nobody else's place goes with it."""
    lease = MemoryLease()
    a = await taken(lease, "k", "a")
    await lease.give_back(a)
    b = await taken(lease, "k", "b")
    await lease.give_back(a)
    assert isinstance(await lease.is_my_turn(a), Gone)
    assert await lease.is_my_turn(b) == Yes()
    assert await lease.renew(b) is True
    assert await lease.renew(a) is False


async def test_tickets_rise_whatever_the_clock_does() -> None:
    """A clock that stands still or goes back makes no two tickets alike or out of order."""
    now = 100
    lease = MemoryLease(clock=lambda: now)
    tickets = [(await taken(lease, key, "a")).ticket for key in ("k1", "k2")]
    now = 50
    tickets.append((await taken(lease, "k3", "a")).ticket)
    now = 500
    tickets.append((await taken(lease, "k4", "a")).ticket)
    assert tickets == [100, 101, 102, 500]


async def test_a_waiting_place_is_woken_by_the_hand_over() -> None:
    """``changed`` returns when somebody ahead goes, and at once for who has the turn."""
    lease = MemoryLease()
    a, b, c = [await taken(lease, "k", name) for name in "abc"]
    woken: list[str] = []

    async def wait(place: Place) -> None:
        while await lease.is_my_turn(place) != Yes():
            await lease.changed(place)
        woken.append(place.request_id)

    with anyio.fail_after(10):
        await lease.changed(a)
        async with anyio.create_task_group() as group:
            group.start_soon(wait, b)
            group.start_soon(wait, c)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert woken == []
            await lease.give_back(a)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert woken == ["b"]
            await lease.give_back(b)
    assert woken == ["b", "c"]
    assert lease._woken == {}


async def test_a_wait_that_is_cancelled_leaves_nothing() -> None:
    """Neither an event, nor a place that it didn't have before."""
    lease = MemoryLease()
    a, b = [await taken(lease, "k", name) for name in "ab"]
    with anyio.move_on_after(0.01):
        await lease.changed(b)
    assert lease._woken == {}
    assert await lease.places("k") == (a, b)


async def test_a_place_that_is_given_back_while_it_waits_is_let_go() -> None:
    """Whoever waits at it hears that it is gone."""
    lease = MemoryLease()
    _, b, c = [await taken(lease, "k", name) for name in "abc"]
    heard: list[object] = []

    async def wait() -> None:
        await lease.changed(c)
        heard.append(await lease.is_my_turn(c))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            await lease.give_back(c)
    assert heard == [Gone(reason="it was given back")]
    assert await lease.is_my_turn(b) == No(position=1, behind="a")


async def test_nothing_is_kept_of_a_key_that_nobody_holds() -> None:
    """A server that sees a million sessions keeps none of them."""
    lease = MemoryLease()
    for number in range(100):
        await lease.give_back(await taken(lease, f"k{number}", "a"))
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"
    assert lease._places == {}


async def test_it_is_a_backend_that_lasts_as_long_as_its_process() -> None:
    """There is nothing to renew."""
    backend: LeaseBackend = MemoryLease()
    assert backend.ttl is None
