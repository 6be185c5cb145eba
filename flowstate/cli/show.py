"""
What a command tells while it works: the seam between doing and telling.

A ``Show`` is told things in order and decides how they look; it starts, stops and decides nothing.
"""

from __future__ import annotations

from typing import Protocol

from flowstate.request.run import Run


class OutputClosed(Exception):
    """Whoever read our output has gone, for example ``head``."""


class Show(Protocol):
    """Where one run is told."""

    async def follow(self, run: Run[object]) -> None:
        """
        Tell a run until all of it is told.

        Raises:
            OutputClosed: nobody reads what is told any more.
        """
        ...

    def completed(self, run: Run[object], output: object) -> None:
        """The run has an output; the last thing told of it."""
        ...

    def ended(self, run: Run[object], error: Exception) -> None:
        """The run ended without an output, its status says how; the last thing told of it."""
        ...

    def refused(self, error: Exception, details: str = "") -> None:
        """There is no run: what was asked for can't be run."""
        ...

    def say(self, text: str) -> None:
        """Something for the person who waits; no part of the result."""
        ...
