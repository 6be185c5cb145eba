"""
The seam to persistence: six methods, one of which writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from flowstate.store.record import (
    CellKey,
    CellRecord,
    Fence,
    ItemRecord,
    RequestRecord,
    RequestStatus,
    Write,
)


class Store(Protocol):
    """
    Keeps requests, state and items. Every method may be called from any task of one event loop.
    """

    async def open(self) -> None:
        """Make it ready. Called once, before anything else."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads. What was committed stays."""
        ...

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """
        Do all writes, in order, in one transaction, or none.

        Args:
            writes: what to write.
            fence: checked in the same transaction: a token older than the newest seen for its
                key refuses the whole, a newer one becomes the newest.

        Raises:
            VersionConflict: a cell has another version than expected, or a request another status.
            StaleFence: the fence's token is not the newest.
            StoreError: the database failed; its error is the cause. Nothing was written.
        """
        ...

    async def cell(self, key: CellKey) -> CellRecord | None:
        """The cell, or None if it was never written."""
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
        """A tenant's requests, oldest first; of one session and in some statuses if given."""
        ...

    async def items(
        self, request_id: str, *, after: int = 0, limit: int = 500
    ) -> list[ItemRecord]:
        """The items of a request changed after this sequence, in the order of their last change."""
        ...
