"""``--input`` becomes the action's input, or an error that helps."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from flowstate import HarnessRunInput
from flowstate.cli.action_input import BadInput, parse_input
from flowstate.define.unknown import UNKNOWN_TYPE


class Order(BaseModel):
    name: str
    day: datetime.date
    tags: tuple[str, ...] = ()
    size: Literal["s", "m"] = "s"
    count: int = Field(default=1, ge=1)


@dataclasses.dataclass
class Point:
    x: int
    y: int


def refused(text: str | None, annotation: object) -> str:
    with pytest.raises(BadInput) as caught:
        parse_input(text, annotation, "go")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ('"hi"', str, "hi"),
        ("3", int, 3),
        ("null", None, None),
        (None, None, None),
        ('{"x": 1, "y": 2}', Point, Point(1, 2)),
        ('[{"x": 1, "y": 2}]', list[Point], [Point(1, 2)]),
        ('{"prompt": "p"}', HarnessRunInput, HarnessRunInput(prompt="p")),
        ('{"a": [1]}', UNKNOWN_TYPE, {"a": [1]}),
        ("[1, 2]", Any, [1, 2]),
        ('"\\ud800"', Any, "\ud800"),
        (
            '{"name": "n", "day": "2026-01-02", "tags": ["a"]}',
            Order,
            Order(name="n", day=datetime.date(2026, 1, 2), tags=("a",)),
        ),
    ],
)
def test_json_becomes_the_input(text: str | None, annotation: object, value: object) -> None:
    """As JSON fits a type: lists for tuples, texts for dates."""
    assert parse_input(text, annotation, "go") == value


def test_a_text_without_quotes_is_told_how_to_quote_it() -> None:
    """The most likely slip, with what to type in its place."""
    said = refused("hello there", str)
    assert "--input is not JSON" in said
    assert "line 1 column 1" in said
    assert """--input '"hello there"'""" in said


@pytest.mark.parametrize("text", ["{", "", "  ", "[1,]", "NaN", "{'a': 1}", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    """With the place, and an input that would do."""
    assert "--input is n" in refused(text, Point)


def test_each_fault_names_its_place_the_value_and_the_rule() -> None:
    """All of them at once, and an example."""
    said = refused('{"day": "soon", "count": 0, "tags": [1]}', Order)
    assert "doesn't fit Order, the input of action 'go'" in said
    assert "name: Field required" in said
    assert 'day: Input should be a valid date or datetime, input is too short, got "soon"' in said
    assert "tags.0: Input should be a valid string, got 1" in said
    assert "count: Input should be greater than or equal to 1, got 0" in said
    assert '{"name": "…", "day": "…"}' in said


def test_a_missing_input_is_told_as_missing() -> None:
    """Not as a null that doesn't fit."""
    assert "--input is missing: action 'go' takes Point" in refused(None, Point)


def test_many_faults_are_counted() -> None:
    """A long list isn't told in full."""
    assert "and 3 more" in refused("[" + ",".join(['"x"'] * 8) + "]", list[int])


def test_a_type_that_json_cannot_make_is_told_to_the_author() -> None:
    """A class without fields that pydantic knows."""

    class Opaque:
        pass

    assert "can't be made from JSON" in refused("{}", Opaque)
