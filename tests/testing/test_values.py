"""Values of types: every kind that an input may be declared as, and the errors for the rest."""

from __future__ import annotations

import datetime
import enum
import pathlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypeVar

import pytest
from annotated_types import Ge, Interval, MaxLen, MinLen, MultipleOf
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import AliasPath, BaseModel, Field, PositiveInt, RootModel, model_validator
from typing_extensions import TypedDict

from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import DefinitionError
from flowstate.plan.validator import checker
from flowstate.testing.values import values_of

T = TypeVar("T")
UserId = NewType("UserId", int)


class Colour(enum.Enum):
    """An enum."""

    RED = 1
    BLUE = 2


class Tree(BaseModel):
    """A model that holds itself."""

    name: str = Field(min_length=1)
    children: list[Tree] = []


class Aliased(BaseModel):
    """A model whose names on the wire are others, with bounds and a pattern."""

    count: int = Field(alias="theCount", ge=3, le=5)
    code: Annotated[str, Field(pattern="^a+$")] = "a"


class Ordered(BaseModel):
    """A model whose fields depend on one another."""

    low: int
    high: int

    @model_validator(mode="after")
    def _in_order(self) -> Ordered:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Numbers(RootModel[list[int]]):
    """A model that is a list."""


class Parcel(BaseModel, Generic[T]):
    """A generic model."""

    inside: T


@dataclass(frozen=True)
class Box(Generic[T]):
    """A generic dataclass that refuses some of what fits its types."""

    inside: T
    size: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a box has no negative size")


class Film(TypedDict):
    """A typed dict."""

    title: str
    year: NotRequired[int]


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: str = ""


TYPES: list[Any] = [
    int,
    bool,
    float,
    str,
    bytes,
    None,
    Decimal,
    datetime.datetime,
    uuid.UUID,
    pathlib.Path,
    Colour,
    Tree,
    Aliased,
    Ordered,
    Numbers,
    Parcel[str],
    Box[int],
    Box[list[Tree]],
    Film,
    Point,
    UserId,
    int | None,
    Literal["a", 3],
    list[Tree],
    dict[str, Aliased],
    set[int],
    frozenset[str | int],
    tuple[int, ...],
    tuple[int, str],
    tuple[()],
    list,
    dict,
    Sequence[int],
    Mapping[str, int],
    PositiveInt,
    Annotated[int, Interval(ge=1_000_000, lt=1_000_003)],
    Annotated[int, MultipleOf(1000), Ge(5)],
    Annotated[str, MinLen(2), MaxLen(3)],
    Annotated[str, "only documentation"],
    Annotated[float, Ge(0)],
    Annotated[list[int], MinLen(6), MaxLen(7)],
    Annotated[list[Tree], Field(min_length=1)],
    Annotated[dict[str, int], MinLen(1)],
    Annotated[datetime.date, Ge(datetime.date(2020, 1, 1))],
    Annotated[int, Ge(0)] | None,
]


@pytest.mark.parametrize("annotation", TYPES, ids=repr)
def test_every_value_fits_its_type(annotation: Any) -> None:
    """As a flow would check it: strictly, with all constraints and validators."""
    check = checker(annotation, "input")
    seen: list[Any] = []

    @settings(max_examples=25, database=None)
    @given(values_of(annotation))
    def law(value: Any) -> None:
        seen.append(value)
        if check is not None:
            check(value)

    law()
    assert seen


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (Tree, lambda tree: bool(tree.children and tree.children[0].children)),
        (Aliased, lambda model: model.count == 5 and model.code != "a"),
        (Ordered, lambda model: model.low < model.high),
        (Film, lambda film: "year" in film),
        (Film, lambda film: "year" not in film),
        (int | None, lambda value: value is None),
        (list[int], lambda values: len(values) >= 3),
        (Box[bool], lambda box: box.inside is True and box.size > 1),
    ],
)
def test_values_differ(annotation: Any, wanted: Callable[[Any], bool]) -> None:
    """What is optional is there and isn't, what is nested is filled."""
    quick = settings(database=None, max_examples=3000, phases=[Phase.generate])
    assert wanted(find(values_of(annotation), wanted, settings=quick))


class Read(BaseModel):
    """A model that reads a field from within another."""

    deep: int = Field(validation_alias=AliasPath("outer", "inner"))


class Unannotated:
    """A class that says nothing of what it is made of."""

    def __init__(self, what) -> None:  # type: ignore[no-untyped-def]
        self.what = what


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (UNKNOWN_TYPE, "it has no annotation"),
        (Unannotated, "can't make Unannotated"),
        (list[Unannotated], "can't make Unannotated"),
        (Read, "Read.deep is read from a path"),
    ],
)
def test_what_has_no_values_is_named(annotation: Any, said: str) -> None:
    """The error names the part that is at fault, where it is, and the way out."""
    with pytest.raises(DefinitionError, match=said) as caught:
        values_of(annotation, where="inputs('turn')")
    assert str(caught.value).startswith("inputs('turn'): no values of ")
    assert "@given" in str(caught.value)


@settings(max_examples=25)
@given(st.data())
def test_any_is_anything_plain(data: st.DataObject) -> None:
    """Where every value fits, a few plain ones are drawn."""
    for annotation in (Any, object, dict[str, Any]):
        value = data.draw(values_of(annotation))
        assert isinstance(value, int | str | bool | dict | None)


@settings(max_examples=50)
@given(values_of(float), values_of(Decimal))
def test_numbers_equal_themselves(number: float, decimal: Decimal) -> None:
    """No NaN: a law that compares outcomes would be broken by it alone."""
    assert number == number
    assert decimal == decimal
