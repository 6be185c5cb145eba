"""What the tests of requests share: a flow over a journal's blocks, and stores that misbehave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import anyio
import anyio.lowlevel

from flowstate import Flow, action, define_flow
from flowstate.define.flow import Action
from flowstate.errors import StoreError
from flowstate.store.memory import MemoryStore
from flowstate.store.record import (
    CellKey,
    CellRecord,
    CollectionKey,
    Fence,
    ItemRecord,
    PutItems,
    PutRequest,
    RequestRecord,
    RequestStatus,
    ResourceKey,
    ResourceRecord,
    Write,
)


def flow_of(block: Any, concurrency: Any = "allow") -> tuple[Flow, Action[Any, Any]]:
    """A flow of one action that runs this block, and the action."""
    ask = action("ask", block, concurrency=concurrency)
    return define_flow("coding", actions=[ask]), ask


@final
class Ledger:
    """
    A store that notes the statuses it was given, in order, and can be made to fail or to hang.

    It is a MemoryStore in everything else.
    """

    def __init__(self) -> None:
        self.kept = MemoryStore()
        self.statuses: list[tuple[str, RequestStatus]] = []
        self.failing: set[str] = set()
        """Of ``request``, ``items``, ``read`` and the statuses: what fails from now on."""
        self.hanging: anyio.Event | None = None
        """While it isn't set, commits wait for it."""

    async def open(self) -> None:
        await self.kept.open()

    async def close(self) -> None:
        await self.kept.close()

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        await anyio.lowlevel.checkpoint()
        if self.hanging is not None:
            await self.hanging.wait()
        for write in writes:
            match write:
                case PutRequest(record=record):
                    if {"request", record.status} & self.failing:
                        raise StoreError(f"no room for {record.status}")
                case PutItems() if "items" in self.failing:
                    raise StoreError("no room for items")
        await self.kept.commit(writes, fence=fence)
        self.statuses += [
            (write.record.id, write.record.status)
            for write in writes
            if isinstance(write, PutRequest)
        ]

    async def cell(self, key: CellKey) -> CellRecord | None:
        return await self.kept.cell(key)

    async def resource(self, key: ResourceKey) -> ResourceRecord | None:
        return await self.kept.resource(key)

    async def resources(
        self,
        collection: CollectionKey,
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 500,
    ) -> list[ResourceRecord]:
        return await self.kept.resources(collection, prefix=prefix, after=after, limit=limit)

    async def request(self, request_id: str) -> RequestRecord | None:
        if "read" in self.failing:
            raise StoreError("can't be read")
        return await self.kept.request(request_id)

    async def requests(
        self,
        *,
        tenant: str | None,
        session: str | None = None,
        statuses: Sequence[RequestStatus] | None = None,
    ) -> list[RequestRecord]:
        return await self.kept.requests(tenant=tenant, session=session, statuses=statuses)

    async def items(self, request_id: str, *, after: int = 0, limit: int = 500) -> list[ItemRecord]:
        return await self.kept.items(request_id, after=after, limit=limit)

    def of(self, request_id: str) -> list[RequestStatus]:
        """The statuses of one request, in order."""
        return [status for each, status in self.statuses if each == request_id]
