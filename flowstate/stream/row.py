"""
An item as a stored row, and back.
"""

from __future__ import annotations

from typing import final

from pydantic import ValidationError

from flowstate.errors import CorruptRow
from flowstate.item.event import ItemEvent
from flowstate.item.item import Item
from flowstate.item.wire import constant_part, grown_text, parts_of, read_item
from flowstate.store.record import ItemRecord


@final
class Row:
    """
    The row of one item while it changes. Appended text is added to the JSON as it is, so that a
    long message isn't written out anew for each piece of it.
    """

    __slots__ = (
        "_after",
        "_before",
        "_constant",
        "first",
        "hidden",
        "item",
        "last",
        "parts",
        "settled",
        "transient",
    )

    def __init__(self, first: ItemEvent, item: Item) -> None:
        self.first = first.sequence
        self.hidden = item.visibility == "trace"
        self.transient = item.transient
        self.parts: list[str] = []
        """Text appended to the item since the last record."""
        self._constant: str | None = None
        self._before: str | None = None
        self._after = ""
        self.replace(first, item)

    def replace(self, event: ItemEvent, item: Item) -> None:
        """From this event on it is this item."""
        self.item = item
        """The item, without the text that was appended."""
        self.settled = item.status != "in_progress"
        """Whether it will change no more."""
        self.last = event
        """The last event taken in."""
        self.parts.clear()
        self._before = None

    def record(self) -> ItemRecord:
        """
        The row as of the last event.

        Raises:
            InvalidValue: the item's content holds something that JSON can't.
        """
        item, before = self.item, self._before
        if before is None:
            if self._constant is None:
                self._constant = constant_part(item)
            before, self._after = parts_of(item, self._constant)
        if self.parts:
            before += grown_text(self.parts)
            self.parts.clear()
        self._before = before
        return ItemRecord(
            request_id=item.request_id,
            item_id=item.id,
            first_sequence=self.first,
            last_sequence=self.last.sequence,
            visibility=item.visibility,
            data=before + self._after,
        )


def item_of(record: ItemRecord) -> Item:
    """
    The item of this row.

    Raises:
        CorruptRow: the row's data isn't an item's JSON.
    """
    try:
        return read_item(record.data)
    except ValidationError as error:
        # Without the input: what a row holds is somebody's conversation.
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise CorruptRow(_key(record), "Item", faults) from None
    except ValueError as error:
        raise CorruptRow(_key(record), "Item", str(error)) from None


def _key(record: ItemRecord) -> str:
    return f"item {record.item_id!r} of request {record.request_id!r}"
