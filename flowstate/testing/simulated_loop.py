"""
An asyncio event loop with a virtual clock and a seeded order of tasks.

Time stands still while anything is ready and jumps to the next timer when nothing is. Where
several tasks are ready, a seeded generator says which goes first; other callbacks keep their
order, since asyncio itself relies on it. The same seed gives the same run.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any, cast, final


@final
class SimulatedLoop(asyncio.SelectorEventLoop):
    """One run's loop. Only callbacks, timers and tasks: no sockets, no threads."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._now = 0.0
        self._random = random.Random(seed)
        self.turns = 0
        """How often the loop has gone round: the scheduling points so far."""
        self.on_turn: Callable[[int], object] | None = None
        """Called before each turn with its number."""

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def _run_once(self) -> None:
        self.turns += 1
        if self.on_turn is not None:
            self.on_turn(self.turns)
        inside = cast("Any", self)  # the queues are private to asyncio, and in no stub
        ready: deque[asyncio.Handle] = inside._ready
        scheduled: list[asyncio.TimerHandle] = inside._scheduled
        if len(ready) > 1:
            places = [i for i, handle in enumerate(ready) if _is_task_step(handle)]
            if len(places) > 1:
                handles = list(ready)
                order = places.copy()
                self._random.shuffle(order)
                for place, source in zip(places, order, strict=True):
                    ready[place] = handles[source]
        elif not ready and scheduled:
            self._now = max(self._now, min(timer.when() for timer in scheduled))
        super()._run_once()  # type: ignore[misc]


def _is_task_step(handle: asyncio.Handle) -> bool:
    """Whether a callback is a step of a task, in C or in Python."""
    callback: Any = handle._callback  # type: ignore[attr-defined]
    if type(callback).__name__ in ("TaskStepMethWrapper", "TaskWakeupMethWrapper"):
        return True
    return isinstance(getattr(callback, "__self__", None), asyncio.Task)
