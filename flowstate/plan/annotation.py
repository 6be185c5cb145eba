"""
What an annotation says, taken apart: wrappers, members, the class and its arguments.

It reads annotations as they are at run time and refuses to know what fits what
(``flowstate.plan.assignable``) and how types are printed (``flowstate.plan.typename``). Foreign
code in the annotations may raise here; whoever asks decides what that means.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import InitVar
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    LiteralString,
    NewType,
    TypeAlias,
    TypeGuard,
    TypeVar,
    TypeVarTuple,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE

QUALIFIERS = frozenset({"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})


def is_class(annotation: object) -> TypeGuard[type]:
    # Not isinstance: that asks the object itself for its __class__, and proxies lie or raise.
    return issubclass(type(annotation), type)


def plain(annotation: object) -> object:
    """The annotation without spellings that don't change which values fit."""
    while not is_class(annotation):
        if annotation is None:
            return NoneType
        if annotation is LiteralString:
            return str
        origin = get_origin(annotation)
        if isinstance(annotation, TypeVar):
            annotation = _stand_in(annotation)
        elif isinstance(annotation, InitVar):
            annotation = cast("object", annotation.type)
        elif origin is not None and getattr(origin, "_name", None) in QUALIFIERS:
            annotation = get_args(annotation)[0]
        else:
            return annotation
    return annotation


def _stand_in(variable: TypeVar) -> object:
    """The widest type that a type variable can be, as far as it says."""
    if variable.__constraints__:
        return union_type(variable.__constraints__)
    return UNKNOWN_TYPE if variable.__bound__ is None else variable.__bound__


def is_alias(annotation: object) -> bool:
    """``type X = ...``, parametrised or not; by its shape, since the class is new in 3.12."""
    origin = get_origin(annotation)
    declared = annotation if origin is None else origin
    return not is_class(declared) and hasattr(declared, "__value__")


def unfolded(annotation: object) -> object:
    if not is_alias(annotation):
        return annotation
    alias = cast("Any", get_origin(annotation) or annotation)
    return substituted(
        alias.__value__, bound_to(tuple(alias.__type_params__), get_args(annotation) or None)
    )


def members_of(annotation: object) -> list[object] | None:
    """What a union, or a literal of several values, is made of; None for anything else."""
    origin = get_origin(annotation)
    if origin is Union or origin is UnionType:
        return list(get_args(annotation))
    if origin is Literal and len(get_args(annotation)) > 1:
        return [_literal(value) for value in get_args(annotation)]
    if origin is type and get_args(annotation):
        classes = members_of(plain(get_args(annotation)[0]))
        return None if classes is None else [applied(type, each) for each in classes]
    return None


def _literal(*values: object) -> object:
    return cast("Any", Literal)[values]


def applied(cls: type, *args: object) -> object:
    """The class with these arguments, which no type checker can follow."""
    return cast("Any", cls)[args]


def widened(annotation: object) -> object | None:
    """The same values as a type that can be taken apart further, if there is one."""
    if isinstance(annotation, NewType):
        return cast("object", annotation.__supertype__)
    if get_origin(annotation) is Annotated:
        return cast("object", get_args(annotation)[0])
    if annotation is bool:
        return _literal(True, False)
    if annotation is NoneType:
        return _literal(None)
    # The members of a flag can be combined into values that have no name.
    if (
        is_class(annotation)
        and issubclass(annotation, enum.Enum)
        and not issubclass(annotation, enum.Flag)
        and len(annotation)
    ):
        return _literal(*annotation)
    return None


def layers_of(annotation: object) -> Iterable[object]:
    """The annotation, and what it is wrapped around by ``Annotated``, ``NewType`` and aliases."""
    for _ in range(100):
        yield annotation
        annotation = plain(annotation)
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif is_alias(annotation):
            annotation = unfolded(annotation)
        else:
            return


def same_mark(first: object, second: object) -> bool:
    """Equal, or of one class and with equal contents: some metadata of pydantic has no ``==``."""
    if first is second or first == second:
        return True
    contents = getattr(first, "__dict__", None)
    return bool(contents) and type(first) is type(second) and contents == vars(second)


Arguments: TypeAlias = tuple[object, ...]


Applied: TypeAlias = tuple[type, Arguments | None]
"""A class and its arguments; None where they are withheld."""


def class_and_arguments(annotation: object) -> Applied | None:
    """The class and the arguments behind an annotation, or None if it isn't understood."""
    if is_class(annotation):
        model = _model_generic(annotation)
        if model is not None and model["origin"] is not None:
            return model["origin"], model["args"]
        return annotation, None
    origin = get_origin(annotation)
    if not is_class(origin):
        return None
    args = get_args(annotation)
    if any(
        getattr(arg, "__unpacked__", False)
        or get_origin(arg) is Unpack
        or isinstance(arg, TypeVarTuple)
        for arg in args
    ):
        return None
    # typing.Tuple has no arguments at all, the empty tuple's type has an empty list of them.
    return origin, args if args or hasattr(annotation, "__args__") else None


def _model_generic(cls: type) -> dict[str, Any] | None:
    return cls.__dict__.get("__pydantic_generic_metadata__")


def variables_of(cls: type) -> Arguments:
    """The type variables that a user's generic class is declared over."""
    model = _model_generic(cls)
    if model is not None:
        return tuple(model["parameters"])
    declared = cls.__dict__.get("__parameters__")
    if declared is None:
        # A subclass of dict[str, T] is generic, though nothing but its bases says so.
        bases = cls.__dict__.get("__orig_bases__", ())
        declared = dict.fromkeys(each for base in bases for each in _open_in(base))
    return tuple(declared)


def bound_to(variables: Arguments, args: Arguments | None) -> Mapping[object, object]:
    if args is None or len(args) != len(variables):
        return dict.fromkeys(variables, UNKNOWN_TYPE)
    return dict(zip(variables, args, strict=True))


def _open_in(annotation: object) -> Arguments:
    """The type variables that an annotation leaves open."""
    if is_class(annotation):
        return variables_of(annotation) if _model_generic(annotation) else ()
    return tuple(getattr(annotation, "__parameters__", ()))


def substituted(annotation: object, values: Mapping[object, object]) -> object:
    """The annotation with type variables replaced."""
    if isinstance(annotation, TypeVar):
        return values.get(annotation, annotation)
    variables = _open_in(annotation)
    if not any(variable in values for variable in variables):
        return annotation
    return cast("Any", annotation)[tuple(values.get(each, each) for each in variables)]
