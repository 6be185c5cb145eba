"""What fits where: a table of pairs, and what the answers promise besides."""

from __future__ import annotations

import collections
import collections.abc
import copy
import enum
import gc
import sys
import timeit
import types
import typing
import weakref
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from dataclasses import InitVar, dataclass
from datetime import date, datetime
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    Never,
    NewType,
    NoReturn,
    Optional,
    ParamSpec,
    Protocol,
    Self,
    SupportsInt,
    TypeVar,
    TypeVarTuple,
    Union,
    Unpack,
    cast,
    runtime_checkable,
)

import pytest
from annotated_types import Ge, Gt, Interval, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    EmailStr,
    Field,
    PastDate,
    PlainSerializer,
    PositiveInt,
    SecretStr,
    StrictInt,
    StringConstraints,
)
from typing_extensions import NotRequired, ReadOnly, Required, TypeAliasType, TypedDict

from flowstate.define.block import Failure
from flowstate.define.union import union_type
from flowstate.plan.assignable import UNKNOWN_TYPE, Unknown, Verdict, assignable
from flowstate.plan.typename import constraints_of, type_name, type_names

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN

T = TypeVar("T")
K = TypeVar("K")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
Number = TypeVar("Number", bound=int)
Text = TypeVar("Text", str, bytes)
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


class Ask(BaseModel):
    """A plain model."""

    text: str


class Question(Ask):
    """A model that is also an Ask."""


class Answer(BaseModel):
    """A model that is nothing else."""


class OpenModel(BaseModel, extra="allow"):
    """A model that takes more than it declares."""


class Page(BaseModel, Generic[T]):
    """A generic model."""

    entries: list[T]


class Numbered(Page[int]):
    """A model with its base's argument given."""


class Titled(Page[T], Generic[T]):
    """A generic model over a generic model."""

    title: str


@dataclass(frozen=True)
class Box(Generic[T]):
    """A generic dataclass."""

    inside: T


@dataclass(frozen=True)
class Pair(Box[T], Generic[K, T]):
    """A generic dataclass whose base takes its second variable."""

    key: K


class IntBox(Box[int]):
    """A dataclass with its base's argument given."""


class Lists(Box[list[T]], Generic[T]):
    """A dataclass that puts its variable inside another type."""


class Sink(Generic[T_contra]):
    """A generic class that takes values in."""


class Registry(dict[str, T]):
    """A dict whose values alone are open."""


class Names(list[str]):
    """A list with its entries given."""


class Shelf(tuple[str, ...], Box[int]):
    """A class with two generic bases."""


class TwoInts(tuple[int, int]):
    """A tuple class with its items given."""


class Bag:
    """Can be gone through, and says not what it gives."""

    def __iter__(self) -> Iterator[int]:
        return iter(())


class Unhashable:
    """A class that turned its hash off."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]


class Colour(enum.Enum):
    """An enum of two."""

    RED = "red"
    BLUE = "blue"


class Mode(str, enum.Enum):
    """An enum whose values are texts."""

    FAST = "fast"


class Bits(enum.Flag):
    """A flag, whose values can be joined."""

    A = 1
    B = 2


class Point(NamedTuple):
    """A tuple with names."""

    x: int
    y: str


class Pixel(Point):
    """A tuple with names, by inheritance."""


class Entry(NamedTuple, Generic[T]):
    """A generic tuple with names."""

    key: str
    value: T


class Named(Protocol):
    """Asks for a data member."""

    name: str


@runtime_checkable
class Closes(Protocol):
    """Asks for a method."""

    def close(self) -> None:
        """End it."""


class ClosesNamed(Named, Closes, Protocol):
    """Asks for both."""


class Holds(Protocol[T]):
    """A generic protocol over data."""

    inside: T


class Entries(Protocol[T]):
    """A generic protocol over another name."""

    entries: T


class HoldsLists(Entries[list[T]], Protocol[T]):
    """A generic protocol over a generic protocol."""


class Reads(Protocol[T_co]):
    """A generic protocol over a method."""

    def read(self) -> T_co:
        """Get it."""
        ...


class Linked(Protocol):
    """A protocol that mentions itself."""

    next: Linked | None


class Node:
    """Has what Linked asks for, by way of itself."""

    next: Node | None = None


class Socket:
    """Has a method and a name, and inherits neither protocol."""

    name: str

    def close(self) -> None:
        """End it."""

    def read(self) -> int:
        """Get it."""
        return 0


class Door(Closes):
    """Inherits its protocol."""


class IntReader(Reads[int]):
    """Inherits its protocol with an argument."""


class Silent:
    """Sets its members where nobody can see it."""

    def __init__(self) -> None:
        self.name = "x"


class Proxy:
    """Answers to every name."""

    def __getattr__(self, name: str) -> object:
        return name


class Called:
    """Can be called."""

    def __call__(self, x: int) -> int:
        return x


class Movie(TypedDict):
    """A dict of known keys."""

    title: str
    year: NotRequired[int]


class Title(TypedDict):
    """What a Movie has in any case."""

    title: str


class Sequel(Movie):
    """A dict of more known keys."""

    part: bool


class LooseMovie(TypedDict, total=False):
    """The same keys, none needed."""

    title: str
    year: Required[ReadOnly[int]]


class Tree(TypedDict):
    """A dict that holds itself."""

    below: list[Tree]


class Wood(TypedDict):
    """The same shape by another name."""

    below: list[Wood]


class Slot(TypedDict, Generic[T]):
    """A generic dict of known keys."""

    held: T


class ListSlot(Slot[list[T]], Generic[T]):
    """A generic dict of known keys over another."""


class Lazy:
    """What ``type Name[T] = ...`` makes from 3.12 on: a name whose value is made when asked for."""

    def __init__(self, name: str, make: Callable[[], object], *params: TypeVar) -> None:
        self.__name__ = name
        self.__type_params__ = params
        self._make = make

    @property
    def __value__(self) -> object:
        return self._make()

    def __getitem__(self, args: object) -> object:
        return types.GenericAlias(self, args)  # type: ignore[arg-type]


def of(form: object, *args: object) -> Any:
    """A special form or an alias with arguments that only exist at run time."""
    return form[args if len(args) > 1 else args[0]]  # type: ignore[index]


UserId = NewType("UserId", int)
AdminId = NewType("AdminId", UserId)
Port = Annotated[int, Ge(0)]
Ids: Any = TypeAliasType("Ids", list[int])
Twice: Any = TypeAliasType("Twice", tuple[T, T], type_params=cast("Any", (T,)))
Unresolved: Any = TypeAliasType("Unresolved", "list[Nowhere]")

Json: Any = Lazy("Json", lambda: of(Union, of(dict, str, Json), of(list, Json), str, int, None))
Jsonish: Any = Lazy(
    "Jsonish", lambda: of(Union, of(dict, str, Jsonish), of(list, Jsonish), str, float, None)
)
Ints: Any = Lazy("Ints", lambda: of(Union, of(list, Ints), int))
Chain: Any = Lazy("Chain", lambda: of(Union, T, of(list, Chain[T])), T)
Growing: Any = Lazy("Growing", lambda: of(list, Growing[of(list, T)]), T)
Endless: Any = Lazy("Endless", lambda: Endless)
Looping: Any = Lazy("Looping", lambda: of(Union, Looping, int))
Broken: Any = Lazy("Broken", lambda: 1 / 0)

Row = tuple[object, object, Verdict]

CLASSES: list[Row] = [
    (int, int, YES),
    (Question, Ask, YES),
    (Ask, Question, NO),
    (Ask, Answer, NO),
    (bool, int, YES),
    (int, bool, NO),
    (int, float, YES),
    (bool, float, YES),
    (float, int, NO),
    (float, complex, YES),
    (int, complex, YES),
    (str, bytes, NO),
    (datetime, date, YES),
    (Ask, object, YES),
    (object, Ask, NO),
    (None, None, YES),
    (None, type(None), YES),
    (None, int, NO),
    (Colour, Colour, YES),
    (Mode, str, YES),
    (str, Mode, NO),
    (list, Sized, YES),
    (int, Sized, NO),
    (LiteralString, str, YES),
]

ANY: list[Row] = [
    (UNKNOWN_TYPE, int, UNKNOWN),
    (int, UNKNOWN_TYPE, UNKNOWN),
    (UNKNOWN_TYPE, UNKNOWN_TYPE, UNKNOWN),
    (UNKNOWN_TYPE, object, YES),
    (UNKNOWN_TYPE, Any, YES),
    (int, Any, YES),
    (Any, int, UNKNOWN),
    (Any, Any, YES),
    (Any, object, YES),
    (object, Any, YES),
    (list[Any], list[int], UNKNOWN),
    (list[int], list[Any], YES),
    (Never, int, YES),
    (NoReturn, Answer, YES),
    (Never, Never, YES),
    (Never, UNKNOWN_TYPE, YES),
    (int, Never, NO),
    (int | None, NoReturn, NO),
    (Any, Never, UNKNOWN),
    ("Ask", Ask, UNKNOWN),
    (Ask, "Ask", UNKNOWN),
    (ForwardRef("Ask"), Ask, UNKNOWN),
    (list["Ask"], list[int], UNKNOWN),
    ("Ask", object, YES),
    (Self, int, UNKNOWN),
    (P, int, UNKNOWN),
    (3, int, UNKNOWN),
    (int, 3, UNKNOWN),
    (3, 3, UNKNOWN),
    ([int], [int], UNKNOWN),
]

UNIONS: list[Row] = [
    (int, int | None, YES),
    (None, int | None, YES),
    (int | None, int, NO),
    (int | None, int | str | None, YES),
    (int | str, str | int, YES),
    (Union[int, str], int | str, YES),
    (Optional[int], float | None, YES),
    (bool | int, int, YES),
    (int | bytes, int | str, NO),
    (Question, Answer | Ask, YES),
    (list[int] | None, Sequence[int] | None, YES),
    (int, str | bytes, NO),
    (of(Union, int, UNKNOWN_TYPE), int, UNKNOWN),
    (of(Union, int, UNKNOWN_TYPE), str, NO),
    (int, of(Union, str, UNKNOWN_TYPE), UNKNOWN),
    (Any, int | str, UNKNOWN),
    (of(Union, int, Any), int, UNKNOWN),
]

LITERALS: list[Row] = [
    (Literal["a"], str, YES),
    (Literal["a"], int, NO),
    (Literal["a"], Literal["a", "b"], YES),
    (Literal["a", "b"], Literal["a"], NO),
    (Literal["a", 1], str | int, YES),
    (Literal["a", 1], str, NO),
    (Literal[1], float, YES),
    (Literal[True], Literal[1], NO),
    (Literal[1], Literal[True], NO),
    (list[Literal[1]], list[Literal[True]], NO),
    (Literal[True], int, YES),
    (Literal["a", "b"], Literal["b"] | Literal["a"], YES),
    (str, Literal["a"], NO),
    (UNKNOWN_TYPE, Literal["a"], UNKNOWN),
    (bool, Literal[True, False], YES),
    (bool, Literal[True], NO),
    (bool, Literal[True] | Literal[False], YES),
    (Colour, Literal[Colour.RED, Colour.BLUE], YES),
    (Colour, Literal[Colour.RED] | Literal[Colour.BLUE] | None, YES),
    (Colour, Literal[Colour.RED], NO),
    (Bits, Literal[Bits.A, Bits.B], NO),
    (Literal[Colour.RED], Colour, YES),
    (Literal[Mode.FAST], str, YES),
    (None, Literal[None], YES),
    (Literal[None], None, YES),
    (Literal["a"], Sequence[str], YES),
]

CONTAINERS: list[Row] = [
    (list[bool], list[int], YES),
    (list[int], list[bool], NO),
    (list[int], list[int | None], YES),
    (list[int], Sequence[int], YES),
    (list[int], Iterable[float], YES),
    (list[int], Collection[object], YES),
    (Sequence[int], list[int], NO),
    (typing.List[int], list[int], YES),
    (typing.List, list, YES),
    (list, list[int], UNKNOWN),
    (list[int], list, YES),
    (list, list[object], YES),
    (list, Sequence, YES),
    (list, Sequence[int], UNKNOWN),
    (list, set[int], NO),
    (set[bool], frozenset[int], NO),
    (set[bool], collections.abc.Set[int], YES),
    (frozenset[bool], frozenset[int], YES),
    (dict[str, bool], dict[str, int], YES),
    (dict[str, bool], Mapping[str, int], YES),
    (dict[bool, str], Mapping[int, object], YES),
    (dict[str, int], dict[str, str], NO),
    (dict[str, int], Iterable[str], YES),
    (dict[str, int], Iterable[int], NO),
    (collections.defaultdict[str, int], dict[str, int], YES),
    (collections.Counter[str], Mapping[str, int], YES),
    (collections.Counter[str], dict[str, str], NO),
    (collections.deque[int], Sequence[int], YES),
    (ItemsView[str, int], Iterable[tuple[str, int]], YES),
    (enumerate[str], Iterator[tuple[int, str]], YES),
    (str, Sequence[str], YES),
    (str, Iterable[int], NO),
    (bytes, Sequence[int], YES),
    (range, Sequence[int], YES),
    (Generator[int, str, None], Iterator[int], YES),
    (Generator[int, float, None], Generator[float, int, None], YES),
    (Generator[int, int, None], Generator[int, float, None], NO),
    (Coroutine[Any, Any, int], Awaitable[int], YES),
    (AsyncIterator[int], AsyncIterator[float], YES),
    (Bag, Iterable, YES),
    (Bag, Iterable[int], UNKNOWN),
    (Bag, Sequence[int], NO),
    (Registry[int], Mapping[str, int], YES),
    (Registry[int], dict[str, str], NO),
    (Registry, dict[str, str], UNKNOWN),
    (Names, Sequence[str], YES),
    (Names, list[int], NO),
    (str, Hashable, YES),
    (list[int], Hashable, NO),
    (Unhashable, Hashable, NO),
    (Sequence[int], Hashable, UNKNOWN),
    (object, Hashable, UNKNOWN),
]

TUPLES: list[Row] = [
    (tuple[bool, str], tuple[int, str], YES),
    (tuple[int, str], tuple[str, int], NO),
    (tuple[int, str], tuple[int], NO),
    (tuple[int, int], tuple[int, ...], YES),
    (tuple[int, str], tuple[int, ...], NO),
    (tuple[int, ...], tuple[float, ...], YES),
    (tuple[int, ...], tuple[int, int], NO),
    (tuple[()], tuple[int, ...], YES),
    (tuple[()], tuple[()], YES),
    (tuple[int], tuple[()], NO),
    (tuple[()], tuple[int], NO),
    (tuple[int, str], tuple, YES),
    (tuple, tuple[int, str], UNKNOWN),
    (tuple, tuple[int, ...], UNKNOWN),
    (tuple, tuple[object, ...], YES),
    (tuple, tuple[object, object], UNKNOWN),
    (typing.Tuple, tuple[int, ...], UNKNOWN),
    (tuple[int, str], typing.Tuple, YES),
    (tuple[int, str], Sequence[int | str], YES),
    (tuple[int, str], Sequence[int], NO),
    (tuple[()], Sequence[int], YES),
    (tuple[int, ...], Iterable[int], YES),
    (Point, tuple[int, str], YES),
    (Point, tuple[int, int], NO),
    (Point, Iterable[int | str], YES),
    (tuple[int, str], Point, NO),
    (Entry[int], tuple[str, int], YES),
    (Entry[int], tuple[str, str], NO),
    (Entry, tuple[str, str], UNKNOWN),
    (Entry[int], Sequence[str | int], YES),
    (Pixel, tuple[int, str], YES),
    (TwoInts, tuple[int, int], YES),
    (TwoInts, tuple[str, int], NO),
    (tuple[int, Unpack[tuple[str, ...]]], tuple[int, str, str], UNKNOWN),
    (of(tuple, Unpack[Ts]), tuple[int, str], UNKNOWN),
    (tuple[int, Unpack[tuple[str, ...]]], tuple[int, str], UNKNOWN),
    (tuple[int, str], tuple[int, Unpack[tuple[str, ...]]], UNKNOWN),
]

WRAPPERS: list[Row] = [
    (Port, int, YES),
    (Port, str, NO),
    (int, Port, UNKNOWN),
    (str, Port, NO),
    (Port, Port, YES),
    (Port, Annotated[float, Ge(0)], YES),
    (Port, Annotated[int, Ge(1)], UNKNOWN),
    (Annotated[int, Ge(0), Gt(5)], Port, YES),
    (Annotated[int, Field(ge=0)], Port, YES),
    (Port, Annotated[int, Field(ge=0, description="a port")], YES),
    (Annotated[int, Ge(0), MaxLen(5)], Annotated[int, Interval(ge=0)], YES),
    (Port, Annotated[int, Interval(ge=0, le=5)], UNKNOWN),
    (PositiveInt, Annotated[int, Gt(0)], YES),
    (int, StrictInt, UNKNOWN),
    (Annotated[str, Field(pattern="a")], Annotated[str, Field(pattern="a")], YES),
    (Annotated[str, Field(pattern="a")], Annotated[str, Field(pattern="b")], UNKNOWN),
    (str, Annotated[str, StringConstraints(min_length=1)], UNKNOWN),
    (
        Annotated[str, MinLen(1)],
        Annotated[str, StringConstraints(min_length=1)],
        YES,
    ),
    (int, Annotated[int, AfterValidator(abs)], UNKNOWN),
    (Annotated[int, AfterValidator(abs)], Annotated[int, AfterValidator(abs)], YES),
    (int, Annotated[int, "the port"], YES),
    (int, Annotated[int, Field(description="the port")], YES),
    (int, Annotated[int, PlainSerializer(str)], YES),
    (int, Annotated[int, object()], YES),
    (Annotated[int, []], Annotated[int, {}], YES),
    (Annotated[int | str, Ge(0)], int | str, YES),
    (Annotated[int | str, Ge(0)], Annotated[str | int, Ge(0)] | None, YES),
    (list[int], list[Port], UNKNOWN),
    (list[Port], list[int], YES),
    (int | None, Port | None, UNKNOWN),
    (int | None, Annotated[int | None, Ge(0)], UNKNOWN),
    (UserId, int, YES),
    (UserId, float, YES),
    (UserId, str, NO),
    (UserId, UserId, YES),
    (AdminId, UserId, YES),
    (UserId, AdminId, UNKNOWN),
    (int, UserId, UNKNOWN),
    (str, UserId, NO),
    (UserId, UserId | None, YES),
    (UserId | None, UserId, NO),
    (Annotated[UserId, Ge(0)], UserId, YES),
    (EmailStr, str, UNKNOWN),
    (str, EmailStr, UNKNOWN),
    (EmailStr, EmailStr, YES),
    (date, PastDate, UNKNOWN),
    (SecretStr, str, NO),
    (ClassVar[int], int, YES),
    (int, of(Final, int), YES),
    (InitVar[int], float, YES),
    (Ids, list[int], YES),
    (list[bool], Ids, YES),
    (list[str], Ids, NO),
    (Twice[int], tuple[int, int], YES),
    (Twice[int], tuple[int, str], NO),
    (Unresolved, list[int], UNKNOWN),
    (Json, Json, YES),
    (Json, Jsonish, YES),
    (Jsonish, Json, NO),
    (Ints, Json, YES),
    (Json, Ints, NO),
    (list[dict[str, int]], Json, YES),
    (list[dict[str, bytes]], Json, NO),
    (Chain[int], Chain[float], YES),
    (Chain[float], Chain[int], NO),
    (Chain[int], Json, YES),
    (Growing[int], Growing[str], UNKNOWN),
    (Endless, Endless, UNKNOWN),
    (Endless, int, UNKNOWN),
    (int, Endless, UNKNOWN),
    (str, Looping, UNKNOWN),
    (int, Looping, YES),
    (Broken, int, UNKNOWN),
]

VARIABLES: list[Row] = [
    (T, int, UNKNOWN),
    (int, T, UNKNOWN),
    (T, T, UNKNOWN),
    (UNKNOWN_TYPE, of(Final, object), YES),
    (of(Final, Never), int, YES),
    (T, object, YES),
    (Number, float, YES),
    (Number, str, NO),
    (bool, Number, YES),
    (str, Number, NO),
    (Text, str | bytes, YES),
    (Text, str, NO),
    (str, Text, YES),
    (int, Text, NO),
    (of(list, T), list[int], UNKNOWN),
    (of(list, T), of(dict, str, T), NO),
]

GENERICS: list[Row] = [
    (Box[bool], Box[int], YES),
    (Box[int], Box[bool], NO),
    (Box[int], Box, YES),
    (Box, Box[int], UNKNOWN),
    (Box, Box, YES),
    (IntBox, Box[int], YES),
    (Shelf, Box[int], YES),
    (Shelf, Sequence[str], YES),
    (IntBox, Box[str], NO),
    (IntBox, Box, YES),
    (Box[int], IntBox, NO),
    (Pair[str, int], Box[int], YES),
    (Pair[str, int], Box[str], NO),
    (Pair, Box[str], UNKNOWN),
    (Lists[int], Box[list[int]], YES),
    (Lists[int], Box[Sequence[float]], YES),
    (Lists[int], Box[list[str]], NO),
    (Sink[float], Sink[int], YES),
    (Sink[int], Sink[float], NO),
    (Failure[ValueError], Failure[ValueError | OSError], YES),
    (Failure[ValueError | OSError], Failure[ValueError], NO),
    (Failure[ConnectionError], Failure[OSError], YES),
    (Failure[KeyError], Failure[Exception], YES),
    (Failure, Failure[BaseException], YES),
    (Failure, Failure[OSError], NO),
    (Page[int], Page[int], YES),
    (Page[bool], Page[int], YES),
    (Page[str], Page[int], NO),
    (Page[int], Page, YES),
    (Page, Page[int], UNKNOWN),
    (Page[int], BaseModel, YES),
    (Numbered, Page[int], YES),
    (Numbered, Page[str], NO),
    (Titled[int], Page[int], YES),
    (Titled[int], Page[str], NO),
    (Titled, Page[str], UNKNOWN),
    (Page[int], Titled[int], NO),
    (type[Question], type[Ask], YES),
    (type[Ask], type[Question], NO),
    (type[int], type[float], NO),
    (type[int], type, YES),
    (type, type[int], UNKNOWN),
    (type[Any], type[int], UNKNOWN),
    (type[int] | type[str], type[int | str], YES),
    (type[int | str], type[int], NO),
    (type[int], Hashable, YES),
    (type[Colour], Iterable, YES),
    (type[int], int, NO),
    (type[int], Callable, YES),
]

CALLABLES: list[Row] = [
    (Callable[[int], str], Callable[[int], str], YES),
    (Callable[[int], str], Callable[[int], bytes], UNKNOWN),
    (Callable[[int], str], Callable, YES),
    (Callable, Callable[[int], str], UNKNOWN),
    (typing.Callable[[int], str], Callable, YES),
    (Called, Callable, YES),
    (Called, Callable[[int], int], UNKNOWN),
    (int, Callable, NO),
    (int, Callable[[int], int], NO),
    (Callable[[int], str], int, NO),
    (Callable[[int], str], Called, UNKNOWN),
    (Callable[[int], str], Hashable, UNKNOWN),
    (Callable[[int], str], object, YES),
]

STRUCTURES: list[Row] = [
    (Socket, Closes, YES),
    (Door, Closes, YES),
    (Ask, Closes, NO),
    (Proxy, Closes, UNKNOWN),
    (Socket, Named, YES),
    (Ask, Named, NO),
    (OpenModel, Named, UNKNOWN),
    (Silent, Named, UNKNOWN),
    (Socket, ClosesNamed, YES),
    (Door, ClosesNamed, UNKNOWN),
    (ClosesNamed, Closes, YES),
    (Closes, ClosesNamed, UNKNOWN),
    (Named, Closes, NO),
    (Closes, Socket, NO),
    (int, SupportsInt, YES),
    (str, SupportsInt, NO),
    (Box[int], Holds[int], YES),
    (Box[int], Holds[str], NO),
    (Box[int], Holds, YES),
    (Pair[str, int], Holds[int], YES),
    (IntBox, Holds[int], YES),
    (Lists[int], Holds[list[int]], YES),
    (Lists[int], Holds[int], NO),
    (Page[int], HoldsLists[int], YES),
    (Page[str], HoldsLists[int], NO),
    (Socket, Reads, YES),
    (Socket, Reads[int], UNKNOWN),
    (IntReader, Reads[int], YES),
    (IntReader, Reads[str], NO),
    (Node, Linked, YES),
    (Socket | None, Closes | None, YES),
    (Movie, Movie, YES),
    (Sequel, Movie, YES),
    (Movie, Sequel, NO),
    (Movie, Title, YES),
    (Title, Movie, UNKNOWN),
    (Movie, LooseMovie, NO),
    (LooseMovie, Movie, NO),
    (Movie, Mapping[str, object], YES),
    (Movie, dict[str, object], YES),
    (Movie, dict, YES),
    (Movie, Mapping[str, str], NO),
    (Movie, Mapping[str, str | int], UNKNOWN),
    (Movie, Mapping[int, object], NO),
    (Movie, list[str], NO),
    (dict[str, object], Movie, UNKNOWN),
    (Mapping[str, object], Movie, NO),
    (Ask, Movie, NO),
    (Tree, Wood, YES),
    (Slot[bool], Slot[int], YES),
    (Slot[str], Slot[int], NO),
    (Slot, Slot[int], UNKNOWN),
    (ListSlot[int], Slot[list[int]], UNKNOWN),
]

TABLE: list[Row] = [
    *CLASSES,
    *ANY,
    *UNIONS,
    *LITERALS,
    *CONTAINERS,
    *TUPLES,
    *WRAPPERS,
    *VARIABLES,
    *GENERICS,
    *CALLABLES,
    *STRUCTURES,
]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [pytest.param(*row, id=" -> ".join(map(type_name, row[:2]))) for row in TABLE],
)
def test_each_pair_has_its_verdict(source: object, target: object, expected: Verdict) -> None:
    """A value declared as the source fits the target, doesn't, or must be looked at."""
    assert expected is assignable(source, target)


@pytest.mark.parametrize(
    "annotation", [row[0] for row in TABLE if assignable(row[0], row[0]) is not YES], ids=type_name
)
def test_only_what_withholds_something_does_not_fit_itself(annotation: object) -> None:
    """A type that says all there is to say goes to itself; the rest is UNKNOWN, never NO."""
    assert UNKNOWN is assignable(annotation, annotation)


def test_the_rest_of_the_table_fits_itself() -> None:
    """Nothing but what is unannotated, unresolved, open or endless is in doubt about itself."""
    doubtful = {type_name(row[0]) for row in TABLE if assignable(row[0], row[0]) is not YES}

    assert doubtful == {
        "3",
        "?",
        "Ask",  # as text
        "Broken",
        "Endless",
        "Growing[int]",
        "ListSlot[int]",
        "P",
        "Self",
        "T",
        "Unresolved",
        "[int]",
        "int | ?",
        "list[Ask]",  # as text
        "list[T]",
        "tuple[Unpack[Ts]]",
        "tuple[int, Unpack[tuple[str, ...]]]",
    }


def test_what_fits_what_fits_fits() -> None:
    """Over all the types of the table: if S goes to T, and T to U, S goes to U."""
    annotations = list({repr(each): each for row in TABLE for each in row[:2]}.values())
    fits = [
        {at for at, target in enumerate(annotations) if assignable(source, target) is YES}
        for source in annotations
    ]
    broken = [
        (annotations[s], annotations[t], annotations[u])
        for s, targets in enumerate(fits)
        for t in targets
        for u in fits[t] - targets
    ]

    assert [tuple(map(type_name, triple)) for triple in broken[:20]] == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is new in 3.12")
def test_the_type_statement_and_its_classes_are_understood() -> None:
    """Aliases made by ``type``, which are lazy and may be recursive, and ``class Name[T]``."""
    names: dict[str, Any] = {}
    exec(
        "from typing import Protocol\n"
        "type Json = dict[str, Json] | list[Json] | str | int | None\n"
        "type Jsonish = dict[str, Jsonish] | list[Jsonish] | str | float | None\n"
        "type Chain[T] = T | list[Chain[T]]\n"
        "type Bad = list[Nowhere]\n"
        "class Case[T]:\n    inside: T\n"
        "class IntCase(Case[int]): ...\n"
        "class Has[T](Protocol):\n    inside: T\n",
        names,
    )
    json, jsonish, chain, case = names["Json"], names["Jsonish"], names["Chain"], names["Case"]

    assert assignable(json, json) is YES
    assert assignable(json, jsonish) is YES
    assert assignable(jsonish, json) is NO
    assert assignable(chain[int], json) is YES
    assert assignable(chain[float], chain[int]) is NO
    assert assignable(names["Bad"], list[int]) is UNKNOWN
    assert assignable(names["IntCase"], case[float]) is YES
    assert assignable(names["IntCase"], names["Has"][str]) is NO
    assert type_name(chain[json]) == "Chain[Json]"


def test_a_verdict_has_no_truth_value() -> None:
    """Three answers can't be asked for as two: ``if assignable(...)`` is a mistake said aloud."""
    with pytest.raises(TypeError, match=r"is Verdict\.YES"):
        bool(assignable(int, int))


class Hostile:
    """Raises at whatever is asked of it."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class HostileMark:
    """Metadata that can be put into an annotation, and does nothing else."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


class HostileMeta(type):
    """A metaclass that raises at whatever is asked of its classes."""

    def __subclasscheck__(cls, subclass: type) -> bool:
        raise RuntimeError("subclass")

    def __instancecheck__(cls, instance: object) -> bool:
        raise RuntimeError("instance")

    def __hash__(cls) -> int:
        raise RuntimeError("hash")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("eq")


class HostileClass(metaclass=HostileMeta):
    """A class that can't be asked anything."""


class Wrong(Protocol):
    """A protocol whose annotation can't be evaluated."""

    name: Nowhere  # type: ignore[name-defined]


def _deep(levels: int) -> object:
    nested: object = int
    for _ in range(levels):
        nested = types.GenericAlias(list, (nested,))
    return nested


ODD: list[object] = [
    Hostile(),
    HostileClass,
    Hostile,
    Wrong,
    _deep(5_000),
    [],
    {},
    (),
    (int, str),
    1.5,
    "",
    "not valid (",
    b"",
    object(),
    lambda: None,
    sys,
    Ellipsis,
    NotImplemented,
    Generic,
    Protocol,
    typing.Union,
    typing.Optional,
    typing.Callable,
    Literal,
    Annotated,
    Unpack,
    Unpack[tuple[int, ...]],
    NamedTuple,
    TypedDict,
    Literal[1],
    of(Literal, []),
    of(Annotated, int, HostileMark()),
    types.GenericAlias(int, ()),
    types.GenericAlias(list, (1, 2, 3)),
    types.GenericAlias(dict, (int,)),
    types.GenericAlias(3, (int,)),  # type: ignore[arg-type]
    types.GenericAlias(tuple, (Ellipsis, int)),
    types.GenericAlias(Hostile(), (Hostile(),)),  # type: ignore[arg-type]
    of(Callable, P, int),
    typing.TypeVar("Forward", bound="Nowhere"),
    weakref.ref(Ask),
    Verdict,
    UNKNOWN_TYPE,
    Unknown,
    int,
    list[int],
    Json,
    Closes,
    Movie,
    Callable[[int], str],
    int | None,
    Port,
]


@pytest.mark.parametrize("position", range(len(ODD)))
def test_any_two_objects_get_an_answer_and_a_name(position: int) -> None:
    """Nothing that is handed over raises, neither what is no type nor what fights back."""
    odd = ODD[position]
    for other in ODD:
        assert isinstance(assignable(odd, other), Verdict)
        assert isinstance(assignable(other, odd), Verdict)
        assert all(type(name) is str for name in type_names(odd, other))
    assert assignable(odd, object) is YES
    assert assignable(Never, odd) is YES


def test_types_that_double_end_in_doubt() -> None:
    """Two types of thirty levels, each holding the next twice, are given up on, and soon."""

    def doubling(levels: int) -> Any:
        lower: Any = doubling(levels - 1) if levels else int
        return Lazy(f"Level{levels}", lambda: of(tuple, lower, lower))

    assert assignable(doubling(8), doubling(8)) is YES
    assert assignable(doubling(30), doubling(30)) is UNKNOWN


def test_interruptions_are_not_swallowed() -> None:
    """Only errors are taken for an unknown answer: what ends the program goes through."""

    class Stops(type):
        def __subclasscheck__(cls, subclass: type) -> bool:
            raise KeyboardInterrupt

    class Stop(metaclass=Stops):
        pass

    with pytest.raises(KeyboardInterrupt):
        assignable(int, Stop)


def test_equal_values_of_two_types_are_not_taken_for_each_other() -> None:
    """The cache keeps 1, True and 1.0 apart, whichever is asked first."""
    for first, second in ((1, True), (True, 1), (0, False)):
        assert assignable(of(Literal, first), of(Literal, first, "x")) is YES
        assert assignable(of(Literal, second), of(Literal, first, "x")) is NO


def test_the_cache_is_bounded() -> None:
    """A process that goes on making classes doesn't keep them all."""
    made = [type(f"Made{number}", (), {}) for number in range(5_000)]
    first = weakref.ref(made[0])
    for each in made:
        assignable(each, int | str)
    del made, each
    gc.collect()

    assert first() is None


def test_the_common_questions_are_cheap() -> None:
    """The same class, and a question asked before, cost a few microseconds at the very most."""
    for source, target in ((Ask, Ask), (list[Ask], Sequence[Ask]), (int | None, float | None)):
        assignable(source, target)
        seconds = min(
            timeit.repeat(
                "assignable(source, target)",
                globals={"assignable": assignable, "source": source, "target": target},
                number=1_000,
                repeat=5,
            )
        )
        assert seconds / 1_000 < 100e-6


# --- union_type ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ((), Never),
        ((int,), int),
        ((Never, NoReturn), Never),
        ((int, Never), int),
        ((int, str | int, Optional[str]), Union[int, str, None]),
        ((int, bool), Union[int, bool]),
        ((Literal[1], Literal[True]), Union[Literal[1], Literal[True]]),
        ((int, UNKNOWN_TYPE), UNKNOWN_TYPE),
        ((int, Any), Any),
    ],
    ids=repr,
)
def test_a_union_is_flat_and_holds_each_once(members: tuple[object, ...], expected: object) -> None:
    """Nested unions, repetitions and types of no value are gone; bool isn't int."""
    assert expected == union_type(members)


# --- names --------------------------------------------------------------------------------------


def _local_ask() -> type:
    class Ask:
        pass

    return Ask


def _elsewhere(module: str) -> type:
    return type("Ask", (), {"__module__": module})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Ask, "Ask"),
        (None, "None"),
        (type(None), "None"),
        (UNKNOWN_TYPE, "?"),
        (Never, "nothing"),
        (NoReturn, "nothing"),
        (Any, "Any"),
        (object, "object"),
        (list[int], "list[int]"),
        (typing.List[int], "list[int]"),
        (Sequence[Ask], "Sequence[Ask]"),
        (int | None, "int | None"),
        (None | int, "int | None"),
        (Optional[str], "str | None"),
        (dict[str, int | str], "dict[str, int | str]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (tuple[()], "tuple[()]"),
        (typing.Tuple, "tuple"),
        (type[Ask], "type[Ask]"),
        (Failure[ValueError | OSError], "Failure[ValueError | OSError]"),
        (Page[int], "Page[int]"),
        (Page[list[Ask]], "Page[list[Ask]]"),
        (Page, "Page"),
        (Literal["a", 1, None], "Literal['a', 1, None]"),
        (of(Literal, *range(100)), "Literal[0, 1, 2, 3, 4, 5, 6, 7, …]"),
        (Literal[Colour.RED], "Literal[Colour.RED]"),
        (Port, "int(ge=0)"),
        (list[Port] | None, "list[int(ge=0)] | None"),
        (Annotated[int, Field(gt=0, le=5, description="x")], "int(gt=0, le=5)"),
        (
            Annotated[str, StringConstraints(min_length=1, pattern="a+")],
            "str(min_length=1, pattern='a+')",
        ),
        (Annotated[int, AfterValidator(abs)], "int(AfterValidator: abs)"),
        (Annotated[int, "a port"], "int"),
        (Callable[[int, str], bool], "Callable[[int, str], bool]"),
        (Callable[..., bool], "Callable[..., bool]"),
        (Callable[[], bool], "Callable[[], bool]"),
        (T, "T"),
        (of(list, T), "list[T]"),
        (UserId, "UserId"),
        (Ids, "Ids"),
        (Chain[int], "Chain[int]"),
        ("Ask", "Ask"),
        (list["Ask"], "list[Ask]"),
        (ForwardRef("Ask"), "Ask"),
        (ClassVar[int], "ClassVar[int]"),
        (_local_ask(), "Ask"),
        (Self, "Self"),
        (3, "3"),
        ("x" * 3, "xxx"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_type_reads_as_it_is_written(annotation: object, expected: str) -> None:
    """Short, without modules, and the same for every spelling of one type."""
    assert expected == type_name(annotation)


def test_what_cannot_print_itself_is_named_by_its_class() -> None:
    """A name is wanted for a message about a fault: it is given without asking the object."""
    assert type_name(Hostile()) == "<Hostile>"


def test_two_classes_of_one_name_are_told_apart_by_module() -> None:
    """Only the name that two things share gets its module, wherever in the types it stands."""
    here, there = _elsewhere("shop"), _elsewhere("bank")

    assert type_names(here, there) == ("shop.Ask", "bank.Ask")
    assert type_names(of(list, here) | None, of(dict, str, there)) == (
        "list[shop.Ask] | None",
        "dict[str, bank.Ask]",
    )
    assert type_names(here, here) == ("Ask", "Ask")
    assert type_names(here | Answer, Question) == ("Ask | Answer", "Question")


def test_two_classes_of_one_name_and_module_are_told_apart_by_place() -> None:
    """A class made in a function is named with it."""
    one, other = type_names(_local_ask(), Ask)

    assert one.endswith("._local_ask.<locals>.Ask")
    assert other.endswith("test_assignable.Ask")


def test_two_definitions_of_one_place_are_told_apart_by_number() -> None:
    """A class that was defined twice, as by a reload, is not printed as itself."""
    one, other = type_names(_local_ask(), _local_ask())

    assert one.endswith("Ask (definition 1)")
    assert other.endswith("Ask (definition 2)")


def test_only_what_turns_values_away_counts_as_a_constraint() -> None:
    """Groups are taken apart; documentation, serializers and foreign marks are left out."""
    annotation = Annotated[
        int, Interval(ge=0, lt=9), "doc", Field(gt=1, title="x"), PlainSerializer(str), object()
    ]

    names = [type(mark).__name__ for mark in constraints_of(annotation)]
    assert names == ["Ge", "Lt", "Gt"]
    assert constraints_of(int) == ()


def test_a_copied_type_still_has_its_verdict() -> None:
    """Types that were pickled or copied with the definitions that hold them mean the same."""
    assert assignable(copy.copy(UNKNOWN_TYPE), int) is UNKNOWN
    assert assignable(copy.deepcopy(list[int]), list[int]) is YES
