"""
The laws that ``assignable`` keeps, over types that come with values of theirs.

A YES is held against pydantic, strict: every value drawn for the source must pass as the target.
A NO is held against it, too: among the source's witnesses, one must fail. Left out, because there
pydantic's strict mode follows rules of its own and not those of subtyping:

- ``bool`` where an int or a float is wanted, which strict mode turns away;
- ``str`` and ``bytes`` as a ``Sequence``, which it turns away in every mode;
- ``collections.abc.Set`` and ``Mapping``, as which it takes a frozenset and a dict alone, and a
  NamedTuple as a ``Sequence``, which it tries to make anew;
- literals that are equal and not the same (``True`` and ``1``), which it takes for each other;
- the inside of a generic dataclass, which it doesn't look into once it is made, and a NamedTuple,
  which it makes out of any tuple: no NO can be shown for these as targets;
- a union of tuples: ``tuple[int | str]`` is NO for ``tuple[int] | tuple[str]``, though no value
  shows it, as it is in mypy.

``int`` as ``float`` passes and comes out as another object; only passing is asked for. The
algebraic laws are held for all of these, too.
"""

from __future__ import annotations

import collections.abc
import enum
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Generic, Literal, NamedTuple, Never, NotRequired, TypeVar, Union

from annotated_types import Ge, MaxLen, MinLen
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from flowstate.define.union import union_type
from flowstate.plan.assignable import UNKNOWN_TYPE, Verdict, assignable
from flowstate.plan.typename import type_name, type_names

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN

T = TypeVar("T")


class Ask(BaseModel):
    """A model."""

    text: str


class Question(Ask):
    """A model beneath it."""


class Answer(BaseModel):
    """Another model."""

    text: str


@dataclass(frozen=True)
class Box(Generic[T]):
    """A generic class; pydantic looks into its fields, being a dataclass."""

    inside: T


@dataclass(frozen=True)
class Lid:
    """A plain dataclass."""

    size: int


class Colour(enum.Enum):
    """An enum."""

    RED = "red"
    BLUE = "blue"


class Movie(TypedDict):
    """A dict of known keys."""

    title: str
    year: NotRequired[int]


class Titled(TypedDict):
    """What a Movie has in any case."""

    title: str


class Point(NamedTuple):
    """A tuple with names."""

    x: int
    y: str


@dataclass(frozen=True)
class Typed:
    """A type, values of it to draw from, and a few that show each of its alternatives."""

    annotation: Any
    values: st.SearchStrategy[Any]
    witnesses: tuple[Any, ...]
    hashable: bool = False

    def __repr__(self) -> str:
        return type_name(self.annotation)


SCALARS = [
    Typed(int, st.integers(), (7, -7), hashable=True),
    Typed(bool, st.booleans(), (True, False), hashable=True),
    Typed(float, st.floats(allow_nan=False), (1.5, -1.5), hashable=True),
    Typed(str, st.text(max_size=5), ("other", ""), hashable=True),
    Typed(bytes, st.binary(max_size=5), (b"x", b""), hashable=True),
    Typed(None, st.none(), (None,), hashable=True),
    Typed(Colour, st.sampled_from(Colour), tuple(Colour), hashable=True),
    Typed(Lid, st.builds(Lid, size=st.integers()), (Lid(1),), hashable=True),
    Typed(Literal["a"], st.just("a"), ("a",), hashable=True),
    Typed(Literal["a", "b", 3], st.sampled_from(["a", "b", 3]), ("a", "b", 3), hashable=True),
    Typed(Literal[Colour.RED], st.just(Colour.RED), (Colour.RED,), hashable=True),
    Typed(Literal[Colour.RED, Colour.BLUE], st.sampled_from(Colour), tuple(Colour), hashable=True),
    Typed(Annotated[int, Ge(0)], st.integers(min_value=0), (0, 7), hashable=True),
    Typed(Annotated[str, MinLen(1)], st.text(min_size=1, max_size=5), ("x",), hashable=True),
]

OTHERS = [
    Typed(Ask, st.builds(Ask, text=st.text(max_size=3)), (Ask(text=""),)),
    Typed(Question, st.builds(Question, text=st.text(max_size=3)), (Question(text=""),)),
    Typed(Answer, st.builds(Answer, text=st.text(max_size=3)), (Answer(text=""),)),
    Typed(
        Movie,
        st.fixed_dictionaries({"title": st.text(max_size=3)}, optional={"year": st.integers()}),
        ({"title": ""}, {"title": "", "year": 1}),
    ),
    Typed(Titled, st.fixed_dictionaries({"title": st.text(max_size=3)}), ({"title": ""},)),
    Typed(Point, st.builds(Point, st.integers(), st.text(max_size=3)), (Point(1, ""),)),
]


def of(form: Any, *args: Any) -> Any:
    """A generic class or a special form with arguments that only exist at run time."""
    return form[args]


def list_of(entry: Typed) -> Typed:
    """A list, with all witnesses of its entries at once."""
    return Typed(
        of(list, entry.annotation), st.lists(entry.values, max_size=3), ([], [*entry.witnesses])
    )


def sequence_of(entry: Typed) -> Typed:
    """A list or a tuple."""
    lists = st.lists(entry.values, max_size=3)
    return Typed(
        of(Sequence, entry.annotation),
        lists | lists.map(tuple),
        ([*entry.witnesses], entry.witnesses),
    )


def set_of(entry: Typed) -> Typed:
    """A set."""
    return Typed(
        of(set, entry.annotation),
        st.lists(entry.values, max_size=3).map(set),
        (set(), set(entry.witnesses)),
    )


def frozenset_of(entry: Typed) -> Typed:
    """A frozenset."""
    return Typed(
        of(frozenset, entry.annotation),
        st.lists(entry.values, max_size=3).map(frozenset),
        (frozenset(entry.witnesses),),
        hashable=True,
    )


def tuple_of(first: Typed, second: Typed) -> Typed:
    """A tuple of two."""
    pairs = tuple((a, b) for a in first.witnesses for b in second.witnesses)
    return Typed(
        of(tuple, first.annotation, second.annotation),
        st.tuples(first.values, second.values),
        pairs,
        hashable=first.hashable and second.hashable,
    )


def tuples_of(entry: Typed) -> Typed:
    """A tuple of any length."""
    return Typed(
        of(tuple, entry.annotation, ...),
        st.lists(entry.values, max_size=3).map(tuple),
        ((), entry.witnesses, entry.witnesses * 3),
        hashable=entry.hashable,
    )


def dict_of(key: Typed, value: Typed) -> Typed:
    """A dict, with all witnesses of its keys and values."""
    longest = max(len(key.witnesses), len(value.witnesses))
    filled = {
        key.witnesses[at % len(key.witnesses)]: value.witnesses[at % len(value.witnesses)]
        for at in range(longest)
    }
    singles = tuple({key.witnesses[0]: each} for each in value.witnesses)
    return Typed(
        of(dict, key.annotation, value.annotation),
        st.dictionaries(key.values, value.values, max_size=3),
        ({}, filled, *singles),
    )


def mapping_of(key: Typed, value: Typed) -> Typed:
    """A mapping, shown by dicts."""
    made = dict_of(key, value)
    return Typed(of(Mapping, key.annotation, value.annotation), made.values, made.witnesses)


def box_of(inside: Typed) -> Typed:
    """A generic dataclass."""
    return Typed(
        of(Box, inside.annotation),
        st.builds(Box, inside.values),
        tuple(map(Box, inside.witnesses)),
        hashable=inside.hashable,
    )


def either(first: Typed, second: Typed) -> Typed:
    """A union of two."""
    return Typed(
        of(Union, first.annotation, second.annotation),
        first.values | second.values,
        (*first.witnesses, *second.witnesses),
        hashable=first.hashable and second.hashable,
    )


def short_list_of(entry: Typed) -> Typed:
    """A list under a constraint."""
    return Typed(
        of(Annotated, of(list, entry.annotation), MaxLen(3)),
        st.lists(entry.values, max_size=3),
        ([], [*entry.witnesses][:3]),
    )


hashables = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.builds(tuple_of, inner, inner),
        st.builds(tuples_of, inner),
        st.builds(frozenset_of, inner),
        st.builds(either, inner, inner),
        st.builds(box_of, inner),
    ),
    max_leaves=3,
)


def _grown(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        st.builds(list_of, inner),
        st.builds(sequence_of, inner),
        st.builds(short_list_of, inner),
        st.builds(tuple_of, inner, inner),
        st.builds(tuples_of, inner),
        st.builds(either, inner, inner),
        st.builds(box_of, inner),
        st.builds(set_of, hashables),
        st.builds(frozenset_of, hashables),
        st.builds(dict_of, hashables, inner),
        st.builds(mapping_of, hashables, inner),
    )


typed = st.recursive(st.sampled_from([*SCALARS, *OTHERS]), _grown, max_leaves=4)
"""Types that withhold nothing, each with its values."""


def parts(annotation: Any) -> Iterator[Any]:
    """The annotation and all that stands in it, literal values included."""
    yield annotation
    for arg in typing.get_args(annotation):
        yield from parts(arg)


@st.composite
def wider(draw: st.DrawFn, annotation: Any) -> Any:
    """A type that takes all that this one takes, built by going up from it."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    ways: list[Callable[[], Any]] = [
        lambda: annotation,
        lambda: object,
        lambda: of(Union, annotation, draw(typed).annotation),
        lambda: of(Union, draw(typed).annotation, annotation),
    ]
    if annotation is bool:
        ways += [lambda: int, lambda: float, lambda: Literal[True, False]]
    if annotation is int:
        ways += [lambda: float]
    if annotation is Question:
        ways += [lambda: Ask, lambda: BaseModel]
    if annotation is Movie:
        ways += [lambda: Titled, lambda: Mapping[str, object], lambda: dict]
    if annotation is Point:
        ways += [lambda: tuple[int, str], lambda: tuple, lambda: Sequence[int | str]]
    if origin is Annotated:
        ways += [lambda: args[0], lambda: draw(wider(args[0]))]
    if origin is Literal:
        ways += [lambda: union_type([type(value) for value in args])]
    if origin in (Union, UnionType):
        ways += [lambda: union_type([draw(wider(member)) for member in args])]
    if origin in (list, collections.abc.Sequence):
        ways += [lambda: of(Sequence, draw(wider(args[0]))), lambda: Sequence]
    if origin in (set, frozenset):
        ways += [lambda: of(collections.abc.Set, draw(wider(args[0])))]
    if origin in (list, set, frozenset, Box):
        ways += [lambda: of(origin, draw(wider(args[0]))), lambda: origin]
    if origin in (dict, collections.abc.Mapping):
        ways += [lambda: of(Mapping, draw(wider(args[0])), draw(wider(args[1])))]
    if origin is tuple and args[1] is not Ellipsis:
        ways += [
            lambda: of(tuple, draw(wider(args[0])), draw(wider(args[1]))),
            lambda: of(tuple, union_type(args), ...),
        ]
    if origin is tuple:
        entries = union_type([arg for arg in args if arg is not Ellipsis])
        ways += [lambda: of(Sequence, draw(wider(entries)))]
    return draw(st.sampled_from(ways))()


# --- algebra ------------------------------------------------------------------------------------


@given(typed)
def test_a_type_that_withholds_nothing_fits_itself(source: Typed) -> None:
    """Every value fits where its own type is wanted, however the type was come by."""
    assert assignable(source.annotation, source.annotation) is YES
    assert assignable(source.annotation, object) is YES
    assert assignable(Never, source.annotation) is YES
    assert assignable(source.annotation, UNKNOWN_TYPE) is UNKNOWN


@given(st.data(), typed)
def test_going_up_fits_at_every_step_and_as_a_whole(data: st.DataObject, source: Typed) -> None:
    """What was built wider takes the narrower one; two such steps make one (transitivity)."""
    middle = data.draw(wider(source.annotation), label="middle")
    top = data.draw(wider(middle), label="top")

    assert assignable(source.annotation, middle) is YES
    assert assignable(middle, top) is YES
    assert assignable(source.annotation, top) is YES


@given(st.lists(typed, min_size=2, max_size=6))
def test_fitting_is_transitive(some: list[Typed]) -> None:
    """If S goes to T, and T to U, S goes to U, for types that were made apart."""
    for s in some:
        for t in some:
            if assignable(s.annotation, t.annotation) is YES:
                for u in some:
                    if assignable(t.annotation, u.annotation) is YES:
                        event("a chain of three different types" if s != t != u else "a loop")
                        assert assignable(s.annotation, u.annotation) is YES


@given(typed, typed, typed)
def test_a_union_goes_where_all_its_members_go(first: Typed, second: Typed, target: Typed) -> None:
    """NO if one is turned away, else UNKNOWN if one is in doubt, else YES; in any order."""
    each = {assignable(member.annotation, target.annotation) for member in (first, second)}
    expected = NO if NO in each else UNKNOWN if UNKNOWN in each else YES

    assert assignable(of(Union, first.annotation, second.annotation), target.annotation) is expected
    assert assignable(of(Union, second.annotation, first.annotation), target.annotation) is expected


@given(typed, typed, typed)
def test_a_union_takes_what_a_member_takes(source: Typed, first: Typed, second: Typed) -> None:
    """Wanting one thing more never turns away what was taken, and order doesn't matter."""
    each = {assignable(source.annotation, member.annotation) for member in (first, second)}
    whole = assignable(source.annotation, of(Union, first.annotation, second.annotation))

    assert whole is assignable(source.annotation, of(Union, second.annotation, first.annotation))
    if YES in each:
        assert whole is YES
    if UNKNOWN in each:
        assert whole is not NO


@given(typed, typed)
def test_containers_follow_what_they_hold(source: Typed, target: Typed) -> None:
    """Frozen by contract: a list, a tuple, a dict's value and a generic class are covariant."""
    inner = assignable(source.annotation, target.annotation)

    assert assignable(of(list, source.annotation), of(list, target.annotation)) is inner
    assert assignable(of(list, source.annotation), of(Sequence, target.annotation)) is inner
    assert assignable(of(tuple, source.annotation), of(tuple, target.annotation)) is inner
    assert (
        assignable(of(dict, str, source.annotation), of(Mapping, str, target.annotation)) is inner
    )
    assert assignable(of(Box, source.annotation), of(Box, target.annotation)) is inner


@given(typed)
def test_a_constraint_is_never_proven_by_its_base(source: Typed) -> None:
    """Into a constraint that the source doesn't state is UNKNOWN; out of it is free."""
    constrained: Any = of(Annotated, source.annotation, MinLen(2), MaxLen(2))

    assert assignable(source.annotation, constrained) is UNKNOWN
    assert assignable(constrained, source.annotation) is YES
    assert assignable(constrained, constrained) is YES


@given(st.lists(typed, max_size=5))
def test_a_union_of_types_takes_each_and_nothing_more(members: list[Typed]) -> None:
    """``union_type`` is the least type that takes all of its members, and taking it again changes
    nothing."""
    annotations = [member.annotation for member in members]
    whole = union_type(annotations)

    assert all(assignable(annotation, whole) is YES for annotation in annotations)
    assert assignable(whole, union_type(list(reversed(annotations)))) is YES
    assert union_type([whole, *annotations]) == whole
    assert union_type([whole, Never]) == whole


@given(typed, typed)
def test_one_text_stands_for_one_type(first: Typed, second: Typed) -> None:
    """Two types are printed alike only if each fits where the other does."""
    one, other = type_names(first.annotation, second.annotation)
    if one == other:
        assert assignable(first.annotation, second.annotation) is YES
        assert assignable(second.annotation, first.annotation) is YES


# --- against real values ------------------------------------------------------------------------


def fits(value: object, annotation: Any) -> bool:
    """What a checked edge would say of this value."""
    try:
        TypeAdapter(annotation).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _by_subtyping(source: Any, target: Any) -> bool:
    """Whether strict mode judges a pair that fits as such (see the top of this file)."""
    given_parts, wanted_parts = list(parts(source)), list(parts(target))
    origins = [typing.get_origin(part) or part for part in wanted_parts]
    bools = bool in given_parts
    sequences = (str, bytes, Point)
    texts = any(part in sequences or isinstance(part, str | bytes) for part in given_parts)
    return not (
        (bools and (int in origins or float in origins))
        or (texts and collections.abc.Sequence in origins)
        or collections.abc.Set in origins
    )


@given(st.data(), typed)
@example(data=None, source=SCALARS[0]).via("int is taken for float")
def test_a_yes_needs_no_check(data: st.DataObject | None, source: Typed) -> None:
    """Every value of a source that fits passes the check that YES saves."""
    if data is None:
        target, values = float, []
    else:
        apart = typed.map(lambda each: each.annotation)
        target = data.draw(wider(source.annotation) | apart, label="target")
        values = data.draw(st.lists(source.values, min_size=1, max_size=3), label="values")
    verdict = assignable(source.annotation, target)
    event(f"{verdict}, {'the same' if source.annotation == target else 'another type'}")
    assume(verdict is YES and _by_subtyping(source.annotation, target))

    for value in [*values, *source.witnesses]:
        assert fits(value, target)


def _can_be_shown(source: Any, target: Any) -> bool:
    """Whether a value can be seen not to fit (see the top of this file)."""
    wanted_parts = list(parts(target))
    origins = {typing.get_origin(part) or part for part in wanted_parts}
    shown_by_dicts = any(
        typing.get_origin(part) is collections.abc.Mapping for part in parts(source)
    )
    several_tuples = any(
        sum((typing.get_origin(member) or member) in (tuple, Point) for member in _union(part)) > 1
        for part in wanted_parts
    )
    return not (
        Box in origins or Point in origins or several_tuples or (shown_by_dicts and dict in origins)
    )


def _union(annotation: Any) -> tuple[Any, ...]:
    joined = typing.get_origin(annotation) in (Union, UnionType)
    return typing.get_args(annotation) if joined else (annotation,)


@given(typed, typed)
def test_a_no_is_shown_by_a_value(source: Typed, target: Typed) -> None:
    """A build error is never made up: some value of the source fails as the target."""
    verdict = assignable(source.annotation, target.annotation)
    event(str(verdict))
    assume(verdict is NO and _can_be_shown(source.annotation, target.annotation))

    assert not all(fits(value, target.annotation) for value in source.witnesses)


@given(typed)
def test_the_values_are_values_of_their_types(source: Typed) -> None:
    """What the laws above stand on: every witness passes as its own type."""
    assume(_by_subtyping(source.annotation, source.annotation))

    assert all(fits(value, source.annotation) for value in source.witnesses)
