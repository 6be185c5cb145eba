"""Loops: the body first, bounds, counters, paths, loop_back."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import pytest

from flowstate import Context, Failure, handler, run_block, sequencer
from flowstate.errors import LoopExhausted
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def zero(failure: Failure[Exception]) -> int:
    return 0


async def test_do_until_runs_the_body_first() -> None:
    """Once at least, even where the condition held before; then until it holds."""
    built = sequencer("turn", int).do_until(lambda value: value >= 3, add_one, max_iterations=10)
    assert [await run_block(built, value) for value in (0, 2, 3, 9)] == [3, 3, 4, 10]


async def test_do_while_is_do_until_turned_round() -> None:
    """Again while the condition holds."""
    built = sequencer("turn", int).do_while(lambda value: value < 3, add_one, max_iterations=10)
    assert [await run_block(built, value) for value in (0, 2, 3, 9)] == [3, 3, 4, 10]


@pytest.mark.parametrize("bound", [1, 2, 7])
async def test_a_loop_ends_at_its_bound(bound: int) -> None:
    """It says which loop, after how often, and what to do; or it keeps the last value."""
    journal = Journal()
    body = journal.block("body", lambda value: value + 1)
    built = sequencer("turn", int).do_until(lambda _: False, body, max_iterations=bound)
    with pytest.raises(LoopExhausted, match=f"turn/body: still not done after {bound} iter"):
        await run_block(built, 0)
    assert journal.count("body starts") == bound
    kept = sequencer("turn", int).do_until(
        lambda _: False, body, max_iterations=bound, on_exhausted="keep"
    )
    assert await run_block(kept, 0) == bound
    assert await run_block(built.rescue(LoopExhausted, zero), 5) == 0


async def test_no_bound_is_no_bound() -> None:
    """``max_iterations=None`` goes on as long as it takes."""
    built = sequencer("turn", int).do_until(
        lambda value: value >= 5000, add_one, max_iterations=None
    )
    assert await run_block(built, 0) == 5000


async def test_counters_of_nested_loops_are_their_own() -> None:
    """An inner loop starts at zero each time; both bounds hold separately; paths are unique."""
    paths: list[str] = []

    @handler
    async def body(value: int, ctx: Context) -> int:
        paths.append(ctx.path)
        return value + 1

    inner = sequencer("inner", int).do_until(
        lambda value: value % 3 == 0, body, max_iterations=3, on_exhausted="raise"
    )
    built = sequencer("turn", int).do_until(
        lambda value: value >= 12, inner, max_iterations=4, on_exhausted="raise"
    )
    assert await run_block(built, 0) == 12
    assert paths == [
        f"turn/inner/iter[{outer}]/body/iter[{turn}]"
        for outer, turn in itertools.product(range(4), range(3))
    ]


async def test_an_exhausted_inner_loop_names_the_outer_turn() -> None:
    """Its error says in which turn of the loop around it."""
    inner = sequencer("inner", int).do_until(lambda v: v == 1, add_one, max_iterations=1)
    built = sequencer("turn", int).do_until(lambda _: False, inner, max_iterations=9)
    with pytest.raises(LoopExhausted, match=r"^turn/inner/iter\[1\]/add_one: still"):
        await run_block(built, 0)


async def test_a_loop_over_a_fork_over_a_loop_has_unique_paths() -> None:
    """Whatever stands in whatever, no two executions share a path."""
    paths: list[str] = []

    @handler
    async def leaf(value: int, ctx: Context) -> int:
        paths.append(ctx.path)
        return value

    twice = sequencer("twice", int).do_until(
        lambda _: False, leaf, max_iterations=2, on_exhausted="keep"
    )
    each = sequencer("each", int).for_each(range, twice).map(len)
    both = sequencer("both", int).step_all(each, each).map(max)
    built = sequencer("turn", int).do_until(
        lambda _: False, both, max_iterations=2, on_exhausted="keep"
    )
    await run_block(built, 3)
    assert len(set(paths)) == len(paths) == 2 * 2 * 3 * 2
    assert "turn/both/iter[1]/step_all/each#2/twice/item[2]/leaf/iter[1]" in paths


async def test_a_failing_body_ends_the_loop_and_can_be_rescued_around_it() -> None:
    """The next run of the same plan starts with fresh counters."""

    @handler
    async def third(value: int) -> int:
        if value == 2:
            raise ValueError(value)
        return value + 1

    loop = sequencer("loop", int).do_until(lambda _: False, third, max_iterations=5)
    built = sequencer("turn", int).do_until(
        lambda value: value == 0, loop.rescue(ValueError, zero), max_iterations=2
    )
    assert await run_block(built, 0) == 0
    with pytest.raises(ValueError, match="2") as caught:
        await run_block(loop, 0)
    assert caught.value.__notes__ == ["in step loop/third/iter[2], input: int"]


async def test_a_failing_condition_is_the_loops_failure() -> None:
    """A condition that raises ends the loop like a body that does."""
    built = sequencer("turn", int).do_until(lambda v: 1 // (v - 2) > 9, add_one, max_iterations=9)
    with pytest.raises(ZeroDivisionError):
        await run_block(built, 0)
    assert await run_block(built.rescue(ZeroDivisionError, zero), 0) == 0


async def test_exit_if_in_a_body_goes_on_with_the_next_turn() -> None:
    """It leaves the body with its value, and the loop asks its condition."""
    journal = Journal()
    body = (
        sequencer("body", int)
        .step(journal.block("first", lambda value: value + 1))
        .exit_if(lambda value: value < 3)
        .step(journal.block("rest", lambda value: value + 10))
    )
    built = sequencer("turn", int).do_until(lambda value: value > 10, body, max_iterations=9)
    assert await run_block(built, 0) == 13
    assert journal.starts() == ["first", "first", "first", "rest"]


async def test_loop_back_repeats_the_slice() -> None:
    """From the named step to here, while the condition holds; what stands before runs once."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(journal.block("once"))
        .step(journal.block("again", lambda value: value + 1))
        .tap(journal.block("look"))
        .loop_back("again", lambda value: value < 3, max_iterations=5)
        .step(journal.block("after"))
    )
    assert await run_block(built, 0) == 3
    assert journal.starts() == ["once", *["again", "look"] * 3, "after"]


async def test_loop_back_slices_nest() -> None:
    """An inner slice is a part of the outer one."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(journal.block("outer"))
        .step(journal.block("inner", lambda value: value + 1))
        .loop_back("inner", lambda value: value % 3 != 0, max_iterations=5)
        .loop_back("outer", lambda value: value < 6, max_iterations=5)
    )
    assert await run_block(built, 0) == 6
    assert journal.starts() == [*["outer", "inner", "inner", "inner"] * 2]


async def test_loop_back_is_bounded_like_a_loop() -> None:
    """At the bound it raises, or keeps the last value."""
    start = sequencer("turn", int).step(add_one)
    with pytest.raises(LoopExhausted, match="turn/add_one"):
        await run_block(start.loop_back("add_one", lambda _: True, max_iterations=3), 0)
    kept = start.loop_back("add_one", lambda _: True, max_iterations=3, on_exhausted="keep")
    assert await run_block(kept, 0) == 3


async def test_exit_if_in_a_slice_goes_on_with_the_next_turn() -> None:
    """A slice is a loop's body, and in a loop's body exit_if is a continue."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(journal.block("a", lambda value: value + 1))
        .exit_if(lambda value: value < 3)
        .step(journal.block("b"))
        .loop_back("a", lambda value: value < 3, max_iterations=5)
        .step(journal.block("after"))
    )
    assert await run_block(built, 0) == 3
    assert journal.starts() == ["a", "a", "a", "b", "after"]


async def test_a_rescue_behind_a_slice_covers_it() -> None:
    """The slice's errors are those of a step before the rescue."""

    @handler
    async def second(value: int) -> int:
        if value == 1:
            raise ValueError(value)
        return value + 1

    built = (
        sequencer("turn", int)
        .step(second)
        .loop_back("second", lambda _: True, max_iterations=5)
        .rescue(ValueError, zero)
    )
    assert await run_block(built, 0) == 0


async def test_a_long_loop_lets_others_run() -> None:
    """A loop whose body never waits gives way now and then, and a cancel ends it."""
    seen: list[int] = []

    @handler(inline=True)
    def count(value: int) -> int:
        seen.append(value)
        return value + 1

    built = sequencer("turn", int).do_until(lambda _: False, count, max_iterations=None)
    with anyio.move_on_after(0.1) as scope:
        await run_block(built, 0)
    assert scope.cancelled_caught
    assert len(seen) > 100


async def test_a_step_that_repeats_keeps_no_values() -> None:
    """What a turn made is let go when the next has begun."""
    import gc
    import weakref

    class Big:
        def __init__(self, number: int) -> None:
            self.number = number

    alive: list[weakref.ref[Big]] = []

    @handler
    async def body(value: Any) -> Any:
        made = Big(value.number + 1)
        alive.append(weakref.ref(made))
        if made.number % 50 == 0:
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 3
        return made

    built: Any = sequencer("turn").do_until(
        lambda value: value.number >= 200, body, max_iterations=None
    )
    assert (await run_block(built, Big(0))).number == 200
