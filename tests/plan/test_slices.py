"""loop_back taken apart: which slices become loops, and which have no meaning."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate import Failure, build_plan, handler, sequencer
from flowstate.define.step import LoopStep, RunStep
from flowstate.errors import PlanError
from flowstate.plan.slices import without_loop_backs


@handler
async def a(value: int) -> int:
    return value


@handler
async def mend(failure: Failure[Exception]) -> int:
    return 0


b, c, d = a.configure(name="b"), a.configure(name="c"), a.configure(name="d")


def again(value: int) -> bool:
    return value < 3


def slices(built: Any) -> list[Any]:
    """The steps as nested lists of names: a list for every loop."""
    steps, faults = without_loop_backs("turn", "turn", built.steps)
    assert faults == []
    return [_shape(step) for step in steps]


def _shape(step: Any) -> Any:
    if isinstance(step, LoopStep) and step.is_slice:
        return [_shape(inner) for inner in step.block.steps]  # type: ignore[attr-defined]
    assert isinstance(step, RunStep)
    return step.block.name


START: Any = sequencer("turn", int).step(a).step(b).step(c)


def test_without_loop_back_the_steps_stay_as_they_are() -> None:
    """Nothing is taken apart that wasn't asked for."""
    assert slices(START) == ["a", "b", "c"]


def test_a_slice_reaches_from_the_named_step_to_here() -> None:
    """Steps before and after it stand outside."""
    assert slices(START.loop_back("b", again, max_iterations=2).step(d)) == ["a", ["b", "c"], "d"]
    assert slices(START.loop_back("c", again, max_iterations=2)) == ["a", "b", ["c"]]


def test_slices_nest_and_stand_side_by_side() -> None:
    """An inner one is a step of the outer one."""
    nested = START.loop_back("c", again, max_iterations=2).loop_back("a", again, max_iterations=2)
    assert slices(nested) == [["a", "b", ["c"]]]
    beside = START.loop_back("b", again, max_iterations=2).step(d)
    assert slices(beside.loop_back("d", again, max_iterations=2)) == ["a", ["b", "c"], ["d"]]
    same = START.loop_back("b", again, max_iterations=2).loop_back("b", again, max_iterations=2)
    assert slices(same) == ["a", [["b", "c"]]]


def test_a_duplicate_is_named_as_it_stands_in_its_path() -> None:
    """The second step of one name is ``#2`` here too."""
    built = START.step(a).step(d).loop_back("a#2", again, max_iterations=2)
    assert slices(built) == ["a", "b", "c", ["a", "d"]]
    paths = [site.path for site in _all(build_plan(built).root)]
    assert "turn/a#2/a" in paths
    assert "turn/a#2/d" in paths


def _all(site: Any) -> list[Any]:
    return [site, *(found for child in site.children for found in _all(child))]


@pytest.mark.parametrize(
    ("built", "problem", "way_out"),
    [
        (
            START.loop_back("x", again, max_iterations=2),
            r"loop_back\('x'\) names no step before it; there are: a, b, c",
            "Name the step to go back to as it stands in its path",
        ),
        (
            sequencer("turn", int).loop_back("a", again, max_iterations=2).step(a),
            "names no step before it; there are: none",
            "Name the step",
        ),
        (
            START.loop_back("a", again, max_iterations=2)
            .step(d)
            .loop_back("b", again, max_iterations=2),
            r"loop_back\('b'\) goes into the middle of another loop_back's slice",
            r"\.do_while\(condition, sequencer\('b', \.\.\.\)",
        ),
        (
            START.rescue(ValueError, mend).loop_back("b", again, max_iterations=2),
            r"a rescue inside the slice of loop_back\('b'\) reaches back to steps before",
            r"sequencer\('b', \.\.\.\)\.\.\.rescue",
        ),
    ],
)
def test_what_has_no_meaning_as_a_loop_is_a_fault_that_says_what_to_write(
    built: Any, problem: str, way_out: str
) -> None:
    """Overlaps, rescues that would reach out of a slice, and names that aren't there."""
    with pytest.raises(PlanError, match=problem) as caught:
        build_plan(built)
    (fault,) = caught.value.faults
    assert fault.where == "turn/loop_back"
    with pytest.raises(PlanError, match=way_out):
        build_plan(built)


def test_a_rescue_outside_a_slice_is_fine() -> None:
    """Before it, or behind it."""
    before = START.rescue(ValueError, mend).step(d).loop_back("d", again, max_iterations=2)
    behind = START.loop_back("b", again, max_iterations=2).rescue(ValueError, mend)
    for built in (before, behind):
        assert build_plan(built).output_type is int
