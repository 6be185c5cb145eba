"""
What a class says of itself: its arguments seen as one of its bases, its members, its keys.

It looks at declarations alone, never at an instance, and refuses to know what fits what
(``flowstate.plan.assignable``). What isn't declared comes back as unknown, never as a guess.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import (
    Any,
    Final,
    Generic,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.plan.annotation import (
    QUALIFIERS,
    Applied,
    Arguments,
    applied,
    bound_to,
    class_and_arguments,
    substituted,
    variables_of,
)


def bases_of(cls: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", cast("Any", cls).__mro__)


def is_subclass(cls: type, target: type) -> bool:
    return target in bases_of(cls) or (not is_protocol(target) and issubclass(cls, target))


def contravariant_at(cls: type, count: int) -> list[bool]:
    """For each argument of a class, whether it is declared contravariant."""
    if cls in _SENT_INTO:
        return [position == 1 for position in range(count)]
    variables = variables_of(cls)
    if len(variables) != count:
        return [False] * count
    return [bool(getattr(variable, "__contravariant__", False)) for variable in variables]


_SENT_INTO = frozenset(
    {collections.abc.Generator, collections.abc.AsyncGenerator, collections.abc.Coroutine}
)


_ENTRIES: Final[Mapping[type, type]] = {
    str: str,
    bytes: int,
    bytearray: int,
    memoryview: int,
    range: int,
}
"""What a sequence without arguments is a sequence of."""


_STATED_BASES: Final[Mapping[type, tuple[type, Callable[[Arguments], Arguments]]]] = {
    enumerate: (collections.abc.Iterator, lambda args: (applied(tuple, int, args[0]),)),
    collections.Counter: (dict, lambda args: (args[0], int)),
    collections.abc.ItemsView: (collections.abc.Set, lambda args: (applied(tuple, *args),)),
    collections.abc.Coroutine: (collections.abc.Awaitable, lambda args: (args[2],)),
}
"""Generic bases that the standard library means but doesn't declare, where the arguments differ."""


_LIKE_ARGUMENTS = frozenset({"builtins", "collections", "collections.abc"})
"""Where each base takes the first of its subclass's arguments: a Mapping[K, V] is Iterable[K]."""


def seen_as(cls: type, args: Arguments | None, target: type, count: int) -> Arguments | None:
    """The arguments, ``count`` of them, that a class has as its base ``target``; None: unknown."""
    variables = variables_of(cls)
    if args is None and variables:
        args = variables
    if cls is target:
        return args
    if cls in _ENTRIES:
        return (_ENTRIES[cls],)
    if cls is tuple:
        return None if args is None else (union_type(items_of(args)),)
    values = bound_to(variables, args)
    if hasattr(cls, "_fields") and tuple in bases_of(cls)[1:2] and is_subclass(tuple, target):
        fields = [_hints(cls).get(name, UNKNOWN_TYPE) for name in cast("Any", cls)._fields]
        items = tuple(substituted(each, values) for each in fields)
        return seen_as(tuple, items, target, count)
    if args is not None and cls in _STATED_BASES:
        base_cls, arguments = _STATED_BASES[cls]
        return seen_as(base_cls, arguments(args), target, count)
    if args is not None and not variables and cls.__module__ in _LIKE_ARGUMENTS:
        return args[:count]
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        found = class_and_arguments(base)
        if found is None or not is_subclass(found[0], target):
            continue
        base_cls, base_args = found
        if base_args is None:
            base_args = variables_of(base_cls) or None
        if base_args is not None:
            base_args = tuple(substituted(arg, values) for arg in base_args)
        seen = seen_as(base_cls, base_args, target, count)
        if seen is not None:
            return seen
    return None


def items_of(items: Arguments) -> list[object]:
    return [item for item in items if item is not Ellipsis]


@functools.lru_cache(maxsize=1024)
def _hints(cls: type) -> Mapping[str, object]:
    """The annotations of a class and its bases; what can't be resolved stays text: unknown."""
    try:
        return get_type_hints(cls, include_extras=True)
    except Exception:  # annotations are code, and may raise anything
        found: dict[str, object] = {}
        for base in reversed(bases_of(cls)):
            found.update(inspect.get_annotations(base))
        return found


def is_typed_dict(cls: type) -> bool:
    # By its shape: typing_extensions has a class of its own, which pydantic asks for before 3.12.
    return dict in bases_of(cls) and hasattr(cls, "__required_keys__")


def keys_of(typed: Applied) -> dict[str, tuple[object, bool]]:
    """Type and requiredness of every declared key."""
    cls, args = typed
    # A TypedDict forgets which base a key came from, and so what its variables stand for.
    bases = cls.__dict__.get("__orig_bases__", ())
    inherits = any(get_origin(base) not in {None, Generic} for base in bases)
    values = bound_to(variables_of(cls), None if inherits else args)
    keys: dict[str, tuple[object, bool]] = {}
    for name, hint in _hints(cls).items():
        required = name in cast("Any", cls).__required_keys__
        # Where annotations are text, the class itself doesn't see NotRequired in them.
        while (qualifier := getattr(get_origin(hint), "_name", None)) in QUALIFIERS:
            if qualifier in {"Required", "NotRequired"}:
                required = qualifier == "Required"
            hint = get_args(hint)[0]
        keys[name] = substituted(hint, values), required
    return keys


def is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False)) and cls is not Protocol


_S = TypeVar("_S")


class _Sample(Protocol[_S]):
    """Shows which names the machinery itself puts on a protocol."""

    sample: _S


_MACHINERY = frozenset(vars(_Sample)) | {
    "__callable_proto_members_only__",
    "__class_getitem__",
    "__match_args__",
    "__new__",
    "__non_callable_proto_members__",
    "__slots__",
    "__type_params__",
    "_is_runtime_protocol",
}


def protocol_members(cls: type) -> set[str]:
    """The names that a protocol asks for, those of its bases included."""
    names: set[str] = set()
    for base in bases_of(cls):
        if is_protocol(base):
            names |= {*vars(base), *inspect.get_annotations(base)} - _MACHINERY
    return names


def declared_type(owner: Applied, name: str) -> object | None:
    """The type that a class or one of its bases declares for a data member, if any does."""
    cls, args = owner
    for base in bases_of(cls):
        if name in inspect.get_annotations(base):
            seen = seen_as(cls, args, base, len(variables_of(base)))
            return substituted(_hints(base).get(name), bound_to(variables_of(base), seen))
    return None
