"""
Ctrl-C and SIGTERM: the runs are cancelled and everything goes on to its end.

The first signal cancels what runs; agents are stopped, statuses stored. A second one only says
that this goes on, since people press Ctrl-C twice. A third leaves the process at once, for a
handler that never returns from its thread.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import final

import anyio
from anyio.abc import TaskStatus

from flowstate.request.lifecycle import ENDED
from flowstate.request.run import Run

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@final
class StopSignals:
    """Watches for the signals and knows what they are to stop."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """
        Args:
            say: tells the person who waits.
        """
        self.scope = anyio.CancelScope()
        """Put around the whole work: cancelled by a signal that comes when nothing runs."""
        self._say = say
        self._received: signal.Signals | None = None
        self._count = 0
        self._runs: list[Run[object]] = []

    @property
    def exit_code(self) -> int | None:
        """128 and the number of the signal that came first; None if there was none."""
        return None if self._received is None else 128 + self._received

    def add(self, run: Run[object]) -> None:
        """A run to cancel when a signal comes, or at once if one has."""
        self._runs.append(run)
        if self._received is not None:
            run.cancel(_NAMES[self._received])

    async def watch(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled; signals are caught from when this has started."""
        with anyio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                self._take(signal.Signals(number))

    def _take(self, number: signal.Signals) -> None:
        self._count += 1
        if self._count == 1:
            self._received = number
            under_way = [run for run in self._runs if run.status not in ENDED]
            if not under_way:
                self.scope.cancel()
                return
            self._say(f"{_NAMES[number]}: stopping, so that nothing is left running.")
            for run in under_way:
                run.cancel(_NAMES[number])
        elif self._count == 2:
            self._say("Still stopping. Once more leaves at once; an agent may then live on.")
        else:
            os._exit(128 + number)
