"""Turning events back into items."""

from __future__ import annotations

import itertools

from flowstate.item.book import ItemBook
from flowstate.item.content import Container, Message
from flowstate.item.event import ItemEvent
from flowstate.item.fold import OpenItems, fold
from flowstate.item.item import Item


def some_events() -> list[ItemEvent]:
    """Two messages and a container, the second message left open."""
    events: list[ItemEvent] = []
    numbers = itertools.count(1)
    book = ItemBook(
        "req", clock=lambda: 5, ids=lambda prefix: f"{prefix}_{next(numbers)}", emit=events.append
    )
    writer = book.writer("p", "b")
    first = writer.open(Message(text="a"))
    second = writer.open(Message())
    writer.add(Container(label="c"))
    first.append("b")
    second.append("x")
    second.append("y")
    first.settle()
    return events


def texts(items: dict[str, Item]) -> dict[str, str]:
    """The text of each message, by id."""
    return {
        item.id: item.content.text for item in items.values() if isinstance(item.content, Message)
    }


def test_events_fold_into_items() -> None:
    """Items are replaced, text is appended, in order."""
    items: dict[str, Item] = {}
    for event in some_events():
        fold(items, event)
    assert texts(items) == {"item_1": "ab", "item_2": "xy"}
    assert [items[name].status for name in ("item_1", "item_2", "item_3")] == [
        "completed",
        "in_progress",
        "completed",
    ]


def test_a_delta_of_an_unknown_item_is_nothing() -> None:
    """A reader who may not see an item isn't troubled by its text."""
    items: dict[str, Item] = {}
    fold(items, ItemEvent(1, "delta", "item_9", None, "x"))
    open_items = OpenItems()
    open_items.note(ItemEvent(1, "delta", "item_9", None, "x"))
    assert items == {}
    assert open_items.now() == {}


def test_open_items_are_the_unsettled_part_of_the_fold() -> None:
    """At any point both ways agree on what is open, and a copy goes its own way."""
    items: dict[str, Item] = {}
    open_items = OpenItems()
    copies: list[tuple[OpenItems, dict[str, Item]]] = []
    for event in some_events():
        fold(items, event)
        open_items.note(event)
        unsettled = {name: item for name, item in items.items() if not item.settled}
        copies.append((open_items.copy(), unsettled))
        assert open_items.now() == unsettled
    assert all(copy.now() == unsettled for copy, unsettled in copies)
    assert len(open_items) == 1
