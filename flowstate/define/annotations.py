"""The types of a function, as its author annotated it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_type_hints

from flowstate.define.unknown import UNKNOWN_TYPE


def annotations_of(fn: Callable[..., Any]) -> tuple[object, object]:
    """
    The types of a function's first argument and of its result; UNKNOWN_TYPE where unsaid.

    An annotation that names something local to another function is unknown too, unless the
    function uses it itself.
    """
    if inspect.isclass(fn):
        return UNKNOWN_TYPE, fn
    target = fn if inspect.isroutine(fn) else type(fn).__call__
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        # A built-in without a signature.
        return UNKNOWN_TYPE, UNKNOWN_TYPE
    result = _hint(target, "return")
    return _hint(target, names[0]) if names else UNKNOWN_TYPE, result


def _hint(target: Any, name: str) -> object:
    """One annotation, resolved by itself: another's forward reference doesn't spoil it."""
    function = inspect.unwrap(getattr(target, "__func__", target))
    annotations = getattr(function, "__annotations__", {})
    if name not in annotations:
        return UNKNOWN_TYPE
    alone: Any = SimpleNamespace(__annotations__={name: annotations[name]})
    try:
        hints = get_type_hints(
            alone, getattr(function, "__globals__", {}), _locals(function), include_extras=True
        )
    except (NameError, TypeError, SyntaxError, AttributeError):
        return UNKNOWN_TYPE
    hint: object = hints[name]
    return hint


def _locals(function: Any) -> dict[str, Any]:
    """The names that the function takes from the functions around it."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # Not set yet: the function around is still running.
    return found
