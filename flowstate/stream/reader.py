"""
Reading a request's events: first what is past, from the store, then live, from the ring.

A reader owns its position and registers nowhere. It may be dropped at any await, broken out of,
or never begun: there is nothing to clean up. It never holds a scope open while its user's code
runs, and it never slows the request.

What a reader is given, folded (``flowstate.item.fold``), is exactly the request's items as far as
it may see them, wherever it began and however often it fell behind:

* the store gives each item's latest state in the order of last change. Once a page comes back
  short, all that was stored by then has been given, and the ring goes on from there;
* before that point nothing is taken from the ring: a delta might add to text not given yet. A
  cursor doesn't tell whether its reader had reached that point, so whoever brings one begins at
  the store;
* transient items are in no store. A reader that skipped some events is told which of them are on
  show now, and that the ones it knew and that are gone have ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, final

import anyio.lowlevel

from flowstate.errors import InvalidValue
from flowstate.item.event import EventKind, ItemEvent
from flowstate.item.fold import OpenItems
from flowstate.item.item import Item
from flowstate.item.visibility import Visibility
from flowstate.store.record import ItemRecord
from flowstate.stream.cursor import Cursor
from flowstate.stream.ring import Chunk, Ring
from flowstate.stream.row import item_of

PAGE = 500
"""How many rows are read from the store at a time."""


class ItemRows(Protocol):
    """The part of a ``Store`` that a reader needs."""

    async def items(self, request_id: str, *, after: int = 0, limit: int = 500) -> list[ItemRecord]:
        """The items of a request changed after this sequence, in the order of their last change."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Where a request's events are."""

    request_id: str
    store: ItemRows
    ring: Ring | None = None
    """Its outbox's ring; None for a request that doesn't run in this process."""


def read_events(
    source: EventSource, after: Cursor | None = None, visibility: Visibility = "client"
) -> EventReader:
    """
    A reader of a request's events; as many as you like may read at once.

    Args:
        source: the request.
        after: the last event already seen; None to begin at the first.
        visibility: ``client`` is never given anything of a trace item; ``trace`` is given all.

    Returns:
        An async iterator that ends when the request is over and all is read; without a ring, when
        all that is stored is read. Sequences never go down, and any event's is a cursor to come
        back with. Whoever comes back forgets the transient items it knew: it is told anew.

    Raises:
        InvalidValue: the cursor is another request's.
    """
    if after is not None and after.request_id != source.request_id:
        raise InvalidValue(
            "cursor", f"one of request {source.request_id!r}", repr(str(after)), "it is another's"
        )
    return EventReader(source, after.sequence if after else 0, visibility)


@final
class EventReader:
    """
    One reader; made by ``read_events``, for one task at a time. A cancelled read loses nothing.

    Raises, while reading:
        StoreError: the store could not be read; the next read tries again.
        CorruptRow: a stored item doesn't fit its model.
    """

    __slots__ = (
        "_after",
        "_client",
        "_closed",
        "_given",
        "_held",
        "_last",
        "_live",
        "_position",
        "_ready",
        "_since",
        "_source",
    )

    def __init__(self, source: EventSource, after: int, visibility: Visibility) -> None:
        self._source = source
        self._client = visibility == "client"
        self._ready = iter(_NOTHING)
        self._after = after
        self._last: ItemEvent | None = None
        # Up to here everything has been handed to _ready (or is hidden).
        self._position = after
        ring = source.ring
        self._live = ring is not None and after == 0 and ring.floor == 0
        # Of a replay: where it began, and the open items it has given since.
        self._since = after
        self._given: set[str] = set()
        # The transient items that the user has been shown and that are open.
        self._held = OpenItems()
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "live" if self._live else "replaying"
        return f"<EventReader at {self.cursor}, {state}>"

    @property
    def cursor(self) -> Cursor:
        """The place after the last event given."""
        last = self._last
        sequence = self._after if last is None else last.sequence
        return Cursor(request_id=self._source.request_id, sequence=sequence)

    @property
    def position(self) -> int:
        """The sequence up to which everything has been given, or is hidden from this reader."""
        return self._position

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> ItemEvent:
        for event in self._ready:  # the cheapest way to say "the next one, if there is one"
            self._last = event
            return event
        events = await self._more()
        if not events:
            raise StopAsyncIteration
        self._ready = iter(events)
        self._last = event = next(self._ready)
        return event

    async def take(self) -> list[ItemEvent]:
        """All events that are there, waiting for at least one; empty at the end."""
        events = list(self._ready) or list(await self._more())  # a list of their own
        if events:
            self._last = events[-1]
        return events

    async def aclose(self) -> None:
        """Read no more. Nothing needs it; it is here for ``contextlib.aclosing``."""
        self._closed = True
        self._ready = iter(_NOTHING)

    async def _more(self) -> list[ItemEvent]:
        """The next events, at least one; none at the end. A checkpoint, unless it is the end."""
        yielded = False
        # No await may lie between a change of the position and the return of its events: a
        # cancel there would lose them.
        while not self._closed:
            ring = self._source.ring
            if not self._live:
                await anyio.lowlevel.checkpoint()
                if events := await self._replay(ring):
                    return events
            elif ring is None:
                return _NOTHING
            elif ring.head <= self._position:
                if ring.over:
                    return _NOTHING
                yielded = True
                await ring.wait(self._position)
            elif not yielded:
                yielded = True
                await anyio.lowlevel.checkpoint()
            elif (chunks := ring.since(self._position)) is None:
                self._live = False
                self._since = self._position
            elif events := self._read(chunks):
                return events
        return _NOTHING

    def _read(self, chunks: list[Chunk]) -> list[ItemEvent]:
        """Take what these chunks hold after the position."""
        position = self._position
        events: list[ItemEvent] = []
        for chunk in chunks:
            part = chunk.visible if self._client else chunk.events
            if chunk.events[0][0] <= position:
                part = [event for event in part if event[0] > position]
            for event in chunk.passing:
                item = event.item
                hidden = self._client and item is not None and item.visibility == "trace"
                if event[0] > position and not hidden:
                    self._held.note(event)
            if len(chunks) == 1:
                events = part
            else:
                events += part
        self._position = chunks[-1].events[-1][0]
        return events

    async def _replay(self, ring: Ring | None) -> list[ItemEvent]:
        """A page from the store; after a short one the reader is live."""
        floor = ring.floor if ring is not None else 0
        rows = await self._source.store.items(
            self._source.request_id, after=self._position, limit=PAGE
        )
        position = rows[-1].last_sequence if rows else self._position
        short = len(rows) < PAGE
        if short and ring is not None:
            # Whatever the ring had forgotten before we asked was in the store when we asked, or
            # is in no store at all.
            position = max(position, floor)
            # The store is ahead of the ring for a moment; what is transient in between is still
            # to be shown.
            while ring.head < position and not ring.over:
                await ring.wait(ring.head)
        events = [
            self._event(record)
            for record in rows
            if not (self._client and record.visibility == "trace")
        ]
        self._position = position
        if short and (ring is None or ring.floor <= position):
            self._given.clear()
            self._live = True
            if ring is not None:
                events += self._meet(ring.passing(position))
        return events

    def _event(self, record: ItemRecord) -> ItemEvent:
        """A row as the event that brings a reader up to date."""
        item = item_of(record)
        kind: EventKind = "changed"
        if item.settled:
            kind = "settled"
        elif record.first_sequence > self._since and item.id not in self._given:
            kind = "added"
            self._given.add(item.id)
        return ItemEvent(record.last_sequence, kind, item.id, item)

    def _meet(self, showing: dict[str, Item]) -> list[ItemEvent]:
        """What to tell of transient items after a gap, given those that are open now."""
        position = self._position
        held = self._held.now()
        self._held = OpenItems()
        events: list[ItemEvent] = []
        for item in held.values():
            if item.id not in showing:
                ended = replace(item, status="incomplete")
                events.append(ItemEvent(position, "settled", item.id, ended))
        for item in showing.values():
            if self._client and item.visibility == "trace":
                continue
            kind: EventKind = "changed" if item.id in held else "added"
            event = ItemEvent(position, kind, item.id, item)
            self._held.note(event)
            if held.get(item.id) != item:
                events.append(event)
        return events


_NOTHING: list[ItemEvent] = []
