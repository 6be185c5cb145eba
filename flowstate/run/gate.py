"""
The gate: whether new nodes may still start below a point of the composition.

A cancel closes the gate at once and everything below it; the exception that stops what is already
running arrives by anyio's own means, later. So code that swallows a cancellation gets no further
than its own end: what it returns is discarded at the gate.
"""

from __future__ import annotations

from typing import final


@final
class Gate:
    """A node in the tree of gates. The scheduler reads ``closed`` before every instruction."""

    __slots__ = ("_below", "_parent", "closed")

    def __init__(self, parent: Gate | None = None) -> None:
        self._parent = parent
        self._below: set[Gate] | None = None
        self.closed: bool = parent is not None and parent.closed
        if parent is not None:
            if parent._below is None:
                parent._below = set()
            parent._below.add(self)

    def close(self) -> None:
        """Close this gate and all below it."""
        self.closed = True
        if self._below:
            for gate in tuple(self._below):
                gate.close()

    def leave(self) -> None:
        """Forget this gate: what it stood before has ended."""
        if self._parent is not None and self._parent._below is not None:
            self._parent._below.discard(self)
