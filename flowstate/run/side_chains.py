"""
The side chains of a request: begun beside the chain, owned by the request.

Each runs in a scope of its own behind a gate below the place that began it. So a cancelled branch
ends the side chains begun beneath it, a failing chain doesn't, and a cancelled request ends all.
A side chain's failure is an item; it reaches nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, final

import anyio
from anyio.abc import TaskGroup

from flowstate.item.content import ErrorReport
from flowstate.item.told import was_told
from flowstate.plan.program import Place, Program, Side
from flowstate.run.attribution import path_of
from flowstate.run.entries import entries_of
from flowstate.run.frame import Execute, Frame
from flowstate.run.gate import Gate


def begin(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Side, value: Any
) -> None:
    """Begin what an instruction says: one side chain, or one for every entry."""
    chains = frame.services.side_chains
    if not what.each:
        chains.begin(execute, frame, place, turns, what.program, value, None)
        return
    entries = entries_of(frame, place, turns, what.connector, value, "for_each_side_chain")
    for number, entry in enumerate(entries):
        chains.begin(execute, frame, place, turns, what.program, entry, number)


@final
class SideChains:
    """All side chains of one request. An async context manager: leaving it waits for them."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._running: set[_Chain] = set()
        self.on_end: Callable[[], object] | None = None
        """Called when one has ended. Must not raise."""
        self.begun = 0
        self.failed = 0

    def __repr__(self) -> str:
        return f"<SideChains: {self.begun} begun, {len(self._running)} running>"

    async def __aenter__(self) -> SideChains:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        assert self._group is not None
        return await self._group.__aexit__(*error)

    def start(self, fn: Callable[..., Coroutine[Any, Any, object]], *arguments: object) -> None:
        """Start a task beside the chain that somebody else looks after."""
        assert self._group is not None
        self._group.start_soon(fn, *arguments)

    @property
    def running(self) -> int:
        """How many have not ended."""
        return len(self._running)

    def begin(
        self,
        execute: Execute,
        frame: Frame,
        place: Place,
        turns: tuple[int, ...],
        program: Program,
        value: Any,
        number: int | None,
    ) -> None:
        """Begin one; returns at once."""
        assert self._group is not None
        chain = _Chain(frame, place, Gate(frame.gate))
        inner = Frame(
            program,
            frame.services,
            chain.gate,
            frame,
            place,
            turns,
            None if number is None else "item",
            number or 0,
        )
        inner.limits = ()  # It runs in a task of its own; its gate tells it when to stop.
        self.begun += 1
        self._running.add(chain)
        self._group.start_soon(self._run, execute, chain, inner, value)

    async def _run(self, execute: Execute, chain: _Chain, inner: Frame, value: Any) -> None:
        try:
            with chain.scope:
                if not chain.gate.closed:
                    await execute(inner, value)
        except Exception as error:
            self.failed += 1
            path = path_of(error) or inner.program.path
            if not was_told(error):
                inner.services.book.writer(path, chain.place.site.name).add(
                    ErrorReport.of(error),
                    status="failed",
                )
            inner.services.log.warning("side_chain_failed", path=path, error=type(error).__name__)
        finally:
            chain.gate.leave()
            self._running.discard(chain)
            chain.ended.set()
            if self.on_end is not None:
                self.on_end()

    async def drained(self) -> None:
        """Wait until none is running."""
        while self._running:
            await next(iter(self._running)).ended.wait()

    async def wait_for(
        self, frame: Frame, sequencer: frozenset[str], seconds: float | None
    ) -> bool:
        """Wait for those that this execution of a sequencer began; False if time ran out first."""
        with anyio.move_on_after(seconds):
            while True:
                own = [
                    chain
                    for chain in self._running
                    if chain.frame is frame
                    and chain.place.site.path.rpartition("/")[0] in sequencer
                ]
                if not own:
                    return True
                await own[0].ended.wait()
        return False

    async def end_beneath(self, gate: Gate) -> None:
        """Cancel those begun beneath this gate, which is closed, and wait until they have ended."""
        gate.close()
        for chain in [chain for chain in self._running if chain.gate.closed]:
            await chain.ended.wait()


@final
class _Chain:
    """One side chain under way."""

    __slots__ = ("ended", "frame", "gate", "place", "scope")

    def __init__(self, frame: Frame, place: Place, gate: Gate) -> None:
        self.frame = frame
        self.place = place
        self.gate = gate
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        gate.on_close = self.scope.cancel
        if gate.closed:
            self.scope.cancel()
