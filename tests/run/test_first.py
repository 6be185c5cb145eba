"""step_any and race: the first success, in order or at once."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from flowstate import Failure, handler, run_block, sequencer
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


@handler
async def error_of(failure: Failure[Exception]) -> Any:
    return failure.error


async def test_step_any_tries_in_order_until_one_succeeds() -> None:
    """Each starts when the one before it has failed, and none after the first success."""
    journal = Journal()
    built = sequencer("turn", int).step_any(
        journal.failing("a", ValueError("a"), waits=3),
        journal.failing("b", KeyError("b")),
        journal.block("c", lambda value: value + 1),
        journal.block("d"),
    )
    assert await run_block(built, 1) == 2
    assert journal.starts() == ["a", "b", "c"]
    assert journal.lines.index("a is over") < journal.lines.index("b starts")


async def test_every_attempt_has_the_same_value() -> None:
    """What a failed attempt was given is what the next is given."""
    seen: list[int] = []

    @handler
    async def fails(value: int) -> int:
        seen.append(value)
        raise ValueError(value)

    inner = sequencer("inner", int).map(lambda value: value * 10).step(fails)

    @handler
    async def takes(value: int) -> int:
        return value

    assert await run_block(sequencer("turn", int).step_any(inner, takes), 3) == 3
    assert seen == [30]


async def test_a_race_is_won_by_the_first_success() -> None:
    """The losers are cancelled, and have finished their clean-up before the next step starts."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .race(
            stuck(journal, "loser", cleaning=4),
            journal.failing("fails", ValueError("early")),
            journal.block("winner", lambda value: value * 2, waits=3),
        )
        .step(journal.block("next"))
    )
    assert await run_block(built, 3) == 6
    assert journal.lines.index("loser is cancelled") < journal.lines.index("loser is over")
    assert journal.lines.index("loser is over") < journal.lines.index("next starts")
    assert journal.running == 0


async def test_a_race_of_ready_blocks_is_won_by_the_first_declared() -> None:
    """A block that never waits has won before another starts."""
    journal = Journal()
    built = sequencer("turn", int).race(journal.block("a", str, gives=str), journal.block("b"))
    assert await run_block(built, 3) == "3"
    assert journal.starts() == ["a"]


@pytest.mark.parametrize("method", ["step_any", "race"])
async def test_if_all_fail_their_errors_are_a_group_in_declared_order(method: str) -> None:
    """Whichever failed first; the group says where it was, and each error where it came from."""
    journal = Journal()
    blocks = [
        journal.failing("slow", ValueError("slow"), waits=5),
        journal.failing("quick", KeyError("quick")),
        journal.failing("mid", OSError("mid"), waits=2),
    ]
    built = getattr(sequencer("turn", int), method)(*blocks)
    with pytest.raises(ExceptionGroup, match=f"turn/{method}: all 3 blocks failed") as caught:
        await run_block(built, 1)
    assert [type(error) for error in caught.value.exceptions] == [ValueError, KeyError, OSError]
    for error, name in zip(caught.value.exceptions, ("slow", "quick", "mid"), strict=True):
        assert error.__notes__ == [f"in step turn/{method}/{name}, input: int"]
    assert caught.value.__notes__ == [f"in step turn/{method}, input: int"]


@pytest.mark.parametrize("method", ["step_any", "race"])
async def test_one_block_that_fails_is_a_group_of_one(method: str) -> None:
    """The error's shape doesn't depend on the number of blocks."""
    journal = Journal()
    built = getattr(sequencer("turn", int), method)(journal.failing("a", ValueError("a")))
    with pytest.raises(ExceptionGroup):
        await run_block(built, 1)
    rescued = built.rescue(ExceptionGroup, error_of)
    assert isinstance(await run_block(rescued, 1), ExceptionGroup)


async def test_a_loser_that_fails_in_its_clean_up_changes_nothing_and_is_seen() -> None:
    """The winner's value stands; the loser's error is an item."""
    journal = Journal()
    events: list[Any] = []
    built = sequencer("turn", int).race(
        stuck(journal, "loser", fails_cleaning=KeyError("late")), journal.block("winner", waits=2)
    )
    assert await run_block(built, 3, emit=events.append) == 3
    (item,) = [event.item for event in events]
    assert (item.content.code, item.provenance.path) == ("KeyError", "turn/race/loser")


async def test_a_race_in_a_race() -> None:
    """Losing ends whatever the loser has under way, at any depth."""
    journal = Journal()
    inner = sequencer("inner", int).race(stuck(journal, "a"), stuck(journal, "b"))
    built = sequencer("turn", int).race(inner, journal.block("winner", waits=6))
    with anyio.fail_after(10):
        assert await run_block(built, 3) == 3
    assert journal.count("a is cancelled") == journal.count("b is cancelled") == 1
    assert journal.running == 0


async def test_a_cancel_is_no_failure_that_the_next_is_tried_for() -> None:
    """A cancelled attempt isn't followed by another, not even one that hid its cancellation."""
    journal = Journal()
    for hidden in (None, KeyError("hidden")):
        with anyio.CancelScope() as scope:

            def cancels_all(value: int, scope: anyio.CancelScope = scope) -> int:
                scope.cancel()
                return value

            first = journal.block("first", waits=20, fails_cleaning=hidden)
            cancels = journal.block("cancels", cancels_all)
            built = sequencer("turn", int).parallel(
                any=sequencer("any", int).step_any(first, journal.block("second")),
                cancels=cancels,
            )
            await run_block(built, 1)
        assert scope.cancelled_caught
    assert "second" not in journal.starts()
