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
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar, assert_never, final

from sqlalchemy import Connection, Engine, create_engine, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError, StatementError
from sqlalchemy.pool import StaticPool

from flowstate.errors import FlowError, StaleFence, StatusConflict, StoreError, VersionConflict
from flowstate.store import tables
from flowstate.store.record import (
    CellKey,
    CellRecord,
    Fence,
    ItemRecord,
    PutCell,
    PutItems,
    PutRequest,
    RequestRecord,
    RequestStatus,
    Write,
)
from flowstate.store.thread import Ticket, WorkThread

R = TypeVar("R")

# --- the store ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    writes: tuple[Write, ...]
    fence: Fence | None


_Read: TypeAlias = Callable[[Connection], object]
_Ticket: TypeAlias = Ticket[_Commit | _Read]


class Statistics(NamedTuple):
    """What a store has done since it was opened."""

    #: Commits that took.
    commits: int
    #: Commits that were refused or failed.
    refused: int
    #: Transactions of the database, each with one flush to the disk.
    transactions: int
    #: Reads.
    reads: int


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
        self._database = _Database(self._path, busy_timeout)
        self._thread: WorkThread[_Commit | _Read] | None = None

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
        database = self._database = _Database(self._path, self._busy_timeout)
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
        await self._ask(_Commit(writes=tuple(writes), fence=fence))

    async def cell(self, key: CellKey) -> CellRecord | None:
        """The cell, or None if it was never written."""

        def read(connection: Connection) -> CellRecord | None:
            row = connection.execute(tables.read_cell, tables.this_cell(key)).first()
            return None if row is None else CellRecord(key=key, version=row.version, data=row.data)

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

    async def _ask(self, job: _Commit | _Read) -> Any:
        if self._thread is None:
            raise StoreError(f"{self!r}: open it before it is used")
        return await self._thread.ask(job)


# --- on the thread -------------------------------------------------------------------------------


@final
class _Database:
    """The connection. Made anywhere, used by one thread."""

    def __init__(self, path: str, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        # Made by `open`, on the thread: SQLite wants each connection to stay where it was made.
        self._engine: Engine | None = None
        self._connection: Connection
        self._raw: sqlite3.Connection
        self.statistics = Statistics(0, 0, 0, 0)

    def open(self) -> None:
        engine = self._engine = create_engine(
            URL.create("sqlite", database=self._path),
            # One connection for good, closed with the engine.
            poolclass=StaticPool,
            hide_parameters=True,
            # Transactions are begun and ended here, by statements: the driver would begin them
            # too late (after the checks) and SQLAlchemy without the write lock.
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": self._busy_timeout},
        )
        try:
            self._connection = engine.connect()
            raw = self._connection.connection.dbapi_connection
            assert isinstance(raw, sqlite3.Connection)
            self._raw = raw
            self._prepare()
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _wrapped(error, f"store {self._path!r} can't be opened") from error

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    def _prepare(self) -> None:
        give_up_at = time.monotonic() + self._busy_timeout
        while True:
            try:
                self._say("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                # SQLite doesn't wait for this lock, whatever its timeout.
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > give_up_at:
                    raise
                time.sleep(0.01)
        self._say("PRAGMA synchronous=FULL")
        self._say("BEGIN IMMEDIATE")
        try:
            tables.metadata.create_all(self._connection)
            found = self._connection.execute(select(tables.schema.c.version)).scalar()
            if found is None:
                self._connection.execute(insert(tables.schema), {"version": tables.VERSION})
            elif found > tables.VERSION:
                raise StoreError(
                    f"store {self._path!r} was written by a newer flowstate (layout {found}, this "
                    f"one knows {tables.VERSION}). Upgrade flowstate, or use another file."
                )
            self._say("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def work(self, tickets: Sequence[_Ticket]) -> None:
        """Do the commits of a group, then its reads: so a read sees every earlier commit."""
        commits: list[tuple[_Ticket, _Commit]] = []
        reads: list[tuple[_Ticket, _Read]] = []
        for ticket in tickets:
            if ticket.withdrawn:
                continue
            if isinstance(ticket.job, _Commit):
                commits.append((ticket, ticket.job))
            else:
                reads.append((ticket, ticket.job))
        if commits:
            self._commit(commits)
        for ticket, read in reads:
            try:
                ticket.result = read(self._connection)
            except Exception as error:
                ticket.error = _wrapped(error, "reading failed")
        refused = sum(ticket.error is not None for ticket, _ in commits)
        before = self.statistics
        self.statistics = before._replace(
            commits=before.commits + len(commits) - refused,
            refused=before.refused + refused,
            reads=before.reads + len(reads),
        )

    def _commit(self, commits: Sequence[tuple[_Ticket, _Commit]]) -> None:
        """Do them in one transaction; should the database fail, undo it and do each by itself."""
        try:
            self._say("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            for ticket, _ in commits:
                ticket.error = _wrapped(error, "nothing was written")
            return
        try:
            for ticket, commit in commits:
                ticket.error = self._attempt(commit)
            self._say("COMMIT")
        except Exception as error:
            self._roll_back()
            if len(commits) == 1:
                commits[0][0].error = _wrapped(error, "nothing was written")
            else:
                for one in commits:
                    self._commit([one])
        else:
            self.statistics = self.statistics._replace(
                transactions=self.statistics.transactions + 1
            )

    def _attempt(self, commit: _Commit) -> FlowError | None:
        """All its writes, or none and what refused them."""
        self._say("SAVEPOINT one")
        refusal = None
        try:
            if commit.fence is not None:
                self._pass(commit.fence)
            for write in commit.writes:
                self._write(write)
        except (StaleFence, StatusConflict, VersionConflict) as error:
            refusal = error
            self._say("ROLLBACK TO one")
        self._say("RELEASE one")
        return refusal

    def _pass(self, fence: Fence) -> None:
        newest = self._connection.execute(tables.read_token, {"its_key": fence.key}).scalar()
        if newest is not None:
            fence.check(newest)
        if newest != fence.token:
            self._connection.execute(tables.put_token, {"key": fence.key, "token": fence.token})

    def _write(self, write: Write) -> None:
        match write:
            case PutCell():
                self._write_cell(write)
            case PutItems():
                if write.records:
                    self._connection.execute(
                        tables.put_item, [tables.item_row(one) for one in write.records]
                    )
            case PutRequest():
                if write.expected is not None:
                    its_id = {"its_id": write.record.id}
                    write.check(self._connection.execute(tables.read_status, its_id).scalar())
                self._connection.execute(tables.put_request, tables.request_row(write.record))
            case _:
                assert_never(write)

    def _write_cell(self, write: PutCell) -> None:
        columns = tables.this_cell(write.key)
        if write.expected == 0:
            row = {**tables.cell_row(write.key), "version": 1, "data": write.data}
            written = self._connection.execute(tables.new_cell, row).rowcount
        else:
            change = {
                "its_version": write.expected,
                "next_version": write.expected + 1,
                "next_data": write.data,
            }
            written = self._connection.execute(tables.next_cell, {**columns, **change}).rowcount
        if not written:
            write.check(self._connection.execute(tables.read_version, columns).scalar() or 0)

    def _say(self, statement: str) -> None:
        self._raw.execute(statement)

    def _roll_back(self) -> None:
        # After some errors (a full disk, for one) SQLite has done so by itself.
        if self._raw.in_transaction:
            self._say("ROLLBACK")


def _wrapped(error: Exception, what: str) -> StoreError:
    """
    The error for the caller. Of the database's own it tells the message, which names tables and
    columns but no values; of any other only the type, since its message may quote one.
    """
    if isinstance(error, StoreError):
        return error
    original = error.orig if isinstance(error, StatementError) else error
    details = f": {original}" if isinstance(original, sqlite3.Error) else ""
    wrapped = StoreError(f"{what}: {type(original).__name__}{details}")
    wrapped.__cause__ = error
    return wrapped
