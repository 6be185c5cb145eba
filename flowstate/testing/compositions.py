"""
Hypothesis strategies for compositions: blocks, and sequencers of every method, nested.

Everything runs from int to int over scripted blocks, so that any of it fits anywhere and the
oracle can tell what must come out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from flowstate.define.block import Block
from flowstate.define.handler import Handler
from flowstate.define.router import router
from flowstate.define.sequencer import Sequencer, sequencer
from flowstate.define.step import ForEachStep, MapStep, RescueStep, step_name
from flowstate.plan.slices import unique_name, without_loop_backs
from flowstate.run.questions import Question
from flowstate.testing.scripted_block import scripted_block, scripted_rescue

Recorder = Callable[[str, Any], None]

METHODS: tuple[str, ...] = (
    "step",
    "step_if",
    "map",
    "tap",
    "tap_if",
    "parallel",
    "step_all",
    "step_any",
    "race",
    "for_each",
    "do_until",
    "do_while",
    "branch",
    "rescue",
    "exit_if",
    "throw_if",
    "router",
    "side_chain",
    "for_each_side_chain",
    "wait_for_side_chains",
    "loop_back",
)
"""The methods that appear if none are named."""

ALL_METHODS: tuple[str, ...] = (*METHODS, "ask")
"""The names that ``methods`` takes. Where steps ask, a run needs ``answers=scripted_answer``."""

_ERRORS: tuple[type[Exception], ...] = (ValueError, KeyError, OSError)


def blocks(
    *, failing: bool = True, max_waits: int = 3, recorder: Recorder | None = None
) -> st.SearchStrategy[Handler[int, int]]:
    """
    Scripted blocks: most add a number, some fail always or for some inputs.

    Args:
        failing: whether any may fail.
        max_waits: how often one gives way at most.
        recorder: as of ``scripted_block``.
    """

    @st.composite
    def draw_block(draw: st.DrawFn) -> Handler[int, int]:
        number = draw(st.integers(0, 5))
        waits = draw(st.integers(0, max_waits))
        kinds = ["add", "add", "add", "double"]
        if failing:
            kinds += ["fail", "fail_some"]
        kind = draw(st.sampled_from(kinds))
        error = draw(st.sampled_from(_ERRORS)) if kind.startswith("fail") else ValueError
        name = f"{kind}{number}"

        def act(value: int) -> int:
            match kind:
                case "add":
                    return value + number
                case "double":
                    return (value * 2) % 1009
                case "fail_some":
                    if value % 2:
                        raise error(name)
                    return value
                case _:
                    raise error(name)

        return scripted_block(name, act, waits=waits, recorder=recorder)

    return draw_block()


def conditions() -> st.SearchStrategy[Callable[[int], bool]]:
    """Pure conditions on an int."""
    return st.builds(_condition, st.integers(1, 4), st.integers(0, 3))


def sequencers(
    *,
    max_steps: int = 5,
    max_depth: int = 2,
    methods: Sequence[str] = METHODS,
    failing: bool = True,
    max_waits: int = 3,
    recorder: Recorder | None = None,
) -> st.SearchStrategy[Sequencer[int, int, int]]:
    """
    Random sequencers from int to int.

    Args:
        max_steps: steps a sequencer.
        max_depth: how deep sequencers stand in each other.
        methods: which methods may appear, of ``ALL_METHODS``.
        failing: whether anything may fail; without it no block does, nothing is thrown, every
            branch has an otherwise and every loop keeps its last value.
        max_waits: how often a block gives way at most.
        recorder: as of ``scripted_block``.
    """
    unknown = set(methods) - set(ALL_METHODS)
    if unknown:
        raise ValueError(f"no such methods: {', '.join(sorted(unknown))}; there are {ALL_METHODS}")

    offered = [method for method in methods if failing or method != "throw_if"]

    @st.composite
    def draw_sequencer(draw: st.DrawFn, depth: int) -> Sequencer[int, int, int]:
        simple = blocks(failing=failing, max_waits=max_waits, recorder=recorder)
        inner: st.SearchStrategy[Block[int, int]] = simple
        if depth > 0:
            inner = st.one_of(simple, draw_sequencer(depth - 1))
        # A side chain may not ask.
        beside = simple if "ask" in offered else inner
        built: Sequencer[Any, Any, Any] = sequencer(f"seq{depth}", int)
        for _ in range(draw(st.integers(0, max_steps))):
            method = draw(st.sampled_from(offered))
            within = beside if "side_chain" in method else inner
            built = _extend(draw, built, method, within, failing)
        return built

    return draw_sequencer(max_depth)


def _extend(
    draw: st.DrawFn,
    built: Sequencer[Any, Any, Any],
    method: str,
    inner: st.SearchStrategy[Block[int, int]],
    failing: bool,
) -> Sequencer[Any, Any, Any]:
    """The sequencer with one more step of this method (some need a map to be int again)."""
    match method:
        case "step":
            return built.step(draw(inner))
        case "step_if":
            return built.step_if(draw(conditions()), draw(inner))
        case "map":
            return built.map(_adding(draw(st.integers(0, 3))))
        case "tap":
            return built.tap(draw(inner))
        case "tap_if":
            return built.tap_if(draw(conditions()), draw(inner))
        case "parallel":
            names = ["left", "mid", "right", "far"]
            branches = draw(st.lists(inner, min_size=1, max_size=4))
            bound = draw(st.sampled_from([None, 1, 2]))
            return built.parallel(
                max_concurrency=bound, **dict(zip(names, branches, strict=False))
            ).map(_sum_of_values)
        case "step_all":
            branches = draw(st.lists(inner, min_size=1, max_size=4))
            return built.step_all(*branches).map(_sum_in_order)
        case "step_any":
            return built.step_any(*draw(st.lists(inner, min_size=1, max_size=3)))
        case "race":
            return built.race(*draw(st.lists(inner, min_size=1, max_size=3)))
        case "for_each":
            size = draw(st.integers(0, 5))
            bound = draw(st.sampled_from([None, 1, 2, 16]))
            return (
                built.map(_spread(size))
                .for_each(draw(inner), max_concurrency=bound)
                .map(_sum_in_order)
            )
        case "do_until":
            return built.do_until(
                draw(conditions()),
                draw(inner),
                max_iterations=draw(st.integers(1, 4)),
                on_exhausted=draw(st.sampled_from(["keep", "raise"] if failing else ["keep"])),
            )
        case "do_while":
            return built.do_while(
                draw(conditions()),
                draw(inner),
                max_iterations=draw(st.integers(1, 4)),
                on_exhausted=draw(st.sampled_from(["keep", "raise"] if failing else ["keep"])),
            )
        case "branch":
            otherwise = draw(st.one_of(st.none(), inner) if failing else inner)
            arms = draw(st.lists(st.tuples(conditions(), inner), min_size=1, max_size=3))
            if otherwise is None:
                return built.branch(*arms)
            return built.branch(*arms, otherwise=otherwise)
        case "rescue":
            if built.chain is None:
                return built
            errors: Any = draw(
                st.sampled_from([ValueError, KeyError, (ValueError, OSError), Exception])
            )
            handler: Block[Any, int] = scripted_rescue(
                f"mend{draw(st.integers(0, 3))}", draw(st.integers(0, 9))
            )
            return built.rescue(errors, handler)
        case "exit_if":
            return built.exit_if(draw(conditions()))
        case "throw_if":
            return built.throw_if(draw(conditions()), ValueError("thrown"))
        case "router":
            first, second = draw(inner), draw(inner)
            condition = draw(conditions())
            routes = [first.configure(name="even"), second.configure(name="odd")]
            return built.step(
                router("way", routes=routes, select=lambda v: "even" if condition(v) else "odd")
            )
        case "side_chain":
            return built.side_chain(draw(inner))
        case "for_each_side_chain":
            return built.for_each_side_chain(_spread(draw(st.integers(0, 3))), draw(inner))
        case "wait_for_side_chains":
            return built.wait_for_side_chains()
        case "ask":
            return built.ask(f"ask{draw(st.integers(0, 3))}", int, question=_itself)
        case "loop_back":
            return _looped_back(draw, built, failing)
        case _:
            raise AssertionError(method)


def _looped_back(
    draw: st.DrawFn, built: Sequencer[Any, Any, Any], failing: bool
) -> Sequencer[Any, Any, Any]:
    """The sequencer with a loop_back to any step it may go back to."""
    steps, faults = without_loop_backs("", "", built.steps)
    starts: list[str] = []
    names: list[str] = []
    for step in steps:
        names.append(unique_name(step_name(step), names))
    for index, name in enumerate(names):
        # Before a map or a for_each the running value may be a list, and the end gives an int.
        apart = isinstance(steps[index], MapStep | ForEachStep)
        if not apart and not any(isinstance(step, RescueStep) for step in steps[index:]):
            starts.append(name)
    if faults or not starts:
        return built
    return built.loop_back(
        draw(st.sampled_from(starts)),
        draw(conditions()),
        max_iterations=draw(st.integers(1, 3)),
        on_exhausted=draw(st.sampled_from(["keep", "raise"] if failing else ["keep"])),
    )


def _condition(modulus: int, rest: int) -> Callable[[int], bool]:
    def condition(value: int) -> bool:
        return value % modulus == rest % modulus

    return condition


def _itself(value: int) -> int:
    return value


def scripted_answer(question: Question) -> int:
    """What every question of a random composition is answered: depends on its name and text."""
    return (int(question.text) * 3 + len(question.name) + int(question.name[-1])) % 1009


def _adding(number: int) -> Callable[[int], int]:
    def add(value: int) -> int:
        return value + number

    return add


def _spread(size: int) -> Callable[[int], list[int]]:
    def spread(value: int) -> list[int]:
        return [value + i for i in range(size)]

    return spread


def _sum_of_values(results: dict[str, int]) -> int:
    """Sums with weights, so that an exchanged order shows."""
    return sum((i + 1) * value for i, value in enumerate(results.values())) % 100_003


def _sum_in_order(results: Sequence[int]) -> int:
    return sum((i + 1) * value for i, value in enumerate(results)) % 100_003
