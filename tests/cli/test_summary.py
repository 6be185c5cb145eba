"""Calls and results in a few lines, whatever their shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.cli.summary import (
    CALL_LIMIT,
    RESULT_LINE,
    call_headline,
    call_summary,
    result_lines,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ({"command": "ls -la", "description": "List"}, "ls -la"),
        ({"file_path": "a.py", "content": "1\n2\n3\n"}, "a.py · content: 3 lines"),
        (
            {"file_path": "a.py", "old_string": "x", "new_string": "y", "replace_all": False},
            "a.py · old_string: x · new_string: y",
        ),
        ({"todos": [1, 2, 3]}, "todos: 3 entries"),
        ({"limit": 5}, "limit: 5"),
        ({}, ""),
        (None, ""),
        ("plain", "plain"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_a_call_is_told_by_what_matters(arguments: Any, summary: str) -> None:
    """The telling argument first; long ones by their size; what is off not at all."""
    assert call_summary(arguments) == summary


def test_a_command_of_many_lines_is_one_line() -> None:
    """A here-document must not fill the screen."""
    assert call_summary({"command": "cat <<E\na\nb\nE"}) == "cat <<E a b E"


def test_a_call_is_named_by_its_headline() -> None:
    """So that its result can stand elsewhere."""
    assert call_headline("Edit", {"file_path": "a.py"}) == "Edit a.py"
    assert call_headline("Think", {"depth": 3}) == "Think"


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("one", ["one"]),
        ("", []),
        (None, []),
        ("\n\n  kept\n\n", ["  kept"]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a", "b"]),
        ([{"type": "image", "data": "…"}], ["(image)"]),
        ({"ok": True}, ['{"ok": true}']),
    ],
)
def test_a_result_is_told_by_its_text(output: Any, lines: list[str]) -> None:
    """Text as it is, blocks by their texts, the rest as JSON."""
    assert result_lines(output) == lines


def test_the_end_of_a_long_result_is_kept() -> None:
    """A test run tells its outcome last."""
    lines = result_lines("\n".join([*map(str, range(100)), "FAILED"]))
    assert lines[:3] == ["0", "1", "… 95 more lines"]
    assert lines[-1] == "FAILED"


def test_one_line_is_never_left_out_for_a_line_that_says_so() -> None:
    """That would save nothing."""
    assert result_lines("1\n2\n3\n4\n5\n6\n7") == ["1", "2", "3", "4", "5", "6", "7"]


@given(JSON)
def test_any_value_is_told_in_bounds(value: Any) -> None:
    """Whatever an agent sends, no line is longer than it may be, and nothing acts."""
    summary = call_summary(value)
    assert len(summary) <= CALL_LIMIT
    assert "\n" not in summary
    for line in result_lines(value):
        assert len(line) <= RESULT_LINE
        assert "\n" not in line
        assert "\x1b" not in line
