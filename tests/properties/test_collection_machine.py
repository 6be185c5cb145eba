"""Whatever is done to resource collections, they are what dictionaries would be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, TypeVar

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from pydantic import BaseModel

from flowstate import Deleted, Entry, Resource, Unchanged, Written, resource
from flowstate.errors import NoSuchEntry, VersionConflict
from flowstate.state.collection import ResourceCollection
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.record import CollectionKey
from flowstate.store.sql import SqlStore
from tests.properties.effort import examples

T = TypeVar("T")

# Few and much alike, so that the same entry is met again and prefixes reach several.
TEXT = st.sampled_from(["a", "a/b", "", "..", "\0\ud800"])
# JSON has one spelling for a character and for the two surrogates that spell it.
VALUE = st.text("ab\0\ud800", max_size=2)


class Note(BaseModel):
    text: str = ""


class FileId(NamedTuple):
    repo: str
    path: str


NOTES = resource("notes/{id}", Note)
NEIGHBOUR = resource("notes2/{id}", Note)
FILES = resource("files/{repo}/at/{path*}", Note, ids=FileId)


@dataclass
class Model:
    """What a collection should hold."""

    declared: Resource[Note, Any]
    key: CollectionKey
    held: dict[Any, tuple[str, int]] = field(default_factory=dict)
    """Text and version of every entry, by its id."""
    last: dict[Any, int] = field(default_factory=dict)
    """The last version of every id that was ever written."""

    def gone(self) -> list[Any]:
        """The ids of what was deleted."""
        return [id for id in self.last if id not in self.held]

    def entries(self) -> list[Entry[Note, Any]]:
        found = [Entry(id, Note(text=text), version) for id, (text, version) in self.held.items()]
        return sorted(found, key=lambda entry: self.declared.key(entry.id))


def _models() -> list[Model]:
    def key(declared: Resource[Note, Any], **parts: Any) -> CollectionKey:
        whole = {"scope": "session", "tenant": None, "owner": "s", "name": declared.name, **parts}
        return CollectionKey(**whole)

    return [
        Model(NOTES, key(NOTES)),
        Model(NEIGHBOUR, key(NEIGHBOUR, tenant="")),
        Model(FILES, key(FILES)),
    ]


class Collections(RuleBasedStateMachine):
    """Collections in one store, and the dictionaries that say what they hold."""

    backend: ClassVar[str]
    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        folder = self._stack.enter_context(TemporaryDirectory())
        self._portal = self._stack.enter_context(start_blocking_portal(self.backend))
        self.store: Store = (
            MemoryStore() if self.kind == "memory" else SqlStore(Path(folder) / "s.db")
        )
        self.run(self.store.open)
        self.models = _models()

    def run(self, ask: Callable[[], Awaitable[T]]) -> T:
        return self._portal.call(ask)

    def teardown(self) -> None:
        # Also when it failed: a portal that is left open keeps the process from ending.
        with self._stack:
            try:
                for model in self.models:
                    assert self._all(model) == model.entries()
            finally:
                self.run(self.store.close)

    def _all(self, model: Model, **options: Any) -> list[Entry[Note, Any]]:
        async def read() -> list[Entry[Note, Any]]:
            return [entry async for entry in self._of(model).scan(**options)]

        return self.run(read)

    def _of(self, model: Model) -> ResourceCollection[Note, Any]:
        return ResourceCollection(self.store, model.key, model.declared)

    def _outcome(self, ask: Callable[[], Awaitable[object]]) -> object:
        """What it answers, or the versions of the conflict that it raises."""
        try:
            return self.run(ask)
        except VersionConflict as conflict:
            return "conflict", conflict.expected, conflict.found

    def _chosen(self, which: int, one: str, other: str) -> tuple[Model, Any]:
        model = self.models[which]
        return model, FileId(one, other) if model.declared is FILES else one

    def _expected(self, model: Model, id: Any, choice: int) -> int | None:
        """No version, the one that is there, none at all, the last one, or the one before it."""
        last = model.last.get(id, 0)
        return [None, model.held.get(id, ("", 0))[1], 0, last, max(last - 1, 0)][choice]

    def _written(self, model: Model, id: Any, text: str, answer: object) -> None:
        before = model.held.get(id)
        if before is not None and before[0] == text:
            assert answer == Unchanged(Note(text=text), before[1])
            return
        version = model.last.get(id, 0) + 1
        assert answer == Written(Note(text=text), version)
        model.held[id] = (text, version)
        model.last[id] = version

    @rule(which=st.integers(0, 2), one=TEXT, other=TEXT, text=VALUE)
    def create(self, which: int, one: str, other: str, text: str) -> None:
        """Only what isn't there."""
        model, id = self._chosen(which, one, other)
        answer = self._outcome(lambda: self._of(model).create(id, Note(text=text)))
        if id in model.held:
            assert answer == ("conflict", 0, model.held[id][1])
        else:
            self._written(model, id, text, answer)

    @rule(which=st.integers(0, 2), one=TEXT, other=TEXT, text=VALUE, choice=st.integers(0, 4))
    def upsert(self, which: int, one: str, other: str, text: str, choice: int) -> None:
        """Whatever is there, or the version that is expected."""
        model, id = self._chosen(which, one, other)
        self._upserted(model, id, text, choice)

    @precondition(lambda self: any(model.gone() for model in self.models))
    @rule(data=st.data(), text=VALUE, choice=st.integers(0, 4))
    def upsert_what_was_deleted(self, data: st.DataObject, text: str, choice: int) -> None:
        """It goes on from the version that it had, which no longer counts as one."""
        gone = [(model, id) for model in self.models for id in model.gone()]
        model, id = data.draw(st.sampled_from(gone))
        self._upserted(model, id, text, choice)

    def _upserted(self, model: Model, id: Any, text: str, choice: int) -> None:
        expected = self._expected(model, id, choice)
        found = model.held.get(id, ("", 0))[1]
        answer = self._outcome(
            lambda: self._of(model).upsert(id, Note(text=text), expected=expected)
        )
        if expected not in (None, found):
            assert answer == ("conflict", expected, found)
        else:
            self._written(model, id, text, answer)

    @rule(which=st.integers(0, 2), one=TEXT, other=TEXT, text=VALUE)
    def update(self, which: int, one: str, other: str, text: str) -> None:
        """Only what is there, from what it holds."""
        model, id = self._chosen(which, one, other)
        before = model.held.get(id)

        def change(note: Note) -> Note:
            assert before is not None
            assert note.text == before[0]
            return Note(text=note.text[:1] + text)

        try:
            answer = self.run(lambda: self._of(model).update(id, change))
        except NoSuchEntry:
            assert before is None
        else:
            assert before is not None
            self._written(model, id, before[0][:1] + text, answer)

    @rule(which=st.integers(0, 2), one=TEXT, other=TEXT, choice=st.integers(0, 4))
    def delete(self, which: int, one: str, other: str, choice: int) -> None:
        """What is there, or the version that is expected."""
        model, id = self._chosen(which, one, other)
        expected = self._expected(model, id, choice)
        before = model.held.get(id)
        found = before[1] if before else 0
        answer = self._outcome(lambda: self._of(model).delete(id, expected=expected))
        if expected not in (None, found):
            assert answer == ("conflict", expected, found)
        elif before is None:
            assert answer is None
        else:
            assert answer == Deleted(Note(text=before[0]), found + 1)
            del model.held[id]
            model.last[id] = found + 1

    @rule(which=st.integers(0, 2), one=TEXT, other=TEXT)
    def get(self, which: int, one: str, other: str) -> None:
        """What was written last, or nothing."""
        model, id = self._chosen(which, one, other)
        held = model.held.get(id)
        entry = None if held is None else Entry(id, Note(text=held[0]), held[1])
        assert self.run(lambda: self._of(model).get(id)) == entry

    @rule(which=st.integers(0, 2), prefix=TEXT)
    def scan(self, which: int, prefix: str) -> None:
        """All whose first value begins so, in the order of their keys."""
        model = self.models[which]

        def first(id: Any) -> str:
            return str(id[0] if isinstance(id, tuple) else id)

        expected = [entry for entry in model.entries() if first(entry.id).startswith(prefix)]
        assert self._all(model, prefix=prefix) == expected

    @rule(repo=TEXT, prefix=TEXT)
    def scan_within(self, repo: str, prefix: str) -> None:
        """All of one whole first value whose second begins so."""
        model = self.models[-1]
        expected = [
            entry
            for entry in model.entries()
            if entry.id.repo == repo and entry.id.path.startswith(prefix)
        ]
        assert self._all(model, within=(repo,), prefix=prefix) == expected

    @rule(which=st.integers(0, 2), limit=st.integers(1, 4))
    def page_through(self, which: int, limit: int) -> None:
        """Page by page the same as all at once."""
        model = self.models[which]

        async def read() -> list[Entry[Note, Any]]:
            seen: list[Entry[Note, Any]] = []
            after: str | None = None
            while True:
                page = await self._of(model).list(after=after, limit=limit)
                assert len(page.entries) == limit or page.next is None
                seen += page.entries
                assert len(seen) <= len(model.held), "the pages never end"
                after = page.next
                if after is None:
                    return seen

        assert self.run(read) == model.entries()

    @precondition(lambda self: any(model.last for model in self.models))
    @rule()
    def reopen(self) -> None:
        """What was committed stays, the versions of what was deleted too."""
        self.run(self.store.close)
        self.run(self.store.open)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_collections_are_what_dictionaries_would_be(backend: str, kind: str) -> None:
    """Any writes on any ids: values, versions, order and refusals agree, in every collection."""
    machine = type("Machine", (Collections,), {"backend": backend, "kind": kind})
    run_state_machine_as_test(machine, settings=examples(20))
