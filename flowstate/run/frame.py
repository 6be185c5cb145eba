"""
The frame: where one execution of a program stands within its run.

A frame is made for every branch, entry and attempt, so it holds ints and references only; paths
are put together from them when somebody asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

from anyio import CancelScope

from flowstate.plan.program import Place, Program
from flowstate.run.gate import Gate

if TYPE_CHECKING:
    from flowstate.run.services import Services

Part: TypeAlias = tuple[str, str]
"""A dynamic part of a path: the static path it follows, and its text, ``iter[2]``."""


@final
class Frame:
    """One execution of one program."""

    __slots__ = (
        "above",
        "attempt",
        "container",
        "gate",
        "kind",
        "limits",
        "number",
        "place",
        "program",
        "services",
        "turns",
    )

    def __init__(
        self,
        program: Program,
        services: Services,
        gate: Gate,
        above: Frame | None = None,
        place: Place | None = None,
        turns: tuple[int, ...] = (),
        kind: str | None = None,
        number: int = 0,
        attempt: int = 1,
    ) -> None:
        self.program = program
        self.services = services
        self.gate = gate
        self.above = above
        """The frame whose instruction runs this one; None for the run's own."""
        self.place = place
        """Where in that frame."""
        self.turns = turns
        """The turns of the loops around that place."""
        self.kind = kind
        """item or attempt, where this frame is one of several at its place."""
        self.number = number
        self.attempt = attempt
        self.container: str | None = None if above is None else above.container
        """The id of the container item around it, if any."""
        self.limits: tuple[CancelScope, ...] = () if above is None else above.limits
        """The timeouts and deadlines around it that its own task runs under."""

    def twin(self) -> Frame:
        """The same place, for what stands inside a container or a limit there."""
        twin = Frame(
            self.program,
            self.services,
            self.gate,
            self.above,
            self.place,
            self.turns,
            self.kind,
            self.number,
            self.attempt,
        )
        twin.container, twin.limits = self.container, self.limits
        return twin

    def parts(self) -> list[Part]:
        """The dynamic parts of every path in this frame, outermost first."""
        if self.above is None or self.place is None:
            return []
        parts = self.above.parts()
        parts += turn_parts(self.place, self.turns)
        if self.kind is not None:
            parts.append((self.program.path, f"{self.kind}[{self.number}]"))
        return parts

    def path(self, place: Place, turns: Sequence[int]) -> str:
        """The execution path of a place in this frame."""
        return self.path_of(place.site.path, place, turns)

    def path_of(self, static: str, place: Place, turns: Sequence[int]) -> str:
        """The execution path of the site of this static path, at or around a place."""
        path = static
        for prefix, text in reversed([*self.parts(), *turn_parts(place, turns)]):
            if len(prefix) <= len(static):
                path = f"{prefix}/{text}{path[len(prefix) :]}"
        return path


def turn_parts(place: Place, turns: Sequence[int]) -> list[Part]:
    """The parts that the loops around a place add, outermost first."""
    return [(path, f"iter[{turn}]") for (path, _), turn in zip(place.turns, turns, strict=False)]


def turns_at(place: Place, stack: Sequence[Any]) -> tuple[int, ...]:
    """The turns of the loops around a place, read off the stack."""
    return tuple(stack[depth] for _, depth in place.turns)


Execute: TypeAlias = Callable[[Frame, Any], Awaitable[Any]]
"""``flowstate.run.scheduler.execute``, handed to what it calls out to: they know no scheduler."""

NodeEvent: TypeAlias = tuple[str, Frame, int, tuple[int, ...], Any]
"""
What happened to a node: ``(event, frame, pc, turns, detail)``. The event is ``start`` (detail: the
value that came), ``end`` (the value that goes on) or ``error`` (the exception). A plain tuple, so
that a listener can be a list's ``append``; values are the run's own objects, not copies.
"""

Listener: TypeAlias = Callable[[NodeEvent], object]
"""Told of every node, on the event loop. It must not raise and not block."""
