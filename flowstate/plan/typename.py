"""
How a type is printed for a person: short, and never the same text for two different types.

It turns any annotation, or any object that stands where one should be, into text, and reads from
``Annotated`` which of its metadata asks something of a value. It refuses to know what fits what;
that is ``flowstate.plan.assignable``.

Invariants: nothing here raises, whatever it is handed; printing resolves no forward reference and
imports nothing; the text holds no value but those that stand in the types themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    Never,
    NewType,
    NoReturn,
    ParamSpec,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic.fields import FieldInfo

_LONGEST_PIECE = 40
"""Characters of a literal, a bound or a foreign object's repr before it is cut."""

_MOST_VALUES = 8
"""Values of a ``Literal`` printed before the rest becomes an ellipsis."""

_SAY_NOTHING_OF_VALUES = frozenset(
    {
        "Examples",
        "PlainSerializer",
        "SerializeAsAny",
        "SkipJsonSchema",
        "SkipValidation",
        "WithJsonSchema",
        "WrapSerializer",
    }
)
"""Pydantic's own metadata that shapes output or documentation and turns no value away."""

_Label: TypeAlias = Callable[[object, str], str]
"""Gives a named thing (class, ``NewType``, alias) the name to print, from its short one."""


def type_name(annotation: object) -> str:
    """
    The type as a person would write it, without modules: for messages and drawings.

    ``Never`` reads "nothing" and an unannotated value "?". A constraint stands in round brackets
    behind its base. Use ``type_names`` where two types stand in one sentence.

    >>> type_name(int | None), type_name(dict[str, list[bool]])
    ('int | None', 'dict[str, list[bool]]')
    """
    return _guarded(annotation, lambda _, short: short)


def type_names(first: object, second: object) -> tuple[str, str]:
    """
    Both types, with modules on exactly those names that two different things in them share.

    Things of one name in one module (a class defined twice, say in two functions or by a reload)
    are told apart by the functions they stand in, and failing that by a number.
    """
    named: dict[str, list[object]] = {}

    def note(thing: object, short: str) -> str:
        others = named.setdefault(short, [])
        if not any(other is thing for other in others):
            others.append(thing)
        return short

    short_names = _guarded(first, note), _guarded(second, note)
    if all(len(things) == 1 for things in named.values()):
        return short_names

    def tell_apart(thing: object, short: str) -> str:
        things = named.get(short, [])
        if len(things) < 2:
            return short
        in_module = f"{_module(thing)}.{short}"
        if [_module(each) for each in things].count(_module(thing)) == 1:
            return in_module
        place = _place(thing)
        if [_place(each) for each in things].count(place) == 1:
            return place
        number = next((i for i, each in enumerate(things, 1) if each is thing), 0)
        return f"{place} (definition {number})"

    return _guarded(first, tell_apart), _guarded(second, tell_apart)


def constraints_of(annotation: object) -> tuple[object, ...]:
    """
    What the metadata of an ``Annotated`` type asks of a value, groups taken apart; else ``()``.

    Pydantic is what checks values at run time, so this counts what pydantic acts on: the
    constraints of annotated_types, of ``Field`` and of pydantic itself, and anything with a core
    schema hook. Plain documentation, serializers and foreign markers ask nothing.
    """
    if get_origin(annotation) is not Annotated:
        return ()
    return tuple(_acting(cast("Any", annotation).__metadata__))


def _acting(metadata: object) -> Iterator[object]:
    for mark in cast("tuple[object, ...]", metadata):
        if isinstance(mark, FieldInfo):
            yield from _acting(tuple(mark.metadata))
            if mark.discriminator is not None:
                yield ("discriminator", mark.discriminator)
        elif not isinstance(mark, type) and getattr(
            mark, "__is_annotated_types_grouped_metadata__", False
        ):
            yield from _acting(tuple(cast("Any", mark)))
        elif _acts(mark):
            yield mark


def _acts(mark: object) -> bool:
    kind = mark if isinstance(mark, type) else type(mark)
    if kind.__name__ in _SAY_NOTHING_OF_VALUES and kind.__module__.startswith("pydantic."):
        return False
    if kind.__name__ == "DocInfo":
        return False
    roots = {each.__module__.partition(".")[0] for each in kind.__mro__}
    return bool(roots & {"annotated_types", "pydantic", "pydantic_core"}) or hasattr(
        mark, "__get_pydantic_core_schema__"
    )


def _guarded(annotation: object, label: _Label) -> str:
    """Spell it; an object whose own code raises is named by its class alone."""
    # Metaclasses, reprs and metadata are foreign code, and a name is wanted for an error message:
    # failing here would hide the fault that the message is about.
    try:
        return _spell(annotation, label)
    except Exception:
        return f"<{type(annotation).__name__}>"


def _spell(annotation: object, label: _Label) -> str:
    if annotation is None or annotation is NoneType:
        return "None"
    if annotation is Never or annotation is NoReturn:
        return "nothing"
    if annotation is Any:
        return "Any"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, TypeVar | ParamSpec | TypeVarTuple):
        return annotation.__name__
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{_listed(cast('list[object]', annotation), label)}]"
    origin = get_origin(annotation)
    if origin is not None:
        return _spell_parametrised(annotation, origin, label)
    if isinstance(annotation, type):
        return _spell_class(annotation, label)
    # An alias by its shape: its class is new in 3.12, and asking for its value would evaluate it.
    if isinstance(annotation, NewType) or hasattr(annotation, "__type_params__"):
        return label(annotation, str(cast("Any", annotation).__name__))
    return _short(annotation).removeprefix("typing.").removeprefix("typing_extensions.")


def _spell_class(annotation: type, label: _Label) -> str:
    generic: object = annotation.__dict__.get("__pydantic_generic_metadata__")
    if isinstance(generic, dict):
        parts = cast("dict[str, Any]", generic)
        if parts.get("origin") is not None:
            return f"{_spell(parts['origin'], label)}[{_listed(parts['args'], label)}]"
    # A class made in a function is known to its author by what stands behind "<locals>".
    return label(annotation, annotation.__qualname__.rpartition("<locals>.")[2])


def _spell_parametrised(annotation: object, origin: object, label: _Label) -> str:
    args = get_args(annotation)
    if origin is Union or origin is UnionType:
        members = sorted(args, key=lambda member: member is NoneType)
        return " | ".join(_spell(member, label) for member in members)
    if origin is Literal:
        shown = [_short(value) for value in args[:_MOST_VALUES]]
        return f"Literal[{', '.join(shown)}{', …' if len(args) > _MOST_VALUES else ''}]"
    if origin is Annotated:
        base = _spell(args[0], label)
        demands = ", ".join(_spell_constraint(each) for each in constraints_of(annotation))
        return f"{base}({demands})" if demands else base
    name = _spell(origin, label)
    if not args:
        # typing.Tuple has no arguments at all, the empty tuple's type has an empty list of them.
        return f"{name}[()]" if origin is tuple and hasattr(annotation, "__args__") else name
    return f"{name}[{_listed(args, label)}]"


def _listed(args: object, label: _Label) -> str:
    return ", ".join(_spell(each, label) for each in cast("tuple[object, ...]", args))


def _spell_constraint(mark: object) -> str:
    """``ge=0`` for what holds one named bound, else the name of its class or function."""
    if isinstance(mark, tuple):
        return str(cast("tuple[object, ...]", mark)[0])
    if isinstance(mark, type):
        return mark.__name__
    held: dict[str, object] = dict(getattr(mark, "__dict__", {}))
    for slot in getattr(type(mark), "__slots__", ()):
        with contextlib.suppress(AttributeError):
            held.setdefault(slot, getattr(mark, slot))
    held = {key: each for key, each in held.items() if each is not None}
    if held and all(isinstance(each, _PRINTABLE_BOUNDS) for each in held.values()):
        return ", ".join(f"{key}={_short(each)}" for key, each in held.items())
    if len(held) == 1:
        (only,) = held.values()
        function = getattr(only, "__name__", None)
        if isinstance(function, str) and function != "<lambda>":
            return f"{type(mark).__name__}: {function}"
    return type(mark).__name__


_PRINTABLE_BOUNDS = (int, float, str, bytes, complex)


def _short(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return text if len(text) <= _LONGEST_PIECE else f"{text[: _LONGEST_PIECE - 1]}…"


def _module(thing: object) -> str:
    return str(getattr(thing, "__module__", "?"))


def _place(thing: object) -> str:
    """Module and the names a thing stands in, functions included."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "?")
    return f"{_module(thing)}.{name}"
