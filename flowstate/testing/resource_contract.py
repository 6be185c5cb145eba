"""
What every ``Store`` must keep of resource collections, as functions to run against one.

They go on from ``flowstate.testing.store_contract``, and are run in the same way: each check of
``RESOURCE_CONTRACT`` takes an open, empty store, each of ``RESOURCE_DURABLE`` a function that makes
one more store over the same data. All raise AssertionError with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import anyio
import anyio.lowlevel

from flowstate.errors import InvalidValue, StaleFence, StoreError, VersionConflict
from flowstate.store.protocol import Store
from flowstate.store.record import (
    CollectionKey,
    DeleteResource,
    Fence,
    PutCell,
    PutResource,
    ResourceKey,
    ResourceRecord,
    Write,
)
from flowstate.testing.store_contract import Check, DurableCheck
from flowstate.testing.store_samples import ODD_TEXTS, cell_key, collection_key, resource_key

KEYS: Final = (
    "B",
    "a",
    "a!",
    "a%20",
    "a-",
    "a.",
    "a/",
    "a/b",
    "a0",
    "aA",
    "aa",
    "a~",
    "a~a",
    "b",
    "~",
)
"""Keys in the order of their bytes, which is no dictionary's."""


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


async def _keys(
    store: Store,
    collection: CollectionKey | None = None,
    *,
    prefix: str = "",
    after: str | None = None,
    limit: int = 500,
) -> list[str]:
    found = await store.resources(
        collection or collection_key(), prefix=prefix, after=after, limit=limit
    )
    return [one.key.key for one in found]


async def _version(store: Store, key: ResourceKey) -> int:
    record = await store.resource(key)
    return record.version if record else 0


def _put(key: str, expected: int = 0, data: str = "1") -> PutResource:
    return PutResource(key=resource_key(key), expected=expected, data=data)


def _delete(key: str, expected: int) -> DeleteResource:
    return DeleteResource(key=resource_key(key), expected=expected)


# --- versions ------------------------------------------------------------------------------------


async def no_entry_is_there_before_it_is_written(store: Store) -> None:
    """Asked for what was never written, it answers None or an empty list."""
    _same(await store.resource(resource_key()), None, "an entry never written")
    _same(await _keys(store), [], "the entries of an empty collection")


async def an_entry_is_written_only_over_the_expected_version(store: Store) -> None:
    """Versions count from 1; a write or delete based on another one is refused and tells both."""
    await store.commit([_put("k")])
    await store.commit([_put("k", 1, '"two"')])
    for write in (_put("k"), _put("k", 1), _put("k", 3), _delete("k", 1), _delete("k", 3)):
        refusal = await _refused(VersionConflict, store, [write])
        assert isinstance(refusal, VersionConflict)
        _same((refusal.expected, refusal.found), (write.expected, 2), "the versions in the refusal")
    for write in (_put("new", 1), _delete("new", 1)):
        refusal = await _refused(VersionConflict, store, [write])
        assert isinstance(refusal, VersionConflict)
        _same((refusal.expected, refusal.found), (1, 0), "the versions, where there is no entry")
    expected = ResourceRecord(key=resource_key("k"), version=2, data='"two"')
    _same(await store.resource(resource_key("k")), expected, "the entry")
    _same(await store.resources(collection_key()), [expected], "the entries")
    _same(await store.resource(resource_key("new")), None, "an entry whose write was refused")


async def versions_go_on_after_a_delete(store: Store) -> None:
    """
    A deleted entry is in no list, but its version stays, so that what was based on it before the
    delete doesn't fit the entry that is made anew.
    """
    await store.commit([_put("k")])
    await store.commit([_delete("k", 1)])
    expected = ResourceRecord(key=resource_key("k"), version=2, data=None)
    _same(await store.resource(resource_key("k")), expected, "what is left of a deleted entry")
    _same(await _keys(store), [], "the entries after the delete")
    await _refused(VersionConflict, store, [_put("k")])
    await store.commit([_put("k", 2, "2")])
    for stale in (_put("k", 1, "3"), _delete("k", 1)):
        await _refused(VersionConflict, store, [stale])
    again = ResourceRecord(key=resource_key("k"), version=3, data="2")
    _same(await store.resources(collection_key()), [again], "the entry that was made again")


# --- keys ----------------------------------------------------------------------------------------


async def collections_never_meet(store: Store) -> None:
    """Collections whose keys differ in any part, by any character, share no entry."""
    collections = [collection_key(text) for text in ODD_TEXTS]
    collections += [collection_key(owner=text) for text in (None, *ODD_TEXTS)]
    collections += [collection_key(tenant=text) for text in ODD_TEXTS]
    collections += [collection_key(scope=text) for text in ODD_TEXTS]
    collections += [collection_key("b", owner="a"), collection_key("notes2")]
    for number, collection in enumerate(collections):
        key = resource_key("notes/n1", collection)
        await store.commit([PutResource(key=key, expected=0, data=str(number))])
    for number, collection in enumerate(collections):
        key = resource_key("notes/n1", collection)
        expected = ResourceRecord(key=key, version=1, data=str(number))
        _same(await store.resource(key), expected, f"the entry in {collection!a}")
        _same(await store.resources(collection), [expected], f"all entries in {collection!a}")


async def entries_come_in_the_order_of_their_keys(store: Store) -> None:
    """Byte by byte, whatever the order of their writing, from after a text and with a prefix."""
    for key in (*KEYS[1::2], *reversed(KEYS[::2])):
        await store.commit([_put(key)])
    _same(await _keys(store), [*KEYS], "all entries")
    for start in ("", " ", "a", "a/", "a~", "c", "~", "~~"):
        begins = [key for key in KEYS if key.startswith(start)]
        _same(await _keys(store, prefix=start), begins, f"the entries that begin with {start!r}")
        follow = [key for key in KEYS if key > start]
        _same(await _keys(store, after=start), follow, f"the entries after {start!r}")
        both = [key for key in KEYS if key > "a." and key.startswith(start)]
        _same(await _keys(store, prefix=start, after="a."), both, f"those of {start!r} after 'a.'")


async def entries_come_a_page_at_a_time(store: Store) -> None:
    """A limit cuts the list off; what was deleted takes no place on a page."""
    for key in KEYS:
        await store.commit([_put(key)])
    for key in KEYS[::2]:
        await store.commit([_delete(key, 1)])
    left = [*KEYS[1::2]]
    _same(await _keys(store, limit=3), left[:3], "the first three")
    _same(await _keys(store, after=left[2], limit=3), left[3:6], "the next three")
    _same(await _keys(store, after=KEYS[0], limit=2), left[:2], "two after a deleted one")
    _same(await _keys(store, limit=len(left)), left, "as many as there are")
    _same([*await _keys(store, limit=0), *await _keys(store, limit=-1)], [], "none")


async def a_key_is_printable_ascii(store: Store) -> None:
    """Nothing else is taken as a key, a prefix or a position: its order would be nobody's."""
    for text in ("\0", "\n", "é", "\ud800", "\x7f"):
        for asked in (_keys(store, prefix=text), _keys(store, after=text)):
            try:
                await asked
            except InvalidValue:
                continue
            raise AssertionError(f"{text!a} was taken as a prefix or a position")


# --- batches, fences, tasks ----------------------------------------------------------------------


async def entries_and_cells_are_written_together_or_not(store: Store) -> None:
    """They share a batch: refused with it, or done in order."""
    cell = PutCell(key=cell_key(), expected=0, data="1")
    refused: list[list[Write]] = [
        [cell, _put("k"), _delete("k", 7)],
        [_put("k"), PutCell(key=cell_key(), expected=7, data="1")],
        [_put("k"), _delete("k", 1), _put("k")],
    ]
    for batch in refused:
        await _refused(VersionConflict, store, batch)
    _same(await store.resource(resource_key("k")), None, "an entry of a refused batch")
    _same(await store.cell(cell_key()), None, "a cell of a refused batch")
    await store.commit([cell, _put("k"), _delete("k", 1), _put("k", 2, "2"), _put("l")])
    expected = ResourceRecord(key=resource_key("k"), version=3, data="2")
    _same(await store.resource(resource_key("k")), expected, "an entry written thrice")
    _same(await _keys(store), ["k", "l"], "the entries of the batch")


async def an_older_fence_writes_no_entry(store: Store) -> None:
    """A run that lost its place changes nothing, and deletes nothing."""
    await store.commit([_put("k")], fence=Fence(key="f", token=2))
    for write in (_put("k", 1), _delete("k", 1), _put("new")):
        await _refused(StaleFence, store, [write], Fence(key="f", token=1))
    _same(await _version(store, resource_key("k")), 1, "the version of an entry behind a fence")
    _same(await _keys(store), ["k"], "the entries behind a fence")
    await store.commit([_delete("k", 1)], fence=Fence(key="f", token=2))


async def concurrent_writers_of_an_entry_lose_nothing(store: Store) -> None:
    """Of writers and deleters based on the same version exactly one gets through."""
    writers, rounds = 6, 4
    key = resource_key("k")

    async def write(number: int) -> None:
        done = 0
        while done < rounds:
            version = await _version(store, key)
            deletes = version > 0 and number % 2 == 1
            try:
                await store.commit([_delete("k", version) if deletes else _put("k", version)])
                done += 1
            except VersionConflict:
                pass

    async with anyio.create_task_group() as tasks:
        for number in range(writers):
            tasks.start_soon(write, number)
    _same(await _version(store, key), writers * rounds, "the version after all writes")


async def a_page_is_of_one_moment(store: Store) -> None:
    """Two entries of which always exactly one is there are never seen both, or neither."""
    await store.commit([_put("a")])
    rounds = 20
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            here, there = ("a", 1), ("b", 0)
            for _ in range(rounds):
                await store.commit([_delete(*here), _put(*there)])
                here, there = (there[0], there[1] + 1), (here[0], here[1] + 1)

        tasks.start_soon(write)
        while await _version(store, resource_key("a")) < rounds:
            _same(len(await _keys(store)), 1, "how many of the two are there")
            await anyio.lowlevel.checkpoint()


RESOURCE_CONTRACT: Final[tuple[Check, ...]] = (
    no_entry_is_there_before_it_is_written,
    an_entry_is_written_only_over_the_expected_version,
    versions_go_on_after_a_delete,
    collections_never_meet,
    entries_come_in_the_order_of_their_keys,
    entries_come_a_page_at_a_time,
    a_key_is_printable_ascii,
    entries_and_cells_are_written_together_or_not,
    an_older_fence_writes_no_entry,
    concurrent_writers_of_an_entry_lose_nothing,
    a_page_is_of_one_moment,
)
"""Every check of an open, empty store."""


# --- stores that outlive their process -----------------------------------------------------------


async def entries_are_there_again(make: Callable[[], Store]) -> None:
    """A store made anew over the same data has every entry, and the versions of deleted ones."""
    first = make()
    await first.open()
    await first.commit([_put("a", data='"\\ud800"'), _put("b"), _put("c"), _delete("b", 1)])
    await first.close()
    second = make()
    await second.open()
    try:
        _same(await _keys(second), ["a", "c"], "the entries")
        expected = ResourceRecord(key=resource_key("a"), version=1, data='"\\ud800"')
        _same(await second.resource(resource_key("a")), expected, "an entry")
        _same(await _version(second, resource_key("b")), 2, "the version of a deleted entry")
        await _refused(VersionConflict, second, [_put("b")])
    finally:
        await second.close()


async def two_stores_share_their_entries(make: Callable[[], Store]) -> None:
    """Two stores over the same data, open at once, see each other's entries and conflict."""
    first, second = make(), make()
    await first.open()
    await second.open()
    try:
        await first.commit([_put("a")])
        _same(await _keys(second), ["a"], "the entries that the other store sees")
        await _refused(VersionConflict, second, [_put("a")])
        await second.commit([_delete("a", 1)])
        await _refused(VersionConflict, first, [_put("a", 1)])
        _same(await _keys(first), [], "the entries after the other's delete")
    finally:
        await second.close()
        await first.close()


RESOURCE_DURABLE: Final[tuple[DurableCheck, ...]] = (
    entries_are_there_again,
    two_stores_share_their_entries,
)
"""Every check of a store that outlives its process."""
