"""The union of annotations, as a value: what a step gives that can end in more than one way."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any, Never, NoReturn, Union, get_args, get_origin

from flowstate.define.unknown import UNKNOWN_TYPE


def union_type(members: Iterable[object]) -> object:
    """
    One annotation for a value that fits any of these; flat, in order, each once, without Never.

    >>> union_type([int, Never, str, int])
    int | str
    >>> union_type([])
    typing.Never
    """
    flat: list[Any] = []
    for member in members:
        parts = get_args(member) if get_origin(member) in (Union, types.UnionType) else (member,)
        for part in parts:
            part = type(None) if part is None else part
            if (
                part is Never
                or part is NoReturn
                or any(part is seen or part == seen for seen in flat)
            ):
                continue
            flat.append(part)
    if any(part is UNKNOWN_TYPE for part in flat):
        return UNKNOWN_TYPE
    if Any in flat:
        return Any
    if not flat:
        return Never
    try:
        return functools.reduce(lambda one, other: one | other, flat)
    except TypeError:
        return Union[tuple(flat)]  # noqa: UP007  (made of values, not written)
