"""Every store keeps the contract that flowstate ships."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from flowstate.errors import VersionConflict
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.record import DeleteResource, PutCell, PutResource
from flowstate.store.sql import SqlStore
from flowstate.testing import resource_contract, store_contract
from flowstate.testing.resource_contract import KEYS, RESOURCE_CONTRACT, RESOURCE_DURABLE
from flowstate.testing.store_contract import CONTRACT, DURABLE, Check, DurableCheck
from flowstate.testing.store_samples import ODD_TEXTS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", CONTRACT + RESOURCE_CONTRACT, ids=lambda check: check.__name__)
async def test_a_store_keeps_the_contract(check: Check, store: Store) -> None:
    """Each check of the contract holds for each store."""
    await check(store)


@pytest.mark.parametrize("check", DURABLE + RESOURCE_DURABLE, ids=lambda check: check.__name__)
async def test_a_sqlite_store_outlives_its_process(check: DurableCheck, tmp_path: Path) -> None:
    """Each check of a durable store holds for a SQLite file."""
    await check(lambda: SqlStore(tmp_path / "store.db"))


async def test_the_contract_lists_every_check() -> None:
    """A check that was written but not listed would never run."""
    written = [
        value
        for module in (store_contract, resource_contract)
        for name, value in inspect.getmembers(module, inspect.iscoroutinefunction)
        if not name.startswith("_")
    ]
    assert set(written) == {*CONTRACT, *DURABLE, *RESOURCE_CONTRACT, *RESOURCE_DURABLE}


async def test_the_odd_texts_are_all_different() -> None:
    """
    Two equal ones would make the checks that write them fail for no reason; so would keys in
    another order.
    """
    assert len(ODD_TEXTS) == len(set(ODD_TEXTS))
    assert sorted(KEYS) == [*KEYS]


async def test_a_store_that_keeps_half_a_batch_is_found_out() -> None:
    """The contract can fail: a store without transactions breaks it."""

    class Careless(MemoryStore):  # type: ignore[misc]  # final to users; this one cheats
        async def commit(self, writes, *, fence=None):  # type: ignore[no-untyped-def]
            for write in writes:
                await super().commit([write], fence=fence)

    with pytest.raises(AssertionError, match="of a refused batch"):
        await store_contract.a_batch_is_all_or_nothing(Careless())


async def test_a_store_that_forgets_versions_is_found_out() -> None:
    """The contract can fail: a store that overwrites breaks it."""

    class Hasty(MemoryStore):  # type: ignore[misc]  # final to users; this one cheats
        async def commit(self, writes, *, fence=None):  # type: ignore[no-untyped-def]
            for write in writes:
                if isinstance(write, PutCell):
                    cell = await self.cell(write.key)
                    found = cell.version if cell else 0
                    write = PutCell(key=write.key, expected=found, data=write.data)
                try:
                    await super().commit([write], fence=fence)
                except VersionConflict:
                    continue

    with pytest.raises(AssertionError, match="VersionConflict expected"):
        await store_contract.a_cell_is_written_only_over_the_expected_version(Hasty())


async def test_a_store_that_forgets_deleted_entries_is_found_out() -> None:
    """The contract can fail: a store whose versions begin again after a delete breaks it."""

    class Forgetful(MemoryStore):  # type: ignore[misc]  # final to users; this one cheats
        async def resource(self, key):  # type: ignore[no-untyped-def]
            record = await super().resource(key)
            return None if record is None or record.data is None else record

        async def commit(self, writes, *, fence=None):  # type: ignore[no-untyped-def]
            await super().commit(writes, fence=fence)
            for write in writes:
                if isinstance(write, DeleteResource):
                    del self._resources[write.key]

    with pytest.raises(AssertionError, match="what is left of a deleted entry"):
        await resource_contract.versions_go_on_after_a_delete(Forgetful())


async def test_a_store_with_an_order_of_its_own_is_found_out() -> None:
    """The contract can fail: a store that orders keys as people do breaks it."""

    class Bookish(MemoryStore):  # type: ignore[misc]  # final to users; this one cheats
        async def resources(self, collection, **options):  # type: ignore[no-untyped-def]
            found = await super().resources(collection, **options)
            return sorted(found, key=lambda one: one.key.key.lower())

    with pytest.raises(AssertionError, match="all entries"):
        await resource_contract.entries_come_in_the_order_of_their_keys(Bookish())


async def test_a_store_that_lets_an_old_fence_delete_is_found_out() -> None:
    """The contract can fail: a store that checks the fence of some writes only breaks it."""

    class Partial(MemoryStore):  # type: ignore[misc]  # final to users; this one cheats
        async def commit(self, writes, *, fence=None):  # type: ignore[no-untyped-def]
            fenced = all(isinstance(write, PutResource) for write in writes)
            await super().commit(writes, fence=fence if fenced else None)

    with pytest.raises(AssertionError, match="StaleFence expected"):
        await resource_contract.an_older_fence_writes_no_entry(Partial())
