"""Laws of the sequencer's methods, over random compositions and random schedules."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Handler, Retry, build_plan, handler, run_block, sequencer
from flowstate.define.handler import make_handler
from flowstate.define.step import RunStep, TapStep
from flowstate.run.frame import NodeEvent
from flowstate.testing.compositions import METHODS, sequencers
from flowstate.testing.oracle import outcome_of
from tests.properties.effort import examples

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])

# With these alone every schedule ends the same.
ORDERED = [m for m in METHODS if m not in ("race", "parallel", "step_all", "for_each")]

WAITS = st.integers(0, 5)


def block(name: str, act: Callable[[Any], Any], waits: int = 0) -> Handler[Any, Any]:
    """A block of any type that gives way so often first."""

    async def run(value: Any) -> Any:
        for _ in range(waits):
            await anyio.lowlevel.checkpoint()
        return act(value)

    return make_handler(run, name=name)


async def ends(built: Any, value: Any, listener: Any = None) -> Any:
    """How running it ends, as a value."""
    try:
        return ("value", await run_block(built, value, listener=listener))
    except Exception as error:
        return outcome_of(error)


def with_step(built: Any, at: int, step: Any) -> Any:
    """The sequencer with this step before the step of that number."""
    steps = list(built.steps)
    steps.insert(min(at, len(steps)), step)
    chain: Any = None
    for each in steps:
        chain = (chain, each)
    return dataclasses.replace(built, chain=chain)


@BACKENDS
@examples(80)
@given(
    built=sequencers(methods=ORDERED), value=st.integers(0, 9), at=st.integers(0, 6), waits=WAITS
)
def test_a_tap_anywhere_changes_nothing(
    backend: str, built: Any, value: int, at: int, waits: int
) -> None:
    """Whatever is composed, with a tap put in at any step it ends the same."""
    tap = TapStep(block=block("looks", lambda value: ("something", "else"), waits))

    async def law() -> None:
        assert await ends(with_step(built, at, tap), value) == await ends(built, value)

    anyio.run(law, backend=backend)


@BACKENDS
@examples(80)
@given(built=sequencers(methods=ORDERED), value=st.integers(0, 9), at=st.integers(0, 6))
def test_a_step_if_that_is_not_met_changes_nothing(
    backend: str, built: Any, value: int, at: int
) -> None:
    """Its block doesn't run, wherever it stands."""
    ran: list[Any] = []
    never = RunStep(block=block("never", ran.append), condition=lambda _: False)

    async def law() -> None:
        assert await ends(with_step(built, at, never), value) == await ends(built, value)

    anyio.run(law, backend=backend)
    assert ran == []


@BACKENDS
@examples(60)
@given(
    entries=st.lists(st.tuples(st.integers(0, 99), WAITS), max_size=20),
    bound=st.sampled_from([1, 2, 16, None]),
)
def test_for_each_is_map(backend: str, entries: list[tuple[int, int]], bound: int | None) -> None:
    """In input order, at every bound, with no more at once than that."""
    running, peak = 0, 0

    async def body(entry: tuple[int, int]) -> int:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(entry[1]):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return entry[0] * 7

    built: Any = sequencer("turn").for_each(handler(body), max_concurrency=bound)
    result = anyio.run(run_block, built, entries, backend=backend)
    assert result == [number * 7 for number, _ in entries]
    assert peak <= (bound or len(entries))


@BACKENDS
@examples(60)
@given(waits=st.lists(WAITS, min_size=1, max_size=8), bound=st.sampled_from([1, 2, None]))
def test_results_stand_in_declared_order(backend: str, waits: list[int], bound: int | None) -> None:
    """However long each branch takes."""

    def numbered(number: int) -> Callable[[Any], Any]:
        return lambda value: (value, number)

    blocks = [block(f"b{n}", numbered(n), wait) for n, wait in enumerate(waits)]
    as_tuple: Any = sequencer("turn", int).step_all(*blocks, max_concurrency=bound)
    as_dict: Any = sequencer("turn", int).parallel(
        max_concurrency=bound, **{each.name: each for each in blocks}
    )
    expected = [(3, n) for n in range(len(waits))]
    assert anyio.run(run_block, as_tuple, 3, backend=backend) == tuple(expected)
    results = anyio.run(run_block, as_dict, 3, backend=backend)
    assert list(results.items()) == [(f"b{n}", each) for n, each in enumerate(expected)]


BRANCH = st.tuples(WAITS, st.booleans(), st.integers(0, 3))
"""How often a branch gives way, whether it fails then, and how often while it is cleaned up."""


class Branches:
    """Branches that wait, fail and clean up as told, and what was seen of them."""

    def __init__(self, told: list[tuple[int, bool, int]]) -> None:
        self.open = 0
        self.failed: list[int] = []
        self.won: list[int] = []
        self.blocks = [self._block(n, *each) for n, each in enumerate(told)]

    def _block(self, number: int, waits: int, fails: bool, cleaning: int) -> Handler[Any, Any]:
        async def run(value: int) -> int:
            self.open += 1
            try:
                for _ in range(waits):
                    await anyio.lowlevel.checkpoint()
                if fails:
                    self.failed.append(number)
                    raise ValueError(number)
                self.won.append(number)
                return number
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    for _ in range(cleaning):
                        await anyio.lowlevel.checkpoint()
                raise
            finally:
                self.open -= 1

        return make_handler(run, name=f"b{number}", input_type=int, output_type=int)


@BACKENDS
@examples(80)
@given(told=st.lists(BRANCH, min_size=1, max_size=6), bound=st.sampled_from([1, 2, None]))
def test_a_failing_branch_is_raised_when_all_others_have_ended(
    backend: str, told: list[tuple[int, bool, int]], bound: int | None
) -> None:
    """The bare error of the branch that failed first; the results if none did."""
    branches = Branches(told)

    async def law() -> None:
        built: Any = sequencer("turn", int).step_all(*branches.blocks, max_concurrency=bound)
        ended = await ends(built, 1)
        assert branches.open == 0
        if any(fails for _, fails, _ in told):
            assert ended == ("error", (ValueError, str(branches.failed[0])))
        else:
            assert ended == ("value", tuple(range(len(told))))

    anyio.run(law, backend=backend)


@BACKENDS
@examples(80)
@given(told=st.lists(BRANCH, min_size=1, max_size=6))
def test_a_race_is_won_by_the_first_success_and_its_losers_have_ended(
    backend: str, told: list[tuple[int, bool, int]]
) -> None:
    """Failures only count when there is nothing else; then they are a group, in declared order."""
    branches = Branches(told)

    async def law() -> None:
        ended = await ends(sequencer("turn", int).race(*branches.blocks), 1)
        assert branches.open == 0
        if all(fails for _, fails, _ in told):
            expected = tuple(("error", (ValueError, str(n))) for n in range(len(told)))
            assert ended == ("group", expected)
        else:
            assert ended == ("value", branches.won[0])

    anyio.run(law, backend=backend)


@BACKENDS
@examples(60)
@given(told=st.lists(BRANCH, min_size=1, max_size=6))
def test_step_any_tries_in_order(backend: str, told: list[tuple[int, bool, int]]) -> None:
    """Each until one succeeds, and none after it."""
    branches = Branches(told)
    first = next((n for n, (_, fails, _) in enumerate(told) if not fails), None)

    async def law() -> None:
        ended = await ends(sequencer("turn", int).step_any(*branches.blocks), 1)
        if first is None:
            assert ended[0] == "group"
            assert branches.failed == list(range(len(told)))
        else:
            assert ended == ("value", first)
            assert branches.failed == list(range(first))

    anyio.run(law, backend=backend)


@BACKENDS
@examples(60)
@given(
    before=sequencers(methods=ORDERED, max_steps=3, max_depth=1),
    behind=sequencers(methods=ORDERED, max_steps=3, max_depth=1),
    after=sequencers(methods=ORDERED, max_steps=3, max_depth=1),
    value=st.integers(0, 9),
    leaves=st.booleans(),
)
def test_exit_if_leaves_one_level(
    backend: str, before: Any, behind: Any, after: Any, value: int, leaves: bool
) -> None:
    """What stands behind it in its own sequencer is left out, and nothing else."""
    inner = sequencer("inner", int).step(before).exit_if(lambda _: leaves).step(behind)
    built = sequencer("turn", int).step(inner).step(after)
    plain = sequencer("turn", int).step(before)
    if not leaves:
        plain = plain.step(behind)

    async def law() -> None:
        assert await ends(built, value) == await ends(plain.step(after), value)

    anyio.run(law, backend=backend)


@BACKENDS
@examples(60)
@given(
    inner_bound=st.integers(1, 5),
    outer_bound=st.integers(1, 5),
    inner_stop=st.integers(1, 7),
    outer_stop=st.integers(1, 30),
    until=st.booleans(),
)
def test_loops_run_once_at_least_and_as_often_as_they_may_at_most(
    backend: str, inner_bound: int, outer_bound: int, inner_stop: int, outer_stop: int, until: bool
) -> None:
    """Counters of nested loops are their own: each as a plain Python loop would count."""
    turns = 0

    async def body(value: int) -> int:
        nonlocal turns
        turns += 1
        return value + 1

    def loop(name: str, inside: Any, stop: Callable[[int], bool], bound: int) -> Any:
        start = sequencer(name, int)
        if until:
            return start.do_until(stop, inside, max_iterations=bound, on_exhausted="keep")
        return start.do_while(
            lambda value: not stop(value), inside, max_iterations=bound, on_exhausted="keep"
        )

    inner = loop("inner", handler(body), lambda value: value % inner_stop == 0, inner_bound)
    built = loop("outer", inner, lambda value: value >= outer_stop, outer_bound)

    value = expected_turns = 0
    for _ in range(outer_bound):
        for _ in range(inner_bound):
            value += 1
            expected_turns += 1
            if value % inner_stop == 0:
                break
        if value >= outer_stop:
            break
    assert anyio.run(run_block, built, 0, backend=backend) == value
    assert turns == expected_turns


@BACKENDS
@examples(100)
@given(built=sequencers(max_depth=3), value=st.integers(0, 9))
def test_every_execution_has_a_path_of_its_own(backend: str, built: Any, value: int) -> None:
    """Loops in forks in loops: no two nodes that ran are called the same."""
    paths: Counter[str] = Counter()

    def note(event: NodeEvent) -> None:
        what, frame, pc, turns, _ = event
        place = frame.program.places[pc]
        fn = frame.program.instructions[pc][1]
        # A connector is a part of its step.
        if what == "start" and (fn is None or fn is not place.site.edge.connector):
            paths[frame.path(place, turns)] += 1

    anyio.run(ends, built, value, note, backend=backend)
    assert [path for path, count in paths.items() if count > 1] == []


@BACKENDS
@examples(80)
@given(data=st.data(), value=st.integers(0, 9))
def test_every_block_that_started_has_ended_when_the_run_has(
    backend: str, data: st.DataObject, value: int
) -> None:
    """Branches, losers and side chains: none outlives the run."""
    events: Counter[str] = Counter()
    built = data.draw(sequencers(recorder=lambda what, name: events.update([what])))
    anyio.run(ends, built, value, backend=backend)
    assert events["start"] == events["end"] + events["cancel"]


@BACKENDS
@examples(60)
@given(
    attempts=st.integers(1, 5),
    fails=st.integers(0, 6),
    depth=st.integers(0, 3),
    named=st.booleans(),
)
def test_a_block_is_tried_as_often_as_it_may(
    backend: str, attempts: int, fails: int, depth: int, named: bool
) -> None:
    """At any depth, for the errors that are named."""
    tries = 0

    async def flaky(value: int) -> int:
        nonlocal tries
        tries += 1
        if tries <= fails:
            raise ValueError(tries)
        return tries

    built: Any = handler(flaky)
    for level in range(depth):
        built = sequencer(f"level{level}", int).step_all(built).map(lambda results: results[0])
    retry = Retry(attempts=attempts, retry_on=(ValueError,) if named else (), delay=0)
    built = sequencer("turn", int).step(built.configure(retry=retry))
    ended = anyio.run(ends, built, 0, backend=backend)
    allowed = attempts if named else 1
    if fails < allowed:
        assert ended == ("value", fails + 1)
    else:
        assert ended == ("error", (ValueError, str(allowed)))
    assert tries == min(fails + 1, allowed)


@examples(50)
@given(built=sequencers(methods=ORDERED), value=st.integers(0, 9))
def test_both_loops_give_the_same(built: Any, value: int) -> None:
    """One plan, on asyncio and on trio, however often."""
    plan = build_plan(built)
    ended = [
        anyio.run(ends, plan, value, backend=backend) for backend in ("asyncio", "trio", "asyncio")
    ]
    assert ended[0] == ended[1] == ended[2]
