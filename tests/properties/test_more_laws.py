"""
Laws of forks and of what runs beside them, for random shapes and schedules: bounds are reached and
not passed, joins consume what their forks started, and side chains end with their request.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import anyio
import anyio.lowlevel
import pytest
import trio
from hypothesis import given, register_random
from hypothesis import strategies as st

from flowstate import Block, Retry, Runtime, action, define_flow, handler, run_block, sequencer
from flowstate.define.handler import make_handler
from flowstate.testing import RecordingSink, simulate
from flowstate.testing.compositions import sequencers
from flowstate.testing.strategies import Schedule, schedules

# trio runs tasks in random order; so that a failure can be played again, in the same one.
_order: random.Random = cast("Any", trio)._core._run._r
register_random(_order)

BACKENDS = ["asyncio", "trio"]


def living_tasks() -> int:
    """How many tasks there are, on the backend that runs this."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no asyncio here
        return trio.lowlevel.current_statistics().tasks_living


# --- bounds -------------------------------------------------------------------------------------


class Crowd:
    """Blocks that wait for as many to run as are expected to at once, and in the end give up."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.running = 0
        self.peak = 0

    def block(self, waits: int) -> Block[int, int]:
        """Doubles; gives way so often once the crowd is complete."""

        async def double(value: int) -> int:
            self.running += 1
            self.peak = max(self.peak, self.running)
            patience = 200
            while self.peak < self.expected and patience:
                patience -= 1
                await anyio.lowlevel.checkpoint()
            for _ in range(waits):
                await anyio.lowlevel.checkpoint()
            self.running -= 1
            return value * 2

        return make_handler(double)


WRAPPED: dict[str, Callable[[Block[int, int]], Block[int, int]]] = {
    "as it is": lambda block: block,
    "in a sequencer": lambda block: sequencer("inner", int).step(block).map(lambda n: n),
    "in a retry": lambda block: block.configure(retry=Retry(attempts=2)),
    "in a deadline": lambda block: block.configure(deadline=60),
    "in a loop": lambda block: sequencer("inner", int).do_until(
        lambda _: True, block, max_iterations=1
    ),
    "in a branch": lambda block: sequencer("inner", int).branch(
        (lambda n: n % 2 == 0, block), otherwise=block
    ),
}


async def _bounded(size: int, bound: int | None, waits: int, wrapped: str, method: str) -> None:
    expected = size if bound is None else min(size, bound)
    crowd = Crowd(expected)
    block = WRAPPED[wrapped](crowd.block(waits))
    if method == "for_each":
        each = sequencer("turn", int).for_each(lambda n: range(n), block, max_concurrency=bound)
        built, results = each, [2 * n for n in range(size)]
    else:
        branches = {f"b{number}": block for number in range(size)}
        forked = sequencer("turn", int).parallel(max_concurrency=bound, **branches)
        built, results = forked.map(lambda named: list(named.values())), [2 * size] * size
    assert await run_block(built, size) == results
    assert crowd.peak == expected
    assert crowd.running == 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bound", [1, 2, 16, "n", None])
@given(
    size=st.integers(1, 40),
    waits=st.integers(0, 3),
    wrapped=st.sampled_from(sorted(WRAPPED)),
    method=st.sampled_from(["for_each", "for_each", "parallel"]),
)
def test_as_many_run_at_once_as_the_bound_says(
    backend: str, bound: Any, size: int, waits: int, wrapped: str, method: str
) -> None:
    """
    Suspending blocks: the peak is the bound, or all where there are fewer or no bound; the results
    are those of map.
    """
    chosen = size if bound == "n" else bound
    anyio.run(_bounded, size, chosen, waits, wrapped, method, backend=backend)


# --- joins --------------------------------------------------------------------------------------

Shape: TypeAlias = "tuple[str, Any]"
"""``("leaf", (name, waits))``, ``("all" or "parallel", shapes)``, ``("each", (size, shape))``."""


def shapes(*, failing: bool) -> st.SearchStrategy[Shape]:
    """Forks in forks, over leaves that wait and, if asked for, some that fail."""
    names = ["a", "b", "c", "fails"] if failing else ["a", "b", "c"]
    leaf = st.tuples(st.sampled_from(names), st.integers(0, 3)).map(lambda drawn: ("leaf", drawn))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(
                st.sampled_from(["all", "parallel"]), st.lists(inner, min_size=1, max_size=4)
            ),
            st.tuples(st.just("each"), st.tuples(st.integers(0, 4), inner)),
        ),
        max_leaves=8,
    )


@dataclass
class Issued:
    """Leaves that each give a value nobody else gives, and count what becomes of them."""

    bound: int | None
    values: list[str] = field(default_factory=list[str])
    started: int = 0
    over: int = 0

    def block(self, shape: Shape) -> Block[int, list[str]]:
        """The composition of this shape; its output is every leaf's value, in order."""
        match shape:
            case ("leaf", (name, waits)):
                return self._leaf(name, waits)
            case ("each", (size, inner)):
                block = self.block(inner)
                return (
                    sequencer("each", int)
                    .for_each(lambda _: range(size), block, max_concurrency=self.bound)
                    .map(_joined)
                )
            case ("all", inner):
                blocks = [self.block(each) for each in inner]
                return (
                    sequencer("all", int).step_all(*blocks, max_concurrency=self.bound).map(_joined)
                )
            case (_, inner):
                named = {f"b{number}": self.block(each) for number, each in enumerate(inner)}
                return (
                    sequencer("parallel", int)
                    .parallel(max_concurrency=self.bound, **named)
                    .map(lambda results: _joined(results.values()))
                )

    def _leaf(self, name: str, waits: int) -> Block[int, list[str]]:
        async def give(value: int) -> list[str]:
            self.started += 1
            try:
                for _ in range(waits):
                    await anyio.lowlevel.checkpoint()
                if name == "fails":
                    raise ValueError(name)
                self.values.append(f"{name}{len(self.values)}")
                return self.values[-1:]
            finally:
                self.over += 1

        return make_handler(give, name=name)


def _joined(parts: Iterable[list[str]]) -> list[str]:
    return [value for part in parts for value in part]


def _leaves(shape: Shape) -> list[str]:
    """The names of the leaves in the order in which a join has their values."""
    match shape:
        case ("leaf", (str(name), _)):
            return [name]
        case ("each", (int(size), inner)):
            return _leaves(inner) * size
        case (_, inner):
            return [name for each in inner for name in _leaves(each)]


@given(
    shape=shapes(failing=False),
    bound=st.sampled_from([None, 1, 2]),
    schedule=schedules(cancels=False),
)
def test_a_join_consumes_one_value_of_each_branch(
    shape: Shape, bound: int | None, schedule: Schedule
) -> None:
    """Every value that a leaf gave is in the output, once, in its declared place."""
    issued = Issued(bound)
    kind, output = simulate(issued.block(shape), 1, **schedule).outcome
    assert kind == "value"
    assert Counter(output) == Counter(issued.values)
    assert [value.rstrip("0123456789") for value in output] == _leaves(shape)
    assert issued.started == issued.over == len(_leaves(shape))


async def _forked(shape: Shape, bound: int | None) -> None:
    before = living_tasks()
    issued = Issued(bound)
    try:
        output = await run_block(issued.block(shape), 1)
    except ValueError:
        assert "fails" in _leaves(shape)
    else:
        assert "fails" not in _leaves(shape)
        assert Counter(output) == Counter(issued.values)
    assert issued.started == issued.over
    assert living_tasks() == before


@pytest.mark.parametrize("backend", BACKENDS)
@given(shape=shapes(failing=True), bound=st.sampled_from([None, 1, 2]))
def test_a_failing_join_leaves_no_branch_behind(
    backend: str, shape: Shape, bound: int | None
) -> None:
    """When the failure is raised every branch that was started is over; else all are consumed."""
    anyio.run(_forked, shape, bound, backend=backend)


# --- side chains --------------------------------------------------------------------------------

BESIDE = ["step", "parallel", "for_each", "race", "rescue", "do_until", "router"]


async def _requested(block: Block[int, int], log: list[str], cancel_after: int | None) -> None:
    before = living_tasks()
    ended: list[int] = []

    @handler
    async def gives_way(value: int) -> int:
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        ended.append(value)
        return value

    turn = action("turn", sequencer("turn", int).side_chain(gives_way).step(block))
    with anyio.fail_after(30):
        async with Runtime(define_flow("f", actions=[turn]), trace=True) as runtime:
            run = await runtime.dispatch(turn, 1, session="s1")
            if cancel_after is not None:
                for _ in range(cancel_after):
                    await anyio.lowlevel.checkpoint()
                run.cancel()
            status = await run.finished()
            assert status in {"completed", "failed", "cancelled"}
            assert run.side_chains.running == 0
            # Only a cancel cuts one off that no branch began.
            assert ended == [1] or cancel_after is not None
            told = Counter(log)
            assert told["start"] == told["end"] + told["cancel"]
            sink = await RecordingSink().read(run.events(visibility="trace"))
            assert sink.open == []
            stored = [item async for item in runtime.session_items("s1", visibility="trace")]
            assert [item for item in stored if not item.settled] == []
    assert living_tasks() == before


@pytest.mark.parametrize("backend", BACKENDS)
@given(data=st.data(), cancel_after=st.none() | st.integers(0, 25))
def test_every_side_chain_is_settled_when_the_request_ends(
    backend: str, data: st.DataObject, cancel_after: int | None
) -> None:
    """
    Completed, failed or cancelled at any point: no side chain runs on, every block that started
    is over, every item is settled, and no task is left.
    """
    log: list[str] = []
    methods = [*BESIDE, "side_chain", "side_chain", "for_each_side_chain", "wait_for_side_chains"]
    block = data.draw(
        sequencers(
            max_steps=4, max_depth=1, methods=methods, recorder=lambda what, _: log.append(what)
        )
    )
    anyio.run(_requested, block, log, cancel_after, backend=backend)
