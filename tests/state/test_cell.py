"""The state cell: typed, versioned, never replaced when it can't be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from flowstate.context import Cell, Unchanged, Written
from flowstate.define.uses import block_state, org_state, request_state, session_state, user_state
from flowstate.errors import CorruptRow, DefinitionError, InvalidValue, StaleFence, VersionConflict
from flowstate.ids import Identity, SessionId
from flowstate.state.cell import StateCell, cell_key
from flowstate.state.versioned import TRIES
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.record import CellKey, Fence, PutCell
from flowstate.store.sql import SqlStore

pytestmark = pytest.mark.anyio

KEY = CellKey(scope="session", tenant=None, owner="s1", name="notes")


class Notes(BaseModel):
    """A model with a bit of everything."""

    title: str = ""
    count: int = 0
    weight: float = 0.0
    lines: list[str] = []
    marks: tuple[int, ...] = ()
    maybe: int | None = None
    done: bool = False


@pytest.fixture(name="store", params=["memory", "sqlite"])
async def _store(
    request: pytest.FixtureRequest, anyio_backend: object, tmp_path: Path
) -> AsyncIterator[Store]:
    store = MemoryStore() if request.param == "memory" else SqlStore(tmp_path / "store.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture(name="cell")
def _cell(store: Store) -> StateCell[Notes]:
    return StateCell(store, KEY, Notes)


# --- reading and writing -------------------------------------------------------------------------


async def test_a_cell_never_written_has_the_defaults(store: Store, cell: StateCell[Notes]) -> None:
    """Reading it gives the model's defaults and writes nothing."""
    as_promised: Cell[Notes] = cell
    assert await as_promised.get() == Notes()
    assert await store.cell(KEY) is None


async def test_every_write_answers_the_value_and_its_version(cell: StateCell[Notes]) -> None:
    """Each way to write makes the next version, and the value is what a reader gets."""
    assert await cell.set(Notes(title="a")) == Written(Notes(title="a"), 1)
    written = await cell.update(lambda notes: notes.model_copy(update={"count": 5}))
    assert written == Written(Notes(title="a", count=5), 2)
    assert (await cell.patch(title="b", maybe="7")).value == Notes(title="b", count=5, maybe=7)
    assert (await cell.increment("count", 3)).value.count == 8
    assert (await cell.increment("weight", 0.5)).value.weight == 0.5
    assert (await cell.increment("maybe", -7)).value.maybe == 0
    assert (await cell.append("lines", "x", "y")).value.lines == ["x", "y"]
    last = await cell.append("marks", 1, "2")
    assert last.value.marks == (1, 2)
    assert last.version == 8
    assert await cell.get() == last.value


async def test_a_write_that_changes_nothing_is_none(store: Store, cell: StateCell[Notes]) -> None:
    """The same JSON makes no version; the answer says so."""
    await cell.set(Notes(title="a"))
    for unchanged in (
        await cell.set(Notes(title="a")),
        await cell.update(lambda notes: notes),
        await cell.patch(title="a"),
        await cell.patch(),
        await cell.increment("count", 0),
        await cell.append("lines"),
    ):
        assert unchanged == Unchanged(Notes(title="a"), 1)
    record = await store.cell(KEY)
    assert record is not None
    assert record.version == 1


async def test_the_first_write_always_takes(store: Store, cell: StateCell[Notes]) -> None:
    """Defaults that were set stay, whatever the model's defaults become later."""
    assert await cell.set(Notes()) == Written(Notes(), 1)
    record = await store.cell(KEY)
    assert record is not None


async def test_a_value_that_was_read_is_a_copy(cell: StateCell[Notes]) -> None:
    """Changing it, or what was handed over, changes nothing that is stored."""
    notes = Notes(lines=["a"])
    await cell.set(notes)
    notes.lines.append("b")
    (await cell.get()).lines.append("c")
    assert (await cell.get()).lines == ["a"]


async def test_a_change_may_work_in_place(cell: StateCell[Notes]) -> None:
    """The function gets a value of its own, so that mutating and returning it is a write too."""

    def add_line(notes: Notes) -> Notes:
        notes.lines.append("a")
        return notes

    assert (await cell.update(add_line)).version == 1
    assert await cell.update(add_line) == Written(Notes(lines=["a", "a"]), 2)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "arguments", "fields", "problem"),
    [
        ("patch", (), {"nope": 1}, "there is no 'nope'"),
        ("patch", (), {"count": "many"}, "count: Input should be a valid integer"),
        ("increment", ("nope",), {}, "there is no 'nope'"),
        ("increment", ("title",), {}, "can't be incremented"),
        ("increment", ("done",), {}, "can't be incremented"),
        ("increment", ("maybe",), {}, "can't be incremented"),
        ("increment", ("count", 0.5), {}, "count: Input should be a valid integer"),
        ("increment", ("weight", float("inf")), {}, "not JSON compliant"),
        ("append", ("title", "x"), {}, "can't be appended to"),
        ("append", ("lines", 5), {}, "lines.0: Input should be a valid string"),
        ("set", (Notes,), {}, "return the new value"),
        ("set", ({"title": "a"},), {}, "return the new value"),
    ],
)
async def test_a_write_that_does_not_fit_is_refused(
    method: str,
    arguments: tuple[Any, ...],
    fields: dict[str, Any],
    problem: str,
    store: Store,
    cell: StateCell[Notes],
) -> None:
    """InvalidValue names the cell and the field, and nothing is written."""
    with pytest.raises(InvalidValue, match=problem) as caught:
        await getattr(cell, method)(*arguments, **fields)
    assert "session state 'notes' of 's1'" in str(caught.value)
    assert await store.cell(KEY) is None


async def test_an_asynchronous_change_is_refused(cell: StateCell[Notes]) -> None:
    """It would be called again on a conflict; it is closed, so that it doesn't warn later."""

    async def change(notes: Notes) -> Notes:
        return notes

    with pytest.raises(InvalidValue, match="got coroutine: return the new value, synchronously"):
        await cell.update(change)  # type: ignore[arg-type]


async def test_an_error_of_the_change_travels_bare(store: Store, cell: StateCell[Notes]) -> None:
    """It is the author's own, and nothing is written."""

    def fail(notes: Notes) -> Notes:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await cell.update(fail)
    assert await store.cell(KEY) is None
    await cell.increment("count")


@pytest.mark.parametrize("data", ['{"count": "hunter2"}', "hunter2", "[]"])
async def test_a_row_that_does_not_fit_is_never_replaced(
    data: str, store: Store, cell: StateCell[Notes]
) -> None:
    """Reads and writes of every kind raise CorruptRow with the key; the row stays as it is."""
    await store.commit([PutCell(key=KEY, expected=0, data=data)])
    for attempt in (
        cell.get(),
        cell.set(Notes()),
        cell.update(lambda _: Notes()),
        cell.patch(count=1),
        cell.increment("count"),
        cell.append("lines", "x"),
    ):
        with pytest.raises(CorruptRow, match="session state 'notes' of 's1'") as caught:
            await attempt
        assert "hunter2" not in str(caught.value)
    record = await store.cell(KEY)
    assert record is not None
    assert (record.version, record.data) == (1, data)


async def test_a_value_that_could_not_be_read_back_is_never_stored(store: Store) -> None:
    """A row that nobody could read is refused while it can still be put right."""

    class Vault(BaseModel):
        word: SecretStr = SecretStr("")

        @field_validator("word")
        @classmethod
        def _not_hidden(cls, word: SecretStr) -> SecretStr:
            assert "*" not in word.get_secret_value(), "it was hidden"
            return word

    cell = StateCell(store, KEY, Vault)
    with pytest.raises(InvalidValue, match="it was hidden"):
        await cell.patch(word="hunter2")
    assert await store.cell(KEY) is None


async def test_a_model_without_defaults_is_told(store: Store) -> None:
    """There is no value before the first write; the error says what to do."""

    class Needy(BaseModel):
        name: str

    cell = StateCell(store, KEY, Needy)
    with pytest.raises(DefinitionError, match=r"Needy.*name: Field required.*default"):
        await cell.get()


async def test_aliases_and_extra_fields_are_kept(store: Store) -> None:
    """A patch goes by the names of the fields, and fields that the model only allows stay."""

    class Loose(BaseModel):
        model_config = ConfigDict(extra="allow", frozen=True)
        made_at: int = Field(0, alias="madeAt")

    cell = StateCell(store, KEY, Loose)
    await cell.patch(made_at=5, colour="red")
    await cell.patch(colour="blue", size=[1])
    await cell.append("size", 2)
    value = await cell.get()
    assert (value.made_at, value.model_extra) == (5, {"colour": "blue", "size": [1, 2]})


# --- several writers -----------------------------------------------------------------------------


async def test_many_tasks_lose_nothing(store: Store) -> None:
    """Two hundred tasks, each with a cell object of its own, count to two hundred."""

    async def count() -> None:
        await StateCell(store, KEY, Notes).increment("count")

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(count)
    assert (await StateCell(store, KEY, Notes).get()).count == 200
    record = await store.cell(KEY)
    assert record is not None
    assert record.version == 200


async def test_a_faster_writer_makes_a_write_start_over(
    store: Store, cell: StateCell[Notes]
) -> None:
    """The change is called again with the newest value, so neither write is lost."""
    seen: list[int] = []

    async def overtake(version: int) -> None:
        data = Notes(count=10 * (version + 1)).model_dump_json()
        await store.commit([PutCell(key=KEY, expected=version, data=data)])

    rival = _Overtaken(store, overtake, times=3)

    def add(notes: Notes) -> Notes:
        seen.append(notes.count)
        return notes.model_copy(update={"count": notes.count + 1})

    written = await StateCell(rival, KEY, Notes).update(add)
    assert written == Written(Notes(count=31), 4)
    assert seen == [0, 10, 20, 30]


async def test_a_write_gives_up_in_the_end(store: Store) -> None:
    """A writer that always loses raises the conflict instead of trying for ever."""

    async def overtake(version: int) -> None:
        data = Notes(count=version + 1).model_dump_json()
        await store.commit([PutCell(key=KEY, expected=version, data=data)])

    rival = _Overtaken(store, overtake, times=10**9)
    with pytest.raises(VersionConflict):
        await StateCell(rival, KEY, Notes).increment("weight")
    record = await store.cell(KEY)
    assert record is not None
    assert record.version == TRIES


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


async def test_a_cancelled_writer_lets_the_next_one_on(store: Store) -> None:
    """Cancelled at whatever point, a writer leaves its turn, and each write is whole."""
    cell = StateCell(store, KEY, Notes)
    for steps in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cell.increment, "count")
            tasks.start_soon(cell.append, "lines", "x")
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        before = await cell.get()
        with anyio.fail_after(10):
            assert (await cell.increment("count")).value.count == before.count + 1


async def test_a_stale_fence_writes_nothing(store: Store) -> None:
    """A run that lost its key can't write its state any more; one that holds it can."""
    old = StateCell(store, KEY, Notes, fence=lambda: Fence(key="k", token=1))
    new = StateCell(store, KEY, Notes, fence=lambda: Fence(key="k", token=2))
    assert (await old.increment("count")).version == 1
    assert (await new.increment("count")).version == 2
    with pytest.raises(StaleFence):
        await old.increment("count")
    assert (await old.get()).count == 2


# --- where a cell lives --------------------------------------------------------------------------


async def test_a_declaration_and_an_identity_make_a_key() -> None:
    """Each scope has its own owner, and what an identity lacks is nobody's."""
    full = Identity(session_id=SessionId("s"), tenant_id="t", user_id="u", org_id="o")
    bare = Identity(session_id=SessionId("s"))
    owners = {
        request_state(Notes): ("r", "r"),
        session_state(Notes): ("s", "s"),
        user_state(Notes): ("u", None),
        org_state(Notes): ("o", None),
    }
    for declaration, (owner, without) in owners.items():
        expected = CellKey(scope=declaration.scope, tenant="t", owner=owner, name="notes")
        assert cell_key(declaration, full, "r") == expected
        assert cell_key(declaration, bare, "r").owner == without
        assert cell_key(declaration, bare, "r").tenant is None
    assert "no user" in str(cell_key(user_state(Notes), bare, "r"))


async def test_two_executions_of_a_block_never_meet() -> None:
    """A block's state belongs to its path in its request, whatever characters both names hold."""
    who = Identity(session_id=SessionId("s"))
    places = [("a", "b:c"), ("a:b", "c"), ("1:a", "c"), (None, "c"), ("", "1:c")]
    keys = {cell_key(block_state(Notes, name=name), who, "r", path) for path, name in places}
    assert len(keys) == len(places)
    assert {key.owner for key in keys} == {"r"}


async def test_a_cell_tells_what_and_where_it_is(store: Store) -> None:
    """The repr names model, scope, owner and tenant, odd characters as literals."""
    key = CellKey(scope="user", tenant="\ud800", owner="a\0", name="notes")
    expected = r"<Notes in user state 'notes' of 'a\x00' of tenant '\ud800'>"
    assert repr(StateCell(store, key, Notes)) == expected
