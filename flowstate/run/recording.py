"""
A recording of a run: for every node, how often it ran, how long, and what failed.

It is a listener, so it is handed to ``run_block``, and laid over a drawing of the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

from flowstate.plan.recorded import NodeRecord
from flowstate.run.frame import NodeEvent


@final
@dataclass(slots=True)
class _Sums:
    runs: int = 0
    seconds: float = 0.0
    failures: int = 0
    error: str | None = None


@final
class Recording:
    """Listens to one run, or to several of one plan, and adds up."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        """
        Args:
            clock: seconds; what durations are taken from.
        """
        self._clock = clock
        self._began: dict[tuple[int, int, tuple[int, ...]], float] = {}
        self._sums: dict[str, _Sums] = {}

    def __call__(self, event: NodeEvent) -> None:
        what, frame, pc, turns, detail = event
        site = frame.program.places[pc].site
        fn = frame.program.instructions[pc][1]
        if fn is not None and fn is site.edge.connector:
            return
        key = (id(frame), pc, turns)
        if what == "start":
            self._began[key] = self._clock()
            return
        began = self._began.pop(key, None)
        if began is None:
            return
        sums = self._sums.setdefault(site.path, _Sums())
        sums.runs += 1
        sums.seconds += self._clock() - began
        if what == "error":
            sums.failures += 1
            sums.error = type(detail).__name__

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        """What was recorded, by the static path of the node."""
        return {
            path: NodeRecord(
                runs=sums.runs, seconds=sums.seconds, failures=sums.failures, error=sums.error
            )
            for path, sums in self._sums.items()
        }
