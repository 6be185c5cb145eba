"""rescue, exit_if, throw_if: who catches what, and where the chain goes on."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from flowstate import Failure, handler, run_block, sequencer
from flowstate.errors import FlowError
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def fails(value: int) -> int:
    raise ValueError(f"no {value}")


def mends(name: str, result: int = 0) -> Any:
    """A rescue's handler that gives a number."""

    async def mend(failure: Failure[Exception]) -> int:
        return result

    return handler(name=name)(mend)


def raises(name: str, error: Exception) -> Any:
    """A rescue's handler that raises."""

    async def mend(failure: Failure[Exception]) -> int:
        raise error

    return handler(name=name)(mend)


async def test_the_chain_goes_on_after_the_rescue_with_its_value() -> None:
    """Steps between the failing one and the rescue are left out; those after it run."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(fails)
        .step(journal.block("between"))
        .rescue(ValueError, mends("mend", 40))
        .step(add_one)
    )
    assert await run_block(built, 3) == 41
    assert journal.lines == []


async def test_a_rescue_is_passed_over_where_nothing_failed() -> None:
    """Its handler doesn't run, and the value stays."""
    built = sequencer("turn", int).step(add_one).rescue(Exception, mends("mend", 9)).step(add_one)
    assert await run_block(built, 3) == 5


async def test_a_rescue_covers_only_what_stands_before_it() -> None:
    """A step behind it isn't covered, whatever it names."""
    built = sequencer("turn", int).step(add_one).rescue(Exception, mends("mend")).step(fails)
    with pytest.raises(ValueError, match="no 4"):
        await run_block(built, 3)


async def test_the_handler_is_given_the_bare_error_the_value_and_the_step() -> None:
    """The failure tells what the failing step was given and where it stood."""
    seen: list[Failure[Exception]] = []

    @handler
    async def look(failure: Failure[Exception]) -> int:
        seen.append(failure)
        return 0

    error = ValueError("mine")

    @handler
    async def mine(text: str) -> int:
        raise error

    built = sequencer("turn", int).step(add_one).step(str, mine).rescue(ValueError, look)
    await run_block(built, 3)
    (failure,) = seen
    assert failure.error is error
    assert failure.value == "4"
    assert failure.step == "turn/mine"


async def test_an_error_that_is_not_named_goes_on_to_the_next_rescue() -> None:
    """The first of the rescues further down that names it takes it."""
    built = (
        sequencer("turn", int)
        .step(fails)
        .rescue(KeyError, mends("first", 1))
        .rescue((OSError, ValueError), mends("second", 2))
        .rescue(Exception, mends("third", 3))
    )
    assert await run_block(built, 0) == 2
    with pytest.raises(ValueError, match="no 0"):
        await run_block(sequencer("turn", int).step(fails).rescue(KeyError, mends("a")), 0)


async def test_a_handlers_own_error_goes_to_the_next_rescue() -> None:
    """A rescue covers earlier rescues too, and never itself."""
    built = (
        sequencer("turn", int)
        .step(fails)
        .rescue(ValueError, raises("first", KeyError("again")))
        .rescue(ValueError, mends("second", 2))
        .rescue(KeyError, mends("third", 3))
    )
    assert await run_block(built, 0) == 3
    alone = sequencer("turn", int).step(fails).rescue(Exception, raises("first", OSError("out")))
    with pytest.raises(OSError, match="out") as caught:
        await run_block(alone, 0)
    assert caught.value.__notes__ == ["in step turn/first, input: Failure"]


async def test_a_handler_may_raise_the_error_again() -> None:
    """It keeps the place it came from."""

    @handler
    async def again(failure: Failure[Exception]) -> int:
        raise failure.error

    built = sequencer("turn", int).step(fails).rescue(ValueError, again)
    with pytest.raises(ValueError, match="no 0") as caught:
        await run_block(built, 0)
    assert caught.value.__notes__ == ["in step turn/fails, input: int"]


async def test_the_rescues_of_inner_sequencers_come_first() -> None:
    """An inner rescue that takes the error keeps it from the outer; one that doesn't lets it on."""
    inner = sequencer("inner", int).step(fails).rescue(ValueError, mends("inner", 1)).step(add_one)
    outer = sequencer("outer", int).step(inner).rescue(Exception, mends("outer", 50))
    assert await run_block(outer, 0) == 2
    other = sequencer("inner", int).step(fails).rescue(KeyError, mends("inner", 1))
    assert await run_block(sequencer("o", int).step(other).rescue(Exception, mends("m", 5)), 0) == 5


@pytest.mark.parametrize("place", ["step", "tap", "parallel", "for_each", "loop", "branch", "race"])
async def test_a_rescue_means_the_same_whatever_it_stands_in(place: str) -> None:
    """A handled error is handled: nothing around it raises it again."""
    safe = sequencer("safe", int).step(fails).rescue(ValueError, mends("mend", 7))
    start = sequencer("turn", int)
    built: Any
    expected: Any
    match place:
        case "step":
            built, expected = start.step(safe), 7
        case "tap":
            built, expected = start.tap(safe), 0
        case "parallel":
            built, expected = start.step_all(safe, add_one), (7, 1)
        case "for_each":
            built, expected = start.map(lambda v: [v, v]).for_each(safe), [7, 7]
        case "loop":
            built, expected = start.do_until(lambda v: v == 7, safe, max_iterations=1), 7
        case "branch":
            built, expected = start.branch((lambda _: True, safe)), 7
        case _:
            built, expected = start.race(safe), 7
    assert await run_block(built, 0) == expected


async def test_a_failure_in_a_fork_has_the_forks_value_and_place() -> None:
    """What the fork was given, and the fork's own place; the error's note tells the branch."""
    seen: list[Failure[Exception]] = []

    @handler
    async def look(failure: Failure[Exception]) -> int:
        seen.append(failure)
        return 0

    built = sequencer("turn", int).step_all(add_one, fails).rescue(ValueError, look)
    await run_block(built, 3)
    assert (seen[0].value, seen[0].step) == (3, "turn/step_all")
    assert seen[0].error.__notes__ == ["in step turn/step_all/fails, input: int"]


async def test_a_rescue_never_sees_a_cancellation() -> None:
    """A catch-all is passed by, and what it covers has cleaned up."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(stuck(journal, "a", cleaning=2))
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
        .step(journal.block("next"))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(built, 1)
    assert scope.cancelled_caught
    assert journal.starts() == ["a"]
    assert journal.running == 0


async def test_an_error_raised_while_being_cancelled_is_not_rescued() -> None:
    """A block that turns its cancellation into an error has still been cancelled."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .step(stuck(journal, "a", fails_cleaning=ValueError("turned")))
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(built, 1)
    assert scope.cancelled_caught
    assert journal.starts() == ["a"]


async def test_exit_if_leaves_one_sequencer() -> None:
    """With the running value; the sequencer around goes on."""
    inner = sequencer("inner", int).step(add_one).exit_if(lambda value: value > 3).step(fails)
    built = sequencer("turn", int).step(inner).step(add_one)
    assert await run_block(built, 3) == 5
    with pytest.raises(ValueError, match="no 3"):
        await run_block(built, 2)


async def test_exit_if_passes_the_rescues_behind_it() -> None:
    """Leaving isn't failing."""
    built = (
        sequencer("turn", int)
        .exit_if(lambda value: value > 3)
        .step(fails)
        .rescue(ValueError, mends("mend", 1))
        .map(lambda value: value * 100)
    )
    assert [await run_block(built, value) for value in (5, 2)] == [5, 100]


async def test_exit_if_in_a_branch_of_a_parallel_ends_that_branch() -> None:
    """The others run on, and the join has what the branch left with."""
    leaves = sequencer("leaves", int).exit_if(lambda _: True).step(fails)
    built = sequencer("turn", int).step_all(leaves, add_one)
    assert await run_block(built, 3) == (3, 4)


async def test_exit_if_out_of_taps_and_loops_keeps_the_rest_in_order() -> None:
    """Leaving in the middle of nested taps and loops leaves nothing of them behind."""
    seen: list[int] = []
    leaves = sequencer("leaves", int).step(add_one).exit_if(lambda _: True).step(fails)
    loop = (
        sequencer("loop", int)
        .tap(leaves)
        .do_until(
            lambda value: value > 2,
            sequencer("body", int).tap(leaves).step(leaves),
            max_iterations=5,
        )
    )
    built = sequencer("turn", int).tap(loop).tap(seen.append).step(loop)
    assert await run_block(built, 0) == 3
    assert seen == [0]


async def test_a_rescue_inside_a_tap_leaves_the_taps_own_value_alone() -> None:
    """What a failing inner tap had put aside isn't what the outer one takes back."""
    mid = sequencer("mid", int).map(lambda v: v * 10).tap(fails).rescue(ValueError, mends("m", 7))
    assert await run_block(sequencer("turn", int).tap(mid).step(add_one), 3) == 4
    assert await run_block(sequencer("turn", int).step(mid).step(add_one), 3) == 8


async def test_a_rescued_loop_doesn_t_count_for_the_next_one() -> None:
    """A loop that failed in its third turn leaves no turns behind."""

    @handler
    async def third_fails(value: int) -> int:
        if value == 2:
            raise ValueError(value)
        return value + 1

    built = (
        sequencer("turn", int)
        .do_until(lambda _: False, third_fails, max_iterations=9)
        .rescue(ValueError, mends("mend", 0))
        .do_until(lambda _: False, add_one, max_iterations=4, on_exhausted="keep")
    )
    around = sequencer("around", int).do_until(lambda _: True, built, max_iterations=2)
    assert await run_block(built, 0) == 4
    assert await run_block(around, 0) == 4


async def test_throw_if_raises_where_its_condition_holds() -> None:
    """An exception, a class of one, or a function of the value."""
    start = sequencer("turn", int)
    given = ValueError("always the same")
    for error, match in (
        (given, "always the same"),
        (KeyError, "4"),
        (lambda value: OSError(f"got {value}"), "got 4"),
    ):
        thrown: Any = error
        built = start.throw_if(lambda value: value > 3, thrown)
        assert await run_block(built, 3) == 3
        with pytest.raises((ValueError, KeyError, OSError), match=match):
            await run_block(built, 4)
    rescued = start.throw_if(lambda _: True, given).rescue(ValueError, mends("mend", 8))
    assert await run_block(rescued, 1) == 8


async def test_an_exception_in_a_definition_gathers_nothing_from_its_runs() -> None:
    """It serves every run, so each is given its own copy: no notes, no frames of another's."""
    given = ValueError("shared")
    built = sequencer("turn", int).throw_if(lambda _: True, given)
    depths = []
    for _ in range(3):
        with pytest.raises(ValueError, match="shared") as caught:
            await run_block(built, 1)
        depths.append(len(caught.traceback))
        assert caught.value.__notes__ == ["in step turn/throw_if, input: int"]
    assert depths[0] == depths[1] == depths[2]
    assert given.__traceback__ is None
    assert not hasattr(given, "__notes__")


class Awkward(Exception):
    """An exception that can't be made anew from its arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__("awkward")
        self.sum = first + second


async def test_an_exception_that_cant_be_copied_is_raised_itself() -> None:
    """Its traceback starts anew each time all the same."""
    built = sequencer("turn", int).throw_if(lambda _: True, Awkward(1, 2))
    depths = []
    for _ in range(2):
        with pytest.raises(Awkward) as caught:
            await run_block(built, 1)
        depths.append(len(caught.traceback))
        assert caught.value.sum == 3
    assert depths[0] == depths[1]


async def test_the_engines_own_errors_have_one_root() -> None:
    """A host may catch what the engine itself found by one class."""
    built = sequencer("turn", int).branch((lambda _: False, add_one))
    with pytest.raises(FlowError):
        await run_block(built, 1)
