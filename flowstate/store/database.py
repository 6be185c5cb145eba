"""
The connection to a SQLite file, and everything that is said through it: the part of ``SqlStore``
that lives on the store's thread.

It knows no event loop. What it is handed is worked off in groups: the commits in one transaction of
the database, with a savepoint each, and then the reads.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never, final

from sqlalchemy import Connection, Engine, create_engine, insert, select, update
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError, StatementError
from sqlalchemy.pool import StaticPool

from flowstate.errors import FlowError, StaleFence, StatusConflict, StoreError, VersionConflict
from flowstate.store import tables
from flowstate.store.record import (
    DeleteResource,
    Fence,
    PutCell,
    PutItems,
    PutRequest,
    PutResource,
    Write,
)
from flowstate.store.thread import Ticket


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Writes to do in one transaction, or not at all."""

    writes: tuple[Write, ...]
    fence: Fence | None


Read: TypeAlias = Callable[[Connection], object]
"""What is done with the connection; writes nothing."""

_Ticket: TypeAlias = Ticket[Commit | Read]


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
class Database:
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
        """Open the file, make what tables it lacks; see ``SqlStore.open``."""
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
        """Close the file."""
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
            elif found < tables.VERSION:
                self._connection.execute(update(tables.schema), {"version": tables.VERSION})
            self._say("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def work(self, tickets: Sequence[_Ticket]) -> None:
        """Do the commits of a group, then its reads: so a read sees every earlier commit."""
        commits: list[tuple[_Ticket, Commit]] = []
        reads: list[tuple[_Ticket, Read]] = []
        for ticket in tickets:
            if ticket.withdrawn:
                continue
            if isinstance(ticket.job, Commit):
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

    def _commit(self, commits: Sequence[tuple[_Ticket, Commit]]) -> None:
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

    def _attempt(self, commit: Commit) -> FlowError | None:
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
                key = tables.cell_row(write.key)
                self._write_version(write, tables.cell_writes, key)
            case PutResource() | DeleteResource():
                key = tables.resource_row(write.key)
                self._write_version(write, tables.resource_writes, key)
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

    def _write_version(
        self,
        write: PutCell | PutResource | DeleteResource,
        how: tables.VersionedWrites,
        key: dict[str, object],
    ) -> None:
        where = tables.its(key)
        if write.expected == 0:
            row = {**key, "version": 1, "data": write.data}
            written = self._connection.execute(how.first, row).rowcount
        else:
            change = {
                "its_version": write.expected,
                "next_version": write.expected + 1,
                "next_data": write.data,
            }
            written = self._connection.execute(how.following, {**where, **change}).rowcount
        if not written:
            write.check(self._connection.execute(how.version, where).scalar() or 0)

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
