"""
An item as a stored row, and back.

The JSON is plain ASCII, so that any text survives any database: NUL, U+2028 and lone surrogates
are escapes in it. That is why the two standard JSON functions stand here and not pydantic's own,
which refuse a lone surrogate.
"""

from __future__ import annotations

import json
from typing import Any, final

from pydantic import ValidationError

from flowstate.errors import CorruptRow, InvalidValue
from flowstate.item.content import Message, Reasoning
from flowstate.item.event import ItemEvent
from flowstate.item.item import Item
from flowstate.store.record import ItemRecord

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


@final
class Row:
    """
    The row of one item while it changes. Appended text is added to the JSON as it is, so that a
    long message isn't written out anew for each piece of it.
    """

    __slots__ = (
        "_after",
        "_before",
        "_text",
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
        self._before: str | None = None
        self._text = ""
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
        before = self._before
        if before is None:
            before = self._write()
        if self.parts:
            self._text += _encode("".join(self.parts))[1:-1]
            self.parts.clear()
        return ItemRecord(
            request_id=self.item.request_id,
            item_id=self.item.id,
            first_sequence=self.first,
            last_sequence=self.last.sequence,
            visibility=self.item.visibility,
            data=f"{before}{self._text}{self._after}",
        )

    def _write(self) -> str:
        item = self.item
        try:
            try:
                # As it is: pydantic would mend lone surrogates in the keys of an agent's JSON.
                return self._split(item.model_dump(by_alias=True))
            except (TypeError, ValueError):
                # It holds more than JSON has (a date, a NaN); pydantic knows something near it.
                return self._split(item.model_dump(mode="json", by_alias=True))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidValue(
                f"item {item.id!r} of {item.provenance.path!r}",
                "a content that JSON can hold",
                item.content.type,
                str(error),
            ) from error

    def _split(self, whole: dict[str, Any]) -> str:
        """Write this, and set apart what comes before and after a text that may grow."""
        if isinstance(self.item.content, Message | Reasoning):
            # The text goes last, where it can grow.
            whole["content"] = content = whole.pop("content")
            self._text = _encode(content.pop("text"))[1:-1]
            self._before = f'{_encode(whole)[:-2]},"text":"'
            self._after = '"}}'
        else:
            self._text = self._after = ""
            self._before = _encode(whole)
        return self._before


def item_of(record: ItemRecord) -> Item:
    """
    The item of this row.

    Raises:
        CorruptRow: the row's data isn't an item's JSON.
    """
    try:
        return Item.model_validate(json.loads(record.data))
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
