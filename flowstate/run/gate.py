"""
The gate: whether new nodes may still start below a point of the composition.

A cancel closes the gate at once and everything below it; the exception that stops what is already
running arrives by anyio's own means, later. So code that swallows a cancellation gets no further
than its own end: what it returns is discarded at the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class Gate:
    """A node in the tree of gates. The scheduler reads ``closed`` before every instruction."""

    __slots__ = ("_below", "_parent", "closed", "on_close")

    def __init__(self, parent: Gate | None = None) -> None:
        self._parent = parent
        self._below: set[Gate] | None = None
        self.closed: bool = parent is not None and parent.closed
        self.on_close: Callable[[], object] | None = None
        """Called when it closes: cancels what runs behind it outside its opener's own scope."""
        if parent is not None:
            parent._take_in(self)

    def close(self) -> None:
        """Close this gate and all below it. Twice does nothing more."""
        if self.closed:
            return
        self.closed = True
        if self._below:
            for gate in tuple(self._below):
                gate.close()
        if self.on_close is not None:
            self.on_close()

    def leave(self, heir: Gate | None = None) -> None:
        """
        What it stood before has ended by itself. What was begun below it, and goes on, stands
        below ``heir`` now; by default below its parent.
        """
        parent = self._parent
        if parent is None:
            return
        if parent._below is not None:
            parent._below.discard(self)
        if self._below and not self.closed:
            heir = heir or parent
            for gate in self._below:
                gate._parent = heir
                heir._take_in(gate)
            self._below = None

    def _take_in(self, gate: Gate) -> None:
        if self._below is None:
            self._below = set()
        self._below.add(gate)
