"""What a drawing is made of: nodes, lines, borders, and boxes of them. Data, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, final

from flowstate.plan.recorded import NodeRecord

Style: TypeAlias = Literal["plain", "checked", "failure", "side", "quiet"]
Kind: TypeAlias = Literal["step", "tap", "function", "choice", "join", "end", "wait", "ask"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A rectangle, pill, diamond or bar with a label."""

    x: float
    y: float
    width: float
    height: float
    kind: Kind
    label: str
    detail: str = ""
    record: NodeRecord | None = None
    recorded: bool = False
    """Whether there is a recording at all: then what did not run is drawn pale."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points, with an arrow at its end."""

    points: tuple[tuple[float, float], ...]
    style: Style = "plain"
    label: str = ""
    arrow: bool = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """A frame around what belongs together."""

    x: float
    y: float
    width: float
    height: float
    title: str
    style: Style = "plain"


Mark: TypeAlias = Node | Line | Border


@final
@dataclass(slots=True)
class Box:
    """Something laid out: its size, its axis, and its marks relative to its corner."""

    width: float
    height: float
    axis: float
    """Where, from the left, a value comes in and goes out."""
    marks: list[Mark] = field(default_factory=list[Mark])
    ends: bool = True
    """False: nothing goes out at the bottom of the axis."""


def moved(marks: Sequence[Mark], x: float, y: float) -> list[Mark]:
    """The marks, so much further right and down."""
    return [_moved(mark, x, y) for mark in marks]


def _moved(mark: Mark, x: float, y: float) -> Mark:
    if isinstance(mark, Line):
        return replace(mark, points=tuple((px + x, py + y) for px, py in mark.points))
    return replace(mark, x=mark.x + x, y=mark.y + y)
