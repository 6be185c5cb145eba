"""Any sequence of writes on any cells is what a dictionary of models would say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from flowstate.context import Unchanged, Written
from flowstate.state.cell import StateCell
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.record import CellKey
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import ODD_TEXTS

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=8)
IDS = st.sampled_from([text for text in ODD_TEXTS if len(text) < 10]) | ANY_TEXT
# JSON has one spelling for a character and for the two surrogates that spell it.
VALUES = ANY_TEXT.map(
    lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)


class Notes(BaseModel):
    """What every cell here holds."""

    title: str = ""
    count: int = 0
    lines: list[str] = []
    by_name: dict[str, int] = {}


KEYS = st.builds(
    lambda scope, tenant, owner, name: CellKey(scope=scope, tenant=tenant, owner=owner, name=name),
    st.sampled_from(["request", "session", "user", "org"]),
    st.none() | IDS,
    st.none() | IDS,
    IDS,
)


@dataclass(frozen=True)
class Step:
    """A write: how it is asked for, and what it makes of a value."""

    method: str
    arguments: tuple[Any, ...]
    expected: Callable[[Notes], Notes]


def _changed(notes: Notes, **fields: Any) -> Notes:
    return notes.model_copy(update=fields)


def _titled(text: str) -> Step:
    change = lambda notes: _changed(notes, title=text)  # noqa: E731
    return Step("update", (change,), change)


def _set(text: str, names: dict[str, int]) -> Step:
    notes = Notes(title=text, by_name=names)
    return Step("set", (notes,), lambda _: notes)


def _counted(by: int) -> Step:
    return Step("increment", ("count", by), lambda notes: _changed(notes, count=notes.count + by))


def _appended(lines: list[str]) -> Step:
    return Step(
        "append", ("lines", *lines), lambda notes: _changed(notes, lines=[*notes.lines, *lines])
    )


def _closed() -> Step:
    return Step("close", (), lambda notes: notes)


STEPS = st.one_of(
    st.builds(_titled, VALUES),
    st.builds(_set, VALUES, st.dictionaries(VALUES, st.integers(), max_size=3)),
    st.builds(_counted, st.integers()),
    st.builds(_appended, st.lists(VALUES, max_size=2)),
    st.builds(_closed),
)


async def _check(store: Store, keys: list[CellKey], steps: list[tuple[int, Step]]) -> None:
    """Do the steps on a store and on a dictionary, and compare each answer and the end."""
    values: dict[CellKey, Notes] = {}
    versions: dict[CellKey, int] = {}
    await store.open()
    for number, step in steps:
        if step.method == "close":
            await store.close()
            await store.open()
            continue
        key = keys[number % len(keys)]
        cell = StateCell(store, key, Notes)
        before = values.get(key)
        after = step.expected(before or Notes())
        answer = await getattr(cell, step.method)(*step.arguments)
        if before == after:
            assert answer == Unchanged(after, versions[key])
        else:
            versions[key] = versions.get(key, 0) + 1
            assert answer == Written(after, versions[key])
        values[key] = after
    for key in keys:
        assert await StateCell(store, key, Notes).get() == values.get(key, Notes())
    await store.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=25)
@given(
    keys=st.lists(KEYS, min_size=1, max_size=6, unique=True),
    steps=st.lists(st.tuples(st.integers(0, 5), STEPS), max_size=15),
)
@example(
    keys=[
        CellKey(scope="user", tenant=tenant, owner=owner, name="n")
        for tenant, owner in [(None, None), (None, ""), ("", None), ("None", "None"), ("\0", "a")]
    ],
    steps=[(number, _counted(number + 1)) for number in range(5)],
)
@example(
    keys=[
        CellKey(scope="user", tenant=None, owner=owner, name="n")
        for owner in ("\ud800", "\ud801", "\ufffd", "\ud83d\ude00", "\U0001f600")
    ],
    steps=[(number, _set("\ud800", dict.fromkeys(("\ud800", "\ud801"), 1))) for number in range(5)],
)
def test_cells_are_what_a_dictionary_would_be(
    backend: str, kind: str, keys: list[CellKey], steps: list[tuple[int, Step]]
) -> None:
    """Values and versions agree after every write, for any ids, across closing and reopening."""
    with TemporaryDirectory() as folder:
        store = MemoryStore() if kind == "memory" else SqlStore(Path(folder) / "store.db")
        anyio.run(_check, store, keys, steps, backend=backend)
