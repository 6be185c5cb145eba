"""Carrying a policy's decisions out: places taken, turns waited for, patience that ends."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import allow, queue, reject
from flowstate.admission.admit import take_place, wait_for_turn
from flowstate.errors import LeaseLost, QueueTimeout, RequestRefused
from flowstate.ids import RequestId
from flowstate.lease.memory import MemoryLease
from flowstate.lease.protocol import Place

pytestmark = pytest.mark.anyio

KEY = '[null, "session", "s"]'


async def place_of(lease: MemoryLease, request_id: str, policy: Any = None) -> Place:
    """A place by a policy that gives one."""
    place = await take_place(lease, policy or queue(), KEY, RequestId(request_id), "ask")
    assert place is not None
    return place


async def test_without_arbitration_there_is_no_place() -> None:
    """``allow``, and any policy without a key, take none."""
    lease = MemoryLease()
    assert await take_place(lease, allow(), KEY, RequestId("a"), "ask") is None
    assert await take_place(lease, queue(), None, RequestId("a"), "ask") is None
    assert await lease.places(KEY) == ()


async def test_a_refusal_names_the_action_and_the_request_in_flight() -> None:
    """And what to do; it leaves no place behind."""
    lease = MemoryLease()
    await place_of(lease, "first", reject())
    with pytest.raises(RequestRefused, match=r"'ask' refused: request 'first'.*queue") as caught:
        await place_of(lease, "second", reject())
    assert caught.value.in_flight == "first"
    assert caught.value.request_id == "second"
    assert len(await lease.places(KEY)) == 1


async def test_the_turn_of_an_empty_key_is_ones_own_at_once() -> None:
    """Nobody is told of a wait that isn't one."""
    lease = MemoryLease()
    told: list[str] = []

    async def tell(behind: str) -> None:
        told.append(behind)

    place = await place_of(lease, "a")
    await wait_for_turn(lease, queue(), place, RequestId("a"), tell)
    assert told == []


async def test_who_waits_is_told_whom_it_waits_behind_each_time_that_changes() -> None:
    """Woken because somebody further ahead is gone, it has nothing new to tell."""
    lease = MemoryLease()
    first, a, b, c = [await place_of(lease, name) for name in ("first", *"abc")]
    told: list[str] = []
    turned = anyio.Event()

    async def tell(behind: str) -> None:
        told.append(behind)

    async def wait() -> None:
        await wait_for_turn(lease, queue(), c, RequestId("c"), tell)
        turned.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            for place in (first, b, a):
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                assert not turned.is_set()
                await lease.give_back(place)
            await turned.wait()
    assert told == ["b", "a"]


async def test_patience_ends_with_the_request_one_waited_behind() -> None:
    """QueueTimeout says how long and behind whom; the place is still the caller's to give back."""
    lease = MemoryLease()
    await place_of(lease, "a")
    b = await place_of(lease, "b")

    async def tell(behind: str) -> None:
        await anyio.lowlevel.checkpoint()

    with anyio.fail_after(10):
        with pytest.raises(QueueTimeout, match=r"waited 0.05 s behind request 'a'") as caught:
            await wait_for_turn(lease, queue(wait=0.05), b, RequestId("b"), tell)
    assert caught.value.behind == "a"
    assert b in await lease.places(KEY)


async def test_a_place_that_is_lost_is_an_error() -> None:
    """Whoever took it away."""
    lease = MemoryLease()
    await place_of(lease, "a")
    b = await place_of(lease, "b")

    async def lose(behind: str) -> None:
        await lease.give_back(b)

    with pytest.raises(LeaseLost, match="it was given back"):
        await wait_for_turn(lease, queue(), b, RequestId("b"), lose)


async def test_turns_come_in_the_order_of_acceptance() -> None:
    """Twenty requests, each giving its place back when it has had its turn."""
    lease = MemoryLease()
    places = [await place_of(lease, f"r{n:02}") for n in range(20)]
    order: list[str] = []

    async def tell(behind: str) -> None:
        await anyio.lowlevel.checkpoint()

    async def live(place: Place) -> None:
        await wait_for_turn(lease, queue(), place, RequestId(place.request_id), tell)
        order.append(place.request_id)
        await anyio.lowlevel.checkpoint()
        await lease.give_back(place)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for place in reversed(places):
                group.start_soon(live, place)
    assert order == [place.request_id for place in places]
