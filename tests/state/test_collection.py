"""The resource collection: typed entries under any id, versioned, paged, never replaced unread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from flowstate import Collection, Deleted, Entry, Page, Unchanged, Written, resource
from flowstate.errors import (
    CorruptRow,
    InvalidValue,
    NoSuchEntry,
    StaleFence,
    StoreError,
    VersionConflict,
)
from flowstate.ids import Identity, SessionId
from flowstate.item.content import ResourceChange
from flowstate.state.collection import MOST, ResourceCollection, collection_key
from flowstate.state.versioned import TRIES
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.record import (
    CollectionKey,
    DeleteResource,
    Fence,
    PutResource,
    ResourceKey,
)
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import ODD_TEXTS
from flowstate.testing.store_samples import collection_key as some_collection

pytestmark = pytest.mark.anyio

KEY = some_collection()


class Note(BaseModel):
    text: str = ""
    count: int = 0
    lines: list[str] = []


class FileId(NamedTuple):
    repo: str
    path: str


NOTES = resource("notes/{id}", Note)
FILES = resource("repos/{repo}/files/{path*}", Note, ids=FileId)


@pytest.fixture(name="store", params=["memory", "sqlite"])
async def _store(
    request: pytest.FixtureRequest, anyio_backend: object, tmp_path: Path
) -> AsyncIterator[Store]:
    store = MemoryStore() if request.param == "memory" else SqlStore(tmp_path / "store.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture(name="notes")
def _notes(store: Store) -> ResourceCollection[Note, str]:
    return ResourceCollection(store, KEY, NOTES)


def _entry_key(id: str) -> ResourceKey:
    return ResourceKey(collection=KEY, key=NOTES.key(id))


async def _ids(notes: Collection[Note, str], **options: Any) -> list[str]:
    return [entry.id async for entry in notes.scan(**options)]


# --- reading and writing -------------------------------------------------------------------------


async def test_every_write_answers_the_value_and_its_version(
    notes: ResourceCollection[Note, str],
) -> None:
    """Versions count from 1, and what is answered is what a reader gets."""
    as_promised: Collection[Note, str] = notes
    assert await as_promised.get("n1") is None
    assert await notes.create("n1", Note(text="a")) == Written(Note(text="a"), 1)
    assert await notes.get("n1") == Entry("n1", Note(text="a"), 1)
    assert await notes.upsert("n1", Note(text="b")) == Written(Note(text="b"), 2)
    assert await notes.upsert("n2", Note(text="c")) == Written(Note(text="c"), 1)

    def count(note: Note) -> Note:
        return note.model_copy(update={"count": note.count + 1})

    assert await notes.update("n1", count) == Written(Note(text="b", count=1), 3)
    assert await notes.delete("n1") == Deleted(Note(text="b", count=1), 4)
    assert await notes.get("n1") is None
    assert await notes.delete("n1") is None
    assert await notes.list() == Page((Entry("n2", Note(text="c"), 1),), None)


async def test_a_write_that_changes_nothing_is_none(
    notes: ResourceCollection[Note, str],
) -> None:
    """The same JSON makes no version; the answer says so."""
    await notes.create("n1", Note(text="a"))
    for unchanged in (
        await notes.upsert("n1", Note(text="a")),
        await notes.upsert("n1", Note(text="a"), expected=1),
        await notes.update("n1", lambda note: note),
    ):
        assert unchanged == Unchanged(Note(text="a"), 1)


async def test_a_value_that_was_read_is_a_copy(notes: ResourceCollection[Note, str]) -> None:
    """Changing it, or what was handed over, changes nothing that is stored."""
    note = Note(lines=["a"])
    await notes.create("n1", note)
    note.lines.append("b")
    entry = await notes.get("n1")
    assert entry is not None
    entry.value.lines.append("c")
    assert await notes.get("n1") == Entry("n1", Note(lines=["a"]), 1)


async def test_what_is_there_is_not_created_again(notes: ResourceCollection[Note, str]) -> None:
    """Not even the same; the error tells its version, and the entry stays."""
    await notes.create("n1", Note(text="a"))
    await notes.upsert("n1", Note(text="b"))
    for value in (Note(text="b"), Note(text="c")):
        with pytest.raises(VersionConflict, match=r"entry 'notes/n1' of 's1'") as caught:
            await notes.create("n1", value)
        assert (caught.value.expected, caught.value.found) == (0, 2)
    assert await notes.get("n1") == Entry("n1", Note(text="b"), 2)


async def test_a_write_goes_by_the_version_that_it_expects(
    notes: ResourceCollection[Note, str],
) -> None:
    """One that was read and is still there; 0 is none."""
    assert await notes.upsert("n1", Note(text="a"), expected=0) == Written(Note(text="a"), 1)
    assert await notes.upsert("n1", Note(text="b"), expected=1) == Written(Note(text="b"), 2)
    for expected in (0, 1, 3):
        for write in (
            notes.upsert("n1", Note(text="b"), expected=expected),
            notes.delete("n1", expected=expected),
        ):
            with pytest.raises(VersionConflict) as caught:
                await write
            assert (caught.value.expected, caught.value.found) == (expected, 2)
    assert await notes.delete("n1", expected=2) == Deleted(Note(text="b"), 3)
    for expected in (1, 2, 3):
        for write in (
            notes.upsert("n1", Note(), expected=expected),
            notes.delete("n1", expected=expected),
        ):
            with pytest.raises(VersionConflict) as caught:
                await write
            assert (caught.value.expected, caught.value.found) == (expected, 0)
    assert await notes.delete("n1", expected=0) is None
    assert await notes.get("n1") is None


async def test_a_version_never_comes_back(notes: ResourceCollection[Note, str]) -> None:
    """Deleted and made again, an entry goes on where it was: nothing old fits it."""
    await notes.create("n1", Note(text="a"))
    old = await notes.get("n1")
    assert old is not None
    await notes.delete("n1")
    assert await notes.create("n1", Note(text="a")) == Written(Note(text="a"), 3)
    with pytest.raises(VersionConflict):
        await notes.upsert("n1", Note(text="mine"), expected=old.version)
    with pytest.raises(VersionConflict):
        await notes.delete("n1", expected=old.version)
    await notes.delete("n1")
    assert await notes.upsert("n1", Note(text="a")) == Written(Note(text="a"), 5)


async def test_what_is_not_there_is_not_updated(notes: ResourceCollection[Note, str]) -> None:
    """There is no value to start from; the error says what to use instead."""
    await notes.create("gone", Note())
    await notes.delete("gone")
    for id in ("never", "gone"):
        with pytest.raises(NoSuchEntry, match=f"entry 'notes/{id}' of 's1'.*create or upsert"):
            await notes.update(id, lambda note: note)
    assert await _ids(notes) == []


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, {"text": "a"}, Note, FILES])
async def test_a_value_of_another_kind_is_refused(
    value: Any, notes: ResourceCollection[Note, str]
) -> None:
    """InvalidValue names the entry, and nothing is written."""
    await notes.create("there", Note())
    for write in (
        notes.create("n1", value),
        notes.upsert("n1", value),
        notes.update("there", lambda _: value),
    ):
        with pytest.raises(InvalidValue, match=r"entry 'notes/(n1|there)' of 's1'"):
            await write
    assert await notes.list() == Page((Entry("there", Note(), 1),), None)


async def test_an_asynchronous_change_is_refused(notes: ResourceCollection[Note, str]) -> None:
    """It would be called again on a conflict; it is closed, so that it doesn't warn later."""

    async def change(note: Note) -> Note:
        return note

    await notes.create("n1", Note())
    with pytest.raises(InvalidValue, match="return the new value, synchronously"):
        await notes.update("n1", change)  # type: ignore[arg-type]


async def test_what_is_no_id_is_refused(notes: ResourceCollection[Note, str]) -> None:
    """By every method, before anything is asked of the store."""
    nothing: Any = None
    for attempt in (
        notes.get(nothing),
        notes.create(nothing, Note()),
        notes.upsert(nothing, Note()),
        notes.update(nothing, lambda note: note),
        notes.delete(nothing),
    ):
        with pytest.raises(InvalidValue, match="a text as the id"):
            await attempt


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": -1},
        {"limit": MOST + 1},
        {"limit": "5"},
        {"after": "notes2/a"},
        {"after": "notes/a/b"},
        {"after": "n1"},
        {"after": ""},
        {"within": ("a",)},
        {"within": "a"},
        {"prefix": None},
    ],
)
async def test_a_page_that_is_none_is_refused(
    options: dict[str, Any], notes: ResourceCollection[Note, str]
) -> None:
    """A limit, position or prefix that can't be meant is told, never guessed at."""
    with pytest.raises(InvalidValue):
        await notes.list(**options)


@pytest.mark.parametrize("data", ['{"count": "hunter2"}', "hunter2", "[]"])
async def test_a_row_that_does_not_fit_is_never_replaced(
    data: str, store: Store, notes: ResourceCollection[Note, str]
) -> None:
    """Reads, writes and deletes raise CorruptRow with the id; the row stays as it is."""
    await store.commit([PutResource(key=_entry_key("n1"), expected=0, data=data)])
    await notes.create("n2", Note())
    for attempt in (
        notes.get("n1"),
        notes.create("n1", Note()),
        notes.upsert("n1", Note()),
        notes.upsert("n1", Note(), expected=1),
        notes.update("n1", lambda _: Note()),
        notes.delete("n1"),
        notes.list(),
    ):
        with pytest.raises(CorruptRow, match="entry 'notes/n1' of 's1'") as caught:
            await attempt
        assert "hunter2" not in str(caught.value)
    record = await store.resource(_entry_key("n1"))
    assert record is not None
    assert (record.version, record.data) == (1, data)
    assert await _ids(notes, prefix="n2") == ["n2"]


async def test_an_entry_of_another_pattern_is_told(store: Store) -> None:
    """A collection whose pattern was changed under its name doesn't guess at ids."""
    old = resource("notes/{kind}/{id}", Note, name="notes", ids=_TwoPart)
    await ResourceCollection(store, KEY, old).create(_TwoPart("a", "b"), Note())
    notes = ResourceCollection(store, KEY, NOTES)
    with pytest.raises(CorruptRow, match=r"entry 'notes/a/b'.*the pattern 'notes/\{id\}'"):
        await notes.list()


class _TwoPart(NamedTuple):
    kind: str
    id: str


# --- lists ---------------------------------------------------------------------------------------


async def test_any_text_is_an_id(notes: ResourceCollection[Note, str]) -> None:
    """Ids that stores and paths get wrong are found by get, list and delete, each its own entry."""
    for number, text in enumerate(ODD_TEXTS):
        await notes.create(text, Note(count=number))
    found = {entry.id: entry.value.count async for entry in notes.scan()}
    assert found == {text: number for number, text in enumerate(ODD_TEXTS)}
    for number, text in enumerate(ODD_TEXTS):
        assert await notes.get(text) == Entry(text, Note(count=number), 1)
        begin = [one for one in ODD_TEXTS if one.startswith(text)]
        assert sorted(await _ids(notes, prefix=text)) == sorted(begin)
    for text in ODD_TEXTS:
        await notes.delete(text)
    assert await _ids(notes) == []


async def test_pages_follow_one_another(notes: ResourceCollection[Note, str]) -> None:
    """Each tells where the next one begins, the last one that there is none."""
    ids = [f"n{number:02}" for number in range(10)]
    for id in reversed(ids):
        await notes.create(id, Note())
    for limit in (1, 3, 5, 9, 10, 11):
        seen: list[list[str]] = []
        after: str | None = None
        while True:
            page = await notes.list(limit=limit, after=after)
            seen.append([entry.id for entry in page.entries])
            assert len(seen) <= len(ids), "the pages never end"
            after = page.next
            if after is None:
                break
        assert [id for ids_of_page in seen for id in ids_of_page] == ids
        assert [len(one) for one in seen[:-1]] == [limit] * (len(seen) - 1)
        assert seen[-1], "the last page of a collection that isn't empty has an entry"
    assert await notes.list(prefix="x") == Page((), None)


async def test_a_page_begins_after_an_entry_that_was_deleted(
    notes: ResourceCollection[Note, str],
) -> None:
    """A cursor is a position: what happens at it or before it changes nothing behind it."""
    for id in "abcdef":
        await notes.create(id, Note())
    page = await notes.list(limit=3)
    assert page.next is not None
    await notes.delete("c")
    await notes.delete("a")
    await notes.create("aa", Note())
    await notes.delete("e")
    rest = await notes.list(after=page.next)
    assert [entry.id for entry in rest.entries] == ["d", "f"]


async def test_a_scan_sees_what_stays_exactly_once(notes: ResourceCollection[Note, str]) -> None:
    """However the rest changes meanwhile, and over many pages."""
    staying = [f"{number:03}" for number in range(0, 250, 2)]
    for id in staying:
        await notes.create(id, Note())
    seen: list[str] = []
    async for entry in notes.scan():
        seen.append(entry.id)
        number = int(entry.id)
        if number % 2 == 0 and number % 3 == 0:
            await notes.upsert(f"{number + 1:03}", Note())
            await notes.delete(f"{number - 2:03}~")
            await notes.upsert(f"{number - 2:03}~", Note())
    assert [id for id in seen if id in staying] == staying
    assert len(seen) == len(set(seen))


async def test_a_scan_may_be_left_at_any_point(notes: ResourceCollection[Note, str]) -> None:
    """It holds nothing between two entries: writing inside works, and so does leaving."""
    for id in "abc":
        await notes.create(id, Note())
    scan = notes.scan()
    async for entry in scan:
        with anyio.fail_after(5):
            await notes.update(entry.id, lambda note: note.model_copy(update={"count": 1}))
        if entry.id == "b":
            break
    assert (await notes.upsert("a", Note())).version == 3
    assert await _ids(notes) == ["a", "b", "c"]


async def test_ids_of_several_parts_are_listed_by_whole_parts(store: Store) -> None:
    """``within`` never reaches a longer value; ``prefix`` cuts the next one anywhere."""
    files = ResourceCollection(store, some_collection(FILES.name), FILES)
    ids = [
        FileId(repo, path)
        for repo in ("r1", "r10", "r1/x", "")
        for path in ("src/a.py", "src/b.py", "srcs", "", "src//c")
    ]
    for number, id in enumerate(ids):
        await files.create(id, Note(count=number))

    async def found(**options: Any) -> set[FileId]:
        return {entry.id async for entry in files.scan(**options)}

    assert await found() == set(ids)
    for repo in ("r1", "r10", "r1/x", "", "r"):
        mine = {id for id in ids if id.repo == repo}
        assert await found(within=(repo,)) == mine
        for prefix in ("s", "src", "src/", "src//", "x"):
            assert await found(within=(repo,), prefix=prefix) == {
                id for id in mine if id.path.startswith(prefix)
            }
    assert await found(prefix="r1") == {id for id in ids if id.repo.startswith("r1")}
    entry = await files.get(FileId("r1/x", "src//c"))
    assert entry is not None
    assert type(entry.id) is FileId


# --- several writers -----------------------------------------------------------------------------


async def test_many_tasks_lose_nothing(store: Store) -> None:
    """A hundred tasks, each with a collection object of its own, count to a hundred."""

    def add(note: Note) -> Note:
        return note.model_copy(update={"count": note.count + 1})

    async def count() -> None:
        await ResourceCollection(store, KEY, NOTES).update("n1", add)

    notes = ResourceCollection(store, KEY, NOTES)
    await notes.create("n1", Note())
    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(count)
    assert await notes.get("n1") == Entry("n1", Note(count=100), 101)


async def test_one_of_many_creators_wins(store: Store) -> None:
    """The others are told, each with the version that is there."""
    outcomes: list[str] = []

    async def create(number: int) -> None:
        try:
            await ResourceCollection(store, KEY, NOTES).create("n1", Note(count=number))
        except VersionConflict as conflict:
            outcomes.append(f"{conflict.expected} {conflict.found}")
        else:
            outcomes.append("made")

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(create, number)
    assert sorted(outcomes) == ["0 1"] * 9 + ["made"]


class _Overtaken:
    """A store in which somebody else writes first, some times."""

    def __init__(self, store: Store, overtake: Any, *, times: int) -> None:
        self._store = store
        self._overtake = overtake
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, writes: Any, *, fence: Fence | None = None) -> None:
        if self._times:
            self._times -= 1
            await self._overtake(writes[0].expected)
        await self._store.commit(writes, fence=fence)


async def test_a_faster_writer_makes_an_update_start_over(
    store: Store, notes: ResourceCollection[Note, str]
) -> None:
    """The change is called again with the newest value, so neither write is lost."""
    seen: list[int] = []
    await notes.create("n1", Note())

    async def overtake(version: int) -> None:
        data = Note(count=10 * version).model_dump_json()
        await store.commit([PutResource(key=_entry_key("n1"), expected=version, data=data)])

    def add(note: Note) -> Note:
        seen.append(note.count)
        return note.model_copy(update={"count": note.count + 1})

    rival = ResourceCollection(_Overtaken(store, overtake, times=3), KEY, NOTES)
    assert await rival.update("n1", add) == Written(Note(count=31), 5)
    assert seen == [0, 10, 20, 30]


async def test_a_faster_writer_is_told_to_whom_expected_another_version(
    store: Store, notes: ResourceCollection[Note, str]
) -> None:
    """A write that names its version, or makes an entry, is refused and not tried again."""
    calls = 0

    async def overtake(version: int) -> None:
        nonlocal calls
        calls += 1
        data = Note(count=calls).model_dump_json()
        await store.commit([PutResource(key=_entry_key("n1"), expected=version, data=data)])

    rival = ResourceCollection(_Overtaken(store, overtake, times=10**9), KEY, NOTES)
    with pytest.raises(VersionConflict) as caught:
        await rival.create("n1", Note())
    assert (caught.value.expected, caught.value.found) == (0, 1)
    with pytest.raises(VersionConflict) as caught:
        await rival.upsert("n1", Note(), expected=1)
    assert (caught.value.expected, caught.value.found) == (1, 2)
    with pytest.raises(VersionConflict) as caught:
        await rival.delete("n1", expected=2)
    assert (caught.value.expected, caught.value.found) == (2, 3)
    assert calls == 3
    with pytest.raises(VersionConflict):
        await rival.upsert("n1", Note())
    assert calls == 3 + TRIES


async def test_an_entry_deleted_meanwhile_is_made_again_or_missed(
    store: Store, notes: ResourceCollection[Note, str]
) -> None:
    """An upsert goes on over the delete; an update has nothing to change any more."""
    await notes.create("n1", Note(text="a"))
    await notes.create("n2", Note(text="a"))

    def overtaken(id: str) -> ResourceCollection[Note, str]:
        async def overtake(version: int) -> None:
            await store.commit([DeleteResource(key=_entry_key(id), expected=version)])

        return ResourceCollection(_Overtaken(store, overtake, times=1), KEY, NOTES)

    assert await overtaken("n1").upsert("n1", Note(text="b")) == Written(Note(text="b"), 3)
    with pytest.raises(NoSuchEntry):
        await overtaken("n2").update("n2", lambda note: note.model_copy(update={"count": 1}))


async def test_a_cancelled_writer_lets_the_next_one_on(
    notes: ResourceCollection[Note, str],
) -> None:
    """Cancelled at whatever point, a writer leaves its turn, and each write is whole."""
    for steps in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notes.upsert, "n1", Note(text="x", count=steps))
            tasks.start_soon(notes.delete, "n1")
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await notes.upsert("n1", Note(count=-1))
        entry = await notes.get("n1")
        assert entry is not None
        assert entry.value == Note(count=-1)


async def test_a_fence_is_asked_for_with_every_write(store: Store) -> None:
    """A run that lost its key can't write or delete any more; reading stays free."""
    token = 1
    notes = ResourceCollection(store, KEY, NOTES, fence=lambda: Fence(key="k", token=token))
    await notes.create("n1", Note())
    await store.commit([], fence=Fence(key="k", token=2))
    for attempt in (
        notes.create("n2", Note()),
        notes.upsert("n1", Note(text="x")),
        notes.update("n1", lambda _: Note(text="x")),
        notes.delete("n1"),
    ):
        with pytest.raises(StaleFence):
            await attempt
    assert await _ids(notes) == ["n1"]
    token = 3
    assert (await notes.upsert("n1", Note(text="x"))).version == 2


# --- live ----------------------------------------------------------------------------------------


async def test_a_change_is_told_once_it_is_committed(store: Store) -> None:
    """Writes and deletes, with the escaped key; never what changed nothing or was refused."""
    told: list[ResourceChange] = []
    notes = ResourceCollection(store, KEY, NOTES, tell=told.append)

    def change(key: str, version: int, deleted: bool = False) -> ResourceChange:
        return ResourceChange(collection="notes", key=key, version=version, deleted=deleted)

    await notes.create("a/\ud800", Note())
    await notes.upsert("a/\ud800", Note())
    await notes.update("a/\ud800", lambda _: Note(text="x"))
    await notes.delete("a/\ud800")
    await notes.delete("a/\ud800")
    await notes.list()
    with pytest.raises(VersionConflict):
        await notes.upsert("b", Note(), expected=1)
    with pytest.raises(NoSuchEntry):
        await notes.update("b", lambda note: note)
    key = "notes/a%2F%ED%A0%80"
    assert told == [change(key, 1), change(key, 2), change(key, 3, True)]


async def test_a_change_that_is_not_committed_is_not_told(store: Store) -> None:
    """At the moment of telling the store has it; where the commit fails nothing is told."""
    told: list[ResourceChange] = []

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def commit(self, writes: Any, *, fence: Fence | None = None) -> None:
            assert told == []
            raise StoreError("the disk is full")

    failing: Any = Failing()
    notes = ResourceCollection(failing, KEY, NOTES, tell=told.append)
    await ResourceCollection(store, KEY, NOTES).create("there", Note())
    for attempt in (notes.create("n1", Note()), notes.delete("there")):
        with pytest.raises(StoreError, match="the disk is full"):
            await attempt
    assert told == []


# --- where a collection lives --------------------------------------------------------------------


async def test_collections_of_others_never_meet(store: Store) -> None:
    """Other tenants, owners, scopes and names hold other entries, whatever characters they have."""
    keys = {
        collection_key(
            resource("notes/{id}", Note, scope=scope),
            Identity(session_id=SessionId(who), user_id=who, org_id=who, tenant_id=tenant),
            who,
        )
        for scope in ("request", "session", "user", "org")
        for who in ("a", "b", "a/b", "\0")
        for tenant in (None, "", "a", "\ud800")
    }
    keys.add(some_collection("notes2", owner="a"))
    assert len(keys) == 4 * 4 * 4 + 1
    for number, key in enumerate(keys):
        await ResourceCollection(store, key, NOTES).create("n1", Note(count=number))
    for number, key in enumerate(keys):
        notes = ResourceCollection(store, key, NOTES)
        assert await notes.list() == Page((Entry("n1", Note(count=number), 1),), None)


async def test_a_collection_tells_what_and_where_it_is(store: Store) -> None:
    """The repr names model, scope, owner and tenant, odd characters as literals."""
    key = CollectionKey(scope="user", tenant="\ud800", owner="a\0", name="notes")
    expected = r"<Note entries in user resource 'notes' of 'a\x00' of tenant '\ud800'>"
    assert repr(ResourceCollection(store, key, NOTES)) == expected
