"""
The seam to persistence: nine methods, one of which writes.

``flowstate.testing.store_contract`` and ``resource_contract`` hold what every implementation must
keep, as functions to run against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flowstate.store.record import (
    CellKey,
    CellRecord,
    CollectionKey,
    Fence,
    ItemRecord,
    RequestRecord,
    RequestStatus,
    ResourceKey,
    ResourceRecord,
    Write,
)


class Store(Protocol):
    """
    Keeps requests, state, resources and items. Every method may be called from any task of one
    event loop.

    Every string is data: any Unicode text, NUL and lone surrogates included, of any length; only
    the key of an entry is printable ASCII. A store can be weakly referenced. Once it is closed,
    every method but ``open`` and ``close`` raises StoreError.
    """

    async def open(self) -> None:
        """
        Make it ready. Called before anything else; again only after ``close``.

        Raises:
            StoreError: it can't be reached, or was written by a newer flowstate.
        """
        ...

    async def close(self) -> None:
        """
        Finish what was asked for, then let go of connections and threads. What was committed
        stays. Closing a store that isn't open does nothing.
        """
        ...

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """
        Do all writes, in order, in one transaction, or none. When it returns, they are durable.

        A caller who is cancelled while it waits goes on being cancelled; the writes are then
        done whole or not at all, and whatever it asks for later sees the outcome.

        Args:
            writes: what to write.
            fence: checked in the same transaction: a token older than the newest seen for its
                key refuses the whole, a newer one becomes the newest.

        Raises:
            VersionConflict: a cell or an entry has another version than expected.
            StatusConflict: a request has another status than expected.
            StaleFence: the fence's token is not the newest.
            StoreError: the database failed; its error is the cause. Nothing was written.
        """
        ...

    async def cell(self, key: CellKey) -> CellRecord | None:
        """The cell, or None if it was never written."""
        ...

    async def resource(self, key: ResourceKey) -> ResourceRecord | None:
        """The entry of a collection, deleted or not, or None if it was never written."""
        ...

    async def resources(
        self,
        collection: CollectionKey,
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int = 500,
    ) -> list[ResourceRecord]:
        """
        The entries of a collection that are not deleted, in the order of their keys, byte by byte;
        the first ``limit`` of them.

        Args:
            collection: of this one only.
            prefix: only entries whose key begins so.
            after: only entries whose key comes after this text; there need be none at it.
            limit: how many at most.

        Raises:
            InvalidValue: prefix or after is no printable ASCII.
        """
        ...

    async def request(self, request_id: str) -> RequestRecord | None:
        """The request, or None."""
        ...

    async def requests(
        self,
        *,
        tenant: str | None,
        session: str | None = None,
        statuses: Sequence[RequestStatus] | None = None,
    ) -> list[RequestRecord]:
        """
        A tenant's requests, by ``created_at`` and then in the order of their insertion; of one
        session and in some statuses if given. Tenant None is a tenant of its own.
        """
        ...

    async def items(self, request_id: str, *, after: int = 0, limit: int = 500) -> list[ItemRecord]:
        """
        The items of a request whose last change came after this sequence, in the order of that
        change; the first ``limit`` of them.
        """
        ...
