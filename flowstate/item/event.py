"""
What happens to items, in order: the events that an outbox stores and a stream shows.

An event is a plain tuple, made on the hot path. ``sequence`` counts from 1 within a request, and
``request_id:sequence`` is the cursor of a reader who has seen the event.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from flowstate.item.item import Item

EventKind: TypeAlias = Literal["added", "delta", "changed", "settled"]
"""
``added``: new and in progress. ``delta``: text was appended. ``changed``: a new content, or, for
a reader who missed deltas, all that the item holds by now. ``settled``: final; the only event of
an item that is settled at once, and of one whose ``added`` the reader missed.
"""


class ItemEvent(NamedTuple):
    """One change of one item."""

    sequence: int
    kind: EventKind
    item_id: str
    item: Item | None
    """The whole item after the change; None for a delta."""
    text: str = ""
    """The text appended by a delta."""
