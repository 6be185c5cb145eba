"""Limits of a block: deadline(retry(timeout(attempt))), its status and its container."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Context, Failure, Retry, handler, run_block, sequencer
from flowstate.errors import TimedOut
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio

SOON = Retry(attempts=3, retry_on=(ValueError,), delay=0.001)


def failing_until(attempt: int, error: Exception | None = None) -> tuple[Any, list[int]]:
    """A block that fails before this attempt, and the attempts it has seen."""
    seen: list[int] = []

    async def flaky(value: int, ctx: Context) -> int:
        seen.append(ctx.attempt)
        if ctx.attempt < attempt:
            raise error or ValueError(f"attempt {ctx.attempt}")
        return value * 10

    return handler(flaky), seen


async def test_a_block_that_fails_is_tried_again() -> None:
    """Up to its attempts; the output is that of the first that succeeds."""
    flaky, seen = failing_until(3)
    assert await run_block(sequencer("turn", int).step(flaky.configure(retry=SOON)), 2) == 20
    assert seen == [1, 2, 3]


async def test_after_the_last_attempt_its_error_comes_out() -> None:
    """Bare, with the attempt in its path."""
    flaky, seen = failing_until(9)
    with pytest.raises(ValueError, match="attempt 3") as caught:
        await run_block(sequencer("turn", int).step(flaky.configure(retry=SOON)), 2)
    assert seen == [1, 2, 3]
    assert caught.value.__notes__ == ["in step turn/flaky/attempt[3], input: int"]


async def test_an_error_that_is_not_named_is_not_tried_again() -> None:
    """By default none is."""
    for retry in (SOON, Retry(attempts=3)):
        flaky, seen = failing_until(9, KeyError("x"))
        with pytest.raises(KeyError):
            await run_block(sequencer("turn", int).step(flaky.configure(retry=retry)), 2)
        assert seen == [1]


async def test_a_retry_at_any_depth() -> None:
    """A sequencer is tried again as a whole, its own steps by their own retries."""
    inner, seen = failing_until(2)
    journal = Journal()
    body = (
        sequencer("body", int, retry=SOON)
        .tap(journal.block("first"))
        .step(inner.configure(retry=Retry(attempts=1)))
        .tap(journal.block("last", lambda _: _fail_once(journal)))
    )
    # The inner block fails in attempt 1 of its own each time the body runs.
    with pytest.raises(ValueError, match="attempt 1"):
        await run_block(sequencer("turn", int).step(body), 2)
    assert seen == [1, 1, 1]
    assert journal.starts() == ["first"] * 3


def _fail_once(journal: Journal) -> None:
    raise AssertionError("never reached")


async def test_a_retry_is_seen() -> None:
    """An item tells which attempt comes, of how many, after what and how long."""
    flaky, _ = failing_until(3)
    events: list[Any] = []
    await run_block(sequencer("turn", int).step(flaky.configure(retry=SOON)), 2, emit=events.append)
    notes = [event.item.content for event in events]
    assert [(note.type, note.attempt, note.of, note.error) for note in notes] == [
        ("retry", 2, 3, "ValueError"),
        ("retry", 3, 3, "ValueError"),
    ]
    assert all(0 < note.delay <= 0.002 for note in notes)
    assert "attempt 2 of 3" in notes[0].text


async def test_a_timeout_ends_one_attempt() -> None:
    """The block is cancelled and cleans up; then TimedOut says which block and how long."""
    journal = Journal()
    slow = stuck(journal, "slow", cleaning=2, timeout=0.02)
    with pytest.raises(TimedOut, match=r"turn/slow: timeout of 0.02 s passed") as caught:
        await run_block(sequencer("turn", int).step(slow).step(journal.block("next")), 1)
    assert caught.value.where == "turn/slow"
    assert journal.lines == ["slow starts", "slow is cancelled", "slow is over"]


async def test_a_timed_out_attempt_can_be_tried_again() -> None:
    """A timeout is of one attempt; naming TimedOut makes it worth another."""
    attempts: list[int] = []

    @handler(timeout=0.05, retry=Retry(attempts=3, retry_on=(TimedOut,), delay=0.001))
    async def slow_at_first(value: int, ctx: Context) -> int:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            await anyio.sleep_forever()
        return value

    assert await run_block(sequencer("turn", int).step(slow_at_first), 5) == 5
    assert attempts == [1, 2, 3]


async def test_a_deadline_bounds_all_attempts_and_their_waits() -> None:
    """It stands around the retry: nothing is tried after it."""
    flaky, seen = failing_until(99)
    limited = flaky.configure(
        retry=Retry(attempts=99, retry_on=(ValueError,), delay=30.0), deadline=0.05
    )
    with anyio.fail_after(10):
        with pytest.raises(TimedOut, match=r"turn/flaky: deadline of 0\.05 s passed"):
            await run_block(sequencer("turn", int).step(limited), 1)
    assert seen == [1]


async def test_a_deadline_is_not_tried_again() -> None:
    """Even where TimedOut is named: the deadline stands around the retry."""
    journal = Journal()
    retry = Retry(attempts=5, retry_on=(TimedOut,), delay=0.001)
    slow = stuck(journal, "slow", deadline=0.02, retry=retry)
    with pytest.raises(TimedOut, match="deadline"):
        await run_block(sequencer("turn", int).step(slow), 1)
    assert journal.count("slow starts") == 1


async def test_a_timeout_can_be_rescued() -> None:
    """TimedOut is an error of that step like any other."""

    @handler
    async def mend(failure: Failure[TimedOut]) -> int:
        return -1

    slow = stuck(Journal(), "slow", timeout=0.01)
    assert await run_block(sequencer("turn", int).step(slow).rescue(TimedOut, mend), 1) == -1


async def test_a_cancel_from_outside_is_no_timeout() -> None:
    """Only what the limit itself cancelled becomes TimedOut."""
    journal = Journal()
    slow = stuck(journal, "slow", timeout=30, deadline=60, retry=SOON)
    rescued = (
        sequencer("turn", int)
        .step(slow)
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
    )
    with anyio.move_on_after(0.05) as scope:
        await run_block(rescued, 1)
    assert scope.cancelled_caught
    assert journal.starts() == ["slow"]


async def test_an_inner_limit_passes_before_an_outer_one() -> None:
    """Each says its own name: the sequencer's deadline, or the block's timeout."""
    inner = stuck(Journal(), "inner", timeout=0.02)
    outer = sequencer("outer", int, deadline=30).step(inner)
    with pytest.raises(TimedOut, match="outer/inner: timeout"):
        await run_block(outer, 1)
    inner = stuck(Journal(), "inner", timeout=30)
    outer = sequencer("outer", int, deadline=0.02).step(inner)
    with pytest.raises(TimedOut, match="outer: deadline"):
        await run_block(outer, 1)


def swallows(journal: Journal, name: str) -> Any:
    """A block that hides its cancellation and gives a value."""

    async def hide(value: int) -> int:
        journal.lines.append(f"{name} starts")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            journal.lines.append(f"{name} hides it")
        return value

    return handler(name=name)(hide)


@pytest.mark.parametrize("limit", ["timeout", "deadline"])
async def test_what_a_block_gives_that_hid_its_timeout_is_discarded(limit: str) -> None:
    """Time is over: TimedOut comes out, and nothing behind the block starts."""
    journal = Journal()
    options: Any = {limit: 0.02}
    body = (
        sequencer("body", int, **options)
        .step(swallows(journal, "hides"))
        .step(journal.block("next"))
        .rescue(Exception, journal.block("mend", takes=Failure[Exception]))
    )
    with pytest.raises(TimedOut, match=f"turn/body: {limit}"):
        await run_block(sequencer("turn", int).step(body), 1)
    assert journal.starts() == ["hides"]


async def test_nothing_starts_in_any_branch_once_time_is_over() -> None:
    """Forks beneath the limit stop too, however their branches behave."""
    journal = Journal()
    branch = sequencer("branch", int).step(swallows(journal, "hides")).step(journal.block("next"))
    body: Any = sequencer("body", int, timeout=0.02).step_all(branch, branch).map(len)
    with pytest.raises(TimedOut, match="turn/body: timeout"):
        await run_block(sequencer("turn", int).step(body), 1)
    each: Any = sequencer("body", int, timeout=0.02).map(lambda _: [1, 2, 3])
    each = each.for_each(swallows(journal, "hides"), max_concurrency=1).map(len)
    with pytest.raises(TimedOut, match="turn/body: timeout"):
        await run_block(sequencer("turn", int).step(each), 1)
    assert journal.starts() == ["hides"] * 3


async def test_a_cancel_while_it_fails_is_no_reason_for_another_attempt() -> None:
    """No item tells of a retry that will never be."""
    journal = Journal()
    events: list[Any] = []
    flaky = stuck(journal, "flaky", fails_cleaning=ValueError("x"), retry=SOON)
    with anyio.move_on_after(0.05) as scope:
        await run_block(sequencer("turn", int).step(flaky), 1, emit=events.append)
    assert scope.cancelled_caught
    assert journal.starts() == ["flaky"]
    assert events == []


async def test_a_status_is_shown_while_the_block_runs() -> None:
    """A text or a function of the input; taken back when the block has ended, well or not."""
    shown: list[tuple[str, str]] = []

    def tell(event: Any) -> None:
        if event.item is not None:
            shown.append((event.kind, event.item.content.text))

    quiet = Journal().block("quiet", status="Looking…")
    telling = Journal().block("telling", status=lambda value: f"Working on {value}…")
    failing = Journal().failing("failing", ValueError("x"), status="Trying…")
    with pytest.raises(ValueError, match="x"):
        await run_block(
            sequencer("turn", int).step(quiet).step(telling).step(failing), 7, emit=tell
        )
    assert shown == [
        ("added", "Looking…"),
        ("settled", "Looking…"),
        ("added", "Working on 7…"),
        ("settled", "Working on 7…"),
        ("added", "Trying…"),
        ("settled", "Trying…"),
    ]


async def test_a_container_groups_the_items_made_inside_it() -> None:
    """Its children name it as their parent; it settles with how the block ended."""
    from flowstate.item.content import Message

    @handler
    async def says(value: int, ctx: Context) -> int:
        ctx.items.add(Message(text=str(value)))
        if value > 1:
            raise ValueError(value)
        return value

    built = sequencer("turn", int).step(
        sequencer("part", int, container="The part").map(lambda v: [v]).for_each(says).map(sum)
    )
    for value, ending in ((1, "completed"), (2, "failed")):
        items: dict[str, Any] = {}
        try:
            await run_block(built, value, emit=lambda e: items.__setitem__(e.item_id, e.item))  # noqa: B023
        except ValueError:
            assert value == 2
        group, message = items.values()
        assert (group.content.type, group.content.label, group.status) == (
            "container",
            "The part",
            ending,
        )
        assert message.provenance.parent == group.id


async def test_limits_may_stand_on_any_kind_of_block() -> None:
    """A router's route, a loop's body, a branch of a fork: each under its own."""
    slow = stuck(Journal(), "slow", timeout=0.01)
    start = sequencer("turn", int)
    for built in (
        start.branch((lambda _: True, slow)),
        start.do_until(lambda _: True, slow, max_iterations=2),
        start.step_all(slow),
        start.map(lambda v: [v]).for_each(slow),
        start.tap(slow),
    ):
        composed: Any = built
        with pytest.raises(TimedOut, match=r"slow(/\w+\[0\])?: timeout"):
            await run_block(composed, 1)
