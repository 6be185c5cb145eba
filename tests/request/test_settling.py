"""How requests end with their Runtime, with their store, and with their side chains."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Context, Runtime, handler, queue, sequencer
from flowstate.errors import RequestCancelled, RequestInterrupted, RuntimeClosed, StoreError
from flowstate.item.content import Message
from flowstate.lease.memory import MemoryLease
from flowstate.request import execution
from tests.request.desk import Ledger, flow_of
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


@handler
async def says(value: int, ctx: Context) -> int:
    ctx.items.add(Message(text=str(value)))
    return value


async def test_leaving_a_runtime_waits_for_what_is_under_way() -> None:
    """Running and waiting requests come to their own end."""
    journal = Journal()
    ledger = Ledger()
    flow, ask = flow_of(journal.block("work", waits=10), "queue")
    async with Runtime(flow, store=ledger) as runtime:
        runs = [await runtime.dispatch(ask, number, session="s1") for number in range(3)]
    assert [run.status for run in runs] == ["completed"] * 3
    assert [await run.output() for run in runs] == [0, 1, 2]
    assert [ledger.of(run.id)[-1] for run in runs] == ["completed"] * 3


async def test_leaving_a_runtime_by_an_error_cancels_them_and_the_error_comes_out_bare() -> None:
    """What the host raised is what the host gets, and every request is settled by then."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(stuck(journal, "work", cleaning=3), "queue")
    runs = []

    async def serve() -> None:
        async with Runtime(flow, store=ledger, lease=lease) as runtime:
            for number in range(2):
                runs.append(await runtime.dispatch(ask, number, session="s1"))
            await runs[0].started()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await serve()
    assert [run.status for run in runs] == ["cancelled", "cancelled"]
    assert [ledger.of(run.id)[-1] for run in runs] == ["cancelled", "cancelled"]
    with pytest.raises(RequestCancelled, match="the Runtime was left by an error"):
        await runs[0].output()
    assert journal.count("work starts") <= 1
    assert journal.running == 0
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_a_failing_run_awaited_in_the_runtime_can_be_caught_outside() -> None:
    """``except ValueError`` means the same inside and outside of the Runtime's context."""
    flow, ask = flow_of(Journal().failing("bad", ValueError("plain")))
    with pytest.raises(ValueError, match="plain"):
        async with Runtime(flow) as runtime:
            await (await runtime.dispatch(ask, 1, session="s1")).output()


async def test_cancelling_the_hosts_own_scope_interrupts_them() -> None:
    """They can be sent again; their rows say so, and nothing is left running."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(
        sequencer("turn", int)
        .side_chain(stuck(journal, "beside"))
        .step(stuck(journal, "work", cleaning=3)),
        queue(wait=60),
    )
    runs: list[Any] = []
    with anyio.CancelScope() as scope:
        async with Runtime(flow, store=ledger, lease=lease) as runtime:
            runs += [await runtime.dispatch(ask, number, session="s1") for number in range(2)]
            await runs[0].started()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    for run in runs:
        assert run.status in ("cancelled", "interrupted")
        assert ledger.of(run.id)[-1] == run.status
        with pytest.raises((RequestCancelled, RequestInterrupted)):
            await run.output()
    assert journal.running == 0
    assert journal.count("work starts") == 1
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_a_block_that_hides_the_hosts_cancellation_completes_nothing() -> None:
    """Its value is discarded: the request is interrupted, not completed."""

    @handler
    async def hides(value: int) -> int:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return value

    ledger = Ledger()
    flow, ask = flow_of(hides)
    with anyio.CancelScope() as scope:
        async with Runtime(flow, store=ledger) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.started()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.sleep_forever()
    assert run.status in ("cancelled", "interrupted")
    assert ledger.of(run.id)[-1] == run.status


async def test_a_dispatch_while_the_runtime_is_left_is_refused_or_served() -> None:
    """Nothing is recorded that doesn't run to an end."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(journal.block("work", waits=3), "queue")
    runtime = Runtime(flow, store=ledger, lease=lease)
    refused = 0

    async def send(delay: int) -> None:
        nonlocal refused
        for _ in range(delay):
            await anyio.lowlevel.checkpoint()
        try:
            await runtime.dispatch(ask, delay, session="s1", request_id=f"r{delay}")
        except (RuntimeClosed, StoreError):
            refused += 1

    async with anyio.create_task_group() as group, runtime:
        for delay in range(12):
            group.start_soon(send, delay)
        await anyio.lowlevel.checkpoint()
    ids = {each for each, _ in ledger.statuses}
    assert refused + len(ids) == 12
    assert all(ledger.of(each)[-1] == "completed" for each in ids)
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


@pytest.mark.parametrize("what", ["items", "running"])
async def test_a_store_that_fails_during_a_run_fails_the_run(what: str) -> None:
    """The store's error comes out, and nothing is shown that isn't stored."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    built = sequencer("turn", int).step(says).step(journal.block("work", waits=20))
    flow, ask = flow_of(built, "queue")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        ledger.failing.add(what)
        run = await runtime.dispatch(ask, 1, session="s1")
        with pytest.raises(StoreError, match="no room"):
            await run.output()
        assert await run.finished() == "failed"
        assert run.status == "failed"
        shown: list[Any] = [item async for item in run.items()]
        stored = await ledger.items(run.id)
        assert [item.id for item in shown] == [row.item_id for row in stored]
        # Where only its start couldn't be recorded, what went wrong could be told.
        assert [item.content.code for item in shown] == ([] if what == "items" else ["StoreError"])
        ledger.failing.clear()
        after = await runtime.dispatch(ask, 2, session="s1")
        assert await after.output() == 2
    assert ledger.of(run.id)[-1] == "failed"
    assert "work ends" in journal.lines
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_a_run_whose_last_items_can_t_be_stored_has_failed() -> None:
    """However quick it was: what it said is lost, so it didn't complete."""
    for beside in (False, True):
        ledger = Ledger()
        built: Any = sequencer("turn", int).step(says)
        if beside:
            built = built.side_chain(Journal().block("beside"))
        flow, ask = flow_of(built)
        async with Runtime(flow, store=ledger) as runtime:
            ledger.failing.add("items")
            run = await runtime.dispatch(ask, 1, session="s1")
            with pytest.raises(StoreError, match="no room for items"):
                await run.output()
            assert await run.finished() == "failed"


async def test_an_end_that_can_t_be_recorded_is_still_an_end() -> None:
    """The place is given back, and the run says how it ended though its row doesn't."""
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(says, "queue")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        ledger.failing |= {"completed", "failed"}
        run = await runtime.dispatch(ask, 1, session="s1")
        assert await run.output() == 1
        assert await run.finished() == "completed"
        ledger.failing.clear()
        assert await (await runtime.dispatch(ask, 2, session="s1")).output() == 2
    assert ledger.of(run.id) == ["accepted", "running"]
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_a_store_that_hangs_holds_nobody_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling is bounded: the place is given back and the Runtime can be left."""
    monkeypatch.setattr(execution, "SETTLE_TIME", 0.1)
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(says, "queue")
    with anyio.fail_after(20):
        async with Runtime(flow, store=ledger, lease=lease) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.started()
            ledger.hanging = anyio.Event()
            await run.finished()
            assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"
            with pytest.raises(StoreError, match="did not answer"):
                await runtime.dispatch(ask, 2, session="s1")
        assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_items_open_at_the_end_are_settled_as_incomplete() -> None:
    """Also those of a request that is cancelled in the middle of a message."""
    there = anyio.Event()

    @handler
    async def speaks(value: int, ctx: Context) -> int:
        message = ctx.items.open(Message(text="so"))
        message.append(" far")
        there.set()
        await anyio.sleep_forever()
        return value

    flow, ask = flow_of(speaks)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        await there.wait()
        run.cancel()
        (item,) = [item async for item in run.items()]
        content: Any = item.content
        assert (item.status, content.text) == ("incomplete", "so far")
        rows = await runtime.store.items(run.id)
        assert len(rows) == 1
        assert '"incomplete"' in rows[0].data


async def test_the_output_is_there_before_the_side_chains_have_ended() -> None:
    """``output`` answers at the main chain's end, ``finished`` after the drain; the place is held
    until then."""
    journal = Journal()
    go_on = anyio.Event()
    built = sequencer("turn", int).side_chain(journal.block("beside", until=go_on)).step(says)
    flow, ask = flow_of(built, "queue")
    lease = MemoryLease()
    async with Runtime(flow, lease=lease) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        with anyio.fail_after(10):
            assert await run.output() == 1
        assert run.status == "running"
        waiting = await runtime.dispatch(ask, 2, session="s1")
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert waiting.waiting_behind == run.id
        go_on.set()
        assert await run.finished() == "completed"
        assert await waiting.output() == 2
    assert journal.lines.index("beside is over") < len(journal.lines)


async def test_side_chains_that_never_end_are_cut_off() -> None:
    """After ``drain_timeout`` they are cancelled; the request has completed all the same."""
    journal = Journal()
    flow, ask = flow_of(sequencer("turn", int).side_chain(stuck(journal, "beside")).step(says))
    with anyio.fail_after(10):
        async with Runtime(flow, drain_timeout=0.05) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            assert await run.output() == 1
            assert await run.finished() == "completed"
    assert journal.count("beside is cancelled") == 1


async def test_a_cancel_during_the_drain_ends_the_side_chains_and_keeps_the_output() -> None:
    """What has been answered stands."""
    journal = Journal()
    flow, ask = flow_of(sequencer("turn", int).side_chain(stuck(journal, "beside")).step(says))
    ledger = Ledger()
    async with Runtime(flow, store=ledger) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        assert await run.output() == 1
        run.cancel()
        with anyio.fail_after(10):
            assert await run.finished() == "completed"
        assert await run.output() == 1
    assert journal.count("beside is cancelled") == 1
    assert ledger.of(run.id)[-1] == "completed"


async def test_an_output_answered_stands_when_the_host_is_cancelled_during_the_drain() -> None:
    """Only the side chains are cut off."""
    journal = Journal()
    ledger = Ledger()
    flow, ask = flow_of(sequencer("turn", int).side_chain(stuck(journal, "beside")).step(says))
    with anyio.CancelScope() as scope:
        async with Runtime(flow, store=ledger) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            assert await run.output() == 1
            scope.cancel()
            await anyio.sleep_forever()
    assert journal.count("beside is cancelled") == 1
    assert run.status == "completed"
    assert ledger.of(run.id)[-1] == "completed"


async def test_a_failing_side_chain_is_an_item_of_a_completed_request() -> None:
    """It is settled by the time the request ends."""
    journal = Journal()
    built = sequencer("turn", int).side_chain(journal.failing("bad", ValueError("x"), waits=5))
    flow, ask = flow_of(built)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        assert await run.finished() == "completed"
        (item,) = [item async for item in run.items()]
        content: Any = item.content
        assert (content.code, content.message) == ("ValueError", "x")


async def test_an_output_that_is_no_json_is_the_callers_all_the_same() -> None:
    """The row has none; the run has."""

    @handler
    async def odd(value: int) -> Any:
        loop: list[Any] = []
        loop.append(loop)
        return loop

    flow, ask = flow_of(odd)
    ledger = Ledger()
    async with Runtime(flow, store=ledger) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        assert isinstance(await run.output(), list)
        assert await run.finished() == "completed"
        record = await ledger.request(run.id)
        assert record is not None
        assert (record.status, record.output) == ("completed", None)
