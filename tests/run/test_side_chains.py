"""Side chains: begun beside the chain, owned by the request, and settled when it ends."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Failure, Retry, handler, run_block, sequencer
from flowstate.errors import InvalidValue, TimedOut
from tests.run.journal import Journal, setting, stuck

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def fails(value: int) -> int:
    raise ValueError(f"no {value}")


@handler
async def zero(failure: Failure[Exception]) -> int:
    return 0


async def test_the_value_passes_on_at_once() -> None:
    """The chain goes on while the side chain runs, and the run ends when both have."""
    journal = Journal()
    go_on = anyio.Event()
    built = (
        sequencer("turn", int)
        .side_chain(journal.block("beside", until=go_on))
        .step(journal.block("next", setting(go_on)))
    )
    with anyio.fail_after(10):
        assert await run_block(built, 1) == 1
    assert journal.lines.index("next is over") < journal.lines.index("beside ends")
    assert journal.running == 0


async def test_its_connector_makes_its_input_only() -> None:
    """The chain's value stays, whatever the side chain takes and gives."""
    seen: list[str] = []

    @handler
    async def note(text: str) -> None:
        seen.append(text)

    assert await run_block(sequencer("turn", int).side_chain(str, note).step(add_one), 1) == 2
    assert seen == ["1"]


async def test_a_side_chain_may_depend_on_a_condition() -> None:
    """It isn't begun where the condition doesn't hold."""
    journal = Journal()
    built = sequencer("turn", int).side_chain_if(lambda value: value > 1, journal.block("beside"))
    assert [await run_block(built, value) for value in (1, 2)] == [1, 2]
    assert journal.count("beside starts") == 1


async def test_one_for_every_entry() -> None:
    """Of the value itself, or of what the connector gives."""
    seen: list[int] = []

    @handler
    async def note(value: int) -> None:
        seen.append(value)

    assert await run_block(sequencer("turn", list[int]).for_each_side_chain(note), [3, 4]) == [3, 4]
    assert await run_block(sequencer("turn", int).for_each_side_chain(range, note), 2) == 2
    assert sorted(seen) == [0, 1, 3, 4]


async def test_entries_that_are_none_fail_the_chain_before_anything_begins() -> None:
    """What can't be gone through is the chain's error, with the step."""
    built: Any = sequencer("turn").map(lambda value: value).for_each_side_chain(add_one)
    with pytest.raises(InvalidValue, match="turn/add_one: expected something to go through"):
        await run_block(built, 5)


async def test_a_failing_side_chain_is_an_item_and_nobodys_error() -> None:
    """The chain and its rescues never hear of it."""
    journal = Journal()
    events: list[Any] = []
    built = (
        sequencer("turn", int)
        .side_chain(fails)
        .step(journal.block("waits", waits=5))
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
    )
    assert await run_block(built, 3, emit=events.append) == 3
    (item,) = [event.item for event in events]
    assert (item.content.type, item.content.code, item.content.message, item.status) == (
        "error",
        "ValueError",
        "no 3",
        "failed",
    )
    assert item.provenance.path == "turn/fails"
    assert "mend" not in journal.starts()


async def test_a_failing_chain_leaves_its_side_chains_alone() -> None:
    """They go on to their end, and the chain's own error comes out bare after that."""
    journal = Journal()
    built = sequencer("turn", int).side_chain(journal.block("beside", waits=9)).step(fails)
    with pytest.raises(ValueError, match="no 1"):
        await run_block(built, 1)
    assert journal.lines == ["beside starts", "beside ends", "beside is over"]


async def test_a_cancelled_run_ends_its_side_chains() -> None:
    """All of them, their clean-up included."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .side_chain(stuck(journal, "beside", cleaning=3))
        .step(stuck(journal, "main"))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(built, 1)
    assert scope.cancelled_caught
    assert journal.running == 0
    assert journal.count("beside is cancelled") == 1


async def test_a_cancelled_branch_ends_those_it_began_and_no_others() -> None:
    """A loser's side chains end with it; the winner's, the failed one's and the chain's go on."""
    journal = Journal()
    go_on = anyio.Event()

    def branch(name: str, block: Any) -> Any:
        beside = journal.block(f"beside {name}", until=go_on)
        return sequencer(name, int).side_chain(beside).step(block)

    built = (
        sequencer("turn", int)
        .side_chain(journal.block("beside turn", until=go_on))
        .race(
            branch("loser", stuck(journal, "stuck")),
            branch("failed", journal.failing("fails", ValueError("x"))),
            branch("winner", journal.block("wins", waits=6)),
        )
        .tap(lambda _: go_on.set())
    )
    with anyio.fail_after(10):
        assert await run_block(built, 1) == 1
    ended = [line for line in journal.lines if line.startswith("beside") and "starts" not in line]
    assert "beside loser is cancelled" in ended
    assert "beside loser ends" not in ended
    for name in ("turn", "failed", "winner"):
        assert f"beside {name} ends" in ended


async def test_side_chains_of_a_failing_parallel() -> None:
    """Cancelled siblings end theirs; those that had ended by themselves, and the failing one,
    don't."""
    journal = Journal()
    go_on = anyio.Event()

    def branch(name: str, block: Any) -> Any:
        beside = journal.block(f"beside {name}", until=go_on)
        return sequencer(name, int).side_chain(beside).step(block)

    built = (
        sequencer("turn", int)
        .parallel(
            done=branch("done", journal.block("done")),
            bad=branch("bad", journal.failing("fails", ValueError("x"), waits=9)),
            stuck=branch("stuck", stuck(journal, "stuck")),
        )
        .map(lambda _: 0)
        .rescue(ValueError, zero)
        .tap(lambda _: go_on.set())
    )
    with anyio.fail_after(10):
        assert await run_block(built, 1) == 0
    assert "beside stuck is cancelled" in journal.lines
    assert journal.count("beside done ends") == journal.count("beside bad ends") == 1


async def test_a_retry_ends_those_of_the_failed_attempt_first() -> None:
    """They never run beside the next attempt; those of the last go on."""
    journal = Journal()
    attempts = 0

    @handler
    async def flaky(value: int) -> int:
        nonlocal attempts
        attempts += 1
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        journal.lines.append(f"attempt {attempts}")
        if attempts < 3:
            raise ValueError(attempts)
        return value

    retry = Retry(attempts=3, retry_on=(ValueError,), delay=0)
    beside = journal.block("beside", waits=8, cleaning=4)
    body = sequencer("body", int, retry=retry).side_chain(beside).step(flaky)
    assert await run_block(sequencer("turn", int).step(body), 1) == 1
    assert journal.lines == [
        *["beside starts", "attempt 1", "beside is cancelled", "beside is over"],
        *["beside starts", "attempt 2", "beside is cancelled", "beside is over"],
        *["beside starts", "attempt 3", "beside ends", "beside is over"],
    ]


async def test_a_timeout_ends_those_begun_beneath_it() -> None:
    """A branch that is cancelled by its limit is a cancelled branch."""
    journal = Journal()
    body = (
        sequencer("body", int, timeout=0.05)
        .side_chain(stuck(journal, "beside"))
        .step(stuck(journal, "main"))
    )
    with anyio.fail_after(10):
        with pytest.raises(TimedOut):
            await run_block(sequencer("turn", int).step(body), 1)
    assert journal.count("beside is cancelled") == 1


async def test_a_side_chain_of_a_side_chain() -> None:
    """Whatever a side chain begins belongs to the request too, and outlives it."""
    journal = Journal()
    go_on = anyio.Event()
    inner = (
        sequencer("inner", int)
        .side_chain(journal.block("deep", until=go_on))
        .step(journal.block("quick", setting(go_on)))
    )
    with anyio.fail_after(10):
        await run_block(sequencer("turn", int).side_chain(inner), 1)
    assert journal.lines.index("quick is over") < journal.lines.index("deep ends")


async def test_side_chains_don_t_share_context_variables_with_the_chain() -> None:
    """Each is a task of its own: what it sets, nobody else sees."""
    from contextvars import ContextVar

    variable: ContextVar[str] = ContextVar("variable", default="unset")

    @handler
    async def sets(value: int) -> int:
        variable.set("by the side chain")
        return value

    @handler
    async def reads(value: int) -> str:
        return variable.get()

    built = sequencer("turn", int).side_chain(sets).wait_for_side_chains().step(reads)
    assert await run_block(built, 1) == "unset"


async def test_waiting_for_side_chains_waits_for_ones_own() -> None:
    """Those of this sequencer, failed ones included; not those of the sequencer around it."""
    journal = Journal()
    go_on = anyio.Event()
    inner = (
        sequencer("inner", int)
        .side_chain(journal.block("own", waits=6))
        .side_chain(journal.failing("own bad", ValueError("x"), waits=3))
        .wait_for_side_chains()
        .step(journal.block("after"))
    )
    built = (
        sequencer("turn", int)
        .side_chain(journal.block("other", until=go_on))
        .step(inner)
        .tap(lambda _: go_on.set())
    )
    with anyio.fail_after(10):
        await run_block(built, 1)
    after = journal.lines.index("after starts")
    assert journal.lines.index("own is over") < after
    assert journal.lines.index("own bad is over") < after
    assert journal.lines.index("other ends") > after


async def test_waiting_covers_a_loop_back_slice() -> None:
    """A slice is a part of the sequencer it is written in, from inside and from outside."""
    journal = Journal()
    for inside in (True, False):
        journal.lines.clear()
        built = sequencer("turn", int).step(add_one).side_chain(journal.block("beside", waits=5))
        if inside:
            built = built.wait_for_side_chains()
        built = built.loop_back("add_one", lambda value: value < 3, max_iterations=5)
        if not inside:
            built = built.wait_for_side_chains()
        await run_block(built.step(journal.block("after")), 0)
        assert journal.lines[:-3] == (
            ["beside starts", "beside ends", "beside is over"] * 3
            if inside
            else ["beside starts"] * 3 + ["beside ends", "beside is over"] * 3
        )


async def test_a_wait_in_a_slice_covers_what_was_begun_before_it() -> None:
    """The slice's steps are steps of the sequencer, so its side chains are theirs."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .side_chain(journal.block("beside", waits=9))
        .step(journal.block("first", lambda value: value + 1))
        .wait_for_side_chains()
        .step(journal.block("behind"))
        .loop_back("first", lambda value: value < 2, max_iterations=5)
    )
    await run_block(built, 0)
    assert journal.lines.index("beside is over") < journal.lines.index("behind starts")


async def test_a_wait_may_run_out_of_time() -> None:
    """It raises TimedOut at the step, or goes on while they run."""
    for raises in (True, False):
        journal = Journal()
        go_on = anyio.Event()
        start = sequencer("turn", int).side_chain(journal.block("beside", until=go_on))
        if raises:
            built: Any = start.wait_for_side_chains(timeout=0.02).rescue(TimedOut, zero)
        else:
            built = start.wait_for_side_chains(timeout=0.02, on_timeout="go_on")
        with anyio.fail_after(10):
            ended = await run_block(built.tap(journal.block("after", setting(go_on))), 7)
        assert ended == (0 if raises else 7)
        assert journal.lines[-1] == "beside is over"


async def test_a_wait_that_is_cancelled_neither_ends_nor_times_out() -> None:
    """Cancelled is a third outcome, that nothing behind the wait sees."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .side_chain(stuck(journal, "beside"))
        .wait_for_side_chains(timeout=30)
        .rescue(TimedOut, zero)
        .step(journal.block("after"))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(built, 1)
    assert scope.cancelled_caught
    assert journal.starts() == ["beside"]
    assert journal.running == 0


async def test_nothing_to_wait_for_is_no_wait() -> None:
    """A sequencer without side chains goes on at once."""
    with anyio.fail_after(10):
        assert await run_block(sequencer("turn", int).wait_for_side_chains().step(add_one), 1) == 2
