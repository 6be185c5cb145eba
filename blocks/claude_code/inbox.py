"""
What the listener heard, on its way to the run: taken where it is heard if possible, else kept.

Most of what an agent says needs no waiting: it becomes items, and is done. Handing each piece of
a text over to another task would cost more than all that is done with it. So while the run's task
waits here with nothing before it, what is heard is offered to ``take`` at once, in the listener's
task. What ``take`` leaves, and all that is heard after it, is kept for the run's task, until that
waits here again. So nothing ever overtakes anything.

Never full: a listener that had to wait would keep the SDK from hearing an answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import final

import anyio
import anyio.lowlevel

from flowstate.blocks.claude_code.heard import Heard

BETWEEN_YIELDS = 16
"""After how many that were kept the other tasks are let run."""


def take_nothing(heard: Heard) -> bool:
    """Leave everything to the run's task."""
    return False


@final
class Inbox:
    """
    The way from one listener to the task of one run.

    Args:
        take: takes what was heard, at once and for good, or leaves it to the run's task: False.
            It must not raise.
    """

    __slots__ = ("_bell", "_given", "_kept", "_over", "_take")

    def __init__(self, take: Callable[[Heard], bool]) -> None:
        self._take = take
        self._kept: deque[Heard | None] = deque()
        self._bell: anyio.Event | None = None
        """What the run's task waits for; None while it does something else."""
        self._given = 0
        self._over = False

    def __repr__(self) -> str:
        state = "the run waits" if self._bell is not None else "the run works"
        return f"<Inbox, {len(self._kept)} kept, {state}>"

    def put(self, heard: Heard) -> None:
        """Pass this on."""
        if self._bell is None or not self._take(heard):
            self._kept.append(heard)
            self._wake()

    def mark_over(self) -> None:
        """Tell the run's task, after all that was kept so far, that the run is over."""
        self._kept.append(None)
        self._wake()

    def close(self) -> None:
        """Nothing more will come."""
        self._over = True
        self._wake()

    async def next(self) -> Heard | None:
        """What was kept next; None at the mark, or once nothing more will come."""
        while not self._kept and not self._over:
            self._bell = anyio.Event()
            try:
                await self._bell.wait()
            finally:
                self._bell = None
        if not self._kept:
            return None
        # Faster than one comes in while others run, or it would never catch up; but not all at
        # once, since a slow hook may have let thousands come in.
        self._given += 1
        if self._given % BETWEEN_YIELDS == 0:
            await anyio.lowlevel.checkpoint()
        return self._kept.popleft()

    def rest(self) -> list[Heard]:
        """What was kept and not yet given; for after the end."""
        rest = [heard for heard in self._kept if heard is not None]
        self._kept.clear()
        return rest

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.set()
            self._bell = None
