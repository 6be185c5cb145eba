"""
Values that fit a type: what ``inputs`` and ``types`` draw from. Needs hypothesis.

An annotation is taken apart the way the plan reads it, so that whatever a flow may declare as its
input has a strategy here or an error that names the part without one: scalars, unions, literals,
enums, constraints, containers, pydantic models, dataclasses, typed dicts and named tuples, generic
and recursive ones too. A model's own validators have the last word: what they refuse isn't drawn.

Floats are never NaN, which is equal to nothing, itself included: no law could be told of it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePath
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Required,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from pydantic import AliasChoices, BaseModel, RootModel
from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import DefinitionError, InvalidValue
from flowstate.plan.annotation import (
    applied,
    bound_to,
    class_and_arguments,
    is_class,
    members_of,
    plain,
    substituted,
    unfolded,
    variables_of,
)
from flowstate.plan.typename import constraints_of, type_name
from flowstate.plan.validator import checker

Values = st.SearchStrategy[Any]

_LISTS: frozenset[object] = frozenset(
    {
        list,
        collections.abc.Collection,
        collections.abc.Iterable,
        collections.abc.MutableSequence,
        collections.abc.Sequence,
    }
)
_SETS: frozenset[object] = frozenset(
    {set, frozenset, collections.abc.Set, collections.abc.MutableSet}
)
_DICTS: frozenset[object] = frozenset(
    {dict, collections.abc.Mapping, collections.abc.MutableMapping}
)
_SCALARS: dict[object, Values] = {
    bool: st.booleans(),
    int: st.integers(),
    float: st.floats(allow_nan=False),
    str: st.text(),
    bytes: st.binary(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
}
_UNDERSTOOD = (Gt, Ge, Lt, Le, MinLen, MaxLen)
"""The constraints that hypothesis draws by."""
_LONGEST = 4
"""Entries of a container that nothing else bounds: enough to find what depends on their number."""


def values_of(annotation: object, *, where: str = "values_of") -> Values:
    """
    A strategy of values that fit this type.

    Args:
        annotation: as it stands on a function or a block.
        where: what the error names.

    Raises:
        DefinitionError: there is no telling which values fit, or no way to make one.
    """
    try:
        return _Reading().of(annotation)
    except _NoValues as error:
        raise DefinitionError(
            where,
            f"no values of {type_name(annotation)}: {error}",
            "Hand a strategy of your own to @given.",
        ) from None


class _NoValues(Exception):
    """What can't be made, and why."""


class _Reading:
    """One annotation being read; what it met is kept, since a model may hold itself."""

    def __init__(self) -> None:
        self.known: dict[object, Values] = {}

    def of(self, said: object) -> Values:
        annotation = cast("Any", plain(unfolded(said)))
        if annotation is UNKNOWN_TYPE:
            raise _NoValues("it has no annotation")
        if annotation is Any or annotation is object:
            return _anything()
        if isinstance(annotation, NewType):
            return self.of(annotation.__supertype__)
        if (members := members_of(annotation)) is not None:
            return st.one_of([self.of(member) for member in members])
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return st.just(args[0])
        if origin is Annotated:
            return self._constrained(annotation, args[0], constraints_of(annotation))
        if is_typeddict(annotation):
            return self._once(annotation, lambda: self._typed_dict(annotation))
        if _is_a(annotation, BaseModel):
            return self._once(annotation, lambda: self._model(annotation))
        shape = class_and_arguments(annotation)
        if shape is None:
            raise _NoValues(f"{type_name(annotation)} is not understood")
        cls, given = shape
        if (container := self._container(cls, given)) is not None:
            return container
        if cls in _SCALARS:
            return _SCALARS[cls]
        if _is_a(cls, enum.Enum):
            return st.sampled_from(list(cast("Any", cls)))
        if _is_a(cls, PurePath):
            return st.lists(st.text("ab.- ", min_size=1), min_size=1).map(lambda ps: cls(*ps))
        if hasattr(cls, "__dataclass_fields__"):
            return self._once(annotation, lambda: self._dataclass(cls, given))
        if _is_a(cls, tuple) and hasattr(cls, "_fields"):
            return self._once(annotation, lambda: self._named_tuple(cls))
        return _by_hypothesis(annotation)

    def _once(self, annotation: object, make: Callable[[], Values]) -> Values:
        """The strategy of a type that may hold itself."""
        if annotation not in self.known:
            made: list[Values] = []
            self.known[annotation] = st.deferred(lambda: made[0])
            made.append(make())
        return self.known[annotation]

    # --- what is made of parts ------------------------------------------------------------------

    def _container(
        self, cls: type, args: tuple[object, ...] | None, least: int = 0, most: int | None = None
    ) -> Values | None:
        """A list, tuple, set or dict; None for what is none of them."""
        longest = least + _LONGEST if most is None else most
        entries = args or (object, object)
        if cls in _DICTS:
            keys, values = _hashable(self.of(entries[0])), self.of(entries[1])
            return st.dictionaries(keys, values, min_size=least, max_size=longest)
        if cls in _SETS:
            members = _hashable(self.of(entries[0]))
            made = st.frozensets if cls is frozenset else st.sets
            return made(members, min_size=least, max_size=longest)
        if cls is tuple and args is not None and args[1:] != (Ellipsis,):
            return st.tuples(*(self.of(entry) for entry in args))
        if cls in _LISTS or cls is tuple:
            listed = st.lists(self.of(entries[0]), min_size=least, max_size=longest)
            return listed.map(tuple) if cls is tuple else listed
        return None

    def _constrained(self, whole: object, base: object, marks: tuple[object, ...]) -> Values:
        if not marks:
            return self.of(base)
        fits = checker(whole, "")
        assert fits is not None
        patterns = _said(marks, "pattern")
        base = plain(unfolded(base))
        shape = class_and_arguments(base)
        values: Values | None = None
        if base is str and patterns:
            values = st.from_regex(cast("str", patterns[0]))
        elif base is int:
            values = _integers(marks)
        elif base in _SCALARS:
            # Hypothesis draws within bounds and lengths, where a filter would miss most.
            drawn = [mark for mark in marks if isinstance(mark, _UNDERSTOOD)]
            values = _by_hypothesis(applied(cast("Any", Annotated), base, *drawn))
        elif shape is not None:
            least, most = _said(marks, "min_length"), _said(marks, "max_length")
            values = self._container(*shape, max(least, default=0), min(most, default=None))
        return (self.of(base) if values is None else values).filter(_taken_by(fits))

    def _model(self, cls: type[BaseModel]) -> Values:
        cls.model_rebuild()
        if issubclass(cls, RootModel):
            return self.of(_annotation(cls.model_fields["root"])).map(_made_by(cls.model_validate))
        required: dict[str, Values] = {}
        optional: dict[str, Values] = {}
        for name, field in cls.model_fields.items():
            fields = required if field.is_required() else optional
            fields[_key(cls, name, field)] = self.of(_annotation(field))
        given = st.fixed_dictionaries(required, optional=optional)
        return given.map(_made_by(cls.model_validate))

    def _dataclass(self, cls: type, args: tuple[object, ...] | None) -> Values:
        hints = get_type_hints(cls, include_extras=True)
        values = bound_to(variables_of(cls), args)
        required: dict[str, Values] = {}
        optional: dict[str, Values] = {}
        for field in dataclasses.fields(cls):
            if field.init:
                needed = field.default is field.default_factory is dataclasses.MISSING
                fields = required if needed else optional
                fields[field.name] = self.of(substituted(hints[field.name], values))
        given = st.fixed_dictionaries(required, optional=optional)
        return given.map(_made_by(lambda fields: cls(**fields)))

    def _named_tuple(self, cls: type) -> Values:
        hints = get_type_hints(cls, include_extras=True)
        fields = {name: self.of(hint) for name, hint in hints.items()}
        return st.fixed_dictionaries(fields).map(_made_by(lambda given: cls(**given)))

    def _typed_dict(self, cls: Any) -> Values:
        hints = get_type_hints(cls, include_extras=True)
        fields: dict[bool, dict[str, Values]] = {True: {}, False: {}}
        for name, hint in hints.items():
            # Said by the hint itself, which the class can't see where annotations are texts.
            said = get_origin(hint)
            needed = said is Required or (said is not NotRequired and name in cls.__required_keys__)
            fields[needed][name] = self.of(hint)
        return st.fixed_dictionaries(fields[True], optional=fields[False])


def _anything() -> Values:
    """A few plain values, where any value fits."""
    return st.none() | st.booleans() | st.integers() | st.text(max_size=_LONGEST)


def _integers(marks: tuple[Any, ...]) -> Values:
    """Integers within these bounds, and multiples of what is asked for."""
    step = math.lcm(*_said(marks, "multiple_of"))
    least = [*_said(marks, "ge"), *(bound + 1 for bound in _said(marks, "gt"))]
    most = [*_said(marks, "le"), *(bound - 1 for bound in _said(marks, "lt"))]
    numbers = st.integers(
        math.ceil(max(least) / step) if least else None,
        math.floor(min(most) / step) if most else None,
    )
    return numbers.map(lambda number: number * step)


def _said(marks: tuple[Any, ...], name: str) -> list[Any]:
    """What the constraints say under this name, as far as they do."""
    return [value for mark in marks if (value := getattr(mark, name, None)) is not None]


def _hashable(values: Values) -> Values:
    """The values, as far as a set or a dict can hold them."""

    def hashes(value: object) -> bool:
        try:
            hash(value)
        except TypeError:
            return False
        return True

    return values.filter(hashes)


def _is_a(annotation: object, cls: type) -> bool:
    return is_class(annotation) and issubclass(annotation, cls)


def _annotation(field: FieldInfo) -> object:
    """A field's type with its constraints."""
    return field.rebuild_annotation()


def _key(cls: type[BaseModel], name: str, field: FieldInfo) -> str:
    """The name under which a model takes a field."""
    alias: object = field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0]
    if alias is None:
        return name
    if isinstance(alias, str):
        return alias
    raise _NoValues(f"{type_name(cls)}.{name} is read from a path")


def _made_by(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``make``, where what it refuses isn't drawn. Pydantic's refusals are ValueErrors, too."""

    def made(given: Any) -> Any:
        try:
            return make(given)
        except ValueError:
            reject()

    return made


def _taken_by(fits: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def taken(value: Any) -> bool:
        try:
            fits(value)
        except InvalidValue:
            return False
        return True

    return taken


def _by_hypothesis(annotation: Any) -> Values:
    """What hypothesis makes of a type by itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it warns of what it doesn't understand, and goes on
            values = st.from_type(annotation)
            values.validate()
    except (HypothesisException, Warning, TypeError, NameError, AttributeError) as error:
        raise _NoValues(f"hypothesis can't make {type_name(annotation)} ({error})") from None
    return values
