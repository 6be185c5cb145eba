"""Reading a session's items across its requests, in this process and the next."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from flowstate import Context, Runtime, action, define_flow, handler, sequencer
from flowstate.errors import CorruptRow, InvalidValue, RuntimeClosed, StoreError
from flowstate.item.content import Message, RouterDecision, ToolOutput
from flowstate.item.item import Item
from flowstate.item.selection import Called, Said, contents, history, messages
from flowstate.request import session_items as module
from flowstate.request.session_items import SessionItems
from flowstate.store.memory import MemoryStore
from flowstate.store.record import ItemRecord, PutItems

pytestmark = pytest.mark.anyio


@handler
async def talk(text: str, ctx: Context) -> str:
    """Says what it was told, calls a tool, answers; the answer is begun before the call ends."""
    ctx.items.add(Message(role="user", text=text))
    call = ctx.items.open(ToolOutput(call_id=f"call {text}", name="look"))
    answer = ctx.items.open(Message())
    answer.append(f"re: {text}")
    answer.settle()
    call.settle(ToolOutput(call_id=f"call {text}", name="look", output=len(text)))
    ctx.items.add(RouterDecision(router="r", route="a"))
    return text


TALK = action("talk", sequencer("turn", str).step(talk))
FLOW = define_flow("chat", actions=[TALK])


async def say(runtime: Runtime, text: str, session: str, tenant: str | None = None) -> str:
    """One request from beginning to end; gives its id."""
    run = await runtime.dispatch(TALK, text, session=session, tenant=tenant)
    await run.finished()
    return run.id


def said(items: list[Item]) -> list[str]:
    """The texts of the messages."""
    return [message.text for message in contents(items, Message)]


async def everything(items: SessionItems) -> list[Item]:
    """All of them."""
    return [item async for item in items]


async def test_items_come_request_by_request_in_the_order_they_were_made() -> None:
    """Not in the order in which they ended: a call that was answered late is where it began."""
    async with Runtime(FLOW) as runtime:
        ids = [await say(runtime, text, "s1") for text in ("one", "two")]
        items = await everything(runtime.session_items("s1"))
    assert [(item.request_id, item.content.type) for item in items] == [
        (request_id, kind) for request_id in ids for kind in ("message", "tool_output", "message")
    ]
    assert said(items) == ["one", "re: one", "two", "re: two"]
    assert all(item.settled for item in items)


async def test_a_history_of_a_session() -> None:
    """The last turns of a session, over its requests, as a model is told them."""
    async with Runtime(FLOW) as runtime:
        for text in ("one", "two", "three"):
            await say(runtime, text, "s1")
        items = await everything(runtime.session_items("s1"))
    assert history(items, turns=1) == [
        Said(role="user", text="three"),
        Called(call_id="call three", name="look", output=5),
        Said(role="assistant", text="re: three"),
    ]
    assert len(messages(history_items(items, 2), role="user")) == 2


def history_items(items: list[Item], requests: int) -> list[Item]:
    """The items of the last so many requests, by hand."""
    ids = list(dict.fromkeys(item.request_id for item in items))[-requests:]
    return [item for item in items if item.request_id in ids]


@pytest.mark.parametrize("last", [1, 2, 3, 9])
async def test_only_the_last_requests_are_read(last: int) -> None:
    """As many as there are, if there are fewer."""
    async with Runtime(FLOW) as runtime:
        for text in ("one", "two", "three"):
            await say(runtime, text, "s1")
        whole = await everything(runtime.session_items("s1"))
        assert await everything(runtime.session_items("s1", last=last)) == history_items(
            whole, last
        )


async def test_sessions_and_tenants_don_t_meet() -> None:
    """One id under two tenants, or under none, is two sessions."""
    async with Runtime(FLOW) as runtime:
        await say(runtime, "a", "s1", "acme")
        await say(runtime, "b", "s1", "other")
        await say(runtime, "c", "s1")
        await say(runtime, "d", "s2", "acme")
        assert said(await everything(runtime.session_items("s1", tenant="acme"))) == ["a", "re: a"]
        assert said(await everything(runtime.session_items("s1"))) == ["c", "re: c"]
        assert await everything(runtime.session_items("s3")) == []


async def test_what_clients_don_t_see_is_read_when_asked_for() -> None:
    """By default it is left out."""
    async with Runtime(FLOW) as runtime:
        await say(runtime, "a", "s1")
        shown = await everything(runtime.session_items("s1"))
        whole = await everything(runtime.session_items("s1", visibility="trace"))
    assert [item.content.type for item in whole if item not in shown] == ["router_decision"]


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
async def test_pages_don_t_show(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are read at a time, the items are the same."""
    async with Runtime(FLOW) as runtime:
        for text in ("one", "two"):
            await say(runtime, text, "s1")
        whole = await everything(runtime.session_items("s1", visibility="trace"))
        monkeypatch.setattr(module, "PAGE", page)
        assert await everything(runtime.session_items("s1", visibility="trace")) == whole
    assert len(whole) == 8


@pytest.mark.may_block  # SQLAlchemy is imported, and the file made, when the store is opened
async def test_the_next_process_reads_them_too(tmp_path: Path) -> None:
    """They come from the store: another Runtime on the same file gives the same."""
    file = f"sqlite:///{tmp_path / 'chat.db'}"
    async with Runtime(FLOW, store=file) as runtime:
        for text in ("one", "two"):
            await say(runtime, text, "s1")
        before = await everything(runtime.session_items("s1", visibility="trace"))
    async with Runtime(FLOW, store=file) as runtime:
        assert await everything(runtime.session_items("s1", visibility="trace")) == before
        assert said(before) == ["one", "re: one", "two", "re: two"]


async def test_a_request_under_way_is_given_as_far_as_it_is_stored() -> None:
    """The reader ends with what there is, and waits for nobody."""
    going, done = anyio.Event(), anyio.Event()

    @handler
    async def slow(text: str, ctx: Context) -> str:
        ctx.items.open(Message(text="so far"))
        going.set()
        await done.wait()
        return text

    act = action("slow", sequencer("turn", str).step(slow))
    async with Runtime(define_flow("f", actions=[act])) as runtime:
        run = await runtime.dispatch(act, "a", session="s1")
        with anyio.fail_after(10):
            await going.wait()
            reader = run.events()
            await reader.take()  # shown, so it is stored
            items = await everything(runtime.session_items("s1"))
        assert [(item.status, said([item])) for item in items] == [("in_progress", ["so far"])]
        done.set()


async def test_a_row_that_is_no_item_says_which() -> None:
    """It is left as it is, and the reader can go on behind it."""
    store = MemoryStore()
    async with Runtime(FLOW, store=store) as runtime:
        request_id = await say(runtime, "a", "s1")
        await store.commit(
            [
                PutItems(
                    records=(
                        ItemRecord(
                            request_id=request_id,
                            item_id="odd",
                            first_sequence=0,
                            last_sequence=99,
                            visibility="client",
                            data="{}",
                        ),
                    )
                )
            ]
        )
        items = runtime.session_items("s1")
        with pytest.raises(CorruptRow, match="odd"):
            await anext(items)
        assert said(await everything(items)) == ["a", "re: a"]


async def test_a_cancelled_caller_may_go_on() -> None:
    """A read that was cut off is done again, and nothing is skipped."""
    async with Runtime(FLOW) as runtime:
        await say(runtime, "a", "s1")
        await say(runtime, "b", "s1")
        items = runtime.session_items("s1")
        seen: list[Item] = []
        tries = 0
        while True:
            # A cancel at each await in turn: the store gives way at every call.
            tries += 1
            with anyio.CancelScope() as scope:
                if tries % 2:
                    scope.cancel()
                try:
                    seen.append(await anext(items))
                except StopAsyncIteration:
                    break
        assert said(seen) == ["a", "re: a", "b", "re: b"]
        assert tries > len(seen)


async def test_it_is_for_an_open_runtime() -> None:
    """Before and after, it says so; a reader kept from before fails when it reads."""
    runtime = Runtime(FLOW)
    with pytest.raises(RuntimeClosed, match="session_items"):
        runtime.session_items("s1")
    async with runtime:
        await say(runtime, "a", "s1")
        kept = runtime.session_items("s1")
    with pytest.raises(RuntimeClosed):
        runtime.session_items("s1")
    with pytest.raises(StoreError):
        await anext(kept)


@pytest.mark.parametrize("last", [0, -1])
async def test_no_requests_at_all_can_t_be_asked_for(last: int) -> None:
    """It would be all of them, to Python's slices."""
    async with Runtime(FLOW) as runtime:
        with pytest.raises(InvalidValue, match="1 or more"):
            runtime.session_items("s1", last=last)
