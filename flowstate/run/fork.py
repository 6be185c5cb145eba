"""
Carries out forks: the tasks behind parallel, step_all, step_any, race and for_each.

``flowstate.run.ready`` decides; this file has the workers. A worker takes one segment after the
other. Before it starts one it makes sure that two more workers are on their way; so where segments
never wait, one worker does them all, and where they wait, all are under way after a few turns of
the event loop. A worker retires when a segment changed a context variable: the next one must not
see it.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import Any, final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from flowstate.item.content import ErrorReport
from flowstate.plan.program import Each, Fork, Place, Program
from flowstate.run.attribution import note_path, path_of
from flowstate.run.entries import entries_of
from flowstate.run.frame import Execute, Frame
from flowstate.run.gate import Gate
from flowstate.run.ready import Ready
from flowstate.run.slice import breathe


async def fork(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Fork, value: Any
) -> Any:
    """Run the branches of a fork on one value."""
    if what.mode == "any":
        return await _in_order(execute, frame, place, turns, what, value)
    ready = Ready(len(what.programs), "race" if what.mode == "race" else "all", what.limit)
    work = _Work(execute, frame, place, turns, ready, what.programs, None, value, what.asks)
    await work.run()
    results = ready.outcome("" if ready.complete else frame.path(place, turns))
    return results[0] if what.mode == "race" else what.collect(results)


async def each(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Each, value: Any
) -> Any:
    """Run a program on every entry of a value."""
    listed = entries_of(frame, place, turns, what.connector, value, "for_each")
    ready = Ready(len(listed), "all", what.limit)
    if not listed:
        return []
    program = what.program
    work = _Work(execute, frame, place, turns, ready, None, program, listed, program.asks)
    await work.run()
    return ready.outcome("" if ready.complete else frame.path(place, turns))


async def _in_order(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Fork, value: Any
) -> Any:
    ready = Ready(len(what.programs), "any")
    while (index := ready.take()) is not None:
        branch = Frame(what.programs[index], frame.services, frame.gate, frame, place, turns)
        try:
            result = await execute(branch, value)
        except Exception as error:
            # A cancel that came meanwhile goes first: the next block must not start.
            await anyio.lowlevel.checkpoint_if_cancelled()
            ready.failed(index, error)
        else:
            ready.succeeded(index, result)
    return ready.outcome(frame.path(place, turns))[0]


@final
class _Work:
    """One fork under way: its machine, its gate and its workers."""

    __slots__ = (
        "above",
        "alive",
        "coming",
        "execute",
        "gate",
        "group",
        "place",
        "program",
        "programs",
        "questions",
        "ready",
        "turns",
        "value",
    )

    def __init__(
        self,
        execute: Execute,
        above: Frame,
        place: Place,
        turns: tuple[int, ...],
        ready: Ready,
        programs: tuple[Program, ...] | None,
        program: Program | None,
        value: Any,
        asks: bool,
    ) -> None:
        self.execute = execute
        self.above = above
        self.place = place
        self.turns = turns
        self.ready = ready
        self.programs = programs
        """One a branch; or None, and ``program`` runs on every entry of ``value``."""
        self.program = program
        self.value = value
        self.gate = Gate(above.gate)
        self.coming = 0
        """Workers that were started and have not taken a segment yet."""
        self.group: TaskGroup | None = None
        self.alive = 1
        """Workers that have not ended; counted only where there are questions."""
        self.questions = above.services.questions if asks else None
        """
        Told how many of its tasks can go on, if it holds questions: the first worker moves in the
        place of the task that waits for the fork, and the last one hands that back.
        """

    async def run(self) -> None:
        """Run the segments; returns when every task of the fork has ended."""
        try:
            async with anyio.create_task_group() as group:
                self.group = group
                self.coming = 1
                group.start_soon(self._worker if self.questions is None else self._counted_worker)
        finally:
            self.group = None
            self.gate.leave()

    def _call_workers(self) -> None:
        group = self.group
        while group is not None and self.coming < 2 and self.ready.more:
            self.coming += 1
            if self.questions is None:
                group.start_soon(self._worker)
            else:
                self.alive += 1
                self.questions.joined()
                group.start_soon(self._counted_worker)
            if self.coming >= self.ready.count:
                return

    async def _counted_worker(self) -> None:
        """The worker of a fork that holds questions."""
        assert self.questions is not None
        try:
            await self._worker()
        finally:
            self.alive -= 1
            if self.alive:
                self.questions.left()

    async def _worker(self) -> None:
        self.coming -= 1
        ready, gate, execute = self.ready, self.gate, self.execute
        base = copy_context()
        program = self.program
        # One async handler on every entry needs no frame until something is raised.
        solo = None
        if program is not None and self.above.services.listener is None and not self.above.limits:
            solo = program.solo
        held_since, taken = 0.0, 0
        while not gate.closed and (index := ready.take()) is not None:
            if self.coming < 2 and ready.more:
                self._call_workers()
            own = gate
            taken += 1
            try:
                if not taken & 63:
                    # It keeps its segment and comes back: nobody is called in its place.
                    self.coming += 1
                    held_since = await breathe(held_since)
                    self.coming -= 1
                if solo is None or program is None:
                    inner = self._frame(index)
                    own = inner.gate
                    result = await execute(inner, self._input(index))
                else:
                    result = await solo(self.value[index])
                    if type(result) is not program.solo_exact and program.solo_check is not None:
                        result = program.solo_check(result)
                    if gate.closed:
                        await anyio.sleep_forever()
            except Exception as error:
                if solo is not None and program is not None:
                    note_path(error, self._frame(index), program.places[0], (), self.value[index])
                if gate.closed:
                    self._tell_late(error)
                stop = ready.failed(index, error)
            except BaseException:
                ready.cancelled()
                own.close()
                raise
            else:
                stop = ready.succeeded(index, result)
            if own is not gate:
                # It ended by itself, so the side chains it began go on, below what is above us.
                own.leave(self.above.gate)
            if stop:
                self._stop()
                return
            try:
                changed = copy_context() != base
            except Exception:
                # Two values that are not the same object and don't let themselves be compared.
                changed = True
            if changed:
                self._call_workers()
                return

    def _tell_late(self, error: Exception) -> None:
        """A branch failed while it was being stopped: nobody is raised this, so it is an item."""
        path = path_of(error) or self.above.path(self.place, self.turns)
        self.above.services.book.writer(path, self.place.site.name).add(
            ErrorReport.of(error),
            status="failed",
        )

    def _stop(self) -> None:
        self.gate.close()
        if self.group is not None:
            self.group.cancel_scope.cancel()

    def _input(self, index: int) -> Any:
        return self.value[index] if self.programs is None else self.value

    def _frame(self, index: int) -> Frame:
        above = self.above
        if self.programs is not None:
            branch = self.programs[index]
            gate = Gate(self.gate) if branch.has_side_chains else self.gate
            return Frame(branch, above.services, gate, above, self.place, self.turns)
        assert self.program is not None
        gate = Gate(self.gate) if self.program.has_side_chains else self.gate
        return Frame(
            self.program, above.services, gate, above, self.place, self.turns, "item", index
        )
