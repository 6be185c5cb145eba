"""Requests of one key: in order, one at a time, with patience; and keys that never meet."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import Runtime, action, define_flow, queue
from flowstate.errors import QueueTimeout, RequestCancelled
from flowstate.lease.memory import MemoryLease
from tests.request.desk import Ledger, flow_of
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


async def settle() -> None:
    """Let whatever can go on go on."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_requests_of_a_session_run_in_the_order_of_acceptance() -> None:
    """One at a time; each waits behind the one just ahead."""
    journal = Journal()
    ledger = Ledger()
    gates = [anyio.Event() for _ in range(4)]

    async def body(value: int) -> int:
        journal.lines.append(f"{value} starts")
        await gates[value].wait()
        journal.lines.append(f"{value} ends")
        return value

    from flowstate import handler

    flow, ask = flow_of(handler(body), "queue")
    async with Runtime(flow, store=ledger) as runtime:
        runs = [await runtime.dispatch(ask, number, session="s1") for number in range(4)]
        await settle()
        assert [run.status for run in runs] == ["running", "waiting", "waiting", "waiting"]
        assert [run.waiting_behind for run in runs] == [None, runs[0].id, runs[1].id, runs[2].id]
        for number, gate in enumerate(gates):
            gate.set()
            assert await runs[number].output() == number
        assert runs[3].waiting_behind is None
    assert journal.lines == [f"{n} {what}" for n in range(4) for what in ("starts", "ends")]
    assert ledger.of(runs[0].id) == ["accepted", "running", "completed"]
    assert ledger.of(runs[3].id) == ["accepted", "waiting", "running", "completed"]


async def test_who_waits_shows_a_status_that_goes_when_it_starts() -> None:
    """A reader of the waiting request sees whom it waits behind."""
    journal = Journal()
    go_on = anyio.Event()
    flow, ask = flow_of(journal.block("work", until=go_on), "queue")
    shown: list[tuple[str, str]] = []
    async with Runtime(flow) as runtime:
        first = await runtime.dispatch(ask, 1, session="s1")
        second = await runtime.dispatch(ask, 2, session="s1")

        async def read() -> None:
            async for event in second.events():
                assert event.item is not None
                content: Any = event.item.content
                shown.append((event.kind, content.text))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await settle()
            go_on.set()
    text = f"Waiting behind request {first.id}…"
    assert shown == [("added", text), ("settled", text)]


async def test_patience_ends_with_a_queue_timeout() -> None:
    """Typed, with the request it waited behind; what is behind it moves up, and it never ran."""
    journal = Journal()
    ledger = Ledger()
    go_on = anyio.Event()
    work = action("work", journal.block("work", until=go_on), concurrency=queue(wait=60))
    hasty = action("hasty", journal.block("hasty"), concurrency=queue(wait=0.05))
    flow = define_flow("coding", actions=[work, hasty])
    async with Runtime(flow, store=ledger) as runtime:
        first = await runtime.dispatch(work, 1, session="s1")
        second = await runtime.dispatch(hasty, 2, session="s1")
        third = await runtime.dispatch(work, 3, session="s1")
        with anyio.fail_after(10):
            with pytest.raises(QueueTimeout, match=r"waited 0\.05 s behind") as caught:
                await second.output()
            assert await second.finished() == "failed"
        assert caught.value.behind == first.id
        assert caught.value.request_id == second.id
        assert not await second.started()
        await settle()
        assert third.waiting_behind == first.id
        record = await ledger.request(second.id)
        assert record is not None
        assert record.error is not None
        assert first.id in record.error
        go_on.set()
        assert await third.output() == 3
    assert "hasty" not in journal.starts()
    assert ledger.of(second.id) == ["accepted", "waiting", "failed"]


async def test_a_request_that_is_cancelled_while_it_waits_lets_the_next_one_up() -> None:
    """It never ran, its place is free, and nothing stays queued."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    go_on = anyio.Event()
    flow, ask = flow_of(journal.block("work", until=go_on), "queue")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        first, second, third = [await runtime.dispatch(ask, n, session="s1") for n in range(3)]
        await settle()
        second.cancel("not needed")
        with anyio.fail_after(10):
            assert await second.finished() == "cancelled"
        with pytest.raises(RequestCancelled, match="not needed"):
            await second.output()
        assert third.waiting_behind == first.id
        go_on.set()
        assert await third.output() == 2
    assert journal.count("work starts") == 2
    assert ledger.of(second.id) == ["accepted", "waiting", "cancelled"]
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_stop_then_new_messages_at_once() -> None:
    """A is cancelled and takes its time to end; B and C, sent at once, start after it, in order."""
    journal = Journal()
    flow, ask = flow_of(stuck(journal, "A", cleaning=50).configure(name="A"), "queue")
    other = action("other", journal.block("next", waits=2), concurrency="queue")
    flow = define_flow("coding", actions=[ask, other])
    async with Runtime(flow) as runtime:
        a = await runtime.dispatch(ask, 1, session="s1")
        await a.started()
        await settle()
        a.cancel()
        b = await runtime.dispatch(other, 2, session="s1")
        c = await runtime.dispatch(other, 3, session="s1")
        with anyio.fail_after(10):
            assert await c.output() == 3
            assert b.status == "completed"
    assert journal.lines == [
        "A starts",
        "A is cancelled",
        "A is over",
        *["next starts", "next ends", "next is over"] * 2,
    ]


async def test_a_place_is_given_back_when_all_is_stored() -> None:
    """The next run of the session finds the last one's rows complete."""
    ledger = Ledger()
    seen: list[object] = []

    async def look(value: str) -> None:
        record = await ledger.request(value) if value else None
        seen.append(record and record.status)

    from flowstate import handler

    flow, ask = flow_of(handler(look), "queue")
    async with Runtime(flow, store=ledger) as runtime:
        first = await runtime.dispatch(ask, "", session="s1")
        second = await runtime.dispatch(ask, first.id, session="s1")
        await second.output()
    assert seen == [None, "completed"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"session": "s1"}, {"session": "s2"}),
        ({"session": "s", "tenant": "t1"}, {"session": "s", "tenant": "t2"}),
        ({"session": "s", "tenant": None}, {"session": "s", "tenant": ""}),
        ({"session": "s", "tenant": None}, {"session": "s", "tenant": "null"}),
        ({"session": 'b"], "x'}, {"session": "x", "tenant": "b"}),
    ],
)
async def test_other_sessions_and_tenants_never_wait(one: Any, two: Any) -> None:
    """Whatever characters their ids hold."""
    journal = Journal()
    flow, ask = flow_of(stuck(journal, "work"), "queue")
    async with Runtime(flow) as runtime:
        runs = [await runtime.dispatch(ask, 1, **who) for who in (one, two)]
        await settle()
        assert [run.status for run in runs] == ["running", "running"]
        for run in runs:
            run.cancel()


async def test_a_key_of_the_user_goes_across_sessions() -> None:
    """And of nobody, where no user was authenticated."""
    journal = Journal()
    flow, ask = flow_of(stuck(journal, "work"), queue(key="user"))
    async with Runtime(flow) as runtime:
        runs = [
            await runtime.dispatch(ask, 1, session=session, user=user)
            for session, user in (("s1", "u"), ("s2", "u"), ("s1", None), ("s1", None))
        ]
        await settle()
        assert [run.status for run in runs] == ["running", "waiting", "running", "running"]
        for run in runs:
            run.cancel()


async def test_at_most_so_many_run_at_once() -> None:
    """``max_running`` bounds the whole Runtime; the others wait for a slot, and all are served."""
    journal = Journal()
    go_on = anyio.Event()
    flow, ask = flow_of(journal.block("work", until=go_on, waits=2))
    async with Runtime(flow, max_running=3) as runtime:
        runs = [await runtime.dispatch(ask, n, session=f"s{n}") for n in range(12)]
        await settle()
        assert journal.running == 3
        go_on.set()
        assert [await run.output() for run in runs] == list(range(12))
    assert journal.peak == 3


async def test_a_request_without_its_turn_takes_no_slot() -> None:
    """One session's queue can't keep the other sessions' requests from running."""
    journal = Journal()
    go_on = anyio.Event()
    held = action("held", journal.block("held", until=go_on), concurrency="queue")
    free = action("free", journal.block("free"))
    flow = define_flow("coding", actions=[held, free])
    async with Runtime(flow, max_running=2) as runtime:
        for _ in range(5):
            await runtime.dispatch(held, 1, session="s1")
        with anyio.fail_after(10):
            run = await runtime.dispatch(free, 2, session="s2")
            assert await run.output() == 2
        go_on.set()


async def test_a_slot_is_free_again_however_a_request_ended() -> None:
    """Failed, cancelled while it waited for a slot, cancelled while it ran."""
    journal = Journal()
    bad = action("bad", journal.failing("bad", ValueError("x")))
    long = action("long", stuck(journal, "long"))
    good = action("good", journal.block("good"))
    flow = define_flow("coding", actions=[bad, long, good])
    async with Runtime(flow, max_running=1) as runtime:
        for _ in range(3):
            await (await runtime.dispatch(bad, 1, session="s")).finished()
        running = await runtime.dispatch(long, 1, session="s")
        waiting = await runtime.dispatch(long, 1, session="s")
        await running.started()
        waiting.cancel()
        assert await waiting.finished() == "cancelled"
        running.cancel()
        with anyio.fail_after(10):
            assert await (await runtime.dispatch(good, 5, session="s")).output() == 5
    assert journal.count("long starts") == 1
