"""Whether a value fits a type: identity where that is enough, pydantic anywhere else."""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypedDict,
    runtime_checkable,
)

import pytest
import typing_extensions as te
from annotated_types import Gt
from pydantic import BaseModel

from flowstate import Failure
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import InvalidValue
from flowstate.plan.validator import checker, exact_class


class Model(BaseModel):
    number: int


class Sub(Model):
    more: int = 0


@dataclass
class Data:
    number: int


class Named(NamedTuple):
    number: int


class Typed(TypedDict):
    number: int


class Extended(te.TypedDict):
    number: int
    inner: Typed
    next: NotRequired[Extended]


class Colour(enum.Enum):
    RED = "red"


class Plain:
    pass


class HasSize(Protocol):
    def size(self) -> int: ...


@runtime_checkable
class Sized(Protocol):
    def size(self) -> int: ...


class Thing:
    def size(self) -> int:
        return 1


def checked(annotation: object, value: Any) -> Any:
    """The value after its check."""
    check = checker(annotation, "here")
    assert check is not None
    return check(value)


@pytest.mark.parametrize("annotation", [UNKNOWN_TYPE, Any, object])
def test_where_everything_fits_there_is_nothing_to_call(annotation: object) -> None:
    """No check is no cost."""
    assert checker(annotation, "here") is None


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 1),
        (float, 1.5),
        (str, "x"),
        (str, "\ud800"),
        (bool, True),
        (bytes, b"x"),
        (None, None),
        (Model, Model(number=1)),
        (Model, Sub(number=1)),
        (Data, Data(1)),
        (Named, Named(1)),
        (Typed, {"number": 1}),
        (Typed, {"number": 1, "more": "kept"}),
        (Extended, {"number": 1, "inner": {"number": 2}}),
        (Extended, {"number": 1, "inner": {"number": 2}, "next": {"number": 3, "inner": {}}}),
        (Colour, Colour.RED),
        (Literal["a", 1], "a"),
        (Plain, Plain()),
        (HasSize, Thing()),
        (Sized, Thing()),
        (int | None, None),
        (int | str, "x"),
        (list[int], [1, 2]),
        (dict[str, list[Model]], {"a": [Model(number=1)]}),
        (tuple[int, str], (1, "x")),
        (tuple[int, ...], (1, 2, 3)),
        (set[int], {1}),
        (frozenset[int], frozenset({1})),
        (AbstractSet[int], {1}),
        (AbstractSet[int], frozenset({1})),
        (Sequence[int], [1]),
        (Mapping[str, int], {"a": 1}),
        (Iterable[int], [1]),
        (Iterable[int] | None, None),
        (dict[str, Iterable[int]], {"a": (1, 2)}),
        (Callable[[int], int], abs),
        (type[Model], Sub),
        (Annotated[int, Gt(0)], 1),
        (Failure[ValueError], Failure(ValueError(), 1, "x")),
        (typing.List[int], [1]),  # noqa: UP006
    ],
)
def test_a_value_that_fits_goes_through_as_it_is(annotation: object, value: Any) -> None:
    """The same value, of the same class."""
    result = checked(annotation, value)
    if annotation is str and value == "\ud800":
        assert result == value
        return
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "1"),
        (int, True),
        (int, 1.0),
        (float, "1.5"),
        (str, 1),
        (str, b"x"),
        (bool, 1),
        (None, 0),
        (Model, {"number": "1"}),
        (Data, {"number": 1}),
        (Typed, {"number": "1"}),
        (Typed, {}),
        (Extended, {"number": 1, "inner": {"number": "2"}}),
        (Extended, {"number": 1, "inner": {"number": 2}, "next": 5}),
        (Colour, "red"),
        (Literal["a"], "b"),
        (Plain, Thing()),
        (Sized, Plain()),
        (int | None, "x"),
        (list[int], [1, "2"]),
        (list[int], (1,)),
        (dict[str, int], {1: 1}),
        (tuple[int, str], (1,)),
        (AbstractSet[int], [1]),
        (AbstractSet[int], {"x"}),
        (Iterable[int], 5),
        (Iterator[int], [1]),
        (Annotated[int, Gt(0)], 0),
        (list[Annotated[int, Gt(0)]], [1, 0]),
    ],
)
def test_a_value_that_doesn_t_fit_is_refused_and_nothing_is_coerced(
    annotation: object, value: Any
) -> None:
    """A text isn't made a number: what a check lets through is what the types promised."""
    with pytest.raises(InvalidValue, match=r"^here: expected "):
        checked(annotation, value)


def test_a_dict_with_the_fields_of_a_model_is_made_one() -> None:
    """What goes on is a value of the type; its fields are taken as strictly as anything else."""
    assert checked(Model, {"number": 1}) == Model(number=1)


def test_an_iterable_stays_what_it_is() -> None:
    """It isn't made an iterator that only one branch could go through."""
    value = [1, 2, 3]
    assert checked(Iterable[int], value) is value
    assert checked(dict[str, Iterable[int]], {"a": value})["a"] is value


def test_the_error_names_the_place_and_not_the_value() -> None:
    """What is wrong is said field by field; a value may be secret, or large."""

    class Login(BaseModel):
        name: str
        password: int

    with pytest.raises(InvalidValue) as caught:
        checked(dict[str, Login], {"a": {"name": 1, "password": "hunter2"}})
    text = str(caught.value)
    assert text.startswith("here: expected dict[str, Login], got dict: ")
    assert "hunter2" not in text
    assert caught.value.where == "here"
    assert caught.value.__cause__ is not None


def test_many_faults_of_one_value_are_summed_up() -> None:
    """Three are spelled out, the rest is counted."""
    with pytest.raises(InvalidValue, match=r"and 7 more$"):
        checked(list[int], list("abcdefghij"))


@pytest.mark.parametrize(
    ("annotation", "exact"),
    [
        (int, int),
        (None, type(None)),
        (Model, Model),
        (Data, Data),
        (Annotated[int, Gt(0)], None),
        (list[int], None),
        (int | None, None),
        (Typed, None),
        (Plain, None),
        (Colour, None),
    ],
)
def test_identity_is_proof_only_for_plain_scalars_and_models(
    annotation: object, exact: type | None
) -> None:
    """Anything with a constraint, or with parts, is looked into."""
    assert exact_class(annotation) is exact


def test_one_validator_serves_all_places() -> None:
    """Making one is dear: the same annotation is made once, and alike ones aren't mixed up."""
    assert type(checked(Literal[1], 1)) is int
    assert type(checked(Literal[True], True)) is bool
    assert type(checked(list[int], [1])[0]) is int
    with pytest.raises(InvalidValue):
        checked(list[bool], [1])
    unhashable = Annotated[int, {"doc": "not hashable"}]
    assert checked(unhashable, 1) == 1
