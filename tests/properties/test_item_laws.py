"""
The laws of items in motion, for random lives of a request.

Whatever steps do to their items, in whatever order, and however readers join, lag, leave and come
back, the events tell exactly what happened.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
import trio
from hypothesis import HealthCheck, given, register_random, settings
from hypothesis import strategies as st

from flowstate.item.book import ItemBook, LiveItem
from flowstate.item.content import Container, Content, Message, Reasoning, Status
from flowstate.item.event import ItemEvent
from flowstate.item.fold import fold
from flowstate.item.item import Item, SettledStatus
from flowstate.item.visibility import Visibility
from flowstate.store.memory import MemoryStore
from flowstate.stream import reader as reader_module
from flowstate.stream.cursor import parse_cursor
from flowstate.stream.outbox import Outbox
from flowstate.stream.reader import EventReader, EventSource, read_events

# trio runs tasks in random order; so that a failure can be played again, in the same one.
_order: random.Random = cast("Any", trio)._core._run._r
register_random(_order)

STEPS = 3
"""A client's step, a hidden one, a transient one."""

# A lone low surrogate never: after a high one it would read back from the store as one character.
TEXT = st.text("ab\u2028\r\n\x00\ud800😀", max_size=4)

step = st.integers(0, STEPS - 1)
which = st.integers(0, 5)
settled_as = st.sampled_from(["completed", "incomplete", "failed"])

book_move = st.one_of(
    st.tuples(st.just("open"), step, st.sampled_from(["message", "reasoning", "container"]), TEXT),
    st.tuples(st.just("open_under"), step, which),
    st.tuples(st.just("open_passing"), step, TEXT),
    st.tuples(st.just("append"), which, TEXT),
    st.tuples(st.just("append"), which, TEXT),
    st.tuples(st.just("change"), which, TEXT),
    st.tuples(st.just("settle"), which, settled_as),
    st.tuples(st.just("settle_with"), which, TEXT, settled_as),
    st.tuples(st.just("add"), step, TEXT),
    st.tuples(st.just("show"), step, TEXT),
    st.tuples(st.just("keep"), step, TEXT),
    st.tuples(st.just("clear"), step),
    st.tuples(st.just("end_step"), step),
)


@dataclass
class Fate:
    """What a model, much simpler than the book, says of one item."""

    content: Content
    status: str = "in_progress"

    def append(self, text: str) -> None:
        """Text is put behind text."""
        if self.status == "in_progress" and isinstance(self.content, Message | Reasoning):
            self.content = type(self.content)(text=self.content.text + text)


@dataclass
class Life:
    """A book with a model beside it, driven by moves."""

    book: ItemBook
    items: list[tuple[int, LiveItem]] = field(default_factory=list[tuple[int, LiveItem]])
    fates: dict[str, Fate] = field(default_factory=dict[str, Fate])
    settled_at_once: int = 0

    def __post_init__(self) -> None:
        self.steps = [
            self.book.writer("client", "c"),
            self.book.writer("hidden", "h", "trace"),
            self.book.writer("passing", "p", transient=True),
        ]
        self.lines = [self.book.status(one) for one in self.steps]

    def move(self, move: tuple[Any, ...]) -> None:
        """Make one move in the book and in the model."""
        match move:
            case ("open", step, kind, text):
                contents: dict[str, Content] = {
                    "message": Message(text=text),
                    "reasoning": Reasoning(text=text),
                    "container": Container(label=text),
                }
                self._opened(step, self.steps[step].open(contents[kind]), contents[kind])
            case ("open_under", step, number) if self.items:
                parent = self.items[number % len(self.items)][1]
                content: Content = Message()
                self._opened(step, self.steps[step].open(content, parent=parent.id), content)
            case ("open_passing", step, text):
                content = Message(text=text)
                self._opened(step, self.steps[step].open(content, transient=True), content)
            case ("append", number, text) if self.items:
                live = self.items[number % len(self.items)][1]
                if isinstance(self.fates[live.id].content, Message | Reasoning):
                    live.append(text)
                    self.fates[live.id].append(text)
            case ("change", number, text) if self.items:
                live = self.items[number % len(self.items)][1]
                content = self._like(live, text)
                live.change(content)
                if self.fates[live.id].status == "in_progress":
                    self.fates[live.id].content = content
            case ("settle", number, status) if self.items:
                live = self.items[number % len(self.items)][1]
                live.settle(status=status)
                self._settled(live, status)
            case ("settle_with", number, text, status) if self.items:
                live = self.items[number % len(self.items)][1]
                content = self._like(live, text)
                live.settle(content, status=status)
                if self.fates[live.id].status == "in_progress":
                    self.fates[live.id].content = content
                self._settled(live, status)
            case ("add", step, text):
                item_id = self.steps[step].add(Message(text=text))
                assert item_id not in self.fates
                self.fates[item_id] = Fate(Message(text=text), "completed")
                self.settled_at_once += 1
            case ("show", step, text):
                self.lines[step].show(text)
            case ("keep", step, text):
                self.lines[step].keep(text)
            case ("clear", step):
                self.lines[step].clear()
            case ("end_step", step):
                self.book.settle_open(self.steps[step])
                for owner, live in self.items:
                    if owner == step:
                        self._settled(live, "incomplete")
            case _:
                pass

    def close(self) -> None:
        """The request ends."""
        self.book.close()
        for _, live in self.items:
            self._settled(live, "incomplete")

    def _opened(self, step: int, live: LiveItem, content: Content) -> None:
        assert live.id not in self.fates
        self.items.append((step, live))
        self.fates[live.id] = Fate(content)

    def _like(self, live: LiveItem, text: str) -> Content:
        content = self.fates[live.id].content
        return Container(label=text) if isinstance(content, Container) else type(content)(text=text)  # type: ignore[call-arg]

    def _settled(self, live: LiveItem, status: SettledStatus) -> None:
        if self.fates[live.id].status == "in_progress":
            self.fates[live.id].status = status


class Past:
    """Every event of a request, and what each item was after each of them."""

    def __init__(self) -> None:
        self.events: list[ItemEvent] = []
        self.states: list[dict[str, Item]] = [{}]

    def note(self, event: ItemEvent) -> None:
        """Take in the next event."""
        self.events.append(event)
        state = dict(self.states[-1])
        fold(state, event)
        self.states.append(state)

    def final(self, visibility: Visibility) -> dict[str, Item]:
        """The items that are stored and that this reader may see, in the end."""
        return {
            name: item
            for name, item in self.states[-1].items()
            if not item.transient and (visibility == "trace" or item.visibility == "client")
        }


def numbered() -> Any:
    """Ids that are easy to tell apart."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


@given(st.lists(book_move, min_size=15, max_size=60))
def test_the_events_are_the_items(moves: list[tuple[Any, ...]]) -> None:
    """
    Folding the events gives each item as a plain model has it; an item is told of once as new and
    once as settled, and not at all in between but while it is open.
    """
    past = Past()
    life = Life(ItemBook("req", clock=lambda: 0, ids=numbered(), emit=past.note))
    for move in moves:
        life.move(move)
        now = past.states[-1]
        for name, fate in life.fates.items():
            assert (now[name].content, now[name].status) == (fate.content, fate.status)
    life.close()
    assert [event.sequence for event in past.events] == list(range(1, len(past.events) + 1))
    final = past.states[-1]
    assert {name for name, item in final.items() if not isinstance(item.content, Status)} == set(
        life.fates
    )
    for name, fate in life.fates.items():
        assert (final[name].content, final[name].status) == (fate.content, fate.status)
    for name, item in final.items():
        kinds = [event.kind for event in past.events if event.item_id == name]
        assert item.settled
        assert kinds.count("settled") == 1
        assert kinds[-1] == "settled"
        assert kinds == ["settled"] or (kinds[0] == "added" and kinds.count("added") == 1)
        parent = item.provenance.parent
        if item.visibility == "client" and parent is not None:
            assert final[parent].visibility == "client"


@dataclass
class Follower:
    """A reader with the one thing that survives its connection: what it knows, and a cursor."""

    visibility: Visibility
    known: dict[str, Item] = field(default_factory=dict[str, Item])
    cursor: str = "req:0"
    reader: EventReader | None = None
    added: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])

    def join(self, source: EventSource) -> None:
        """Connect, or connect again with the cursor of the last event; forget what was passing."""
        self.known = {name: item for name, item in self.known.items() if not item.transient}
        self.added.clear()
        self.ended.clear()
        after = parse_cursor(self.cursor)
        self.reader = read_events(source, after if after.sequence else None, self.visibility)

    async def read(self, most: int, past: Past) -> bool:
        """Read what can be had at once, at most so many; False at the end of the stream."""
        assert self.reader is not None
        for _ in range(most):
            event: ItemEvent | None = None
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._give_up, scope)
                    event = await anext(self.reader, None)
                    if event is None:
                        return False
                    scope.cancel()
            if event is None:
                return True
            self.take(event, past)
        return True

    async def rest(self, past: Past) -> None:
        """Read to the end."""
        assert self.reader is not None
        async for event in self.reader:
            self.take(event, past)

    def take(self, event: ItemEvent, past: Past) -> None:
        """Take in an event, which must be right as of its sequence."""
        last = parse_cursor(self.cursor).sequence
        assert event.sequence >= last
        assert self.reader is not None
        assert self.reader.cursor.sequence == event.sequence
        self.cursor = str(self.reader.cursor)
        name = event.item_id
        if event.item is None:
            assert name in self.known
        assert name not in self.ended
        if event.kind == "added":
            assert name not in self.added
            self.added.add(name)
        if event.kind == "settled":
            self.ended.add(name)
        fold(self.known, event)
        truth = past.states[event.sequence][name]
        assert self.visibility == "trace" or truth.visibility == "client"
        if truth.transient and event.kind == "settled":
            assert truth.settled  # how it ended may have been missed
        else:
            assert self.known[name] == truth

    async def _give_up(self, scope: anyio.CancelScope) -> None:
        for _ in range(6):
            await anyio.lowlevel.checkpoint()
        scope.cancel()


reader_move = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(1, 6)),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(1, 6)),
    st.tuples(st.just("leave"), st.integers(0, 2)),
    st.tuples(st.just("breathe"), st.integers(1, 8)),
    st.tuples(st.just("flush")),
)


@contextmanager
def pages_of(rows: int) -> Iterator[None]:
    """Read the store in pages of so many rows."""
    before = reader_module.PAGE
    reader_module.PAGE = rows
    try:
        yield
    finally:
        reader_module.PAGE = before


async def live_through(moves: list[tuple[Any, ...]], capacity: int) -> None:
    """Play the moves of a request and its readers, and check every reader."""
    past = Past()
    store = MemoryStore()

    def fail(error: Exception) -> None:
        raise error

    outbox = Outbox("req", store, on_failure=fail, capacity=capacity)

    def emit(event: ItemEvent) -> None:
        past.note(event)
        outbox.put(event)

    life = Life(ItemBook("req", clock=lambda: 0, ids=numbered(), emit=emit))
    source = EventSource(request_id="req", store=store, ring=outbox.ring)
    followers = [Follower("client"), Follower("trace"), Follower("client")]
    for follower in followers:
        follower.join(source)
    async with anyio.create_task_group() as group:
        group.start_soon(outbox.pump)
        for move in moves:
            match move:
                case ("read", number, most):
                    await followers[number].read(most, past)
                case ("leave", number):
                    followers[number].join(source)
                case ("breathe", times):
                    for _ in range(times):
                        await anyio.lowlevel.checkpoint()
                        assert outbox.ring.held <= capacity
                case ("flush",):
                    await outbox.flushed()
                case _:
                    life.move(move)
        life.close()
        await outbox.close()
    late, archive = Follower("client"), Follower("trace")
    late.join(source)
    archive.join(EventSource(request_id="req", store=store))
    for follower in [*followers, late, archive]:
        await follower.rest(past)
        final = past.final(follower.visibility)
        assert {n: item for n, item in follower.known.items() if not item.transient} == final
        assert all(item.settled for item in follower.known.values())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    # Without a least size most lists are too short for anything to happen.
    st.lists(st.one_of(book_move, reader_move), min_size=25, max_size=80),
    st.sampled_from([1, 3, 8, 24, 4096]),
    st.sampled_from([1, 2, 500]),
)
def test_every_reader_ends_with_the_same_items(
    backend: str, moves: list[tuple[Any, ...]], capacity: int, page: int
) -> None:
    """
    With a ring of any size and pages of any size: each event is right as of its sequence, there is
    no hole and no repeat, and in the end all who may see the same have the same.
    """
    with pages_of(page):
        anyio.run(live_through, moves, capacity, backend=backend)
