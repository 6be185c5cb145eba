"""The text form of a cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.errors import InvalidValue
from flowstate.stream.cursor import MAX_SEQUENCE, Cursor, parse_cursor


@given(st.text(min_size=1), st.integers(0, MAX_SEQUENCE))
def test_a_cursor_survives_its_text(request_id: str, sequence: int) -> None:
    """Whatever a request id holds, colons too, the text reads back as the same cursor."""
    cursor = Cursor(request_id=request_id, sequence=sequence)
    assert parse_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no colon"),
        ("req_1", "no colon"),
        (":5", "request id is empty"),
        ("req:", "not a decimal number"),
        ("req:-1", "not a decimal number"),
        ("req:+1", "not a decimal number"),
        ("req: 1", "not a decimal number"),
        ("req:1_0", "not a decimal number"),
        ("req:٣", "not a decimal number"),
        ("req:²", "not a decimal number"),
        ("req:1\n", "not a decimal number"),
        (f"req:{MAX_SEQUENCE + 1}", "above"),
        ("req:" + "9" * 5000, "above"),
    ],
)
def test_what_is_no_cursor_is_refused_with_its_reason(text: str, reason: str) -> None:
    """The message tells what is wrong and stays short."""
    with pytest.raises(InvalidValue, match=reason) as caught:
        parse_cursor(text)
    assert len(str(caught.value)) < 300
