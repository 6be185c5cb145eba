"""
The store that forgets: everything in dictionaries, for tests and for servers that need no memory.

It keeps the same text that a database would keep, so that what works here works there. It knows no
JSON and no clock.

Invariants:

- A commit is made on the side and shown whole: no other task ever sees half of it.
- An entry's key is in the order of its collection exactly as long as it isn't deleted.
- Every method lets other tasks run, so that two writers conflict here as they would elsewhere;
  but for a commit of items alone, which conflicts with nothing.
- What was committed stays when it is closed, and is there when it is opened again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import assert_never, final

from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from flowstate.errors import StoreError
from flowstate.store.record import (
    CellKey,
    CellRecord,
    CollectionKey,
    DeleteResource,
    Fence,
    ItemRecord,
    PutCell,
    PutItems,
    PutRequest,
    PutResource,
    RequestRecord,
    RequestStatus,
    ResourceKey,
    ResourceRecord,
    Write,
    key_range,
)


@final
class MemoryStore:
    """Keeps everything in this process. It may be used without being opened."""

    def __init__(self) -> None:
        self._is_open = True
        self._requests: dict[str, RequestRecord] = {}
        # By tenant and session: asked for with every request that has to wait for another.
        self._sessions: dict[tuple[str | None, str], dict[str, None]] = {}
        self._cells: dict[CellKey, CellRecord] = {}
        self._resources: dict[ResourceKey, ResourceRecord] = {}
        self._orders: dict[CollectionKey, list[str]] = {}
        self._items: dict[str, dict[str, ItemRecord]] = {}
        self._fences: dict[str, int] = {}

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        return (
            f"<MemoryStore {state}, {len(self._requests)} requests, {len(self._cells)} cells, "
            f"{sum(map(len, self._orders.values()))} entries, "
            f"{sum(map(len, self._items.values()))} items>"
        )

    async def open(self) -> None:
        """Nothing to make ready."""
        await checkpoint()
        self._is_open = True

    async def close(self) -> None:
        """Refuse everything from now on, until it is opened again."""
        self._is_open = False
        await checkpoint()

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """Do all writes, or none; see ``Store.commit``."""
        alone = _items_alone(writes) if fence is None else None
        if alone is not None:
            # What an outbox stores, for each piece of an agent's text: nothing can refuse it.
            await checkpoint_if_cancelled()
            self._require_open()
            self._keep_items(alone)
            return
        await self._step()
        if fence is not None and fence.key in self._fences:
            fence.check(self._fences[fence.key])
        requests: dict[str, RequestRecord] = {}
        cells: dict[CellKey, CellRecord] = {}
        resources: dict[ResourceKey, ResourceRecord] = {}
        items: list[ItemRecord] = []
        for write in writes:
            match write:
                case PutRequest():
                    its_id = write.record.id
                    before = requests.get(its_id) or self._requests.get(its_id)
                    write.check(before and before.status)
                    requests[its_id] = write.record
                case PutCell():
                    cell = cells.get(write.key) or self._cells.get(write.key)
                    write.check(cell.version if cell else 0)
                    cells[write.key] = CellRecord(
                        key=write.key, version=write.expected + 1, data=write.data
                    )
                case PutResource() | DeleteResource():
                    entry = resources.get(write.key) or self._resources.get(write.key)
                    write.check(entry.version if entry else 0)
                    resources[write.key] = ResourceRecord(
                        key=write.key, version=write.expected + 1, data=write.data
                    )
                case PutItems():
                    items.extend(write.records)
                case _:
                    assert_never(write)
        # Nothing can be refused from here on, and no other task runs in between.
        if fence is not None:
            self._fences[fence.key] = fence.token
        for request in requests.values():
            self._keep(request)
        self._cells.update(cells)
        for entry in resources.values():
            self._keep_entry(entry)
        self._keep_items(items)

    async def cell(self, key: CellKey) -> CellRecord | None:
        """The cell, or None if it was never written."""
        await self._step()
        return self._cells.get(key)

    async def resource(self, key: ResourceKey) -> ResourceRecord | None:
        """The entry, deleted or not, or None if it was never written."""
        await self._step()
        return self._resources.get(key)

    async def resources(
        self,
        collection: CollectionKey,
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 500,
    ) -> list[ResourceRecord]:
        """The entries of a collection in the order of their keys; see ``Store.resources``."""
        first, beyond = key_range(collection, prefix, after)
        await self._step()
        order = self._orders.get(collection, [])
        begin, end = bisect_left(order, first), bisect_left(order, beyond)
        keys = order[begin : min(end, begin + max(limit, 0))]
        return [self._resources[ResourceKey(collection=collection, key=key)] for key in keys]

    async def request(self, request_id: str) -> RequestRecord | None:
        """The request, or None."""
        await self._step()
        return self._requests.get(request_id)

    async def requests(
        self,
        *,
        tenant: str | None,
        session: str | None = None,
        statuses: Sequence[RequestStatus] | None = None,
    ) -> list[RequestRecord]:
        """A tenant's requests, oldest first; see ``Store.requests``."""
        await self._step()
        if session is None:
            found = [one for one in self._requests.values() if one.identity.tenant_id == tenant]
        else:
            found = [self._requests[one] for one in self._sessions.get((tenant, session), ())]
        if statuses is not None:
            found = [one for one in found if one.status in statuses]
        # Sorting keeps the order of insertion among those of the same millisecond.
        return sorted(found, key=lambda one: one.created_at)

    async def items(self, request_id: str, *, after: int = 0, limit: int = 500) -> list[ItemRecord]:
        """The items changed after this sequence, in the order of their last change."""
        await self._step()
        its_items = self._items.get(request_id, {}).values()
        changed = [one for one in its_items if one.last_sequence > after]
        changed.sort(key=lambda one: (one.last_sequence, one.first_sequence))
        return changed[: max(limit, 0)]

    async def _step(self) -> None:
        await checkpoint()
        self._require_open()

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError(f"{self!r}: open it before it is used")

    def _keep(self, request: RequestRecord) -> None:
        before = self._requests.get(request.id)
        who = request.identity
        if before is None or before.identity != who:
            if before is not None:
                old = before.identity
                del self._sessions[old.tenant_id, old.session_id][request.id]
            self._sessions.setdefault((who.tenant_id, who.session_id), {})[request.id] = None
        self._requests[request.id] = request

    def _keep_items(self, items: Sequence[ItemRecord]) -> None:
        for item in items:
            self._items.setdefault(item.request_id, {})[item.item_id] = item

    def _keep_entry(self, entry: ResourceRecord) -> None:
        order = self._orders.setdefault(entry.key.collection, [])
        place = bisect_left(order, entry.key.key)
        is_there = place < len(order) and order[place] == entry.key.key
        if entry.data is None:
            if is_there:
                del order[place]
        elif not is_there:
            order.insert(place, entry.key.key)
        self._resources[entry.key] = entry


def _items_alone(writes: Sequence[Write]) -> Sequence[ItemRecord] | None:
    """The items that are written; None if anything else is."""
    items: list[ItemRecord] = []
    for write in writes:
        if type(write) is not PutItems:
            return None
        items.extend(write.records)
    return items
