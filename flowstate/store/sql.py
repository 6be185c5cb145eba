"""
The store in a SQLite file: safe against a crash, shared by any number of processes.

All of SQLAlchemy and of SQLite happens on one thread of the store's own, through one connection,
so that it works the same under asyncio and trio and never blocks an event loop. Commits that wait
at the same time share one transaction of the database and one flush to the disk; a savepoint each
keeps every one of them all-or-nothing.

Invariants:

- A commit that returned is on the disk (write-ahead log, ``synchronous=FULL``).
- Every transaction that writes takes the write lock before it reads (``BEGIN IMMEDIATE``), so what
  it checks can't change until it is through, whichever process asks.
- Whatever was asked for later sees what was committed earlier, also by a caller who was cancelled.
- An error of the database reaches the caller once wrapped, and never shows a stored value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

from sqlalchemy import Connection

from flowstate.errors import StoreError
from flowstate.store import tables
from flowstate.store.database import Commit, Database, Read, Statistics
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
    key_range,
)
from flowstate.store.thread import WorkThread

R = TypeVar("R")


@final
class SqlStore:
    """Keeps everything in one SQLite file."""

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout: float = 30.0) -> None:
        """
        Args:
            path: the file, made if it doesn't exist; its folder must. ``":memory:"`` keeps
                everything in memory, until it is closed.
            busy_timeout: for how long to wait, in seconds, while another process writes.
        """
        self._path = os.fspath(path)
        self._busy_timeout = busy_timeout
        self._database = Database(self._path, busy_timeout)
        self._thread: WorkThread[Commit | Read] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._thread is None else "open"
        return f"<SqlStore {self._path!r} {state}, {self.statistics().commits} commits>"

    def statistics(self) -> Statistics:
        """What it has done since it was opened."""
        return self._database.statistics

    async def open(self) -> None:
        """
        Start the thread, open the file, make its tables if it has none.

        Raises:
            StoreError: the file can't be opened, is no SQLite database, stays locked for
                ``busy_timeout``, was written by a newer flowstate; or the store is open.
        """
        if self._thread is not None:
            raise StoreError(f"{self!r} is open already")
        database = self._database = Database(self._path, self._busy_timeout)
        thread = self._thread = WorkThread(
            f"store {self._path!r}", begin=database.open, work=database.work, end=database.close
        )
        try:
            await thread.start()
        except BaseException:
            self._thread = None
            raise

    async def close(self) -> None:
        """Finish what was asked for, close the file and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            # What waits is one group, usually: it may have to wait for the lock once.
            await thread.stop(within=2 * self._busy_timeout + 10)

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """Do all writes in one transaction, or none; see ``Store.commit``."""
        await self._ask(Commit(writes=tuple(writes), fence=fence))

    async def cell(self, key: CellKey) -> CellRecord | None:
        """The cell, or None if it was never written."""

        def read(connection: Connection) -> CellRecord | None:
            row = connection.execute(tables.read_cell, tables.its(tables.cell_row(key))).first()
            return None if row is None else CellRecord(key=key, version=row.version, data=row.data)

        return await self._read(read)

    async def resource(self, key: ResourceKey) -> ResourceRecord | None:
        """The entry, deleted or not, or None if it was never written."""
        where = tables.its(tables.resource_row(key))

        def read(connection: Connection) -> ResourceRecord | None:
            row = connection.execute(tables.read_resource, where).first()
            if row is None:
                return None
            return ResourceRecord(key=key, version=row.version, data=row.data)

        return await self._read(read)

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
        where = {
            **tables.its(tables.collection_row(collection)),
            "first": first,
            "beyond": beyond,
            "most": max(limit, 0),
        }

        def read(connection: Connection) -> list[ResourceRecord]:
            return [
                ResourceRecord(
                    key=tables.listed_key(collection, row.key), version=row.version, data=row.data
                )
                for row in connection.execute(tables.read_resources, where)
            ]

        return await self._read(read)

    async def request(self, request_id: str) -> RequestRecord | None:
        """The request, or None."""

        def read(connection: Connection) -> RequestRecord | None:
            row = connection.execute(tables.read_request, {"its_id": request_id}).first()
            return None if row is None else tables.request(row)

        return await self._read(read)

    async def requests(
        self,
        *,
        tenant: str | None,
        session: str | None = None,
        statuses: Sequence[RequestStatus] | None = None,
    ) -> list[RequestRecord]:
        """A tenant's requests, oldest first; see ``Store.requests``."""
        where: dict[str, object] = {"its_tenant": tenant}
        query = tables.read_requests
        if session is not None:
            query = query.where(tables.of_session)
            where["its_session"] = session
        if statuses is not None:
            query = query.where(tables.in_statuses)
            where["statuses"] = list(statuses)

        def read(connection: Connection) -> list[RequestRecord]:
            return [tables.request(row) for row in connection.execute(query, where)]

        return await self._read(read)

    async def items(self, request_id: str, *, after: int = 0, limit: int = 500) -> list[ItemRecord]:
        """The items changed after this sequence, in the order of their last change."""
        where = {"its_request": request_id, "after": after, "most": max(limit, 0)}

        def read(connection: Connection) -> list[ItemRecord]:
            return [tables.item(row) for row in connection.execute(tables.read_items, where)]

        return await self._read(read)

    async def _read(self, read: Callable[[Connection], R]) -> R:
        result: R = await self._ask(read)
        return result

    async def _ask(self, job: Commit | Read) -> Any:
        if self._thread is None:
            raise StoreError(f"{self!r}: open it before it is used")
        return await self._thread.ask(job)
