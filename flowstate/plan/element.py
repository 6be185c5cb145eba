"""What going through a value gives: the type of the entries of an iterable annotation."""

from __future__ import annotations

import collections.abc
import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE


def element_type(iterable: object) -> object | None:
    """
    The type of the entries, UNKNOWN_TYPE if it can't be told, None if it can't be gone through.

    >>> element_type(list[int])
    <class 'int'>
    >>> element_type(int) is None
    True
    """
    if iterable is UNKNOWN_TYPE or iterable is Any:
        return UNKNOWN_TYPE
    origin, args = get_origin(iterable), get_args(iterable)
    if origin is Annotated:
        return element_type(args[0])
    if origin in (Union, types.UnionType):
        parts = [element_type(part) for part in args]
        return None if None in parts else union_type(parts)
    if origin is tuple:
        return union_type([part for part in args if part is not Ellipsis])
    if iterable is str:
        return str
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
        return args[0] if args else UNKNOWN_TYPE
    if isinstance(iterable, type):
        if issubclass(iterable, BaseModel):
            return None  # a model goes through its own fields: hardly ever what is meant
        return UNKNOWN_TYPE if issubclass(iterable, collections.abc.Iterable) else None
    return UNKNOWN_TYPE
