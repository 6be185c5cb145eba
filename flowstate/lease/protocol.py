"""
The seam to lease backends: who holds a key, who waits for it, in which order.

A backend knows no policy. A place is taken once for a request and held until it is given back; of
the places on a key the one with the lowest ticket has the turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A request's place on a key."""

    key: str
    request_id: str
    ticket: int
    """Rising in the order of acceptance, across processes; also the fence's token."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The key is held, and the place was asked for only if it is empty."""

    request_id: str
    """The request that has the turn."""


@final
@dataclass(frozen=True, slots=True)
class Yes:
    """It has the turn."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """Others go first."""

    position: int
    """How many go first, at least 1."""
    behind: str
    """The request just ahead of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The place is lost."""

    reason: str


Turn: TypeAlias = Yes | No | Gone


class LeaseBackend(Protocol):
    """Keeps the places."""

    @property
    def ttl(self) -> float | None:
        """Seconds that a place lasts without renewal; None: as long as the process."""
        ...

    async def take(self, key: str, request_id: str, *, only_if_empty: bool) -> Place | Busy:
        """Take a place on a key; the same place again for a request that has one."""
        ...

    async def is_my_turn(self, place: Place) -> Turn:
        """Whether this place is first now."""
        ...

    async def changed(self, place: Place) -> None:
        """Return when it may have become this place's turn, at once if it already has."""
        ...

    async def renew(self, place: Place) -> bool:
        """Keep the place for another ``ttl``; False if it is lost."""
        ...

    async def give_back(self, place: Place) -> None:
        """Give the place up, whether it has the turn or waits. Twice does nothing."""
        ...

    async def places(self, key: str) -> tuple[Place, ...]:
        """The places on a key, the one with the turn first."""
        ...
