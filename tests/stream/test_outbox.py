"""The outbox: stored before shown, one transaction a batch, one wake-up, honest failure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from flowstate.errors import InvalidValue, StoreError
from flowstate.ids import random_id
from flowstate.item.book import ItemBook
from flowstate.item.content import Message, Status, ToolOutput
from flowstate.item.event import ItemEvent
from flowstate.store.memory import MemoryStore
from flowstate.store.record import Fence, ItemRecord, PutItems, Write
from flowstate.stream.outbox import MOST_ROWS, ItemSink, Outbox
from flowstate.stream.row import item_of

pytestmark = pytest.mark.anyio


class Notebook:
    """A store that notes its commits; it can be held up, and it can fail."""

    def __init__(self) -> None:
        self.commits: list[tuple[ItemRecord, ...]] = []
        self.fences: list[Fence | None] = []
        self.held = anyio.Event()
        self.held.set()
        self.failure: Exception | None = None

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """Note what was written."""
        await self.held.wait()
        await anyio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        (write,) = writes
        assert isinstance(write, PutItems)
        self.commits.append(write.records)
        self.fences.append(fence)


class Setting:
    """An outbox with its book."""

    def __init__(self, store: ItemSink, capacity: int, fence: Fence | None) -> None:
        self.failures: list[Exception] = []
        self.outbox = Outbox(
            "req", store, on_failure=self.failures.append, capacity=capacity, fence=fence
        )
        self.book = ItemBook("req", clock=lambda: 0, ids=random_id, emit=self.outbox.put)
        self.writer = self.book.writer("p", "b")

    def shown(self) -> list[ItemEvent]:
        """What the ring holds."""
        chunks = self.outbox.ring.since(self.outbox.ring.floor)
        assert chunks is not None
        return [event for chunk in chunks for event in chunk.events]


@asynccontextmanager
async def pumping(
    store: ItemSink, capacity: int = 4096, fence: Fence | None = None
) -> AsyncIterator[Setting]:
    """An outbox whose pump runs, closed at the end."""
    setting = Setting(store, capacity, fence)
    async with anyio.create_task_group() as group:
        group.start_soon(setting.outbox.pump)
        yield setting
        setting.book.close()
        await setting.outbox.close()


async def test_an_event_is_stored_before_it_is_shown() -> None:
    """While the transaction runs, nothing of its batch can be read."""
    store = Notebook()
    store.held = anyio.Event()
    async with pumping(store) as setting:
        setting.writer.add(Message(text="hello"))
        await anyio.wait_all_tasks_blocked()
        assert setting.shown() == []
        store.held.set()
        await setting.outbox.flushed()
        (event,) = setting.shown()
        (records,) = store.commits
        assert item_of(records[0]) == event.item


async def test_a_batch_is_one_transaction() -> None:
    """What comes in while a transaction runs is written by the next, each changed item once."""
    store = Notebook()
    async with pumping(store) as setting:
        store.held = anyio.Event()
        first = setting.writer.open(Message())
        await anyio.wait_all_tasks_blocked()
        second = setting.writer.open(Message())
        for _ in range(1000):
            first.append("a")
            second.append("b")
        first.settle()
        store.held.set()
        await setting.outbox.flushed()
        assert [[record.item_id for record in records] for records in store.commits] == [
            [first.id],
            [second.id, first.id],
        ]
        assert [record.last_sequence for record in store.commits[1]] == [2002, 2003]
        assert [record.first_sequence for record in store.commits[1]] == [2, 1]
        assert item_of(store.commits[1][0]).content == Message(text="b" * 1000)
        assert item_of(store.commits[1][1]).content == Message(text="a" * 1000)


async def test_a_row_never_runs_ahead_of_its_sequence() -> None:
    """Text put while a transaction runs is in the next row, not in that one."""
    store = Notebook()
    async with pumping(store) as setting:
        message = setting.writer.open(Message())
        message.append("now")
        store.held = anyio.Event()
        await anyio.wait_all_tasks_blocked()
        message.append(" and later")
        store.held.set()
        await setting.outbox.flushed()
        texts = [item_of(record).content for records in store.commits for record in records]
        assert texts == [Message(text="now"), Message(text="now and later")]


async def test_transient_events_are_shown_in_order_and_not_stored() -> None:
    """They keep their place among the others; a batch of them alone needs no transaction."""
    store = Notebook()
    async with pumping(store) as setting:
        status = setting.writer.open(Status(text="…"), transient=True)
        await setting.outbox.flushed()
        assert store.commits == []
        setting.writer.add(Message())
        status.settle()
        await setting.outbox.flushed()
        assert [event.kind for event in setting.shown()] == ["added", "settled", "settled"]
        assert [event.sequence for event in setting.shown()] == [1, 2, 3]
        assert [len(records) for records in store.commits] == [1]


async def test_every_write_carries_the_fence() -> None:
    """The store can refuse the items of a run that lost its key."""
    store = Notebook()
    fence = Fence(key="k", token=7)
    async with pumping(store, fence=fence) as setting:
        setting.writer.add(Message())
        await setting.outbox.flushed()
        setting.writer.add(Message())
    assert store.fences == [fence, fence]


async def test_a_failing_store_is_told_once_and_nothing_more_is_shown() -> None:
    """The owner hears the error itself; waiters hear that their items are lost; nobody hangs."""
    store = Notebook()
    async with pumping(store) as setting:
        setting.writer.add(Message(text="kept"))
        await setting.outbox.flushed()
        store.failure = StoreError("disk full")
        setting.writer.add(Message(text="lost"))
        with pytest.raises(StoreError, match=r"'req'.*items after 1") as caught:
            await setting.outbox.flushed()
        assert caught.value.__cause__ is store.failure
        for _ in range(10):
            setting.writer.add(Message(text="lost too"))
            await anyio.lowlevel.checkpoint()
        with pytest.raises(StoreError):
            await setting.outbox.flushed()
        assert setting.failures == [store.failure]
        assert [event.sequence for event in setting.shown()] == [1]
        assert setting.outbox.ring.over


async def test_an_item_that_is_no_json_is_told_like_a_failing_store() -> None:
    """The owner hears which item it was."""
    async with pumping(Notebook()) as setting:
        setting.writer.add(ToolOutput(call_id="c", name="n", output=object()))
        with pytest.raises(StoreError):
            await setting.outbox.flushed()
    (error,) = setting.failures
    assert isinstance(error, InvalidValue)
    assert setting.shown() == []


async def test_a_put_from_a_thread_wakes_the_pump() -> None:
    """The pump sleeps until a worker thread puts something, again and again."""
    store = Notebook()
    async with pumping(store) as setting:

        def work(text: str) -> None:
            setting.writer.add(Message(text=text))

        with anyio.fail_after(10):
            for number in range(50):
                await anyio.to_thread.run_sync(work, str(number))
                await setting.outbox.flushed()
    texts = [item_of(record).content for records in store.commits for record in records]
    assert texts == [Message(text=str(number)) for number in range(50)]


async def test_threads_and_tasks_put_at_once_and_nothing_is_lost() -> None:
    """However puts fall between the pump's steps, every event is stored, shown, and in order."""
    store = MemoryStore()
    async with pumping(store, capacity=100_000) as setting:

        def work() -> None:
            for _ in range(300):
                setting.writer.add(Message())

        async def tick() -> None:
            for _ in range(300):
                setting.writer.add(Message())
                await anyio.lowlevel.checkpoint()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(anyio.to_thread.run_sync, work)
                group.start_soon(tick)
            await setting.outbox.flushed()
        assert [event.sequence for event in setting.shown()] == list(range(1, 1201))
        assert len(await store.items("req", limit=5000)) == 1200


@pytest.mark.parametrize("look", [1, 2, 3])
async def test_a_put_while_the_pump_lies_down_is_seen(
    monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """A thread may put after any of the pump's looks at the queue, the last one included."""
    looks = 0

    class Queue(deque[ItemEvent]):
        """A queue into which something is put just after it was seen to be empty."""

        def __bool__(self) -> bool:
            nonlocal looks
            if len(self) > 0:
                return True
            looks += 1
            if looks == look:
                setting.writer.add(Message(text="between"))
            return False

    async with pumping(Notebook()) as setting:
        monkeypatch.setattr(setting.outbox, "_queue", Queue())
        setting.writer.add(Message(text="first"))
        await anyio.wait_all_tasks_blocked()
        assert looks > look
        assert [event.sequence for event in setting.shown()] == [1, 2]


@pytest.mark.parametrize("make", [Notebook, MemoryStore])
async def test_a_great_many_items_do_not_hold_up_the_loop(
    make: Callable[[], Notebook | MemoryStore],
) -> None:
    """What was put at once is stored in pieces, in order, and the others get to run in between."""
    store = make()
    async with pumping(store, capacity=100_000) as setting:
        for _ in range(3000):
            setting.writer.add(Message())
        heads: list[int] = []
        while not heads or heads[-1] < 3000:
            await anyio.lowlevel.checkpoint()
            heads.append(setting.outbox.ring.head)
    assert len({*heads}) > 5
    if isinstance(store, Notebook):
        assert max(len(records) for records in store.commits) < 2 * MOST_ROWS
        stored = [record.last_sequence for records in store.commits for record in records]
        assert stored == list(range(1, 3001))


async def test_what_is_put_at_every_turn_is_gathered() -> None:
    """Words that come one a turn of the loop are not stored and shown one by one."""
    store = Notebook()
    async with pumping(store) as setting:
        message = setting.writer.open(Message())
        for _ in range(200):
            message.append("a")
            await anyio.lowlevel.checkpoint()
        await setting.outbox.flushed()
        assert len(store.commits) < 50


async def test_whoever_puts_without_end_holds_nothing_back() -> None:
    """What was put is stored and shown while more comes at every turn."""
    async with pumping(MemoryStore()) as setting, anyio.create_task_group() as tasks:
        message = setting.writer.open(Message())

        async def speak() -> None:
            while True:
                message.append("a")
                await anyio.lowlevel.checkpoint()

        tasks.start_soon(speak)
        with anyio.fail_after(10):
            for _ in range(5):
                await setting.outbox.ring.wait(setting.outbox.ring.head)
        tasks.cancel_scope.cancel()


async def test_a_single_event_is_shown_without_waiting_for_more() -> None:
    """Nothing is gathered while nothing comes: the next turns store and show it."""
    async with pumping(MemoryStore()) as setting:
        await anyio.wait_all_tasks_blocked()
        setting.writer.add(Message())
        for _ in range(4):  # the pump wakes, the store lets others run; trio takes any order
            await anyio.lowlevel.checkpoint()
        assert setting.outbox.ring.head == 1


async def test_closing_stores_what_there_is() -> None:
    """close returns once all is stored and shown, and the ring is over."""
    store = Notebook()
    async with pumping(store) as setting:
        for _ in range(10):
            setting.writer.add(Message())
        setting.book.close()
        await setting.outbox.close()
        assert sum(map(len, store.commits)) == 10
        assert setting.outbox.ring.over
        await setting.outbox.flushed()


@pytest.mark.parametrize("end", ["flushed", "close"])
async def test_who_waits_for_the_end_waits_for_no_rest(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Between two pieces of a text the pump rests, unless somebody wants all of it now."""
    monkeypatch.setattr("flowstate.stream.outbox.REST_SECONDS", 3600)
    async with pumping(MemoryStore()) as setting:
        message = setting.writer.open(Message())
        message.append("a")
        await anyio.wait_all_tasks_blocked()
        message.append("b")
        await anyio.wait_all_tasks_blocked()
        assert setting.outbox.ring.head == 2
        with anyio.fail_after(5):
            await getattr(setting.outbox, end)()
        assert setting.outbox.ring.head == 3


async def test_a_long_text_that_waits_is_stored_without_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever flushes rings once, and a text can be longer than what one transaction takes."""
    monkeypatch.setattr("flowstate.stream.outbox.REST_SECONDS", 3600)
    monkeypatch.setattr("flowstate.stream.outbox.MOST_EVENTS", 256)
    async with pumping(MemoryStore()) as setting:
        message = setting.writer.open(Message())
        for _ in range(1000):
            message.append("a")
        with anyio.fail_after(5):
            await setting.outbox.flushed()
        assert setting.outbox.ring.head == 1001


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_finaliser_that_puts_while_the_loop_lies_down_wakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The collector may run in the loop's own code, when how long to sleep is settled already."""
    async with pumping(MemoryStore()) as setting:
        await anyio.wait_all_tasks_blocked()
        selector = cast("Any", asyncio.get_running_loop())._selector
        select, puts = selector.select, [Message(text="late")]

        def lie_down(timeout: float | None = None) -> object:
            if puts and (timeout is None or timeout > 1):
                setting.writer.add(puts.pop())
            return select(timeout)

        monkeypatch.setattr(selector, "select", lie_down)
        began = anyio.current_time()
        with anyio.move_on_after(10):
            await setting.outbox.ring.wait(0)
        assert not puts
        assert anyio.current_time() - began < 5


async def test_closing_before_the_pump_got_to_run_loses_nothing() -> None:
    """The order in which tasks start is not ours to choose."""
    store = Notebook()
    setting = Setting(store, 4096, None)
    setting.writer.add(Message())
    await setting.outbox.close()
    assert len(store.commits) == 1
    await setting.outbox.pump()
    assert setting.outbox.ring.head == 1


async def test_a_cancelled_pump_ends_the_ring_and_the_waiting() -> None:
    """Readers and waiters are let go; the cancellation goes on."""
    store = Notebook()
    store.held = anyio.Event()
    setting = Setting(store, 4096, None)
    ended: list[str] = []

    async def wait() -> None:
        with pytest.raises(StoreError, match="were not stored"):
            await setting.outbox.flushed()
        ended.append("waiter")

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def pump() -> None:
            with scope:
                await setting.outbox.pump()
            ended.append("pump")

        group.start_soon(pump)
        setting.writer.add(Message())
        await anyio.wait_all_tasks_blocked()
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
    assert scope.cancelled_caught
    assert sorted(ended) == ["pump", "waiter"]
    assert setting.outbox.ring.over
    assert setting.failures == []


async def test_waiting_for_nothing_returns_at_once() -> None:
    """An outbox that nothing was put into has nothing to flush."""
    async with pumping(Notebook()) as setting:
        with anyio.fail_after(5):
            await setting.outbox.flushed()


async def test_put_is_cheap_and_needs_no_loop() -> None:
    """Events may be put before the pump runs; they wait."""
    store = Notebook()
    setting = Setting(store, 4096, None)
    for _ in range(5):
        setting.writer.add(Message())
    assert "5 waiting" in repr(setting.outbox)
    async with anyio.create_task_group() as group:
        group.start_soon(setting.outbox.pump)
        await setting.outbox.flushed()
        await setting.outbox.close()
    assert [len(records) for records in store.commits] == [5]
