"""What the SQLite store keeps beyond the contract: groups, files, locks and errors."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from sqlalchemy import Connection

from flowstate.errors import CorruptRow, StoreError, VersionConflict
from flowstate.store import tables
from flowstate.store.record import Fence, PutCell, PutItems, PutRequest, PutResource, Write
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import (
    cell_key,
    collection_key,
    item_record,
    request_record,
    resource_key,
)

pytestmark = pytest.mark.anyio

TOO_LARGE = 1 << 70
"""A number that SQLite has no room for, and refuses as it is bound."""


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("store ")]


async def _at_once(store: SqlStore, batches: list[list[Write]]) -> list[Exception | None]:
    """What each commit raised, if all are asked for while the thread is busy with another."""
    raised: list[Exception | None] = [None] * len(batches)

    async def commit(number: int) -> None:
        try:
            await store.commit(batches[number])
        except Exception as error:
            raised[number] = error

    async with anyio.create_task_group() as tasks, _held_up(store):
        for number in range(len(batches)):
            tasks.start_soon(commit, number)
        await anyio.wait_all_tasks_blocked()
    return raised


@asynccontextmanager
async def _held_up(store: SqlStore) -> AsyncIterator[None]:
    """Keep the store's thread busy; what is asked for meanwhile waits."""
    begun, let_go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        let_go.wait(10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store._read, hold)
        while not begun.is_set():  # noqa: ASYNC110
            await anyio.sleep(0.001)
        try:
            yield
        finally:
            let_go.set()


# --- groups --------------------------------------------------------------------------------------


async def test_commits_that_wait_share_a_transaction(tmp_path: Path) -> None:
    """Fifty at once cost one flush to the disk, and all are there afterwards."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    before = store.statistics()
    batches: list[list[Write]] = [
        [PutCell(key=cell_key(str(number)), expected=0, data=str(number))] for number in range(50)
    ]
    assert await _at_once(store, batches) == [None] * 50
    after = store.statistics()
    assert after.commits - before.commits == 50
    assert after.transactions - before.transactions == 1
    for number in range(50):
        cell = await store.cell(cell_key(str(number)))
        assert cell is not None
        assert cell.data == str(number)
    await store.close()


async def test_a_refused_batch_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    """Each batch of a group is all-or-nothing by itself; of two rivals one is refused."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    rivals: list[list[Write]] = [
        [
            PutItems(records=(item_record(name, 1, 1, request=name),)),
            PutCell(key=cell_key("prize"), expected=0, data=f'"{name}"'),
        ]
        for name in ("a", "b", "c")
    ]
    bystander: list[Write] = [PutCell(key=cell_key("other"), expected=0, data="1")]
    raised = await _at_once(store, [*rivals, bystander])
    assert sorted(type(error).__name__ for error in raised[:3]) == [
        "NoneType",
        "VersionConflict",
        "VersionConflict",
    ]
    assert raised[3] is None
    kept = [name for name in ("a", "b", "c") if await store.items(name)]
    prize = await store.cell(cell_key("prize"))
    assert prize is not None
    assert [f'"{name}"' for name in kept] == [prize.data]
    statistics = store.statistics()
    assert (statistics.commits, statistics.refused) == (2, 2)
    await store.close()


async def test_a_batch_that_the_database_refuses_leaves_its_neighbours_alone(
    tmp_path: Path,
) -> None:
    """An error of the database undoes its group; each other batch is then done by itself."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    batches: list[list[Write]] = [
        [PutCell(key=cell_key("a"), expected=0, data="1")],
        [
            PutCell(key=cell_key("half"), expected=0, data="1"),
            PutItems(records=(item_record("i", 1, TOO_LARGE),)),
        ],
        [PutCell(key=cell_key("a"), expected=0, data="2")],
        [PutCell(key=cell_key("b"), expected=0, data="1")],
    ]
    raised = await _at_once(store, batches)
    by_type = sorted(type(error).__name__ for error in raised)
    assert by_type == ["NoneType", "NoneType", "StoreError", "VersionConflict"]
    assert isinstance(raised[1], StoreError)
    assert not isinstance(raised[1], VersionConflict)
    assert await store.cell(cell_key("half")) is None
    for name in ("a", "b"):
        cell = await store.cell(cell_key(name))
        assert cell is not None
        assert cell.version == 1
    await store.close()


async def test_a_read_sees_every_commit_that_was_asked_for_before(tmp_path: Path) -> None:
    """Also one whose caller was cancelled, and never learnt what came of it."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    for version in range(20):
        async with anyio.create_task_group() as tasks:
            write = PutCell(key=cell_key(), expected=version, data="1")
            tasks.start_soon(store.commit, [write])
            await anyio.wait_all_tasks_blocked()
            cell = await store.cell(cell_key())
            assert cell is not None
            assert cell.version == version + 1
            tasks.cancel_scope.cancel()
    await store.close()


async def test_a_commit_cancelled_before_its_turn_is_not_done(tmp_path: Path) -> None:
    """While the thread is busy with others, a cancel still comes in time."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    async with _held_up(store):
        with anyio.move_on_after(0.05):
            await store.commit([PutCell(key=cell_key(), expected=0, data="1")])
    assert await store.cell(cell_key()) is None
    await store.close()


# --- the life of a store -------------------------------------------------------------------------


async def test_closing_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    """What was asked for before is finished; the log is folded into the one file that stays."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    assert len(_threads()) == 1
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            write = PutCell(key=cell_key(str(number)), expected=0, data="1")
            tasks.start_soon(store.commit, [write])
        await anyio.wait_all_tasks_blocked()
        await store.close()
    assert _threads() == []
    assert os.listdir(tmp_path) == ["store.db"]
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT count(*) FROM flowstate_cells").fetchone() == (20,)


async def test_a_store_can_be_opened_again(tmp_path: Path) -> None:
    """Closed, it may be opened again; open, it may not."""
    store = SqlStore(tmp_path / "store.db")
    with pytest.raises(StoreError, match="open it before"):
        await store.cell(cell_key())
    await store.open()
    with pytest.raises(StoreError, match="open already"):
        await store.open()
    await store.commit([PutCell(key=cell_key(), expected=0, data="1")])
    await store.close()
    await store.open()
    assert await store.cell(cell_key()) is not None
    await store.close()
    assert "closed" in repr(store)


async def test_a_file_is_synchronous_and_has_a_log(tmp_path: Path) -> None:
    """A commit that returned survives a power cut: full synchronisation, write-ahead log."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()

    def look() -> tuple[object, object]:
        raw = store._database._raw
        (mode,) = raw.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = raw.execute("PRAGMA synchronous").fetchone()
        return mode, synchronous

    assert await store._read(lambda _: look()) == ("wal", 2)
    await store.close()


async def test_memory_can_be_sqlite_too() -> None:
    """``:memory:`` keeps everything until it is closed, through the same statements."""
    store = SqlStore(":memory:")
    await store.open()
    await store.commit([PutRequest(record=request_record())])
    assert await store.request("r1") == request_record()
    await store.close()


async def test_a_store_shares_a_file_with_other_tables(tmp_path: Path) -> None:
    """A user's own tables are left alone, whatever their names."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE requests (anything TEXT)")
        connection.execute("INSERT INTO requests VALUES ('mine')")
        connection.commit()
    store = SqlStore(path)
    await store.open()
    await store.commit([PutRequest(record=request_record())])
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM requests").fetchall() == [("mine",)]


async def test_twenty_stores_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Whoever comes first makes the tables; nobody fails."""
    stores = [SqlStore(tmp_path / "store.db") for _ in range(20)]
    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(store.open)
    for number, store in enumerate(stores):
        await store.commit([PutCell(key=cell_key(), expected=number, data="1")])
    for store in stores:
        await store.close()
    assert _threads() == []


# --- errors --------------------------------------------------------------------------------------


async def test_a_file_of_a_newer_flowstate_is_refused(tmp_path: Path) -> None:
    """It is told which layout it has, and is left as it is."""
    path = tmp_path / "store.db"
    store = SqlStore(path)
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE flowstate_schema SET version = ?", (tables.VERSION + 1,))
        connection.commit()
    with pytest.raises(StoreError, match=r"newer flowstate \(layout 3, this one knows 2\)"):
        await store.open()
    assert _threads() == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM flowstate_schema").fetchall() == [(3,)]


async def test_a_file_of_an_older_flowstate_is_brought_up_to_date(tmp_path: Path) -> None:
    """What the first layout lacks is made, what it holds stays, and the file says its new one."""
    path = tmp_path / "store.db"
    store = SqlStore(path)
    await store.open()
    await store.commit([PutCell(key=cell_key(), expected=0, data="1")])
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE flowstate_resources")
        connection.execute("UPDATE flowstate_schema SET version = 1")
        connection.commit()
    for _ in range(2):
        await store.open()
        cell = await store.cell(cell_key())
        assert cell is not None
        assert cell.data == "1"
        assert await store.resources(collection_key()) == []
        await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM flowstate_schema").fetchall() == [(2,)]
        index = "SELECT sql FROM sqlite_master WHERE name = 'flowstate_resources_in_order'"
        (made,) = connection.execute(index).fetchone()
    assert made.endswith("WHERE data IS NOT NULL"), "what was deleted is in the index"


async def test_a_page_is_read_off_an_index(tmp_path: Path) -> None:
    """It costs what is on it: no other entry is looked at, no deleted one either, nor sorted."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    seen: list[str] = []

    def read(connection: Connection) -> None:
        query = tables.read_resources.compile(dialect=connection.dialect)
        values = tuple("" for _ in query.positiontup or ())  # The plan is the same for all.
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)
        seen.extend(row.detail for row in plan)

    await store._read(read)
    assert seen == [
        "SEARCH flowstate_resources USING INDEX flowstate_resources_in_order "
        "(tenant=? AND scope=? AND owner=? AND collection=? AND key>? AND key<?)"
    ]
    await store.close()


async def test_an_entry_under_a_key_that_is_none_is_corrupt(tmp_path: Path) -> None:
    """A row that somebody else changed is named, not guessed at."""
    path = tmp_path / "store.db"
    store = SqlStore(path)
    await store.open()
    await store.commit([PutResource(key=resource_key(), expected=0, data="1")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE flowstate_resources SET key = 'notes/' || char(233)")
        connection.commit()
    with pytest.raises(CorruptRow, match=r"session resource 'notes' of 's1', entry 'notes/\\xe9'"):
        await store.resources(collection_key())
    await store.close()


async def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A file with something else in it is named and left as it is."""
    path = tmp_path / "notes.db"
    path.write_text("these are notes, and quite a few of them, not a database" * 20)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"notes\.db' can't be opened: .*not a database"):
        await SqlStore(path).open()
    assert path.read_bytes() == before
    assert _threads() == []


async def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """Folders are not made: a misspelt one would hide the data that is elsewhere."""
    with pytest.raises(StoreError, match=r"nowhere/store\.db' can't be opened"):
        await SqlStore(tmp_path / "nowhere" / "store.db").open()
    assert _threads() == []


async def test_a_lock_that_is_not_let_go_fails_the_commit(tmp_path: Path) -> None:
    """After ``busy_timeout`` every waiting commit is told; later ones go on."""
    store = SqlStore(tmp_path / "store.db", busy_timeout=0.1)
    await store.open()
    batches: list[list[Write]] = [
        [PutCell(key=cell_key(str(number)), expected=0, data="1")] for number in range(3)
    ]
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        raised = await _at_once(store, batches)
        other.execute("ROLLBACK")
    assert [str(error) for error in raised] == [
        "nothing was written: OperationalError: database is locked"
    ] * 3
    assert isinstance(raised[0], StoreError)
    assert isinstance(raised[0].__cause__, sqlite3.OperationalError)
    await store.commit(batches[0])
    await store.close()


async def test_a_caller_cancelled_while_the_file_is_locked_leaves_at_once(tmp_path: Path) -> None:
    """Nobody waits for another process's lock in order to be cancelled."""
    store = SqlStore(tmp_path / "store.db", busy_timeout=20)
    await store.open()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with anyio.fail_after(10), anyio.move_on_after(0.05) as scope:
            await store.commit([PutCell(key=cell_key(), expected=0, data="1")])
        assert scope.cancelled_caught
        other.execute("ROLLBACK")
    await store.close()


async def test_no_error_shows_a_stored_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the message, nor its causes as a log prints them, nor a log line."""
    caplog.set_level(logging.DEBUG)
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    secret = '"hunter2"'
    cell = PutCell(key=cell_key(), expected=0, data=secret)
    bad_items: list[Write] = [cell, PutItems(records=(item_record("hunter2", 1, TOO_LARGE),))]
    bad_text: list[Write] = [cell, PutCell(key=cell_key("b"), expected=0, data=secret + "\ud800")]
    for batch in (bad_items, bad_text):
        with pytest.raises(StoreError, match=r"^nothing was written: ") as caught:
            await store.commit(batch)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    await store._read(lambda connection: connection.exec_driver_sql("DROP TABLE flowstate_cells"))
    with pytest.raises(StoreError, match=r"^nothing was written: .*no such table") as caught:
        await store.commit([cell])
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in caplog.text
    await store.close()


async def test_a_fence_token_too_large_for_the_database_is_refused(tmp_path: Path) -> None:
    """A number beyond 64 bits fails its commit, and the store goes on."""
    store = SqlStore(tmp_path / "store.db")
    await store.open()
    with pytest.raises(StoreError, match="OverflowError"):
        await store.commit([], fence=Fence(key="k", token=TOO_LARGE))
    await store.commit([], fence=Fence(key="k", token=(1 << 63) - 1))
    await store.close()


async def test_a_request_in_an_unknown_status_is_corrupt(tmp_path: Path) -> None:
    """A row that somebody else changed is named, not guessed at."""
    path = tmp_path / "store.db"
    store = SqlStore(path)
    await store.open()
    await store.commit([PutRequest(record=request_record())])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE flowstate_requests SET status = 'lost'")
        connection.commit()
    with pytest.raises(CorruptRow, match=r"request 'r1'.*'lost'"):
        await store.request("r1")
    await store.close()
