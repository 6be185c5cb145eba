"""
The state cell: one typed value in one scope, kept as versioned JSON in a store.

A write reads the newest version, makes the new value, and commits it on the condition that the
version is still the same; if it isn't, it starts over. Nothing is cached between two calls, so a
cell is cheap to make and never out of date.

Invariants:

- No write is lost: each is based on the version that it replaces.
- Writers of one event loop take turns on a cell, so only another process can make one start over.
- What is stored can be read: the new text is read back before it is committed, and that is the
  value which is answered.
- A row that doesn't fit the model is reported, by reads and writes alike, and never replaced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, assert_never, final
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
from pydantic import BaseModel, ValidationError

from flowstate.context import Unchanged, Written
from flowstate.define.uses import StateDeclaration
from flowstate.errors import DefinitionError, InvalidValue, VersionConflict
from flowstate.ids import Identity
from flowstate.store.codec import dump_model, load_model, problems, read_back
from flowstate.store.protocol import Store
from flowstate.store.record import CellKey, CellRecord, Fence, PutCell

M = TypeVar("M", bound=BaseModel)

TRIES: Final = 100
"""How often a write is tried, each time because another process was faster, before it gives up."""

# Whose turn it is, by store and cell; an entry lives as long as somebody waits for it.
_TURNS: WeakKeyDictionary[Store, WeakValueDictionary[CellKey, anyio.Lock]] = WeakKeyDictionary()


def cell_key(
    declaration: StateDeclaration, identity: Identity, request_id: str, path: str | None = None
) -> CellKey:
    """
    Where the declared cell lives for this request; ``path`` is the execution path of the block
    that a block's state belongs to.
    """
    owner: str | None
    name = declaration.name
    match declaration.scope:
        case "request":
            owner = request_id
        case "session":
            owner = identity.session_id
        case "user":
            owner = identity.user_id
        case "org":
            owner = identity.org_id
        case "block":
            owner = request_id
            # With its length, so that no path and name meet another two.
            name = f"{len(path or '')}:{path or ''}:{name}"
        case _:
            assert_never(declaration.scope)
    return CellKey(scope=declaration.scope, tenant=identity.tenant_id, owner=owner, name=name)


@final
class StateCell(Generic[M]):
    """A cell of a store. Implements ``flowstate.context.Cell``."""

    __slots__ = ("_fence", "_key", "_model", "_store")

    def __init__(
        self, store: Store, key: CellKey, model: type[M], *, fence: Fence | None = None
    ) -> None:
        """
        Args:
            store: an open store.
            key: which cell.
            model: what it holds; every field has a default, which is the value before the first
                write.
            fence: checked with every write, if given; one by a run that lost its lease raises
                StaleFence.
        """
        self._store = store
        self._key = key
        self._model = model
        self._fence = fence

    def __repr__(self) -> str:
        return f"<{self._model.__name__} in {self._key}>"

    async def get(self) -> M:
        """
        The value now; the model's defaults if nothing was written yet.

        Raises:
            CorruptRow: the stored row doesn't fit the model.
        """
        return self._value(await self._store.cell(self._key))

    async def set(self, value: M) -> Written[M] | Unchanged[M]:
        """Replace the value; a cell that was never written always takes its first one."""
        return await self._write(lambda _: value)

    async def update(self, change: Callable[[M], M]) -> Written[M] | Unchanged[M]:
        """Replace the value by ``change(value)``; called again if another process was faster."""
        return await self._write(change)

    async def patch(self, **fields: object) -> Written[M] | Unchanged[M]:
        """
        Replace some fields.

        Raises:
            InvalidValue: the model has no such field, or the result doesn't fit it.
        """
        return await self._write(lambda value: self._patched(value, fields))

    async def increment(self, field: str, by: float = 1) -> Written[M] | Unchanged[M]:
        """
        Add to a number field.

        Raises:
            InvalidValue: the field holds no number, or the result doesn't fit it.
        """

        def add(value: M) -> M:
            number = self._field(value, field)
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise self._invalid(f"a number in {field!r}", number, "it can't be incremented")
            return self._patched(value, {field: number + by})

        return await self._write(add)

    async def append(self, field: str, *entries: object) -> Written[M] | Unchanged[M]:
        """
        Append to a list or tuple field.

        Raises:
            InvalidValue: the field holds neither, or the result doesn't fit it.
        """

        def extend(value: M) -> M:
            held = self._field(value, field)
            if not isinstance(held, (list, tuple)):
                raise self._invalid(
                    f"a list or tuple in {field!r}", held, "it can't be appended to"
                )
            longer: list[object] = [*held, *entries]
            fields = {field: longer if isinstance(held, list) else tuple(longer)}
            return self._patched(value, fields)

        return await self._write(extend)

    async def _write(self, change: Callable[[M], M]) -> Written[M] | Unchanged[M]:
        async with self._turn():
            tries = 0
            while True:
                tries += 1
                record = await self._store.cell(self._key)
                text = self._text(change(self._value(record)))
                value = read_back(self._model, text, str(self._key))
                version = record.version if record else 0
                if record and record.data == text:
                    return Unchanged(value, version)
                write = PutCell(key=self._key, expected=version, data=text)
                try:
                    await self._store.commit([write], fence=self._fence)
                except VersionConflict:
                    if tries == TRIES:
                        raise
                else:
                    return Written(value, version + 1)

    def _turn(self) -> anyio.Lock:
        turns = _TURNS.get(self._store)
        if turns is None:
            turns = _TURNS[self._store] = WeakValueDictionary()
        turn = turns.get(self._key)
        if turn is None:
            # Fast: whoever finds it free goes on at once. The store lets other tasks run anyway.
            turn = turns[self._key] = anyio.Lock(fast_acquire=True)
        return turn

    def _value(self, record: CellRecord | None) -> M:
        if record is not None:
            return load_model(self._model, record.data, str(self._key))
        try:
            return self._model()
        except ValidationError as error:
            raise DefinitionError(
                f"state {self._model.__name__}",
                f"it has no value before the first write ({problems(error)})",
                "Give every field a default.",
            ) from None

    def _text(self, value: object) -> str:
        if not isinstance(value, self._model):
            if inspect.iscoroutine(value):
                value.close()  # It was never to run; unclosed it would say so, later, elsewhere.
            raise self._invalid(self._model.__name__, value, "return the new value, synchronously")
        return dump_model(value, str(self._key))

    def _patched(self, value: M, fields: dict[str, Any]) -> M:
        for field in fields:
            self._field(value, field)
        try:
            # `dict` of a model: its fields as they are, extra ones included.
            whole = {**dict(value), **fields}
            return self._model.model_validate(whole, by_alias=False, by_name=True)
        except ValidationError as error:
            name = self._model.__name__
            raise InvalidValue(str(self._key), name, "other fields", problems(error)) from error

    def _field(self, value: M, field: str) -> object:
        if field in self._model.model_fields:
            return getattr(value, field)
        if self._model.model_config.get("extra") == "allow":
            return (value.model_extra or {}).get(field)
        names = ", ".join(self._model.model_fields)
        raise self._invalid(f"one of the fields {names}", field, f"there is no {field!r}")

    def _invalid(self, expected: str, got: object, details: str) -> InvalidValue:
        return InvalidValue(str(self._key), expected, type(got).__name__, details)
