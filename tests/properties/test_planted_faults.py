"""The laws find faults planted in the scheduler, and shrink them to something readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from flowstate.define.handler import handler
from flowstate.define.sequencer import sequencer
from flowstate.define.step import ForEachStep
from flowstate.plan.build import build_plan
from flowstate.plan.site import sites
from flowstate.run import scheduler
from flowstate.run.gate import Gate
from flowstate.run.ready import Ready
from flowstate.run.side_chains import SideChains
from flowstate.testing.compositions import METHODS, sequencers
from flowstate.testing.laws import LawBroken, assert_laws
from flowstate.testing.oracle import outcomes
from flowstate.testing.scripted_block import scripted_block
from flowstate.testing.simulation import CANCELLED, simulate

Fault = Callable[[pytest.MonkeyPatch], None]

FAVOURED = (*METHODS, *["step", "rescue", "for_each"] * 4)
"""Named often, drawn often: with two steps a sequencer, a rescue behind a failure is rare else."""


def _results_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """A join keeps its results in the order in which the branches ended."""

    def succeeded(self: Ready, index: int, result: Any) -> bool:
        kept = self._mode == "all"
        if kept:
            place = sum(1 for value in self.results if value is not None)
            return original(self, min(place, self.count - 1), result)
        return original(self, index, result)

    original = Ready.succeeded
    patch.setattr(Ready, "succeeded", succeeded)


def _rescue_takes_anything(patch: pytest.MonkeyPatch) -> None:
    """A rescue catches errors that it doesn't name."""
    patch.setattr(
        scheduler,
        "_row_for",
        lambda rows, pc, error: next((row for row in rows if row.start <= pc < row.end), None),
    )


def _gate_stays_open(patch: pytest.MonkeyPatch) -> None:
    """A cancel stops what waits, and lets the next node start."""
    patch.setattr(Gate, "close", lambda self: self.on_close and self.on_close())


def _bound_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """for_each runs everything at once, whatever max_concurrency says."""
    original = Ready.__init__

    def init(self: Ready, count: int, mode: Any, limit: int | None = None) -> None:
        original(self, count, mode, None)

    patch.setattr(Ready, "__init__", init)


def _side_chains_are_left(patch: pytest.MonkeyPatch) -> None:
    """A run ends without its side chains."""

    async def leave(self: SideChains, *error: Any) -> None:
        group = self._group
        assert group is not None
        group.cancel_scope.cancel()
        await group.__aexit__(None, None, None)

    async def drained(self: SideChains) -> None:
        """As if there were none."""

    patch.setattr(SideChains, "__aexit__", leave)
    patch.setattr(SideChains, "drained", drained)


def _breaks_a_law(block: Any) -> bool:
    """Whether some law that holds for every composition doesn't hold for this one."""
    try:
        allowed = anyio.run(outcomes, block, 1)
        for seed in (0,):
            run = simulate(block, 1, seed=seed)
            if run.faults or run.outcome not in allowed:
                return True
            if _runs_too_many(block, run) or _side_chains_unfinished(block, run):
                return True
            for point in (2, 4, 6):
                stopped = simulate(block, 1, seed=seed, cancel_at=point)
                if stopped.faults or (
                    stopped.outcome != CANCELLED and stopped.outcome not in allowed
                ):
                    return True
    except (AssertionError, IndexError):
        return True
    return False


def _runs_too_many(block: Any, run: Any) -> bool:
    for site in sites(build_plan(block).root):
        step = site.step
        if isinstance(step, ForEachStep) and step.max_concurrency == 1:
            inside = [peak for path, peak in run.peaks.items() if path == site.path]
            if inside and inside[0] > 1 and site.path.count("/") == 1:
                return True
    return False


def _side_chains_unfinished(block: Any, run: Any) -> bool:
    """Nothing cuts off a side chain that the outermost sequencer began."""
    begun = [
        site.path
        for site in build_plan(block).root.children
        if site.kind == "side_chain" and site.children[0].kind == "handler"
    ]
    return any(path in run.cut_off for path in begun)


@handler
async def _stubborn(value: int) -> int:
    """Swallows a cancellation and goes on as if nothing had been."""
    try:
        await anyio.lowlevel.checkpoint()
    except anyio.get_cancelled_exc_class():
        return value
    return value


@pytest.mark.parametrize(
    "plant",
    [
        _results_out_of_order,
        _rescue_takes_anything,
        _gate_stays_open,
        _bound_is_ignored,
        _side_chains_are_left,
    ],
)
def test_a_planted_fault_is_found_and_shrunk(plant: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is found among random compositions, in one of fewer than ten nodes."""
    plant(monkeypatch)
    smallest = find(
        sequencers(max_steps=2, max_depth=1, methods=FAVOURED),
        _breaks_a_law,
        settings=settings(
            max_examples=4000,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert sum(1 for _ in sites(build_plan(smallest).root)) < 10, smallest


@settings(max_examples=30, deadline=None)
@given(block=sequencers(max_steps=3, max_depth=1))
def test_without_a_fault_nothing_is_found(block: Any) -> None:
    """The search above finds nothing in the scheduler as it is."""

    assert not _breaks_a_law(block)


def test_assert_laws_names_what_shows_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who asserts the laws is told the arguments that show the fault again."""
    _gate_stays_open(monkeypatch)
    wait = scripted_block("wait", lambda value: value + 1, waits=2)
    block = sequencer("chain", int).step(wait).step(_stubborn).step(wait)
    with pytest.raises(LawBroken, match=r"cancel_at=\d+.*started after the cancel"):
        assert_laws(block, 1, seeds=range(3))
