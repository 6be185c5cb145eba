"""
The resource collection: entries of one model under ids, kept as versioned JSON in a store.

Nothing is cached between two calls, so a collection is cheap to make and never out of date. It
shares its way of writing with the state cell (``flowstate.state.versioned``).

Invariants:

- An entry's versions only go up, over deletes too: a version that was read once never fits an entry
  that was deleted and made again. So a deleted entry leaves its version behind in the store.
- A row that doesn't fit the model is reported by its key, by reads and writes alike, and never
  replaced or deleted.
- A live change is told once it is committed, never before. One whose writer is cancelled while it
  waits for the store may be committed and not told.
- No lock or scope is held while ``scan`` hands out an entry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Generic, Self, TypeVar, final

from flowstate.collection import Deleted, Entry, K, Page
from flowstate.context import M, Unchanged, Written
from flowstate.define.resource import Resource
from flowstate.errors import CorruptRow, InvalidValue, NoSuchEntry, VersionConflict
from flowstate.ids import Identity
from flowstate.item.content import ResourceChange
from flowstate.state.owner import owner_of
from flowstate.state.versioned import Decision, Fencing, stored_form, unfenced, write_versioned
from flowstate.store.codec import load_model
from flowstate.store.protocol import Store
from flowstate.store.record import (
    CollectionKey,
    DeleteResource,
    PutResource,
    ResourceKey,
    ResourceRecord,
)

A = TypeVar("A")

MOST: Final = 1000
"""How many entries a page may hold."""


def collection_key(resource: Resource[M, K], identity: Identity, request_id: str) -> CollectionKey:
    """Where the declared collection lives for this request."""
    return CollectionKey(
        scope=resource.scope,
        tenant=identity.tenant_id,
        owner=owner_of(resource.scope, identity, request_id),
        name=resource.name,
    )


@final
class ResourceCollection(Generic[M, K]):
    """A collection in a store. Implements ``flowstate.collection.Collection``."""

    __slots__ = ("_fence", "_key", "_resource", "_store", "_tell")

    def __init__(
        self,
        store: Store,
        key: CollectionKey,
        resource: Resource[M, K],
        *,
        fence: Fencing = unfenced,
        tell: Callable[[ResourceChange], object] | None = None,
    ) -> None:
        """
        Args:
            store: an open store.
            key: which collection.
            resource: how it is declared.
            fence: tells what is checked with every write; one by a run that lost its lease raises
                StaleFence.
            tell: told of every change once it is committed.
        """
        self._store = store
        self._key = key
        self._resource = resource
        self._fence = fence
        self._tell = tell

    def __repr__(self) -> str:
        return f"<{self._resource.model.__name__} entries in {self._key}>"

    async def get(self, id: K) -> Entry[M, K] | None:
        """
        The entry, or None if there is none.

        Raises:
            InvalidValue: it is no id of this collection.
            CorruptRow: the stored row doesn't fit the model.
        """
        record = await self._store.resource(self._entry_key(id))
        return None if record is None or record.data is None else self._entry(record)

    async def create(self, id: K, value: M) -> Written[M]:
        """
        Make a new entry.

        Raises:
            VersionConflict: there is one already; ``found`` is its version.
        """
        written = await self.upsert(id, value, expected=0)
        assert isinstance(written, Written), "what is there already is refused"
        return written

    async def upsert(
        self, id: K, value: M, *, expected: int | None = None
    ) -> Written[M] | Unchanged[M]:
        """
        Make the entry or replace it.

        Args:
            id: which one.
            value: what it holds from now on.
            expected: the version that it must still have; 0: there must be none. None: whatever
                is there.

        Raises:
            VersionConflict: it has another version; nothing was written.
        """

        def decide(key: ResourceKey, held: M | None, version: int) -> M:
            _expect(key, expected, version if held is not None else 0)
            return value

        return await self._put(id, decide)

    async def update(self, id: K, change: Callable[[M], M]) -> Written[M] | Unchanged[M]:
        """
        Replace what the entry holds by ``change(value)``, called again if another process was
        faster.

        Raises:
            NoSuchEntry: there is no such entry, or no longer.
        """

        def decide(key: ResourceKey, held: M | None, version: int) -> M:
            if held is None:
                raise NoSuchEntry(str(key))
            return change(held)

        return await self._put(id, decide)

    async def delete(self, id: K, *, expected: int | None = None) -> Deleted[M] | None:
        """
        Delete the entry; None if there is none.

        Args:
            id: which one.
            expected: the version that it must still have.

        Raises:
            VersionConflict: it has another version, or there is none; nothing was deleted.
        """
        key = self._entry_key(id)

        def decide(record: ResourceRecord | None) -> Decision[Deleted[M] | None]:
            held, version = self._held(key, record)
            _expect(key, expected, version if held is not None else 0)
            if held is None:
                return None, None
            return Deleted(held, version + 1), DeleteResource(key=key, expected=version)

        deleted = await self._write(key, decide)
        if deleted is not None:
            self._told(key, deleted.version, deleted=True)
        return deleted

    async def list(
        self,
        *,
        within: tuple[str, ...] = (),
        prefix: str = "",
        after: str | None = None,
        limit: int = 100,
    ) -> Page[M, K]:
        """
        A page of entries, in the order of their keys.

        Args:
            within: values of the first parameters of the pattern, whole and fewer than all.
            prefix: only entries whose next value begins so.
            after: the ``next`` of the page before; None: begin.
            limit: how many entries at most, from 1 to 1000.

        Raises:
            InvalidValue: an argument is none of these.
            CorruptRow: a row on the page doesn't fit the model.
        """
        begins = self._resource.key_prefix(within, prefix)
        if after is not None:
            self._resource.id(after)  # A position is a key, though there need be no entry at it.
        if not (isinstance(limit, int) and 1 <= limit <= MOST):
            where, expected = str(self._key), f"a limit from 1 to {MOST}"
            raise InvalidValue(
                where, expected, repr(limit), "ask for the rest with after=page.next"
            )
        # One more, to see whether there is another page.
        records = await self._store.resources(
            self._key, prefix=begins, after=after, limit=limit + 1
        )
        shown = records[:limit]
        return Page(
            entries=tuple(map(self._entry, shown)),
            next=shown[-1].key.key if len(records) > limit else None,
        )

    def scan(self, *, within: tuple[str, ...] = (), prefix: str = "") -> EntryScan[M, K]:
        """All of these entries, read page by page as they are asked for."""
        return EntryScan(lambda after: self.list(within=within, prefix=prefix, after=after))

    async def _put(
        self, id: K, decide: Callable[[ResourceKey, M | None, int], M]
    ) -> Written[M] | Unchanged[M]:
        """Write what is decided on: the entry's value if there is one, and its last version."""
        key = self._entry_key(id)

        def judge(record: ResourceRecord | None) -> Decision[Written[M] | Unchanged[M]]:
            held, version = self._held(key, record)
            text, value = stored_form(self._resource.model, decide(key, held, version), str(key))
            if record is not None and record.data == text:
                return Unchanged(value, version), None
            return Written(value, version + 1), PutResource(key=key, expected=version, data=text)

        written = await self._write(key, judge)
        if isinstance(written, Written):
            self._told(key, written.version)
        return written

    async def _write(
        self, key: ResourceKey, decide: Callable[[ResourceRecord | None], Decision[A]]
    ) -> A:
        return await write_versioned(
            self._store, key, lambda: self._store.resource(key), decide, self._fence
        )

    def _told(self, key: ResourceKey, version: int, *, deleted: bool = False) -> None:
        if self._tell is not None:
            change = ResourceChange(
                collection=self._key.name, key=key.key, version=version, deleted=deleted
            )
            self._tell(change)

    def _entry_key(self, id: K) -> ResourceKey:
        return ResourceKey(collection=self._key, key=self._resource.key(id))

    def _held(self, key: ResourceKey, record: ResourceRecord | None) -> tuple[M | None, int]:
        """What an entry holds, None if there is none, and its last version, 0 if it had none."""
        if record is None:
            return None, 0
        if record.data is None:
            return None, record.version
        return load_model(self._resource.model, record.data, str(key)), record.version

    def _entry(self, record: ResourceRecord) -> Entry[M, K]:
        try:
            id = self._resource.id(record.key.key)
        except InvalidValue as error:
            # Stored under another pattern by the same name.
            pattern = f"the pattern {self._resource.pattern!r}"
            raise CorruptRow(str(record.key), pattern, str(error)) from None
        value, version = self._held(record.key, record)
        assert value is not None, "a store lists no deleted entries"
        return Entry(id, value, version)


@final
class EntryScan(Generic[M, K]):
    """
    The entries of a collection, one after the other.

    No generator: one that is left before its end has to be closed by whoever leaves it.
    """

    __slots__ = ("_left", "_next", "_read")

    def __init__(self, read: Callable[[str | None], Awaitable[Page[M, K]]]) -> None:
        """
        Args:
            read: reads the page after a position.
        """
        self._read = read
        self._left: Iterator[Entry[M, K]] | None = None
        self._next: str | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Entry[M, K]:
        while True:
            entry = next(self._left, None) if self._left is not None else None
            if entry is not None:
                return entry
            if self._left is not None and self._next is None:
                raise StopAsyncIteration
            page = await self._read(self._next)
            self._left, self._next = iter(page.entries), page.next


def _expect(key: ResourceKey, expected: int | None, found: int) -> None:
    if expected is not None and found != expected:
        raise VersionConflict(str(key), expected, found)
