"""
Whether a value fits a type, at the price of an identity test where that is enough.

For a plain scalar or an unconstrained model, ``type(value) is T`` proves it: values are validated
where they are made. Anything else goes through pydantic, by one adapter a type.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import abc
from collections.abc import Callable
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, InstanceOf, PydanticUserError, TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic_core import SchemaError
from typing_extensions import TypedDict, is_typeddict

from flowstate.define.block import Failure
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import InvalidValue
from flowstate.plan.typename import type_name

_SCALARS = frozenset({int, float, str, bool, bytes, type(None)})


def exact_class(annotation: object) -> type | None:
    """The class that proves a value valid by identity, or None where that isn't enough."""
    if annotation is None:
        return type(None)
    if _is_scalar(annotation):
        return annotation
    if not isinstance(annotation, type) or get_origin(annotation) is not None:
        return None
    exact: type[Any] = annotation
    known = issubclass(exact, BaseModel) or dataclasses.is_dataclass(exact)
    return exact if known else None


def _is_scalar(annotation: object) -> TypeGuard[type]:
    # A class of this very kind hashes; most annotations of a large plan are such.
    return type(annotation) is type and annotation in _SCALARS


def checks_nothing(annotation: object) -> bool:
    """Whether every value fits."""
    return annotation is UNKNOWN_TYPE or annotation is Any or annotation is object


def checker(annotation: object, where: str) -> Callable[[Any], Any] | None:
    """
    A function that gives the value if it fits and raises InvalidValue if it doesn't.

    None where every value fits. Values are taken as they are: nothing is coerced from text, so
    that what a check lets through is what the types promised.
    """
    if checks_nothing(annotation):
        return None
    if _is_scalar(annotation):
        validate = _validate_scalar(annotation)
    else:
        validate = _validate_with(_hashable(annotation))

    def check(value: Any) -> Any:
        try:
            return validate(value)
        except PydanticError as error:
            raise InvalidValue(
                where, type_name(annotation), type(value).__name__, _summary(error)
            ) from error

    return check


class _Hashable:
    """An annotation as a cache key, by value where it hashes and by identity where it doesn't."""

    __slots__ = ("annotation", "key")

    def __init__(self, annotation: object) -> None:
        self.annotation = annotation
        try:
            hash(annotation)
        except TypeError:
            self.key: object = id(annotation)
        else:
            # int and bool, 1 and True compare alike inside Literal: the repr keeps them apart.
            self.key = (annotation, repr(annotation))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.key == other.key


def _hashable(annotation: object) -> _Hashable:
    return _Hashable(annotation)


@functools.cache
def _validate_scalar(scalar: type) -> Callable[[Any], Any]:
    """The same without a key that tells ``Literal[1]`` from ``Literal[True]``."""
    return _validate_with(_hashable(scalar))


@functools.lru_cache(maxsize=4096)
def _validate_with(key: _Hashable) -> Callable[[Any], Any]:
    """One validator a type: making an adapter costs 10 to 160 µs."""
    if key.annotation is Failure or get_origin(key.annotation) is Failure:
        # Made by the engine itself, around any exception.
        return lambda value: value
    annotation: Any = _as_checked(key.annotation, ())
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        return functools.partial(adapter.validate_python, strict=True)
    except PydanticUserError:
        # A model or dataclass brings its own configuration, or a class pydantic can't look into.
        pass
    try:
        adapter = TypeAdapter(annotation, config={"arbitrary_types_allowed": True})
        return functools.partial(adapter.validate_python, strict=True)
    except (PydanticUserError, SchemaError):
        # A protocol that can't be asked about at run time, say.
        return lambda value: value


def _as_checked(annotation: Any, around: tuple[Any, ...]) -> Any:
    """
    The annotation in a form that pydantic checks, and whose values it hands on as they are.

    Of an ``Iterable`` it would make an iterator that can be gone through once (what an iterable
    holds is checked where it is gone through); it takes no set for a ``Set``; and of the two
    ``TypedDict`` it knows only the one of typing_extensions before Python 3.12.
    """
    if is_typeddict(annotation):
        return _as_typed_dict(annotation, around)
    origin, args = get_origin(annotation), get_args(annotation)
    kind = origin or annotation
    if kind is abc.Iterable or kind is abc.Generator:
        instance: Any = InstanceOf
        return instance[kind]
    if origin is Literal or not args or isinstance(args[0], list):
        return annotation
    inner = tuple(_as_checked(arg, around) for arg in args)
    if kind is abc.Set:
        return set[inner[0]] | frozenset[inner[0]]  # type: ignore[valid-type]
    if all(new is old for new, old in zip(inner, args, strict=True)):
        return annotation
    if origin is Annotated:
        return Annotated[(inner[0], *annotation.__metadata__)]
    if origin is Union or origin is UnionType:
        return Union[inner]  # noqa: UP007  (made of values)
    return kind[inner]


def _as_typed_dict(annotation: Any, around: tuple[Any, ...]) -> Any:
    if annotation in around:
        return dict  # It holds itself: checked as far as its own fields.
    hints = get_type_hints(annotation, include_extras=True)
    required: frozenset[str] = annotation.__required_keys__
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        # Said by the hint itself, which the class can't see where annotations are texts.
        said = get_origin(hint)
        plain = get_args(hint)[0] if said in (Required, NotRequired) else hint
        needed = said is Required or (said is not NotRequired and name in required)
        checked = _as_checked(plain, (*around, annotation))
        fields[name] = checked if needed else NotRequired[checked]
    make: Any = TypedDict
    made = make(annotation.__name__, fields)
    # A value may have more keys than its type tells of, and they go on with it.
    made.__pydantic_config__ = getattr(annotation, "__pydantic_config__", {"extra": "allow"})
    return made


def _summary(error: PydanticError) -> str:
    """What is wrong, without the value itself: inputs can be large, or secret."""
    lines: list[str] = []
    for entry in error.errors(include_url=False, include_input=False, include_context=False)[:3]:
        at = ".".join(str(part) for part in entry["loc"])
        lines.append(f"{at}: {entry['msg']}" if at else entry["msg"])
    more = error.error_count() - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")
