"""
What a reader knows after an event: the one rule that turns events back into items.

Readers in other languages do the same; a client that keeps its items this way ends with exactly
the items of the run, wherever it joined, left and came back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

from flowstate.item.event import ItemEvent
from flowstate.item.growing import GROWING, grown
from flowstate.item.item import Item


def fold(items: dict[str, Item], event: ItemEvent) -> None:
    """
    Bring ``items`` (by id) up to date with the next event, in place.

    An event with an item replaces whatever was known under its id, whether or not an "added" was
    seen before; a delta appends. A delta of an item that isn't known changes nothing.
    """
    if event.item is not None:
        items[event.item_id] = event.item
    elif (known := items.get(event.item_id)) is not None:
        items[event.item_id] = _with_text(known, event.text)


@final
class OpenItems:
    """
    The items that are open, kept up to date event by event; settled ones are forgotten. The same
    rule as ``fold``, but a delta costs a list append whatever the length of the text.
    """

    __slots__ = ("_items", "_parts")

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._parts: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def note(self, event: ItemEvent) -> None:
        """Take in the next event. A delta of an item that isn't known changes nothing."""
        item_id = event.item_id
        if event.item is None:
            if (parts := self._parts.get(item_id)) is not None:
                parts.append(event.text)
        elif event.kind == "settled":
            self._items.pop(item_id, None)
            self._parts.pop(item_id, None)
        else:
            self._items[item_id] = event.item
            self._parts[item_id] = []

    def now(self) -> dict[str, Item]:
        """The open items as of the last event, by id."""
        for item_id, parts in self._parts.items():
            if parts:
                self._items[item_id] = _with_text(self._items[item_id], "".join(parts))
                parts.clear()
        return dict(self._items)

    def copy(self) -> OpenItems:
        """Another one with the same items."""
        other = OpenItems()
        other._items = self.now()
        other._parts = {item_id: [] for item_id in other._items}
        return other


def _with_text(item: Item, text: str) -> Item:
    # Its updated_at stays: a delta carries no time.
    content = item.content
    if content.type not in GROWING:
        return item
    return replace(item, content=grown(content, text))
