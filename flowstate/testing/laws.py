"""
``assert_laws``: the laws of every flow, checked on yours.

It runs a block on one input under many schedules, cancels it at every scheduling point and lets
every block fail in turn, and asserts what must hold whatever the blocks do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstate.define.block import Block
from flowstate.define.flow import Action
from flowstate.plan.build import Plan, build_plan
from flowstate.plan.site import Site, sites
from flowstate.run.questions import Answerer
from flowstate.testing.simulation import CANCELLED, Simulation, simulate


class LawBroken(AssertionError):
    """A law doesn't hold; the message says which, and the arguments that show it again."""


def assert_laws(
    subject: Block[Any, Any] | Action[Any, Any] | Plan[Any, Any],
    value: Any,
    *,
    seeds: Iterable[int] = range(5),
    cancels: int = 25,
    failures: bool = True,
    answers: Answerer | None = None,
) -> None:
    """
    Assert that a composition keeps the laws on this input.

    * two builds are equal, and every execution path is unique;
    * under every schedule: no task is left, every item settles, no block changes its input, and no
      more run side by side than ``max_concurrency`` allows;
    * where nothing races and at most one branch fails, every schedule gives the same outcome;
    * cancelled at any point: the run ends cancelled or with its own outcome, and no node starts
      afterwards;
    * failing in any block: nothing is left behind.

    Args:
        subject: a block, an action, or a plan.
        value: an input. Draw it with hypothesis to have a property.
        seeds: the schedules to try.
        cancels: at most so many scheduling points are tried, spread over the run.
        failures: whether to let each block fail in turn.
        answers: gives the answers to what steps ask people: pure.

    Raises:
        LawBroken: a law doesn't hold.
        PlanError: the composition doesn't fit together.
    """
    block = subject.block if isinstance(subject, Action) else subject
    plan = block if isinstance(block, Plan) else build_plan(block)
    if isinstance(block, Block) and build_plan(block).describe() != plan.describe():
        raise LawBroken(f"{plan.name!r}: two builds of one definition differ")
    seeds = list(seeds)
    runs = [_clean(plan, value, seed=seed, answers=answers) for seed in seeds]
    for run, seed in zip(runs, seeds, strict=True):
        _within_bounds(plan, run, seed)
    if not _may_differ(plan.root):
        for run, seed in zip(runs[1:], seeds[1:], strict=True):
            if run.outcome != runs[0].outcome and "value" in (run.outcome[0], runs[0].outcome[0]):
                raise LawBroken(
                    f"{plan.name!r} gives {runs[0].outcome} with seed={seeds[0]} and "
                    f"{run.outcome} with seed={seed}, input {value!r}"
                )
    for seed in seeds[:2]:
        last = next(run for run, s in zip(runs, seeds, strict=True) if s == seed).turns
        for point in _spread(last, cancels):
            _clean(plan, value, seed=seed, cancel_at=point, answers=answers)
    if failures:
        for path in _handlers(plan.root):
            error = RuntimeError(f"failed in {path}")
            _clean(plan, value, seed=seeds[0], fail={path: error}, answers=answers)


def _clean(plan: Plan[Any, Any], value: Any, **arguments: Any) -> Simulation:
    run = simulate(plan, value, **arguments)
    arguments = {name: given for name, given in arguments.items() if given is not None}
    shown = ", ".join(f"{name}={argument!r}" for name, argument in arguments.items())
    if run.faults:
        faults = "; ".join(run.faults)
        raise LawBroken(f"simulate({plan.name!r}, {value!r}, {shown}): {faults}")
    if run.outcome == CANCELLED and "cancel_at" not in arguments:
        raise LawBroken(f"simulate({plan.name!r}, {value!r}, {shown}): ended cancelled by itself")
    return run


def _within_bounds(plan: Plan[Any, Any], run: Simulation, seed: int) -> None:
    for site in sites(plan.root):
        bound = getattr(site.step, "max_concurrency", None)
        if site.kind != "for_each" or bound is None:
            continue
        body = site.children[0]
        nested = [
            s
            for s in sites(plan.root)
            if s.kind in ("for_each", "parallel", "race")
            and s is not site
            and site.path.startswith(s.path)
        ]
        if body.kind == "handler" and not nested and run.peaks.get(body.path, 0) > bound:
            raise LawBroken(
                f"{site.path}: {run.peaks[body.path]} ran side by side, max_concurrency={bound}, "
                f"seed={seed}"
            )


def _may_differ(root: Site) -> bool:
    """Whether schedules may matter: a race, or branches side by side with effects of their own."""
    return any(site.kind == "race" for site in sites(root))


def _handlers(root: Site) -> list[str]:
    return [site.path for site in sites(root) if site.kind == "handler"]


def _spread(turns: int, count: int) -> list[int]:
    """At most ``count`` points from 1 to ``turns``, evenly."""
    if turns <= count:
        return list(range(1, turns + 1))
    return sorted({1 + round(i * (turns - 1) / (count - 1)) for i in range(count)})
