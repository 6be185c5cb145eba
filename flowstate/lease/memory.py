"""
Places in this process's memory: first in, first out, woken by hand-over and never by polling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

import anyio

from flowstate.lease.protocol import Busy, Gone, No, Place, Turn, Yes


@final
class MemoryLease:
    """A lease backend for one process. A place lasts until it is given back."""

    def __init__(self, *, clock: Callable[[], int] | None = None) -> None:
        """
        Args:
            clock: epoch microseconds. Tickets start from it, since a store may outlive the
                process and remember the last one as its fence.
        """
        self._clock = clock or _epoch_us
        self._last = 0
        self._places: dict[str, list[Place]] = {}
        self._woken: dict[int, anyio.Event] = {}

    def __repr__(self) -> str:
        held = len(self._places)
        waiting = sum(len(places) - 1 for places in self._places.values())
        return f"<MemoryLease: {held} held, {waiting} waiting>"

    @property
    def ttl(self) -> float | None:
        return None

    async def take(self, key: str, request_id: str, *, only_if_empty: bool) -> Place | Busy:
        places = self._places.get(key, [])
        for place in places:
            if place.request_id == request_id:
                return place
        if places and only_if_empty:
            return Busy(request_id=places[0].request_id)
        self._last = max(self._last + 1, self._clock())
        place = Place(key=key, request_id=request_id, ticket=self._last)
        self._places.setdefault(key, []).append(place)
        return place

    async def is_my_turn(self, place: Place) -> Turn:
        places = self._places.get(place.key, [])
        if place not in places:
            return Gone(reason="it was given back")
        position = places.index(place)
        if position == 0:
            return Yes()
        return No(position=position, behind=places[position - 1].request_id)

    async def changed(self, place: Place) -> None:
        places = self._places.get(place.key, [])
        if place not in places or places[0] == place:
            return
        event = self._woken.setdefault(place.ticket, anyio.Event())
        try:
            await event.wait()
        finally:
            if self._woken.get(place.ticket) is event:
                del self._woken[place.ticket]

    async def renew(self, place: Place) -> bool:
        return place in self._places.get(place.key, [])

    async def give_back(self, place: Place) -> None:
        places = self._places.get(place.key)
        if places is None or place not in places:
            return
        places.remove(place)
        if not places:
            del self._places[place.key]
        # Everybody behind has another position now; the first has the turn. Whoever waits at this
        # place itself hears that it is gone.
        for other in (place, *places):
            event = self._woken.pop(other.ticket, None)
            if event is not None:
                event.set()

    async def places(self, key: str) -> tuple[Place, ...]:
        return tuple(self._places.get(key, ()))


def _epoch_us() -> int:
    return time.time_ns() // 1_000
