"""What for_each and for_each_side_chain go through: a list, taken once, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowstate.errors import InvalidValue
from flowstate.plan.program import Place
from flowstate.run.frame import Frame


def entries_of(
    frame: Frame,
    place: Place,
    turns: tuple[int, ...],
    connector: Callable[[Any], Any] | None,
    value: Any,
    method: str,
) -> list[Any]:
    """
    The entries of a value, or of what the connector makes of it.

    Raises:
        InvalidValue: it can't be gone through.
    """
    entries = value if connector is None else connector(value)
    if not isinstance(entries, Iterable):
        raise InvalidValue(
            frame.path(place, turns),
            "something to go through",
            type(entries).__name__,
            f"{method} needs a list or another iterable",
        )
    listed: list[Any] = [*entries]
    return listed
