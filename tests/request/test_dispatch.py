"""Dispatch: what is accepted, what is refused without a trace, and what runs once."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from flowstate import Identity, Runtime, action, define_flow, handler, reject, sequencer
from flowstate.errors import (
    DefinitionError,
    InvalidValue,
    PlanError,
    RequestError,
    RequestRefused,
    RuntimeClosed,
    StoreError,
)
from flowstate.ids import SessionId
from flowstate.item.content import Message
from flowstate.lease.memory import MemoryLease
from flowstate.store.memory import MemoryStore
from tests.request.desk import Ledger, flow_of
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


class Ask(BaseModel):
    text: str


@handler
async def answer(ask: Ask) -> str:
    return ask.text.upper()


@handler
async def add_one(value: int) -> int:
    return value + 1


async def test_a_request_runs_and_its_output_is_the_blocks() -> None:
    """Id and stream at once, the output when it is there."""
    flow, ask = flow_of(sequencer("turn", Ask).step(answer))
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, Ask(text="hi"), session="s1", user="u1", tenant="t1")
        assert run.id.startswith("req_")
        assert run.action == "ask"
        assert run.identity == Identity(session_id=SessionId("s1"), user_id="u1", tenant_id="t1")
        assert await run.output() == "HI"
        assert await run.finished() == "completed"
        assert run.status == "completed"


async def test_each_status_is_recorded_as_it_is_reached() -> None:
    """With input, output and times; the output is JSON."""
    ledger = Ledger()
    flow, ask = flow_of(answer)
    ticks = itertools.count(1000)
    async with Runtime(flow, store=ledger, clock=lambda: next(ticks)) as runtime:
        run = await runtime.dispatch(ask, Ask(text="hi"), session="s1")
        await run.finished()
        record = await ledger.request(run.id)
    assert ledger.of(run.id) == ["accepted", "running", "completed"]
    assert record is not None
    assert (record.flow, record.action, record.input) == ("coding", "ask", '{"text":"hi"}')
    assert record.output == '"HI"'
    assert record.created_at < record.updated_at


async def test_a_failing_block_fails_the_request() -> None:
    """The error itself comes out of ``output``; its text is recorded, and an item tells it."""

    @handler
    async def fails(ask: Ask) -> str:
        raise ValueError("no answer")

    ledger = Ledger()
    flow, ask = flow_of(sequencer("turn", Ask).step(fails))
    async with Runtime(flow, store=ledger) as runtime:
        run = await runtime.dispatch(ask, Ask(text="hi"), session="s1")
        with pytest.raises(ValueError, match="no answer") as caught:
            await run.output()
        assert caught.value.__notes__ == ["in step turn/fails, input: Ask"]
        assert await run.finished() == "failed"
        record = await ledger.request(run.id)
        assert record is not None
        assert (record.status, record.error, record.output) == ("failed", "no answer", None)
        (item,) = [item async for item in run.items()]
        assert item.content == item.content.model_copy(
            update={"code": "ValueError", "message": "no answer"}
        )
        assert item.provenance.path == "turn/fails"


@pytest.mark.parametrize("value", ["hi", {"text": 5}, {}, None, 5])
async def test_an_input_that_doesn_t_fit_is_refused_without_a_trace(value: Any) -> None:
    """No row, no place: the next request has the key to itself."""
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(answer, "reject")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        with pytest.raises(InvalidValue, match=r"answer \(input\): expected Ask"):
            await runtime.dispatch(ask, value, session="s1")
        assert ledger.statuses == []
        assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_an_input_that_can_t_be_kept_is_refused() -> None:
    """What no JSON holds can't be recorded, so it isn't run either."""
    flow, ask = flow_of(handler(_anything))
    loop: list[Any] = []
    loop.append(loop)
    ledger = Ledger()
    async with Runtime(flow, store=ledger) as runtime:
        with pytest.raises(InvalidValue, match=r"coding\.ask \(input\)"):
            await runtime.dispatch(ask, loop, session="s1")
    assert ledger.statuses == []


async def _anything(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    "ids",
    [
        {"session": 5},
        {"session": None},
        {"session": "s", "user": 5},
        {"session": "s", "tenant": b"t"},
        {"session": "s", "org": 1},
        {"session": "s", "request_id": 7},
    ],
)
async def test_an_id_that_is_no_text_is_refused(ids: dict[str, Any]) -> None:
    """5 and "5" would meet somewhere; so one of them isn't an id."""
    flow, ask = flow_of(add_one)
    async with Runtime(flow) as runtime:
        with pytest.raises(InvalidValue, match="an id is a text"):
            await runtime.dispatch(ask, 1, **ids)


async def test_an_action_of_another_runtime_is_refused() -> None:
    """The Runtime runs what it was given, and says how to give it more."""
    flow, _ = flow_of(add_one)
    _, other = flow_of(add_one)
    async with Runtime(flow) as runtime:
        with pytest.raises(DefinitionError, match=r"no flow of this Runtime has it.*Hand its flow"):
            await runtime.dispatch(other, 1, session="s1")


async def test_outside_its_context_a_runtime_takes_nothing() -> None:
    """Before it was entered and after it was left."""
    flow, ask = flow_of(add_one)
    runtime = Runtime(flow)
    with pytest.raises(RuntimeClosed, match="async with"):
        await runtime.dispatch(ask, 1, session="s1")
    async with runtime:
        pass
    with pytest.raises(RuntimeClosed):
        await runtime.dispatch(ask, 1, session="s1")


async def test_a_fault_in_any_flow_shows_at_start_up() -> None:
    """Plans are built when the Runtime is made."""
    start: Any = sequencer("turn", str)
    flow, _ = flow_of(start.step(answer))
    with pytest.raises(PlanError, match="'answer' takes Ask"):
        Runtime(flow)
    fine, _ = flow_of(add_one)
    with pytest.raises(DefinitionError, match="two flows are called 'coding'"):
        Runtime(fine, fine)
    with pytest.raises(DefinitionError, match="max_running=0"):
        Runtime(fine, max_running=0)
    with pytest.raises(PlanError, match="strict"):
        Runtime(flow_of(sequencer("turn").step(add_one))[0], strict=True)


async def test_a_refused_request_leaves_no_trace() -> None:
    """No row, no place and no effect on the one in flight."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    go_on = anyio.Event()
    flow, ask = flow_of(journal.block("work", until=go_on), "reject")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        first = await runtime.dispatch(ask, 1, session="s1")
        await first.started()
        with pytest.raises(RequestRefused, match="this session") as caught:
            await runtime.dispatch(ask, 2, session="s1", request_id="mine")
        assert caught.value.in_flight == first.id
        assert await ledger.request("mine") is None
        assert repr(lease) == "<MemoryLease: 1 held, 0 waiting>"
        go_on.set()
        assert await first.output() == 1
        await first.finished()
        again = await runtime.dispatch(ask, 3, session="s1", request_id="mine")
        assert await again.output() == 3
    assert {each for each, _ in ledger.statuses} == {first.id, "mine"}


async def test_twenty_dispatches_of_one_id_are_one_run() -> None:
    """At the same moment, under every policy: each is answered with the same run."""
    for policy in ("allow", "queue", "reject"):
        journal = Journal()
        ledger = Ledger()
        lease = MemoryLease()
        flow, ask = flow_of(journal.block("work", lambda value: value + 1, waits=5), policy)
        outputs: list[int] = []
        async with Runtime(flow, store=ledger, lease=lease) as runtime:

            async def send(runtime: Any = runtime, ask: Any = ask, outputs: Any = outputs) -> None:
                run = await runtime.dispatch(ask, 1, session="s1", request_id="mine")
                assert run.id == "mine"
                outputs.append(await run.output())

            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(send)
        assert outputs == [2] * 20
        assert journal.starts() == ["work"]
        assert ledger.of("mine")[0] == "accepted"
        assert ledger.of("mine").count("completed") == 1
        assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_an_id_of_another_request_is_refused() -> None:
    """Of another session, or of one that has ended, here or in an earlier process."""
    journal = Journal()
    lease = MemoryLease()
    store = MemoryStore()
    go_on = anyio.Event()
    flow, ask = flow_of(journal.block("work", until=go_on), "queue")
    async with Runtime(flow, store=store, lease=lease) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1", request_id="mine")
        with pytest.raises(RequestError, match="'mine' belongs to another request"):
            await runtime.dispatch(ask, 1, session="s2", request_id="mine")
        assert repr(lease) == "<MemoryLease: 1 held, 0 waiting>"
        go_on.set()
        await run.finished()
        with pytest.raises(RequestError, match="'mine' has ended already"):
            await runtime.dispatch(ask, 1, session="s1", request_id="mine")
    async with Runtime(flow, store=store) as runtime:
        with pytest.raises(RequestError, match="'mine' has ended already"):
            await runtime.dispatch(ask, 1, session="s1", request_id="mine")


async def test_one_id_sent_for_two_sessions_at_once_leaves_no_place_behind() -> None:
    """One of them runs; the other is refused, and its session isn't blocked for ever."""
    journal = Journal()
    lease = MemoryLease()
    flow, ask = flow_of(journal.block("work", waits=3), "queue")
    ended: list[str] = []
    async with Runtime(flow, lease=lease) as runtime:

        async def send(session: str) -> None:
            try:
                run = await runtime.dispatch(ask, 1, session=session, request_id="mine")
                await run.finished()
                ended.append("ran")
            except RequestError:
                ended.append("refused")

        async with anyio.create_task_group() as group:
            for session in ("s1", "s2"):
                group.start_soon(send, session)
    assert sorted(ended) == ["ran", "refused"]
    assert journal.starts() == ["work"]
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_two_runtimes_on_one_store_don_t_both_run_an_id() -> None:
    """The store takes the first; the other is told, and keeps no place."""
    store = MemoryStore()
    journal = Journal()
    flow, ask = flow_of(journal.block("work", waits=3), "queue")
    ended: list[str] = []
    leases = [MemoryLease(), MemoryLease()]
    async with (
        Runtime(flow, store=store, lease=leases[0]) as one,
        Runtime(flow, store=store, lease=leases[1]) as two,
    ):

        async def send(runtime: Runtime) -> None:
            try:
                await (await runtime.dispatch(ask, 1, session="s", request_id="mine")).finished()
                ended.append("ran")
            except RequestError:
                ended.append("refused")

        async with anyio.create_task_group() as group:
            group.start_soon(send, one)
            group.start_soon(send, two)
    assert sorted(ended) == ["ran", "refused"]
    assert journal.starts() == ["work"]
    assert [repr(lease) for lease in leases] == ["<MemoryLease: 0 held, 0 waiting>"] * 2


async def test_a_request_that_can_t_be_recorded_doesn_t_start() -> None:
    """The store's error comes out, and the place is free again."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(journal.block("work"), "queue")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        ledger.failing.add("accepted")
        with pytest.raises(StoreError, match="no room for accepted"):
            await runtime.dispatch(ask, 1, session="s1", request_id="mine")
        assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"
        assert await ledger.request("mine") is None
        ledger.failing.clear()
        run = await runtime.dispatch(ask, 2, session="s1", request_id="mine")
        assert await run.output() == 2
    assert journal.starts() == ["work"]


async def test_a_caller_that_is_cancelled_while_it_sends_leaves_nothing_half_done() -> None:
    """The request is recorded and runs to its end, as if the answer had been lost on the way."""
    journal = Journal()
    ledger = Ledger()
    lease = MemoryLease()
    flow, ask = flow_of(journal.block("work"), "queue")
    async with Runtime(flow, store=ledger, lease=lease) as runtime:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await runtime.dispatch(ask, 1, session="s1")
        for request_id in {each for each, _ in ledger.statuses}:
            assert ledger.of(request_id)[0] == "accepted"
        next_run = await runtime.dispatch(ask, 2, session="s1")
        assert await next_run.output() == 2
    for request_id in {each for each, _ in ledger.statuses}:
        assert ledger.of(request_id)[-1] == "completed"
    assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>"


async def test_ids_of_any_characters_do() -> None:
    """NUL, lone surrogates, quotes, separators: an id is data."""
    odd = '../\0"\ud800\u2028]'
    flow, ask = flow_of(add_one, "queue")
    store = MemoryStore()
    async with Runtime(flow, store=store) as runtime:
        run = await runtime.dispatch(
            ask, 1, session=odd, user=odd, tenant=odd, org=odd, request_id=odd
        )
        assert await run.output() == 2
        await run.finished()
        record = await store.request(odd)
        assert record is not None
        assert record.identity.session_id == odd


async def test_several_flows_in_one_runtime() -> None:
    """Actions are told apart by themselves, not by their names."""

    @handler
    async def negate(value: int) -> int:
        return -value

    one, two = action("ask", add_one), action("ask", negate)
    flows = [define_flow("one", actions=[one]), define_flow("two", actions=[two])]
    async with Runtime(*flows) as runtime:
        assert await (await runtime.dispatch(one, 1, session="s")).output() == 2
        assert await (await runtime.dispatch(two, 1, session="s")).output() == -1
        assert runtime.plan(one).name == "add_one"
        assert repr(runtime).startswith("<Runtime of one, two: ")


async def test_a_trace_is_made_where_a_host_asks_for_it() -> None:
    """A transient item for every execution of a block, seen by the host's readers only."""
    journal = Journal()
    start = anyio.Event()
    built = sequencer("turn", int).step(journal.block("work", until=start)).step(add_one)
    flow, ask = flow_of(built)
    async with Runtime(flow, trace=True) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        seen: list[Any] = []

        async def read(visibility: Any, into: list[Any]) -> None:
            async for item in run.items(visibility=visibility):
                into.append(item)

        client: list[Any] = []
        async with anyio.create_task_group() as group:
            group.start_soon(read, "trace", seen)
            group.start_soon(read, "client", client)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            start.set()
        assert client == []
        traces = [(item.content.block, item.content.kind, item.status) for item in seen]
        assert traces == [("work", "handler", "completed"), ("add_one", "handler", "completed")]
        assert all(item.transient and item.content.duration >= 0 for item in seen)


async def test_readers_come_and_go_and_the_run_goes_on() -> None:
    """A reader that leaves early cancels nothing, and a new one begins where it says."""

    @handler
    async def says(value: int, ctx: Any) -> int:
        for number in range(10):
            ctx.items.add(Message(text=str(number)))
            await anyio.lowlevel.checkpoint()
        return value

    flow, ask = flow_of(says)
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s1")
        reader = run.events()
        seen = []
        async for event in reader:
            seen.append(event)
            if len(seen) == 3:
                break
        with anyio.fail_after(10):
            assert run.status in ("running", "completed")
            assert await run.output() == 1
            rest = [event async for event in run.events(after=reader.cursor)]
        texts = [event.item.content.text for event in [*seen, *rest] if event.item]  # type: ignore[union-attr]
        assert texts == [str(number) for number in range(10)]


async def test_keyless_reject_refuses_nobody() -> None:
    """No key, no arbitration."""
    journal = Journal()
    flow, ask = flow_of(stuck(journal, "work"), reject(key=None))
    async with Runtime(flow) as runtime:
        runs = [await runtime.dispatch(ask, 1, session="s1") for _ in range(3)]
        for run in runs:
            await run.started()
            run.cancel()
    assert journal.count("work starts") == 3
