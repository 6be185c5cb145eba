"""
The state cell: one typed value in one scope, kept as versioned JSON in a store.

A write reads the newest version, makes the new value, and commits it on the condition that the
version is still the same; if it isn't, it starts over (``flowstate.state.versioned``). Nothing is
cached between two calls, so a cell is cheap to make and never out of date.

A row that doesn't fit the model is reported, by reads and writes alike, and never replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

from pydantic import BaseModel, ValidationError

from flowstate.context import Unchanged, Written
from flowstate.define.uses import StateDeclaration
from flowstate.errors import DefinitionError, InvalidValue
from flowstate.ids import Identity
from flowstate.item.content import StateChange
from flowstate.state.owner import owner_of
from flowstate.state.versioned import Decision, Fencing, stored_form, unfenced, write_versioned
from flowstate.store.codec import load_model, problems
from flowstate.store.protocol import Store
from flowstate.store.record import CellKey, CellRecord, PutCell

M = TypeVar("M", bound=BaseModel)


def cell_key(
    declaration: StateDeclaration, identity: Identity, request_id: str, path: str | None = None
) -> CellKey:
    """
    Where the declared cell lives for this request; ``path`` is the execution path of the block
    that a block's state belongs to.
    """
    name = declaration.name
    if declaration.scope == "block":
        owner: str | None = request_id
        # With its length, so that no path and name meet another two.
        name = f"{len(path or '')}:{path or ''}:{name}"
    else:
        owner = owner_of(declaration.scope, identity, request_id)
    return CellKey(scope=declaration.scope, tenant=identity.tenant_id, owner=owner, name=name)


@final
class StateCell(Generic[M]):
    """A cell of a store. Implements ``flowstate.context.Cell``."""

    __slots__ = ("_fence", "_key", "_model", "_store", "_tell")

    def __init__(
        self,
        store: Store,
        key: CellKey,
        model: type[M],
        *,
        fence: Fencing = unfenced,
        tell: Callable[[StateChange], object] | None = None,
    ) -> None:
        """
        Args:
            store: an open store.
            key: which cell.
            model: what it holds; every field has a default, which is the value before the first
                write.
            fence: tells what is checked with every write; one by a run that lost its lease raises
                StaleFence.
            tell: told of every new version, once it is committed.
        """
        self._store = store
        self._key = key
        self._model = model
        self._fence = fence
        self._tell = tell

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
        def decide(record: CellRecord | None) -> Decision[Written[M] | Unchanged[M]]:
            text, value = stored_form(self._model, change(self._value(record)), str(self._key))
            version = record.version if record else 0
            if record and record.data == text:
                return Unchanged(value, version), None
            return Written(value, version + 1), PutCell(key=self._key, expected=version, data=text)

        written = await write_versioned(
            self._store, self._key, lambda: self._store.cell(self._key), decide, self._fence
        )
        if self._tell is not None and isinstance(written, Written):
            key, version = self._key, written.version
            self._tell(StateChange(scope=key.scope, cell=key.name, version=version))
        return written

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
