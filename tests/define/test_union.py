"""The union of annotations: flat, ordered, each once."""

from __future__ import annotations

from typing import Any, Never, NoReturn, Optional

from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE


def test_members_are_flat_and_once_each() -> None:
    """A union of unions is one union, in the order the members came."""
    assert union_type([int, int | str, Optional[bytes]]) == int | str | bytes | None  # noqa: UP045
    assert union_type([int, int]) is int
    assert union_type([None, int]) == None | int


def test_what_never_ends_gives_nothing() -> None:
    """A step that always raises adds nothing to what may come out."""
    assert union_type([Never, int, NoReturn]) is int
    assert union_type([Never]) is Never
    assert union_type([]) is Never


def test_one_unknown_makes_the_whole_unknown() -> None:
    """What may be anything may be anything."""
    assert union_type([int, UNKNOWN_TYPE, str]) is UNKNOWN_TYPE
    assert union_type([int, Any]) is Any


def test_annotations_that_have_no_bar_are_joined_all_the_same() -> None:
    """A forward reference is no class, and still a member."""
    joined = union_type(["Ask", int])
    assert "Ask" in str(joined)
    assert "int" in str(joined)
