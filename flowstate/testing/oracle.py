"""
The oracle: a naive recursive interpreter of definitions, which gives the SET of allowed outcomes.

It knows no plan, program or scheduler, only the words of the definition and their meaning, so it
is short enough to be believed. Where schedules may differ (two branches fail, a race) it allows
every order; everywhere else it gives one outcome.

Blocks must be pure and take no context: each is called as often as the oracle likes.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

from flowstate.define.block import Block, Failure
from flowstate.define.handler import Handler
from flowstate.define.router import Router
from flowstate.define.sequencer import Sequencer
from flowstate.define.step import (
    AskStep,
    BranchStep,
    ExitIfStep,
    FirstStep,
    ForEachStep,
    LoopBackStep,
    LoopStep,
    MapStep,
    ParallelStep,
    RescueStep,
    RunStep,
    SideChainStep,
    Step,
    TapStep,
    ThrowIfStep,
    WaitConditionStep,
    WaitStep,
)
from flowstate.errors import FlowError, LoopExhausted, NobodyToAsk, NoMatchingBranch
from flowstate.plan.slices import without_loop_backs
from flowstate.run.questions import Answerer, Question

Outcome: TypeAlias = tuple[str, Any]
"""
``("value", v)``, ``("error", (type, text))``, or ``("group", (outcome, ...))`` in declared order.
"""


_ANSWERS: ContextVar[Answerer | None] = ContextVar("answers", default=None)
"""Who answers, in the interpretation under way."""


async def outcomes(
    block: Block[Any, Any], value: Any, *, answers: Answerer | None = None
) -> list[Outcome]:
    """
    Everything that running the block on the value may end with, each outcome once.

    Args:
        block: what to run.
        value: its input.
        answers: gives the answers to what steps ask people, by name and text: the oracle knows no
            paths, so a question's id is its name here.

    Raises:
        TypeError: a block takes a context, so it can't be called alone.
    """
    token = _ANSWERS.set(answers)
    try:
        return _unique(await _block(block, value))
    finally:
        _ANSWERS.reset(token)


def outcome_of(error: BaseException) -> Outcome:
    """The outcome that an exception stands for."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return ("group", tuple(outcome_of(part) for part in group.exceptions))
    if isinstance(error, FlowError):
        # The engine's own errors name a path, which the oracle doesn't know.
        return ("error", (type(error), ""))
    return ("error", (type(error), str(error)))


async def _block(block: Block[Any, Any], value: Any) -> list[Outcome]:
    match block:
        case Handler():
            if block.takes_context:
                raise TypeError(f"{block.name!r} takes a context; the oracle calls blocks alone")
            try:
                result = block.fn(value)
                return [("value", await result if inspect.isawaitable(result) else result)]
            except Exception as error:
                return [_raised(error)]
        case Router():
            chosen = block.select(value)
            route = next(r for r in block.routes if r is chosen or r.name == chosen)
            return await _block(route, value)
        case Sequencer():
            return await _sequence(cast("Sequencer[Any, Any, object]", block), value)
        case _:
            raise TypeError(f"the oracle knows no {block!r}")


async def _sequence(block: Sequencer[Any, Any, Any], value: Any) -> list[Outcome]:
    """Fold the steps over the set of states; an exit or an error waits for what concerns it."""
    states: list[Outcome] = [("run", value)]
    steps, _ = without_loop_backs(block.name, block.name, block.steps)
    for step in steps:
        after: list[Outcome] = []
        for kind, content in states:
            if kind == "run":
                after += await _step(step, content)
            elif kind == "raised" and isinstance(step, RescueStep):
                if isinstance(content, step.errors):
                    handled = await _block(step.block, Failure(content, None, ""))
                    after += [_state(outcome) for outcome in handled]
                else:
                    after.append((kind, content))
            else:
                after.append((kind, content))
        states = after
    return [
        ("value", content) if kind in ("run", "exit") else (kind, content)
        for kind, content in states
    ]


async def _step(step: Step, value: Any) -> list[Outcome]:
    """The states after one step that starts from a running value."""
    try:
        match step:
            case RunStep():
                if step.condition is not None and not step.condition(value):
                    return [("run", value)]
                given = value if step.connector is None else step.connector(value)
                return [_state(outcome) for outcome in await _block(step.block, given)]
            case TapStep():
                if step.condition is not None and not step.condition(value):
                    return [("run", value)]
                given = value if step.connector is None else step.connector(value)
                return [
                    ("run", value) if kind == "value" else (kind, content)
                    for kind, content in await _block(step.block, given)
                ]
            case MapStep():
                return [("run", step.fn(value))]
            case ParallelStep():
                branches = [await _block(block, value) for _, block in step.branches]
                names = [name for name, _ in step.branches]
                return _all(branches, lambda results: _collected(step, names, results))
            case ForEachStep():
                entries = value if step.connector is None else step.connector(value)
                parts = [await _block(step.block, entry) for entry in entries]
                return _all(parts, lambda results: results)
            case FirstStep(concurrent=True):
                branches = [await _block(block, value) for _, block in step.branches]
                return _race(branches)
            case FirstStep():
                return await _in_order(step, value)
            case LoopStep():
                return await _loop(step, value)
            case BranchStep():
                for condition, block in step.arms:
                    if condition(value):
                        return [_state(outcome) for outcome in await _block(block, value)]
                if step.otherwise is None:
                    raise NoMatchingBranch("", value)
                return [_state(outcome) for outcome in await _block(step.otherwise, value)]
            case RescueStep() | WaitStep() | WaitConditionStep():
                return [("run", value)]
            case AskStep():
                return [("run", _answered(step, value))]
            case SideChainStep():
                if step.connector is not None and (step.condition is None or step.condition(value)):
                    step.connector(value)
                return [("run", value)]
            case LoopBackStep():
                raise AssertionError("loop_back was taken apart before")
            case ExitIfStep():
                return [("exit" if step.condition(value) else "run", value)]
            case ThrowIfStep():
                if step.condition(value):
                    error = step.error
                    raise error if isinstance(error, BaseException) else error(value)
                return [("run", value)]
    except Exception as error:
        return [_raised(error)]


def _answered(step: AskStep, value: Any) -> Any:
    answers = _ANSWERS.get()
    if answers is None:
        raise NobodyToAsk("", step.name)
    text = None if step.question is None else step.question(value)
    return answers(
        Question(id=step.name, name=step.name, text=text, answer_type=step.answer_type, schema=None)
    )


def _all(parts: list[list[Outcome]], collect: Callable[[list[Any]], Any]) -> list[Outcome]:
    """All must succeed; if some can fail, any of their errors may be the one that came first."""
    states: list[Outcome] = []
    for part in parts:
        states += [outcome for outcome in part if outcome[0] == "raised"]
    succeeding = [[content for kind, content in part if kind == "value"] for part in parts]
    if all(succeeding):
        for results in itertools.product(*succeeding):
            states.append(("run", collect(list(results))))
    return states


def _race(parts: list[list[Outcome]]) -> list[Outcome]:
    """Any success may be the first; a group only where every branch can fail."""
    states = [("run", content) for part in parts for kind, content in part if kind == "value"]
    failing = [[content for kind, content in part if kind == "raised"] for part in parts]
    if all(failing):
        states += [
            ("raised", ExceptionGroup("all failed", list(errors)))
            for errors in itertools.product(*failing)
        ]
    return list(states)


async def _in_order(step: FirstStep, value: Any) -> list[Outcome]:
    states: list[Outcome] = []
    failed: list[tuple[Exception, ...]] = [()]
    for _, block in step.branches:
        if not failed:
            break
        ended = await _block(block, value)
        states += [("run", content) for kind, content in ended if kind == "value"]
        errors = [content for kind, content in ended if kind == "raised"]
        failed = [(*before, error) for before in failed for error in errors]
    states += [("raised", ExceptionGroup("all failed", list(errors))) for errors in failed]
    return states


async def _loop(step: LoopStep, value: Any) -> list[Outcome]:
    states: list[Outcome] = []
    running = [value]
    turn = 0
    while running:
        turn += 1
        again: list[Any] = []
        for current in running:
            for kind, content in await _block(step.block, current):
                if kind != "value":
                    states.append((kind, content))
                elif bool(step.condition(content)) is step.until:
                    states.append(("run", content))
                elif step.max_iterations is not None and turn >= step.max_iterations:
                    if step.on_exhausted == "keep":
                        states.append(("run", content))
                    else:
                        states.append(("raised", LoopExhausted("", turn)))
                else:
                    again.append(content)
        running = again
    return states


def _collected(step: ParallelStep, names: list[str], results: list[Any]) -> Any:
    if step.into is not None:
        return step.into(**dict(zip(names, results, strict=True)))
    return tuple(results) if step.as_tuple else dict(zip(names, results, strict=True))


def _state(outcome: Outcome) -> Outcome:
    kind, content = outcome
    return ("run", content) if kind == "value" else outcome


def _raised(error: Exception) -> Outcome:
    return ("raised", error)


def _unique(found: Iterable[Outcome]) -> list[Outcome]:
    unique: list[Outcome] = []
    for kind, content in found:
        outcome = outcome_of(content) if kind == "raised" else (kind, content)
        if outcome not in unique:
            unique.append(outcome)
    return unique
