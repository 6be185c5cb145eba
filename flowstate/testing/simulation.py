"""
``simulate``: one run under a virtual clock, in a seeded order, disturbed where you say.

A run is repeated exactly by its arguments. Waits take no real time. It can be cancelled at any
scheduling point and made to fail in any block, and it reports what no run should do: start a node
after a cancel, leave a task or an open item behind, change the value that a step was handed.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import anyio

from flowstate.define.block import Block
from flowstate.ids import Identity
from flowstate.item.event import ItemEvent
from flowstate.plan.build import Plan, build_plan
from flowstate.plan.program import Place
from flowstate.run.drive import drive
from flowstate.run.frame import Frame, NodeEvent
from flowstate.run.gate import Gate
from flowstate.run.once import lone_services
from flowstate.run.questions import Answerer
from flowstate.testing.instrument import instrumented
from flowstate.testing.oracle import Outcome, outcome_of
from flowstate.testing.simulated_loop import SimulatedLoop

CANCELLED: Outcome = ("cancelled", None)
"""The outcome of a run that was cancelled."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What happened in one simulated run."""

    outcome: Outcome
    """``("value", v)``, ``("error", ...)``, ``("group", ...)``, or CANCELLED."""
    turns: int
    """Scheduling points it took: what ``cancel_at`` counts."""
    seconds: float
    """Virtual seconds it took."""
    started: tuple[str, ...]
    """The execution paths of the nodes in the order they started."""
    started_after_cancel: tuple[str, ...]
    """Nodes that started after the cancel; a fault of the engine."""
    mutated: tuple[str, ...]
    """Blocks that changed the value they were handed; a fault of the block."""
    peaks: Mapping[str, int]
    """For each handler, by its static path, how many ran at the same time at most."""
    cut_off: tuple[str, ...]
    """Handlers that were stopped by a cancellation."""
    tasks_left: int
    """Tasks alive after the run; a fault."""
    items_open: int
    """Items that were never settled; a fault."""
    events: tuple[ItemEvent, ...]
    """Every item event."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything in it that no run should do, in words; empty where all is well."""
        found = [f"{path} started after the cancel" for path in self.started_after_cancel]
        found += [f"{path} changed the value it was handed" for path in self.mutated]
        if self.tasks_left:
            found.append(f"{self.tasks_left} tasks were left behind")
        if self.items_open:
            found.append(f"{self.items_open} items were never settled")
        twice = [path for path, count in Counter(self.started).items() if count > 1]
        found += [f"{path} is the path of two nodes" for path in twice]
        return tuple(found)


def simulate(
    block: Block[Any, Any] | Plan[Any, Any],
    value: Any,
    *,
    seed: int = 0,
    cancel_at: int | None = None,
    fail: Mapping[str, Exception] | None = None,
    identity: Identity | None = None,
    answers: Answerer | None = None,
    max_turns: int = 100_000,
) -> Simulation:
    """
    Run a block once, on a loop of its own.

    Args:
        block: a block, or a plan of one.
        value: its input.
        seed: decides which of several ready tasks goes first, and all jitter.
        cancel_at: cancel the run at this scheduling point, from 1.
        fail: errors to raise in place of what blocks do, by the static path of the node
            (``turn/refine``).
        identity: who it is for.
        answers: gives the answers to what steps ask people.
        max_turns: a run that takes more scheduling points is given up.

    Raises:
        PlanError: the composition doesn't fit together.
        RuntimeError: it took more than ``max_turns``.
    """
    plan = block if isinstance(block, Plan) else build_plan(block)
    return _Run(plan, value, seed, cancel_at, dict(fail or {}), identity, answers, max_turns).run()


@final
class _Run:
    def __init__(
        self,
        plan: Plan[Any, Any],
        value: Any,
        seed: int,
        cancel_at: int | None,
        fail: dict[str, Exception],
        identity: Identity | None,
        answers: Answerer | None,
        max_turns: int,
    ) -> None:
        self.plan = plan
        self.value = value
        self.seed = seed
        self.cancel_at = cancel_at
        self.fail = fail
        self.identity = identity
        self.answers = answers
        self.max_turns = max_turns
        self.loop: SimulatedLoop | None = None
        self.gate = Gate()
        self.stopped = False
        self.scope: anyio.CancelScope | None = None
        self.started: list[str] = []
        self.late: list[str] = []
        self.mutated: list[str] = []
        self.events: list[ItemEvent] = []
        self.cut_off: list[str] = []
        self.running: Counter[str] = Counter()
        self.peaks: dict[str, int] = {}

    def run(self) -> Simulation:
        def make_loop() -> SimulatedLoop:
            self.loop = SimulatedLoop(self.seed)
            self.loop.on_turn = self._turn
            return self.loop

        outcome, left = anyio.run(self._main, backend_options={"loop_factory": make_loop})
        assert self.loop is not None
        opened = {event.item_id for event in self.events if event.kind == "added"}
        settled = {event.item_id for event in self.events if event.kind == "settled"}
        return Simulation(
            outcome=outcome,
            turns=self.loop.turns,
            seconds=self.loop.time(),
            started=tuple(self.started),
            started_after_cancel=tuple(self.late),
            mutated=tuple(dict.fromkeys(self.mutated)),
            peaks=self.peaks,
            cut_off=tuple(self.cut_off),
            tasks_left=left,
            items_open=len(opened - settled),
            events=tuple(self.events),
        )

    def _turn(self, turn: int) -> None:
        if self.scope is None:
            return
        if turn > self.max_turns:
            raise RuntimeError(f"{self.plan.name!r} took more than {self.max_turns} turns")
        if self.cancel_at is not None and turn >= self.cancel_at and not self.stopped:
            self.stopped = True
            self.gate.close()
            self.scope.cancel()

    async def _main(self) -> tuple[Outcome, int]:
        loop = asyncio.get_running_loop()
        numbers = itertools.count(1)
        services = lone_services(
            self.plan,
            identity=self.identity,
            listener=self._listen,
            emit=self.events.append,
            clock=lambda: int(loop.time() * 1000),
            ids=lambda prefix: f"{prefix}_{next(numbers)}",
            rng=random.Random(self.seed),
            answers=self.answers,
        )
        program = instrumented(self.plan.program, self._wrap)
        value = self.plan.checked_input(self.value)
        before = asyncio.all_tasks()
        outcome: Outcome = CANCELLED
        with anyio.CancelScope() as self.scope:
            try:
                outcome = ("value", await drive(Frame(program, services, self.gate), value))
            except Exception as error:
                outcome = outcome_of(error)
        self.scope = None
        return outcome, len(asyncio.all_tasks() - before)

    def _listen(self, event: NodeEvent) -> None:
        what, frame, pc, turns, _ = event
        if what == "start" and frame.program.places[pc].site.kind == "handler":
            path = frame.path(frame.program.places[pc], turns)
            code_fn = frame.program.instructions[pc][1]
            if code_fn is None or code_fn is frame.program.places[pc].site.edge.connector:
                return
            self.started.append(path)
            if self.stopped:
                self.late.append(path)

    def _wrap(self, place: Place, fn: Any, is_async: bool) -> Any:
        path = place.site.path

        def before(value: Any) -> Any:
            self.running[path] += 1
            self.peaks[path] = max(self.peaks.get(path, 0), self.running[path])
            return _snapshot(value)

        def after(value: Any, snapshot: Any) -> None:
            self.running[path] -= 1
            if snapshot is not _NO_SNAPSHOT and not _same(snapshot, value):
                self.mutated.append(path)

        async def call_async(value: Any, *ctx: Any) -> Any:
            snapshot = before(value)
            try:
                if path in self.fail:
                    raise self.fail[path]
                return await fn(value, *ctx)
            except asyncio.CancelledError:
                self.cut_off.append(path)
                raise
            finally:
                after(value, snapshot)

        def call(value: Any, *ctx: Any) -> Any:
            snapshot = before(value)
            try:
                if path in self.fail:
                    raise self.fail[path]
                return fn(value, *ctx)
            finally:
                after(value, snapshot)

        return call_async if is_async else call


_NO_SNAPSHOT = object()


def _snapshot(value: Any) -> Any:
    """A deep copy to compare with afterwards, or nothing where there can be none."""
    if isinstance(value, int | float | str | bytes | bool | None):
        return _NO_SNAPSHOT
    try:
        snapshot = copy.deepcopy(value)
        # An exception, say, is not equal to its copy: there is no telling whether it changed.
        return snapshot if snapshot == value else _NO_SNAPSHOT
    except Exception:
        return _NO_SNAPSHOT


def _same(snapshot: Any, value: Any) -> bool:
    try:
        return bool(snapshot == value)
    except Exception:
        return True
