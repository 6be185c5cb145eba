"""
The newest events of a request, for its readers: bounded, and owned by the one who publishes.

A reader is only a position, kept by the reader itself. None is registered here, so one that stops
reading, leaves or is forgotten costs nothing and slows nothing; one that falls behind the floor of
the ring goes on from the store.

Events are kept in the chunks they were published in. A chunk already holds what a client may see,
so that reading needs no look at a single event. All of it belongs to one event loop.

Invariants:

* what is in the ring has been stored, unless it is transient;
* at most ``capacity`` events are held; everything up to ``floor`` is no longer held, everything
  from there to ``head`` is;
* ``_base`` holds the transient items that are open as of the floor: they are stored nowhere, so
  this is all that is left to tell a late reader.
"""

from __future__ import annotations

from collections import deque
from typing import final

from flowstate.bell import Bell
from flowstate.item.event import ItemEvent
from flowstate.item.fold import OpenItems
from flowstate.item.item import Item
from flowstate.value import value


@final
@value
class Chunk:
    """Consecutive events, never empty; nobody changes it once it is made."""

    events: list[ItemEvent]
    visible: list[ItemEvent]
    """Those that a client may see; the very same list if all are."""
    passing: list[ItemEvent]
    """Those of transient items; mostly none."""


@final
class Ring:
    """The newest events of one request."""

    __slots__ = (
        "_base",
        "_bell",
        "_chunks",
        "_held",
        "capacity",
        "floor",
        "head",
        "over",
    )

    def __init__(self, *, capacity: int = 4096, after: int = 0) -> None:
        """
        Args:
            capacity: how many events it holds at most; at least 1.
            after: the sequence before the first event that will be published here.
        """
        self.capacity = capacity
        """How many events are held at most."""
        self.floor = after
        """The sequence up to which events are no longer held."""
        self.head = after
        """The sequence of the last event published."""
        self.over = False
        """Whether nothing more will be published."""
        self._base = OpenItems()
        self._chunks: deque[Chunk] = deque()
        self._held = 0
        self._bell = Bell()

    def __repr__(self) -> str:
        over = ", over" if self.over else ""
        return f"<Ring {self.floor}..{self.head}, {self._held} of {self.capacity} events{over}>"

    @property
    def held(self) -> int:
        """How many events are held."""
        return self._held

    def publish(self, chunks: list[Chunk]) -> None:
        """Show these chunks, none of more than ``capacity`` events, and wake the readers once."""
        held = self._chunks
        for chunk in chunks:
            self._held += len(chunk.events)
            while self._held > self.capacity:
                self._forget(held.popleft())
            held.append(chunk)
            self.head = chunk.events[-1].sequence
        self._bell.ring()

    def end(self) -> None:
        """Nothing more will be published: readers read what there is, and end."""
        self.over = True
        self._bell.ring()

    def since(self, position: int) -> list[Chunk] | None:
        """
        The chunks that hold every event after this position (the first may begin before it), or
        None if some are no longer held.
        """
        if position < self.floor:
            return None
        newest: list[Chunk] = []
        for chunk in reversed(self._chunks):  # most readers are near the end
            if chunk.events[-1][0] <= position:
                break
            newest.append(chunk)
        newest.reverse()
        return newest

    def passing(self, position: int) -> dict[str, Item]:
        """The transient items that were open at this position, which is not below the floor."""
        items = self._base.copy()
        for chunk in self._chunks:
            for event in chunk.passing:
                if event.sequence > position:
                    return items.now()
                items.note(event)
        return items.now()

    async def wait(self, position: int) -> None:
        """Return once there is an event after this position, or there will be none."""
        while self.head <= position and not self.over:
            await self._bell.wait()

    def _forget(self, chunk: Chunk) -> None:
        self._held -= len(chunk.events)
        self.floor = chunk.events[-1].sequence
        for event in chunk.passing:
            self._base.note(event)
