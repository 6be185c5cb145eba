"""The types of a function, as its author annotated it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from flowstate.define.unknown import UNKNOWN_TYPE


def annotations_of(fn: Callable[..., Any]) -> tuple[object, object]:
    """The types of a function's first argument and of its result; UNKNOWN_TYPE where unsaid."""
    target = fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__
    if inspect.isclass(fn):
        return UNKNOWN_TYPE, fn
    try:
        hints = get_type_hints(target, include_extras=True)
        names = list(inspect.signature(fn).parameters)
    except (NameError, TypeError, ValueError):
        # A forward reference to a local name, or a built-in without a signature.
        return UNKNOWN_TYPE, UNKNOWN_TYPE
    result = hints.get("return", UNKNOWN_TYPE)
    first = hints.get(names[0], UNKNOWN_TYPE) if names else UNKNOWN_TYPE
    return first, result
