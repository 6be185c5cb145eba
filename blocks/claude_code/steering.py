"""
Lines on their way to a running Claude Code agent.

``Lines`` holds what was sent and isn't decided yet. Whoever owns the process writes them and tells
what the agent showed; here each line is decided once: taken, or not. A line that is open keeps its
run open, since Claude Code would begin another turn for one that it read too late for the last.
It knows no process and no items.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import final

import anyio
import anyio.lowlevel

from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.resolving import awaited
from flowstate.context import Context
from flowstate.harness.steering import EmptyLineError, OnSteerable


@final
@dataclass(slots=True, eq=False)
class Line:
    """A line, and what became of it."""

    text: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The id it is sent with, by which the turn that takes it names it."""
    written: bool = False
    """It has been given to the agent, or is being given."""
    taken: bool = False
    decided: anyio.Event = field(default_factory=anyio.Event)


@final
class Lines:
    """
    The lines of one run.

    Args:
        decided: called each time a line is decided; not when all are by ``close`` or ``end``.
    """

    def __init__(self, decided: Callable[[], None]) -> None:
        self._decided = decided
        self._open: dict[str, Line] = {}
        self._queue: deque[Line] = deque()
        self._more = anyio.Event()
        self.live = True
        """Whether lines are accepted."""

    @property
    def pending(self) -> bool:
        """Whether a line was accepted and isn't decided yet."""
        return bool(self._open)

    async def send(self, text: str) -> bool:
        """Accept a line and wait for what becomes of it; see ``SteeringOffer.send``."""
        if not text.strip():
            raise EmptyLineError
        await anyio.lowlevel.checkpoint()
        if not self.live:
            return False
        line = Line(text)
        self._open[line.id] = line
        self._queue.append(line)
        self._more.set()
        try:
            await line.decided.wait()
        finally:
            if not line.written:
                self.refuse(line)
        return line.taken

    async def next_to_write(self) -> Line | None:
        """The next line that is to be written, a withdrawn one left out; None after ``close``."""
        while True:
            while self._queue:
                line = self._queue.popleft()
                if line.id in self._open:
                    line.written = True
                    return line
            if not self.live:
                return None
            self._more = anyio.Event()
            await self._more.wait()

    def took(self, ids: Iterable[str]) -> None:
        """The agent showed that it took the messages of these ids."""
        for line_id in ids:
            if line_id in self._open:
                self._decide(self._open[line_id], True)
                self._decided()

    def refuse(self, line: Line) -> None:
        """This line wasn't taken."""
        if line.id in self._open:
            self._decide(line, False)
            self._decided()

    def close(self) -> None:
        """Accept no more lines; those that aren't written yet will not be."""
        self.live = False
        self._more.set()
        for line in list(self._open.values()):
            if not line.written:
                self._decide(line, False)

    def end(self) -> None:
        """Nothing more will be heard: what is open now wasn't taken."""
        self.close()
        for line in list(self._open.values()):
            self._decide(line, False)

    def _decide(self, line: Line, taken: bool) -> None:
        del self._open[line.id]
        line.taken = taken
        line.decided.set()

    def __repr__(self) -> str:
        return f"Lines({'live' if self.live else 'closed'}, {len(self._open)} open)"


@final
class LineOffer:
    """The offer of one run; see ``flowstate.harness.steering.SteeringOffer``."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def live(self) -> bool:
        """Whether a line sent now may still be taken."""
        return self._lines.live

    async def send(self, line: str) -> bool:
        """Send a line; whether it was taken."""
        return await self._lines.send(line)

    def __repr__(self) -> str:
        return f"LineOffer({self._lines!r})"


async def offer_lines(hook: OnSteerable, lines: Lines, ctx: Context, until: anyio.Event) -> None:
    """
    Make the offer, and let the hook go on until this event is set; a failure of its is logged.

    The event comes after all lines are decided, so a ``send`` of the hook's is answered before the
    hook is ended.
    """
    async with anyio.create_task_group() as tasks:

        async def tell() -> None:
            try:
                await awaited(hook(LineOffer(lines), ctx))
            except Exception as error:
                log_hook_failure(ctx, "on_steerable failed", error)
            tasks.cancel_scope.cancel()

        tasks.start_soon(tell)
        await until.wait()
        tasks.cancel_scope.cancel()
