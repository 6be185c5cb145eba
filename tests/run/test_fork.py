"""parallel, step_all and for_each: every branch on the same value, results in declared order."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from flowstate import Failure, handler, run_block, sequencer
from flowstate.errors import InvalidValue
from tests.run.journal import Journal, setting, stuck

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def error_of(failure: Failure[Exception]) -> Any:
    return failure.error


class Review(BaseModel):
    plan: int
    risk: str = "none"


def waiting(waits: int) -> Any:
    """A block that gives its input back after giving way so often."""

    async def wait(value: int) -> int:
        for _ in range(waits):
            await anyio.lowlevel.checkpoint()
        return value * 10 + waits

    return handler(name=f"wait{waits}")(wait)


async def test_every_branch_has_the_same_value_and_the_declared_place() -> None:
    """However long each takes, the dict is in the order of the branches."""
    built = sequencer("turn", int).parallel(slow=waiting(5), quick=waiting(0), mid=waiting(2))
    assert list((await run_block(built, 3)).items()) == [("slow", 35), ("quick", 30), ("mid", 32)]


async def test_a_constructor_takes_the_results_by_name() -> None:
    """``into`` is called with the results as keywords; what it raises is the step's error."""
    built = sequencer("turn", int).parallel(Review, plan=add_one)
    assert await run_block(built, 3) == Review(plan=4)

    class Picky(BaseModel):
        plan: int

        def model_post_init(self, context: object) -> None:
            raise KeyError(self.plan)

    with pytest.raises(KeyError, match="4"):
        await run_block(sequencer("turn", int).parallel(Picky, plan=add_one), 3)


async def test_step_all_gives_a_tuple_in_order() -> None:
    """The results of ``step_all`` are a tuple; one block may stand in it twice."""
    built = sequencer("turn", int).step_all(waiting(3), add_one, add_one)
    assert await run_block(built, 3) == (33, 4, 4)


async def test_one_branch_is_a_parallel_too() -> None:
    """The shape of the result doesn't depend on how many branches there are."""
    assert await run_block(sequencer("turn", int).parallel(only=add_one), 3) == {"only": 4}
    assert await run_block(sequencer("turn", int).step_all(add_one), 3) == (4,)


async def test_branches_run_side_by_side() -> None:
    """No branch waits for another to end: each waits here for the other to have begun."""
    both = anyio.Event()
    begun: list[str] = []

    def meeting(name: str) -> Any:
        async def meet(value: int) -> int:
            begun.append(name)
            if len(begun) == 2:
                both.set()
            await both.wait()
            return value

        return handler(name=name)(meet)

    with anyio.fail_after(10):
        await run_block(sequencer("turn", int).parallel(a=meeting("a"), b=meeting("b")), 1)


async def test_a_slow_branch_holds_up_nobody_but_the_join() -> None:
    """Within its own branch a later step starts while a sibling still runs its first."""
    journal = Journal()
    gone_on = anyio.Event()
    slow = journal.block("slow", until=gone_on)
    quick = (
        sequencer("quick", int)
        .step(journal.block("first"))
        .step(journal.block("second", setting(gone_on)))
    )
    with anyio.fail_after(10):
        await run_block(sequencer("turn", int).parallel(slow=slow, quick=quick).map(lambda _: 0), 1)
    assert journal.lines.index("second is over") < journal.lines.index("slow ends")


@pytest.mark.parametrize("method", ["parallel", "step_all", "for_each"])
async def test_siblings_of_a_failing_branch_have_ended_before_it_is_raised(method: str) -> None:
    """They are cancelled, their clean-up is waited for, and the bare error comes out."""
    journal = Journal()
    failing = journal.failing("bad", ValueError("bad"), waits=3)
    other = stuck(journal, "other", cleaning=5)
    start = sequencer("turn", int)
    built: Any
    if method == "parallel":
        built = start.parallel(bad=failing, other=other)
    elif method == "step_all":
        built = start.step_all(other, failing, other)
    else:
        either = sequencer("either", int).branch((lambda v: v == 1, failing), otherwise=other)
        built = start.map(lambda _: [0, 1, 2]).for_each(either)
    with pytest.raises(ValueError, match="bad") as caught:
        await run_block(built, 1)
    assert journal.running == 0
    assert journal.count("other is cancelled") == journal.count("other starts") > 0
    assert journal.lines[-1] == "other is over"
    assert not isinstance(caught.value, ExceptionGroup)


async def test_a_branch_that_had_not_begun_does_not_begin() -> None:
    """With a bound of one the branches after the failing one never start."""
    journal = Journal()
    built = sequencer("turn", int).parallel(
        a=journal.block("a"),
        b=journal.failing("b", ValueError("b")),
        c=journal.block("c"),
        max_concurrency=1,
    )
    with pytest.raises(ValueError, match="b"):
        await run_block(built, 1)
    assert journal.starts() == ["a", "b"]


async def test_the_error_that_came_first_is_raised_and_others_are_notes_and_items() -> None:
    """Two branches fail: a rescue sees the first, and nothing is lost of the other."""
    journal = Journal()
    late = stuck(journal, "late", fails_cleaning=KeyError("clean-up"))
    built = sequencer("turn", int).parallel(
        bad=journal.failing("bad", ValueError("first"), waits=2), late=late
    )
    events: list[Any] = []
    with pytest.raises(ValueError, match="first") as caught:
        await run_block(built, 1, emit=events.append)
    notes = "\n".join(caught.value.__notes__)
    assert "in step turn/parallel/bad, input: int" in notes
    assert "KeyError('clean-up')" in notes
    (item,) = [event.item for event in events]
    assert (item.content.code, item.content.message) == ("KeyError", "'clean-up'")
    assert item.provenance.path == "turn/parallel/late"


async def test_an_error_looks_the_same_however_deep_the_forks() -> None:
    """A rescue for a plain error matches it out of forks in forks."""
    journal = Journal()
    inner = sequencer("inner", int).parallel(
        bad=journal.failing("bad", ValueError("deep"), waits=1), ok=stuck(journal, "ok")
    )
    built = sequencer("turn", int).parallel(inner=inner, other=stuck(journal, "other"))
    rescued = built.rescue(ValueError, error_of)
    error = await run_block(rescued, 1)
    assert isinstance(error, ValueError)
    assert error.args == ("deep",)
    assert journal.running == 0


@pytest.mark.parametrize("bound", [1, 2, 3, 16, 40, None])
async def test_for_each_is_a_map_in_input_order_and_keeps_its_bound(bound: int | None) -> None:
    """At every bound the results are those of map, and the bound is reached and not passed."""
    count = 40
    full = min(bound or count, count)
    journal = Journal()
    arrived = anyio.Event()

    async def body(value: int) -> int:
        # Nobody goes on before as many as may run are here.
        journal.running += 1
        journal.peak = max(journal.peak, journal.running)
        if journal.running == full:
            arrived.set()
        await arrived.wait()
        for _ in range(value % 3):
            await anyio.lowlevel.checkpoint()
        journal.running -= 1
        return value * value

    built = sequencer("turn", list[int]).for_each(handler(body), max_concurrency=bound)
    with anyio.fail_after(20):
        assert await run_block(built, list(range(count))) == [n * n for n in range(count)]
    assert journal.peak == full


@pytest.mark.parametrize("bound", [1, 2, None])
async def test_a_parallel_keeps_its_bound(bound: int | None) -> None:
    """``max_concurrency`` holds for branches as it does for entries, and drops none."""
    journal = Journal()
    branches = {f"b{n}": journal.block(f"b{n}", waits=3) for n in range(5)}
    built = sequencer("turn", int).parallel(max_concurrency=bound, **branches)
    assert await run_block(built, 7) == {f"b{n}": 7 for n in range(5)}
    assert journal.peak == (bound or 5)


@pytest.mark.parametrize("bound", [None, 1, 4])
async def test_no_entries_are_no_work(bound: int | None) -> None:
    """An empty list is answered at once with an empty list, wherever it stands."""
    each = sequencer("each", list[int]).for_each(add_one, max_concurrency=bound)
    after = each.map(len)
    journal = Journal()
    whole = (
        sequencer("turn", list[int])
        .parallel(one=after, two=after)
        .map(lambda both: both["one"] + both["two"])
        .do_until(
            lambda _: True, sequencer("again", int).map(lambda _: []).step(after), max_iterations=2
        )
        .step(journal.block("next"))
    )
    with anyio.fail_after(10):
        assert await run_block(each, []) == []
        assert await run_block(whole, []) == 0
    assert journal.starts() == ["next"]


@pytest.mark.parametrize("kind", [tuple, dict.fromkeys, iter, frozenset])
async def test_for_each_goes_through_anything(kind: Any) -> None:
    """Tuples, dicts, iterators, sets: whatever can be gone through."""
    built: Any = sequencer("turn").for_each(add_one)
    assert await run_block(built, kind([3, 1])) == [n + 1 for n in kind([3, 1])]


async def test_for_each_with_a_connector_chooses_the_entries() -> None:
    """The connector gives what is gone through."""
    built = sequencer("turn", int).for_each(range, add_one)
    assert await run_block(built, 3) == [1, 2, 3]


async def test_what_cant_be_gone_through_says_so() -> None:
    """An edge that was unknown when the plan was built fails with the step and the type."""
    built: Any = sequencer("turn").map(lambda value: value).for_each(add_one)
    with pytest.raises(InvalidValue, match=r"turn/add_one: expected something to go through.*int"):
        await run_block(built, 5)


async def test_entries_are_checked_one_by_one() -> None:
    """A wrong entry fails its own branch, and the error says which."""
    built: Any = sequencer("turn").map(lambda value: value).for_each(add_one)
    with pytest.raises(InvalidValue) as caught:
        await run_block(built, [1, "two", 3])
    assert "in step turn/add_one/item[1], input: str of 3" in caught.value.__notes__


@settings(max_examples=40)
@given(delays=st.lists(st.integers(0, 6), min_size=5, max_size=5), nested=st.booleans())
async def test_a_join_fires_once_with_every_value(delays: list[int], nested: bool) -> None:
    """A for_each beside a constant, in a second parallel too: the step behind runs once."""
    calls: list[Any] = []

    async def slow_add(value: int) -> int:
        for _ in range(delays[value]):
            await anyio.lowlevel.checkpoint()
        return value + 1

    async def const(value: object) -> int:
        for _ in range(delays[4]):
            await anyio.lowlevel.checkpoint()
        return 10

    each = sequencer("each", list[int]).for_each(handler(slow_add))
    joined: Any = sequencer("turn", list[int]).parallel(each=each, one=handler(const))
    if nested:
        joined = sequencer("outer", list[int]).parallel(in_=joined, one=handler(const))
    joined = joined.tap(lambda value: calls.append(value))
    result = await run_block(joined, [1, 2, 3])
    inner = {"each": [2, 3, 4], "one": 10}
    assert result == ({"in_": inner, "one": 10} if nested else inner)
    assert calls == [result]


async def test_a_fork_lets_others_run() -> None:
    """A fork over very many entries that never wait doesn't keep the event loop to itself."""
    turns = 0
    done = False

    async def count() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        built = sequencer("turn", list[int]).for_each(add_one, max_concurrency=4)
        await run_block(built, list(range(100_000)))
        done = True
    assert turns > 3


async def test_random_schedules_leave_nothing_running() -> None:
    """Branches that fail, end and wait in any order: the journal closes every time."""
    rng = random.Random(4)
    for _ in range(60):
        journal = Journal()
        branches: dict[str, Any] = {}
        for name in "abcd":
            waits = rng.randrange(5)
            if rng.random() < 0.4:
                branches[name] = journal.failing(name, ValueError(name), waits=waits)
            else:
                branches[name] = journal.block(name, waits=waits, cleaning=rng.randrange(3))
        bound = rng.choice([None, 1, 2])
        built = sequencer("turn", int).parallel(max_concurrency=bound, **branches)
        with contextlib.suppress(ValueError):
            await run_block(built, 1)
        assert journal.running == 0
        assert journal.peak <= (bound or 4)
