"""
What every ``Store`` must keep, as functions to run against one.

Each check takes an open, empty store, and raises AssertionError with a sentence if the store breaks
the contract. They know nothing but ``flowstate.store.protocol``, need no test framework and run
under asyncio and trio. With pytest::

    @pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
    async def test_my_store_keeps_the_contract(check):
        store = MyStore()
        await store.open()
        try:
            await check(store)
        finally:
            await store.close()

``flowstate.testing.resource_contract`` goes on with resource collections, in the same way.

``DURABLE`` is for stores that outlive their process; its checks take a function that makes one
more store over the same data.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel

from flowstate.errors import StaleFence, StatusConflict, StoreError, VersionConflict
from flowstate.store.protocol import Store
from flowstate.store.record import (
    CellKey,
    Fence,
    PutCell,
    PutItems,
    PutRequest,
    RequestStatus,
    Write,
)
from flowstate.testing.store_samples import ODD_TEXTS, cell_key, item_record, request_record

Check: TypeAlias = Callable[[Store], Awaitable[None]]

DurableCheck: TypeAlias = Callable[[Callable[[], Store]], Awaitable[None]]


def _same(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: {expected!a} expected, {found!a} found")


async def _refused(
    error: type[StoreError], store: Store, writes: Sequence[Write], fence: Fence | None = None
) -> StoreError:
    try:
        await store.commit(writes, fence=fence)
    except error as refusal:
        return refusal
    raise AssertionError(f"{error.__name__} expected for {writes!a}, fence {fence!a}")


async def _version(store: Store, key: CellKey) -> int:
    cell = await store.cell(key)
    return cell.version if cell else 0


# --- cells ---------------------------------------------------------------------------------------


async def an_empty_store_holds_nothing(store: Store) -> None:
    """Asked for what was never written, it answers None or an empty list."""
    _same(await store.cell(cell_key()), None, "a cell never written")
    _same(await store.request("r1"), None, "a request never written")
    _same(await store.requests(tenant=None), [], "requests of a tenant without any")
    _same(await store.items("r1"), [], "items of an unknown request")
    await store.commit([])


async def a_cell_is_written_only_over_the_expected_version(store: Store) -> None:
    """Versions count from 1; a write based on another one is refused and tells both."""
    key = cell_key()
    await store.commit([PutCell(key=key, expected=0, data="1")])
    await store.commit([PutCell(key=key, expected=1, data='"two"')])
    for expected in (0, 1, 3):
        stale = PutCell(key=key, expected=expected, data="0")
        refusal = await _refused(VersionConflict, store, [stale])
        assert isinstance(refusal, VersionConflict)
        _same((refusal.expected, refusal.found), (expected, 2), "the versions in the refusal")
    cell = await store.cell(key)
    if cell is None:
        raise AssertionError("a cell that was written is gone")
    _same((cell.key, cell.version, cell.data), (key, 2, '"two"'), "the cell")


async def a_cell_that_is_not_there_has_no_version(store: Store) -> None:
    """A write over version 1 of a cell that was never written is refused."""
    refusal = await _refused(
        VersionConflict, store, [PutCell(key=cell_key(), expected=1, data="1")]
    )
    assert isinstance(refusal, VersionConflict)
    _same((refusal.expected, refusal.found), (1, 0), "the versions in the refusal")


async def different_keys_never_meet(store: Store) -> None:
    """Cells whose keys differ in any part, by any character, are different cells."""
    keys = [cell_key(text) for text in ODD_TEXTS]
    keys += [cell_key(owner=text) for text in (None, *ODD_TEXTS)]
    keys += [cell_key(tenant=text) for text in ODD_TEXTS]
    keys += [cell_key(scope=text) for text in ODD_TEXTS]
    keys += [cell_key("b", owner="a"), cell_key("", owner="ab"), cell_key("ab", owner="")]
    for number, key in enumerate(keys):
        await store.commit([PutCell(key=key, expected=0, data=str(number))])
    for number, key in enumerate(keys):
        cell = await store.cell(key)
        _same(cell and (cell.key, cell.data), (key, str(number)), f"the cell of {key!a}")


# --- batches -------------------------------------------------------------------------------------


async def a_batch_is_all_or_nothing(store: Store) -> None:
    """Whatever refuses one write, and wherever it stands, none of the batch is kept."""
    await store.commit([PutRequest(record=request_record("old", status="completed"))])
    good: list[Write] = [
        PutCell(key=cell_key("good"), expected=0, data="1"),
        PutRequest(record=request_record("good")),
        PutItems(records=(item_record("good", 1, 1, request="good"),)),
    ]
    bad: list[Write] = [
        PutCell(key=cell_key("bad"), expected=7, data="1"),
        PutRequest(record=request_record("old"), expected=("running",)),
    ]
    for refused in bad:
        for place in range(len(good) + 1):
            await _refused(StoreError, store, [*good[:place], refused, *good[place:]])
    _same(await store.cell(cell_key("good")), None, "a cell of a refused batch")
    _same(await store.request("good"), None, "a request of a refused batch")
    _same(await store.items("good"), [], "items of a refused batch")
    old = await store.request("old")
    _same(old and old.status, "completed", "the status that refused a batch")


async def the_writes_of_a_batch_are_done_in_order(store: Store) -> None:
    """A later write sees the earlier ones."""
    key = cell_key()
    await store.commit(
        [
            *(PutCell(key=key, expected=before, data=str(before)) for before in range(3)),
            PutRequest(record=request_record(), expected=()),
            PutRequest(record=request_record(status="running"), expected=("accepted",)),
            PutItems(records=(item_record("i1", 1, 1), item_record("i1", 1, 2))),
            PutItems(records=()),
        ]
    )
    cell, request = await store.cell(key), await store.request("r1")
    _same(cell and (cell.version, cell.data), (3, "2"), "the cell")
    _same(request and request.status, "running", "the request")
    _same(await store.items("r1"), [item_record("i1", 1, 2)], "the items")


# --- requests ------------------------------------------------------------------------------------


async def a_request_is_replaced_only_in_an_expected_status(store: Store) -> None:
    """No expectation takes any; an empty one takes only a new id; else one of them must fit."""
    put = PutRequest(record=request_record(status="running"), expected=("accepted", "waiting"))
    await _refused(StatusConflict, store, [put])
    await store.commit([PutRequest(record=request_record(status="waiting"), expected=())])
    await _refused(StatusConflict, store, [PutRequest(record=request_record(), expected=())])
    await store.commit([put])
    await _refused(StatusConflict, store, [put])
    await store.commit([PutRequest(record=request_record(status="failed", error="\ud800\0"))])
    expected = request_record(status="failed", error="\ud800\0")
    _same(await store.request("r1"), expected, "the request")


async def requests_come_by_creation_then_insertion(store: Store) -> None:
    """The order is by ``created_at``, then by insertion; replacing one doesn't move it."""
    made = [("r1", 20), ("r2", 10), ("r3", 20), ("r4", 10)]
    for id, created_at in made:
        await store.commit([PutRequest(record=request_record(id, created_at=created_at))])
    again = request_record("r2", created_at=10, status="running")
    await store.commit([PutRequest(record=again)])
    found = await store.requests(tenant=None)
    _same([one.id for one in found], ["r2", "r4", "r1", "r3"], "the order of the requests")


async def requests_are_found_by_session_and_status(store: Store) -> None:
    """Both filters narrow; no status at all matches nothing."""
    statuses: tuple[RequestStatus, ...] = ("accepted", "running", "completed")
    for session in ("s1", "s2"):
        for number, status in enumerate(statuses):
            record = request_record(
                session + status, session=session, status=status, created_at=number
            )
            await store.commit([PutRequest(record=record)])

    async def ids(
        session: str | None, statuses: Sequence[RequestStatus] | None = None
    ) -> list[str]:
        found = await store.requests(tenant=None, session=session, statuses=statuses)
        return [one.id for one in found]

    _same(await ids("s1"), ["s1accepted", "s1running", "s1completed"], "one session's requests")
    _same(await ids("s2", ["completed", "accepted"]), ["s2accepted", "s2completed"], "by status")
    _same(await ids(None, ["running"]), ["s1running", "s2running"], "by status alone")
    _same(await ids("s3"), [], "an unknown session's requests")
    _same(await ids("s1", []), [], "requests in no status")


async def no_text_is_changed_and_no_tenants_meet(store: Store) -> None:
    """Every text of a request and an item comes back as it was; so do tenants, missing or not."""
    tenants = (None, *ODD_TEXTS)
    for number, tenant in enumerate(tenants):
        text = tenant or ""
        record = request_record(f"{number} {text}", session=text, tenant=tenant, error=text)
        item = item_record(text, 1, 1, request=text)
        await store.commit([PutRequest(record=record, expected=())])
        await store.commit([PutItems(records=(item,))])
        _same(await store.requests(tenant=tenant), [record], f"requests of tenant {tenant!a}")
        _same(await store.requests(tenant=tenant, session=text), [record], "and of its session")
        _same(await store.request(record.id), record, "the request by its id")
        _same(await store.items(text), [item], f"items of request {text!a}")


# --- items ---------------------------------------------------------------------------------------


async def items_come_by_their_last_change(store: Store) -> None:
    """A reader with a cursor gets what changed since, in order, a page at a time."""
    await store.commit([PutItems(records=tuple(item_record(f"i{n}", n, n) for n in range(1, 6)))])
    await store.commit([PutItems(records=(item_record("i2", 2, 7), item_record("other", 1, 1)))])
    await store.commit([PutItems(records=(item_record("i1", 1, 6, request="r2"),))])

    async def ids(after: int = 0, limit: int = 500) -> list[str]:
        return [one.item_id for one in await store.items("r1", after=after, limit=limit)]

    found = await store.items("r1", after=6)
    _same(found, [item_record("i2", 2, 7)], "an item that changed")
    _same((await ids())[2:], ["i3", "i4", "i5", "i2"], "all items")
    _same(await ids(after=3), ["i4", "i5", "i2"], "items after 3")
    _same(await ids(after=3, limit=2), ["i4", "i5"], "the first two after 3")
    _same(await ids(after=7), [], "items after the last change")
    _same([*await ids(limit=0), *await ids(limit=-1)], [], "no items")


async def a_reader_sees_a_batch_whole(store: Store) -> None:
    """Two items that are always changed together are never seen apart."""
    rounds = 20
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            for round in range(rounds):
                pair = (item_record("a", 1, 2 * round + 3), item_record("b", 2, 2 * round + 4))
                await store.commit([PutItems(records=pair)])

        tasks.start_soon(write)
        last = 0
        while last < 2 * rounds + 2:
            found = [one.last_sequence for one in await store.items("r1")]
            if found:
                last = found[-1]
                _same(found, [last - 1, last], "items that are changed together")
            await anyio.lowlevel.checkpoint()


# --- fences --------------------------------------------------------------------------------------


async def an_older_fence_refuses_everything(store: Store) -> None:
    """The newest token of a key wins; equal ones pass; each key has its own."""

    def put(expected: int) -> list[Write]:
        return [PutCell(key=cell_key(), expected=expected, data="1")]

    await store.commit(put(0), fence=Fence(key="k", token=5))
    await store.commit(put(1), fence=Fence(key="k", token=5))
    await store.commit([], fence=Fence(key="k", token=9))
    refusal = await _refused(StaleFence, store, put(2), Fence(key="k", token=8))
    assert isinstance(refusal, StaleFence)
    _same((refusal.token, refusal.current), (8, 9), "the tokens in the refusal")
    _same(await _version(store, cell_key()), 2, "the version of a cell behind a fence")
    for number, key in enumerate(ODD_TEXTS):
        await store.commit([], fence=Fence(key="of " + key, token=number + 1))
    await store.commit(put(2))


async def a_refused_batch_moves_no_fence(store: Store) -> None:
    """A newer token becomes the newest only together with its writes."""
    await store.commit([], fence=Fence(key="k", token=1))
    refused = PutCell(key=cell_key(), expected=4, data="1")
    await _refused(VersionConflict, store, [refused], Fence(key="k", token=2))
    await store.commit([], fence=Fence(key="k", token=1))


# --- tasks ---------------------------------------------------------------------------------------


async def concurrent_writers_lose_nothing(store: Store) -> None:
    """Of writers based on the same version exactly one gets through; batches stay whole."""
    left, right = cell_key("left"), cell_key("right")
    writers, rounds = 6, 4

    async def write() -> None:
        done = 0
        while done < rounds:
            version = await _version(store, left)
            batch = [PutCell(key=key, expected=version, data=str(version)) for key in (left, right)]
            try:
                await store.commit(batch)
                done += 1
            except VersionConflict:
                pass

    async with anyio.create_task_group() as tasks:
        for _ in range(writers):
            tasks.start_soon(write)
    versions = (await _version(store, left), await _version(store, right))
    _same(versions, (writers * rounds, writers * rounds), "the versions after all writes")


async def a_cancelled_commit_is_whole_or_not_at_all(store: Store) -> None:
    """Wherever it is cancelled, the caller goes on being cancelled and the store goes on."""
    left, right = cell_key("left"), cell_key("right")
    for steps in range(12):
        version = await _version(store, left)
        batch = [PutCell(key=key, expected=version, data="1") for key in (left, right)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.commit, batch)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        versions = (await _version(store, left), await _version(store, right))
        if versions not in ((version, version), (version + 1, version + 1)):
            raise AssertionError(f"half a batch: {version} before, {versions} after a cancel")
    for writes in ([], [PutItems(records=())]):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.commit(writes)
            raise AssertionError(f"a commit of {writes} in a cancelled scope went on")


async def a_closed_store_refuses(store: Store) -> None:
    """Once closed, everything but opening it raises StoreError; closing again does nothing."""
    await store.commit([PutCell(key=cell_key(), expected=0, data="1")])
    await store.close()
    await store.close()
    await _refused(StoreError, store, [])
    try:
        await store.cell(cell_key())
    except StoreError:
        return
    raise AssertionError("a closed store answered")


async def a_store_can_be_weakly_referenced(store: Store) -> None:
    """What belongs to a store is kept beside it and let go with it."""
    weakref.ref(store)


async def large_values_fit(store: Store) -> None:
    """A megabyte in a cell and a thousand items in a batch are nothing special."""
    text = '"' + "x" * 1_000_000 + '"'
    items = tuple(item_record(f"i{n}", n, n) for n in range(1, 1001))
    await store.commit([PutCell(key=cell_key(), expected=0, data=text), PutItems(records=items)])
    cell = await store.cell(cell_key())
    _same(cell is not None and cell.data == text, True, "a megabyte came back")
    _same(len(await store.items("r1", limit=2000)), 1000, "the number of items")


CONTRACT: Final[tuple[Check, ...]] = (
    an_empty_store_holds_nothing,
    a_cell_is_written_only_over_the_expected_version,
    a_cell_that_is_not_there_has_no_version,
    different_keys_never_meet,
    a_batch_is_all_or_nothing,
    the_writes_of_a_batch_are_done_in_order,
    a_request_is_replaced_only_in_an_expected_status,
    requests_come_by_creation_then_insertion,
    requests_are_found_by_session_and_status,
    no_text_is_changed_and_no_tenants_meet,
    items_come_by_their_last_change,
    a_reader_sees_a_batch_whole,
    an_older_fence_refuses_everything,
    a_refused_batch_moves_no_fence,
    concurrent_writers_lose_nothing,
    a_cancelled_commit_is_whole_or_not_at_all,
    a_closed_store_refuses,
    a_store_can_be_weakly_referenced,
    large_values_fit,
)
"""Every check of an open, empty store."""


# --- stores that outlive their process -----------------------------------------------------------


async def what_was_committed_is_there_again(make: Callable[[], Store]) -> None:
    """A store made anew over the same data has everything, fences included."""
    first = make()
    await first.open()
    await first.commit(
        [
            PutCell(key=cell_key("\ud800"), expected=0, data='"\\ud800"'),
            PutRequest(record=request_record("\0")),
            PutItems(records=(item_record("i1", 1, 2, request="\0"),)),
        ],
        fence=Fence(key="k", token=3),
    )
    await first.close()
    second = make()
    await second.open()
    try:
        cell = await second.cell(cell_key("\ud800"))
        _same(cell and (cell.version, cell.data), (1, '"\\ud800"'), "the cell")
        _same(await second.request("\0"), request_record("\0"), "the request")
        _same(await second.items("\0"), [item_record("i1", 1, 2, request="\0")], "the items")
        await _refused(StaleFence, second, [], Fence(key="k", token=2))
    finally:
        await second.close()


async def two_stores_share_their_data(make: Callable[[], Store]) -> None:
    """Two stores over the same data, open at once, see each other's commits and conflict."""
    first, second = make(), make()
    await first.open()
    await second.open()
    try:
        await first.commit([PutCell(key=cell_key(), expected=0, data="1")])
        _same(await _version(second, cell_key()), 1, "the version that the other store sees")
        await _refused(VersionConflict, second, [PutCell(key=cell_key(), expected=0, data="2")])
        await second.commit([PutCell(key=cell_key(), expected=1, data="2")])
        _same(await _version(first, cell_key()), 2, "the version after the other's commit")
    finally:
        await second.close()
        await first.close()


DURABLE: Final[tuple[DurableCheck, ...]] = (
    what_was_committed_is_there_again,
    two_stores_share_their_data,
)
"""Every check of a store that outlives its process."""
