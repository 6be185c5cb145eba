"""
Values of another program: as plain JSON that every store can hold, or as one typed piece.

Total: whatever comes in, what goes out is made of dict, list, str, int, float, bool and None, is
valid Unicode, is finite and is not too deep. Ordinary JSON comes out equal to what went in. A piece
that isn't of the type asked for is None: nothing here raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from flowstate.harness.clean_text import clean_text

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

DEEPEST: Final = 100
"""How many levels are kept; what lies deeper is left out. pydantic refuses some 250."""

NOTHING: Final[Mapping[object, object]] = {}


def plain(value: object, depth: int = 0) -> JsonValue:
    """
    The value as plain JSON; what isn't JSON becomes its text.

    >>> plain({"a": (1, float("nan")), 2: {"b"}})
    {'a': [1, 'nan'], '2': "{'b'}"}
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case dict() if depth < DEEPEST:
            pairs = cast("dict[object, object]", value).items()
            return {clean_text(str(key)): plain(held, depth + 1) for key, held in pairs}
        case list() | tuple() if depth < DEEPEST:
            return [plain(held, depth + 1) for held in cast("list[object]", value)]
        case dict() | list() | tuple():
            return "…"
        case _:
            return clean_text(str(value))


def text_of(value: object) -> str | None:
    """The value if it is a text with something in it, cleaned; else None."""
    if not isinstance(value, str) or not value:
        return None
    return value if value.isascii() else clean_text(value)


def whole_of(value: object) -> int | None:
    """The value if it is a whole number that isn't negative; else None."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def number_of(value: object) -> float | None:
    """The value if it is a finite number that isn't negative; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def mapping_of(value: object) -> Mapping[object, object]:
    """The value if it is a dict; else an empty one."""
    if isinstance(value, dict):  # and no `cast`: it is a call, and this is called for every piece
        return value  # pyright: ignore[reportUnknownVariableType]
    return NOTHING


def items_of(value: object) -> list[object]:
    """The value if it is a list or tuple, as a list; else an empty one."""
    if isinstance(value, list | tuple):
        return [*value]  # pyright: ignore[reportUnknownVariableType]
    return []
