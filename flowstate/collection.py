"""
What a block sees of resource collections: the protocols that ``ctx.resources`` fulfils, and what
their methods answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, final

from typing_extensions import TypeVar

from flowstate.context import M, M_co, Unchanged, Written

if TYPE_CHECKING:
    from flowstate.define.resource import Resource

# What an id is: a text, or a NamedTuple of texts. `typing` has no defaults before 3.13.
K = TypeVar("K", bound="str | tuple[str, ...]", default=str)
K_co = TypeVar("K_co", bound="str | tuple[str, ...]", default=str, covariant=True)


@final
@dataclass(frozen=True, slots=True)
class Entry(Generic[M_co, K_co]):
    """One entry of a resource collection, as it was read."""

    id: K_co
    value: M_co
    version: int
    """From 1; each change makes the next. Never used again, also after a delete."""


@final
@dataclass(frozen=True, slots=True)
class Deleted(Generic[M_co]):
    """An entry is gone: what it held, and the version that its end has."""

    value: M_co
    version: int


@final
@dataclass(frozen=True, slots=True)
class Page(Generic[M_co, K_co]):
    """Some entries of a collection, in the order of their keys."""

    entries: tuple[Entry[M_co, K_co], ...]
    next: str | None
    """What to hand to ``list(after=...)`` for the next page; None: this is the last one."""


class Collection(Protocol[M, K]):
    """
    The entries of one resource, for the owner of its scope. Values are frozen; writes are versioned
    and raise when they lose.

    An id is a text, or the NamedTuple that the resource was declared with; any text will do.
    """

    async def get(self, id: K) -> Entry[M, K] | None:
        """
        The entry, or None if there is none.

        Raises:
            InvalidValue: it is no id of this collection.
            CorruptRow: the stored row doesn't fit the model. No method ever replaces such a row.
        """
        ...

    async def create(self, id: K, value: M) -> Written[M]:
        """
        Make a new entry.

        Raises:
            VersionConflict: there is one already; ``found`` is its version.
        """
        ...

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
        ...

    async def update(self, id: K, change: Callable[[M], M]) -> Written[M] | Unchanged[M]:
        """
        Replace what the entry holds by ``change(value)``, based on the newest version.

        ``change`` is called again when another writer was faster, so it must be pure.

        Raises:
            NoSuchEntry: there is no such entry, or no longer.
        """
        ...

    async def delete(self, id: K, *, expected: int | None = None) -> Deleted[M] | None:
        """
        Delete the entry; None if there is none.

        Args:
            id: which one.
            expected: the version that it must still have.

        Raises:
            VersionConflict: it has another version, or there is none; nothing was deleted.
        """
        ...

    async def list(
        self,
        *,
        within: tuple[str, ...] = (),
        prefix: str = "",
        after: str | None = None,
        limit: int = 100,
    ) -> Page[M, K]:
        """
        A page of entries, in the order of their keys. Whatever is written meanwhile, an entry that
        is there all the time is on exactly one page.

        Args:
            within: values of the first parameters of the pattern, whole and fewer than all: only
                these entries.
            prefix: only entries whose next value begins so.
            after: the ``next`` of the page before; None: begin.
            limit: how many entries at most, from 1 to 1000.

        Raises:
            InvalidValue: an argument is none of these.
        """
        ...

    def scan(self, *, within: tuple[str, ...] = (), prefix: str = "") -> AsyncIterator[Entry[M, K]]:
        """All of these entries, read page by page as they are asked for."""
        ...


class Resources(Protocol):
    """The way from a resource to its collection."""

    def __getitem__(self, resource: Resource[M, K]) -> Collection[M, K]:
        """
        The collection of whoever the request is for.

        Raises:
            UndeclaredResource: nothing in the plan declares it, or the request names nobody that
                its scope is of.
        """
        ...
