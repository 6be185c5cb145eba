"""Reading a request's events: live, late, slow, again, and from the store alone."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from flowstate.errors import InvalidValue
from flowstate.ids import random_id
from flowstate.item.book import ItemBook
from flowstate.item.content import BlockTrace, Container, Message, Status
from flowstate.item.event import ItemEvent
from flowstate.item.fold import fold
from flowstate.item.item import Item
from flowstate.item.visibility import Visibility
from flowstate.store.memory import MemoryStore
from flowstate.store.record import Fence, ItemRecord, Write
from flowstate.stream import reader as reader_module
from flowstate.stream.cursor import Cursor
from flowstate.stream.outbox import Outbox
from flowstate.stream.reader import EventReader, EventSource, read_events

pytestmark = pytest.mark.anyio


class Scene:
    """A request whose outbox is pumped."""

    def __init__(self, capacity: int) -> None:
        self.store = MemoryStore()
        self.all: list[ItemEvent] = []
        self.outbox = Outbox("req", self.store, on_failure=self._fail, capacity=capacity)
        self.book = ItemBook("req", clock=lambda: 0, ids=random_id, emit=self._put)
        self.writer = self.book.writer("p", "b")
        self.source = EventSource(request_id="req", store=self.store, ring=self.outbox.ring)
        self.past = EventSource(request_id="req", store=self.store)

    def read(self, after: int | None = None, visibility: Visibility = "client") -> EventReader:
        """A reader, after this sequence if given."""
        cursor = None if after is None else Cursor(request_id="req", sequence=after)
        return read_events(self.source, cursor, visibility)

    async def end(self) -> None:
        """The request is over."""
        self.book.close()
        await self.outbox.close()

    def final(self) -> dict[str, Item]:
        """What the stored items are in the end."""
        return kept(self.all)

    def _put(self, event: ItemEvent) -> None:
        self.all.append(event)
        self.outbox.put(event)

    def _fail(self, error: Exception) -> None:
        raise error


@asynccontextmanager
async def scene(capacity: int = 4096) -> AsyncIterator[Scene]:
    """A request that is ended at the end."""
    it = Scene(capacity)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(it.outbox.pump)
            yield it
            await it.end()


def kept(events: list[ItemEvent]) -> dict[str, Item]:
    """The fold of these events, without transient items."""
    items: dict[str, Item] = {}
    for event in events:
        fold(items, event)
    return {name: item for name, item in items.items() if not item.transient}


def text_of(item: Item) -> str:
    """A message's text."""
    assert isinstance(item.content, Message)
    return item.content.text


async def rest_of(reader: EventReader) -> list[ItemEvent]:
    """All events to the end."""
    return [event async for event in reader]


async def up_to_now(it: Scene, reader: EventReader) -> list[ItemEvent]:
    """All events that have been shown so far."""
    events: list[ItemEvent] = []
    while reader.cursor.sequence < it.outbox.ring.head:
        events += await reader.take()
    return events


async def test_a_reader_from_the_start_gets_every_event() -> None:
    """Live, in order, unchanged; it ends with the request."""
    async with scene() as it:
        got: list[ItemEvent] = []

        async def read() -> None:
            got.extend(await rest_of(it.read()))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            message = it.writer.open(Message())
            for piece in "abc":
                await anyio.lowlevel.checkpoint()
                message.append(piece)
            message.settle()
            await it.end()
        assert got == it.all
        assert [event.sequence for event in got] == [1, 2, 3, 4, 5]
        assert await rest_of(it.read()) == it.all


async def test_a_finished_request_is_read_from_the_store() -> None:
    """Without a ring, each item comes once, in its final state, and the reader ends."""
    async with scene() as it:
        for number in range(3):
            message = it.writer.open(Message())
            message.append(str(number))
            message.settle()
        it.writer.add(Status(text="…"), transient=True)
        await it.end()
        events = await rest_of(read_events(it.past))
        assert [event.kind for event in events] == ["settled"] * 3
        assert [event.sequence for event in events] == [3, 6, 9]
        assert kept(events) == it.final()


async def test_the_store_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """More items than a page holds, a last page that is full, and none at all."""
    monkeypatch.setattr(reader_module, "PAGE", 3)
    async with scene() as it:
        assert await rest_of(read_events(it.past)) == []
        for count in (6, 1):
            for _ in range(count):
                it.writer.add(Message())
            await it.outbox.flushed()
            assert kept(await rest_of(read_events(it.past))) == it.final()


async def test_resuming_anywhere_ends_with_the_same_items() -> None:
    """From each cursor, what was known folded with what comes is the final state."""
    async with scene() as it:
        first, second = it.writer.open(Message()), it.writer.open(Message())
        for piece in "abcd":
            first.append(piece)
            second.append(piece.upper())
        first.settle()
        await it.end()
        live = await rest_of(it.read())
        for known in range(len(live) + 1):
            rest = await rest_of(it.read(after=known))
            assert kept(live[:known] + rest) == it.final()
            assert all(event.sequence > known for event in rest)


async def test_a_snapshot_comes_before_the_next_delta() -> None:
    """Who resumes in the middle of a message is given all of it, then only what is new."""
    async with scene() as it:
        message = it.writer.open(Message())
        for piece in ("one ", "two ", "three "):
            message.append(piece)
        await it.outbox.flushed()
        reader = it.read(after=2)
        snapshot = await anext(reader)
        assert snapshot.kind == "changed"
        assert snapshot.item is not None
        assert text_of(snapshot.item) == "one two three "
        message.append("four")
        delta = await anext(reader)
        assert (delta.kind, delta.text) == ("delta", "four")


async def test_a_dead_reader_slows_nobody_and_the_next_gets_all() -> None:
    """A22: one item read, then nothing; the ring stays bounded, the run goes on."""
    async with scene(capacity=64) as it:
        slow = it.read()
        it.writer.add(Message(text="first"))
        await anext(slow)
        for number in range(5000):
            it.writer.add(Message(text=str(number)))
            if number % 50 == 0:
                await anyio.lowlevel.checkpoint()
                assert it.outbox.ring.held <= 64
        await it.outbox.flushed()
        assert it.outbox.ring.held <= 64
        second = it.read()
        await it.end()
        events = await rest_of(second)
        assert kept(events) == it.final()
        assert len(events) == 5001
        late = await rest_of(slow)
        assert [event.kind for event in late] == ["settled"] * 5000


async def test_leaving_early_leaves_nothing_behind() -> None:
    """A13: after a break the run goes on, the store answers, and a new reader goes on."""
    async with scene() as it:
        message = it.writer.open(Message())
        seen: list[ItemEvent] = []
        message.append("a")
        reader = it.read()
        async for event in reader:
            seen.append(event)
            if len(seen) == 2:
                break
        assert reader.cursor == Cursor(request_id="req", sequence=2)
        message.append("b")
        await it.outbox.flushed()
        assert len(await it.store.items("req")) == 1
        await it.end()
        seen += await rest_of(read_events(it.source, reader.cursor))
        assert kept(seen) == it.final()


async def test_readers_that_never_began_are_forgotten() -> None:
    """A23: a thousand readers made and dropped unread; none is kept, none must be closed."""
    async with scene() as it:
        for _ in range(1000):
            it.read()
        readers: list[EventReader] = []
        async with anyio.create_task_group() as group:

            async def read() -> None:
                reader = it.read()
                readers.append(reader)
                await anext(reader)

            for _ in range(10):
                group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        readers.clear()
        gc.collect()
        assert not [one for one in gc.get_objects() if type(one) is EventReader]
        it.writer.add(Message())
        await it.outbox.flushed()


async def test_a_cancelled_read_loses_nothing() -> None:
    """Whenever a read is given up, the next one goes on with the next event."""
    async with scene() as it:
        reader = it.read()
        got: list[ItemEvent] = []
        for number in range(20):
            with anyio.CancelScope() as scope:
                scope.cancel()
                got.append(await anext(reader))
            if number % 3 == 0:
                it.writer.add(Message(text=str(number)))
                await it.outbox.flushed()
        await it.end()
        got += await rest_of(reader)
        assert got == it.all


async def test_awkward_text_arrives_as_it_was_sent() -> None:
    """A24: line breaks of every kind, live and from the store."""
    text = "a\u2028b\x0cc\x85d\re\nf"
    async with scene() as it:
        message = it.writer.open(Message())
        for piece in text:
            message.append(piece)
        message.settle()
        await it.end()
        for reader in (it.read(), it.read(after=4), read_events(it.past)):
            (item,) = kept(await rest_of(reader)).values()
            assert text_of(item) == text
        assert len(await rest_of(read_events(it.past))) == 1


async def test_a_client_never_hears_of_hidden_items() -> None:
    """A25: neither content nor id, live or resumed; what it may see arrives with its end."""
    async with scene() as it:
        hidden = it.book.writer("q", "c", "trace").open(Message(text="secret"))
        shown = it.writer.open(Message())
        group = it.book.writer("q", "c", "trace").open(Container(label="secret"))
        it.writer.add(Message(text="inside"), parent=group.id)
        it.book.writer("q", "c", "trace").open(Status(text="secret"), transient=True)
        await it.outbox.flushed()
        live, traced = it.read(), it.read(visibility="trace")
        await live.take()
        for _ in range(2):
            hidden.append("secret")
            shown.append("x")
            trace = it.writer.open(BlockTrace(block="secret", kind="handler"))
        await it.outbox.flushed()
        resumed = [it.read(after=after) for after in range(12)]
        hidden.settle()
        trace.settle()
        shown.settle(Message(text="final"))
        await it.end()
        for reader in (live, read_events(it.past), it.read(), *resumed):
            events = await rest_of(reader)
            text = repr(events)
            assert "secret" not in text
            assert not any(one in text for one in (hidden.id, group.id, trace.id))
            ends = [one for one in events if one.kind == "settled" and one.item_id == shown.id]
            assert len(ends) == 1
            assert ends[0].item is not None
            assert text_of(ends[0].item) == "final"
        assert "secret" in repr(await rest_of(traced))
        assert kept(await rest_of(it.read(visibility="trace"))) == it.final()


async def test_many_read_at_once() -> None:
    """A hundred readers at their own pace all end with the same items."""
    async with scene(capacity=32) as it:
        ends: list[dict[str, Item]] = []

        async def read(pace: int) -> None:
            events: list[ItemEvent] = []
            async for event in it.read():
                events.append(event)
                for _ in range(pace):
                    await anyio.lowlevel.checkpoint()
            ends.append(kept(events))

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(read, number % 4)
            for _ in range(20):
                message = it.writer.open(Message())
                for piece in "abcdef":
                    message.append(piece)
                    await anyio.lowlevel.checkpoint()
                message.settle()
            await it.end()
        assert ends == [it.final()] * 100


async def test_who_falls_behind_and_stops_can_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A reader that leaves in the middle of a replay has not been given items that changed later.
    Back while the ring still holds its cursor, it must not be given their deltas first.
    """
    monkeypatch.setattr(reader_module, "PAGE", 1)
    async with scene(capacity=4) as it:
        early = it.writer.open(Message())
        early.append("lost in the ring ")
        for _ in range(4):
            it.writer.add(Message())
        await it.outbox.flushed()
        early.append("and more")
        await it.outbox.flushed()
        reader = it.read()
        seen = [await anext(reader), await anext(reader)]
        assert early.id not in {event.item_id for event in seen}
        assert it.outbox.ring.floor <= seen[-1].sequence
        early.append("!")
        await it.end()
        seen += await rest_of(read_events(it.source, reader.cursor))
        assert kept(seen) == it.final()


async def test_a_batch_longer_than_the_ring_reaches_those_who_keep_up() -> None:
    """It is shown half a ring at a time; a reader that only reads gets every event."""
    async with scene(capacity=64) as it:
        got: list[ItemEvent] = []

        async def read() -> None:
            got.extend(await rest_of(it.read()))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            message = it.writer.open(Message())
            for _ in range(2000):
                message.append("x")
            await it.end()
        assert got == it.all


async def test_a_reader_that_skipped_events_is_told_that_a_status_is_gone() -> None:
    """Transient items are in no store: those it was shown end for it, those on show now begin."""
    async with scene(capacity=8) as it:
        status = it.book.status(it.writer)
        status.show("old")
        await it.outbox.flushed()
        reader = it.read()
        (shown,) = await reader.take()
        for number in range(40):
            status.show(f"between {number}")
            it.writer.add(Message())
        status.show("now")
        it.writer.add(Message())
        await it.outbox.flushed()
        events = await up_to_now(it, reader)
        told: dict[str, Item] = {}
        for event in [shown, *events]:
            fold(told, event)
        line = [item for item in told.values() if item.transient]
        assert told[shown.item_id].settled
        assert [item.content for item in line if not item.settled] == [Status(text="now")]
        assert kept(events) == it.final()
        sequences = [event.sequence for event in events]
        assert sequences == sorted(sequences)
        await it.end()
        last = await rest_of(reader)
        assert [(one.kind, one.item and one.item.content) for one in last] == [
            ("settled", Status(text="now"))
        ]


async def test_who_comes_late_sees_the_status_on_show() -> None:
    """The ring keeps the open transient items, their streamed text too, when it forgets events."""
    async with scene(capacity=4) as it:
        it.book.status(it.writer).show("working")
        draft = it.writer.open(Message(), transient=True)
        draft.append("so ")
        for _ in range(20):
            it.writer.add(Message())
        draft.append("far")
        await it.outbox.flushed()
        for reader in (it.read(), it.read(after=3)):
            events = await up_to_now(it, reader)
            known: dict[str, Item] = {}
            for event in events:
                fold(known, event)
            assert text_of(known[draft.id]) == "so far"
            assert Status(text="working") in [item.content for item in known.values()]
            new = [one for one in events if one.item and one.item.transient]
            assert [event.kind for event in new] == ["added", "added"]


async def test_the_store_may_be_ahead_of_the_ring() -> None:
    """
    A reader that finds rows of a batch not shown yet waits until it is: what is transient in that
    batch is in no row, and would be lost for it.
    """
    gate = anyio.Event()
    store = MemoryStore()

    class Slow:
        async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
            """Stored, but not yet told so."""
            await store.commit(writes, fence=fence)
            await gate.wait()

    def fail(error: Exception) -> None:
        raise error

    outbox = Outbox("req", Slow(), on_failure=fail)
    book = ItemBook("req", clock=lambda: 0, ids=random_id, emit=outbox.put)
    status = book.status(book.writer("p", "b"))
    async with anyio.create_task_group() as group:
        group.start_soon(outbox.pump)
        status.show("before")
        await outbox.flushed()
        status.show("now")
        book.writer("p", "b").add(Message())
        known: dict[str, Item] = {}

        async def read() -> None:
            source = EventSource(request_id="req", store=store, ring=outbox.ring)
            reader = read_events(source, Cursor(request_id="req", sequence=1))
            for event in await reader.take():
                fold(known, event)

        group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert known == {}
        gate.set()
        await outbox.flushed()
        await anyio.wait_all_tasks_blocked()
        assert [item.content for item in known.values() if not item.settled] == [Status(text="now")]
        book.close()
        await outbox.close()


async def test_more_transient_events_than_the_ring_holds() -> None:
    """Though the store has nothing to give, a late reader gets on."""
    async with scene(capacity=4) as it:
        status = it.book.status(it.writer)
        for number in range(100):
            status.show(str(number))
        await it.outbox.flushed()
        reader = it.read()
        known: dict[str, Item] = {}
        for event in await up_to_now(it, reader):
            fold(known, event)
        assert [one.content for one in known.values() if not one.settled] == [Status(text="99")]
        assert len(known) < 5


async def test_an_item_is_added_once_in_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that changes again while the store is read page by page isn't new again."""
    monkeypatch.setattr(reader_module, "PAGE", 2)
    async with scene(capacity=4) as it:
        items = [it.writer.open(Message()) for _ in range(8)]
        await it.outbox.flushed()
        reader = it.read()
        seen = [await anext(reader)]
        assert seen[0].item_id == items[0].id
        items[0].append("again")
        await it.outbox.flushed()
        seen += await up_to_now(it, reader)
        assert [event.kind for event in seen if event.item_id == items[0].id] == [
            "added",
            "changed",
        ]
        assert [event.kind for event in seen].count("added") == 8
        await it.end()
        seen += await rest_of(reader)
        assert kept(seen) == it.final()


async def test_what_a_reader_knew_before_it_fell_behind_is_not_new() -> None:
    """It is told of a change, not of a new item; of what came since, as new."""
    async with scene(capacity=4) as it:
        known = it.writer.open(Message())
        await it.outbox.flushed()
        reader = it.read()
        assert (await anext(reader)).kind == "added"
        for _ in range(20):
            known.append("x")
        new = it.writer.open(Message())
        await it.outbox.flushed()
        events = await up_to_now(it, reader)
        assert [(one.kind, one.item_id) for one in events] == [
            ("changed", known.id),
            ("added", new.id),
        ]


async def test_the_ring_is_joined_in_the_middle_of_a_chunk() -> None:
    """What the store has given isn't given again, though it was shown with what follows."""
    async with scene() as it:
        first = it.writer.open(Message())
        await it.outbox.flushed()
        for piece in "abc":
            first.append(piece)
        it.writer.open(Status(text="…"), transient=True)
        await it.outbox.flushed()
        events = await up_to_now(it, it.read(after=1))
        assert [(one.sequence, one.kind) for one in events] == [(4, "changed"), (5, "added")]


async def test_a_failing_store_is_heard_and_the_next_read_goes_on() -> None:
    """A read that fails takes nothing with it."""

    class Flaky:
        def __init__(self, store: MemoryStore) -> None:
            self.store = store
            self.fails = 1

        async def items(
            self, request_id: str, *, after: int = 0, limit: int = 500
        ) -> list[ItemRecord]:
            """Fail the first time."""
            self.fails -= 1
            if self.fails >= 0:
                raise OSError("gone")
            return await self.store.items(request_id, after=after, limit=limit)

    async with scene() as it:
        it.writer.add(Message())
        await it.end()
        reader = read_events(EventSource(request_id="req", store=Flaky(it.store)))
        with pytest.raises(OSError, match="gone"):
            await anext(reader)
        assert kept(await rest_of(reader)) == it.final()


async def test_a_cursor_of_another_request_is_refused() -> None:
    """The message names both."""
    source = EventSource(request_id="req", store=MemoryStore())
    with pytest.raises(InvalidValue, match=r"request 'req'.*'other:3'"):
        read_events(source, Cursor(request_id="other", sequence=3))


async def test_a_closed_reader_reads_no_more() -> None:
    """aclose is safe at any time, twice too."""
    async with scene() as it:
        it.writer.add(Message())
        it.writer.add(Message())
        await it.outbox.flushed()
        async with aclosing(it.read()) as reader:
            await anext(reader)
        assert await rest_of(reader) == []
        assert await reader.take() == []
        await reader.aclose()


async def test_taking_gives_all_that_is_there() -> None:
    """One await for many events; nothing at the end; the list is the taker's own."""
    async with scene() as it:
        reader, other = it.read(), it.read()
        for _ in range(5):
            it.writer.add(Message())
        await it.outbox.flushed()
        await anext(reader)
        batch = await reader.take()
        assert [event.sequence for event in batch] == [2, 3, 4, 5]
        mine = await other.take()
        mine.clear()
        assert len(await it.read().take()) == 5
        assert reader.cursor.sequence == 5
        await it.end()
        assert await reader.take() == []
