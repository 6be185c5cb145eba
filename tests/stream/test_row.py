"""Items as stored rows."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from flowstate.errors import CorruptRow, InvalidValue
from flowstate.item.content import Content, Message, Reasoning, ToolOutput
from flowstate.item.event import ItemEvent
from flowstate.store.record import ItemRecord
from flowstate.stream.row import Row, item_of
from tests.item.samples import an_item

AWKWARD = 'a\u2028b\x0cc\x85d\re\nf\x00g"h\\i\ud800j😀'


def row_of(content: Content) -> Row:
    """The row of an item in progress."""
    item = an_item(content)
    return Row(ItemEvent(3, "added", item.id, item), item)


def test_any_text_survives() -> None:
    """Line breaks of every kind, NUL and a lone surrogate come back; the row is plain ASCII."""
    record = row_of(Message(text=AWKWARD)).record()
    assert record.data.isascii()
    assert item_of(record) == an_item(Message(text=AWKWARD))


@pytest.mark.parametrize("kind", [Message, Reasoning])
def test_appended_text_is_in_the_row(kind: type[Message] | type[Reasoning]) -> None:
    """Records between appends hold exactly the text so far, and the last event's sequence."""
    row = row_of(kind(text="é"))
    so_far = "é"
    for number, piece in enumerate(["b", AWKWARD, "\\", '"'], start=4):
        row.parts.append(piece)
        row.last = ItemEvent(number, "delta", "item_1", None, piece)
        so_far += piece
        record = row.record()
        assert item_of(record).content == kind(text=so_far)
        assert (record.first_sequence, record.last_sequence) == (3, number)
        assert record == row.record()


def test_a_replaced_item_drops_what_was_appended() -> None:
    """Text appended before a change is not in the row after it."""
    row = row_of(Message(text="old"))
    row.parts.append("er")
    changed = an_item(Message(text="new", role="user"))
    row.replace(ItemEvent(9, "changed", "item_1", changed), changed)
    assert item_of(row.record()) == changed


def test_names_in_the_row_are_those_of_the_wire() -> None:
    """The JSON keeps its camelCase."""
    data = json.loads(row_of(ToolOutput(call_id="c", name="n")).record().data)
    assert data["requestId"] == "req"
    assert data["content"]["callId"] == "c"


def test_an_agents_json_is_kept_as_it_is() -> None:
    """Nested values and odd keys of arguments survive."""
    arguments = {"\ud800": [1, 2.5, None, {"x": "\x00"}], "ключ": True}
    record = row_of(ToolOutput(call_id="c", name="n", arguments=arguments)).record()
    content = item_of(record).content
    assert isinstance(content, ToolOutput)
    assert content.arguments == arguments


@pytest.mark.parametrize(
    ("value", "stored"),
    [(float("nan"), None), (date(2026, 1, 2), "2026-01-02"), ({1: (2,)}, {"1": [2]})],
)
def test_what_is_nearly_json_is_stored_as_json(value: object, stored: Any) -> None:
    """A date, a NaN or a tuple doesn't end the run."""
    record = row_of(ToolOutput(call_id="c", name="n", output=value)).record()
    content = item_of(record).content
    assert isinstance(content, ToolOutput)
    assert content.output == stored


def test_what_is_no_json_is_named() -> None:
    """The error tells the item and where it was made."""
    with pytest.raises(InvalidValue, match=r"item 'item_1' of 'turn/x'.*tool_output.*object"):
        row_of(ToolOutput(call_id="c", name="n", output=object())).record()


@pytest.mark.parametrize("data", ["", "{", "[]", '{"secret": "s3cret"}', '{"id": 5}'])
def test_a_row_that_is_no_item_is_reported_without_its_content(data: str) -> None:
    """The error names the item and the request, and shows nothing of what was said."""
    record = ItemRecord(
        request_id="req",
        item_id="item_7",
        first_sequence=1,
        last_sequence=1,
        visibility="client",
        data=data,
    )
    with pytest.raises(CorruptRow, match=r"item 'item_7' of request 'req'") as caught:
        item_of(record)
    assert "s3cret" not in str(caught.value)
