"""Items known by a key: made once, changed by any step, settled once, never shared too widely."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Context, Runtime, action, define_flow, handler, sequencer
from flowstate.define.retry import Retry
from flowstate.errors import InvalidValue
from flowstate.item.book import ItemBook
from flowstate.item.content import Component, Container, Message
from flowstate.item.event import ItemEvent
from flowstate.item.item import Item, ItemStatus
from flowstate.item.writer import ItemWriter


def card(number: int) -> Component:
    """A component that holds a number."""
    return Component(name="card", properties={"number": number})


def a_book() -> tuple[ItemBook, list[ItemEvent]]:
    """A book whose ids tell the order they were made in, and what it emits."""
    events: list[ItemEvent] = []
    numbers = itertools.count(1)
    book = ItemBook(
        "req", clock=lambda: 0, ids=lambda prefix: f"{prefix}_{next(numbers)}", emit=events.append
    )
    return book, events


def told(events: list[ItemEvent]) -> list[tuple[str, str, int]]:
    """Each event's kind and item, and the number on the card."""
    lines: list[tuple[str, str, int]] = []
    for event in events:
        assert event.item is not None
        assert isinstance(event.item.content, Component)
        lines.append((event.kind, event.item_id, event.item.content.properties["number"]))
    return lines


def item_in(event: ItemEvent) -> Item:
    """The item that an event must have."""
    assert event.item is not None
    return event.item


def test_the_first_call_makes_it_and_later_ones_change_it() -> None:
    """One item a key, whichever step calls; its provenance is the first one's."""
    book, events = a_book()
    first, second = book.writer("turn/a", "a"), book.writer("turn/b", "b")
    ids = [
        first.upsert("build", card(1)),
        second.upsert("build", card(2)),
        first.upsert("tests", card(3)),
        second.upsert("build", card(4), status="failed"),
    ]
    assert ids == ["item_1", "item_1", "item_2", "item_1"]
    assert told(events) == [
        ("added", "item_1", 1),
        ("changed", "item_1", 2),
        ("added", "item_2", 3),
        ("settled", "item_1", 4),
    ]
    assert item_in(events[-1]).status == "failed"
    assert item_in(events[-1]).provenance.path == "turn/a"


def test_it_can_be_settled_by_the_first_call() -> None:
    """Then it is one event, and the key is used up."""
    book, events = a_book()
    writer = book.writer("p", "b")
    assert writer.upsert("k", card(1), status="completed") == writer.upsert("k", card(2))
    assert told(events) == [("settled", "item_1", 1)]


def test_a_settled_one_changes_no_more() -> None:
    """Calls that come too late are ignored, as for any item; they make no other."""
    book, events = a_book()
    writer = book.writer("p", "b")
    writer.upsert("k", card(1), status="completed")
    writer.upsert("k", card(2))
    writer.upsert("k", card(3), status="failed")
    assert told(events) == [("settled", "item_1", 1)]


def test_it_outlives_the_step_that_made_it() -> None:
    """A step's end settles what it opened, and not what is known by a key."""
    book, events = a_book()
    first, second = book.writer("a", "a"), book.writer("b", "b")
    first.upsert("k", card(1))
    first.open(card(2))
    book.settle_open(first)
    second.upsert("k", card(3))
    assert told(events) == [
        ("added", "item_1", 1),
        ("added", "item_2", 2),
        ("settled", "item_2", 2),
        ("changed", "item_1", 3),
    ]


def test_the_end_of_the_request_settles_it() -> None:
    """As incomplete; afterwards nothing is told under any key."""
    book, events = a_book()
    writer = book.writer("a", "a")
    writer.upsert("k", card(1))
    book.close()
    writer.upsert("k", card(2))
    writer.upsert("other", card(3))
    assert told(events) == [("added", "item_1", 1), ("settled", "item_1", 1)]
    assert item_in(events[-1]).status == "incomplete"


def test_a_step_that_was_given_up_says_nothing_more() -> None:
    """Its thread may run on: neither a new key nor a known one is told."""
    book, events = a_book()
    lost, other = book.writer("a", "a"), book.writer("b", "b")
    lost.upsert("k", card(1))
    book.shut(lost)
    lost.upsert("k", card(2))
    lost.upsert("new", card(3))
    other.upsert("k", card(4))
    other.upsert("new", card(5))
    assert told(events) == [
        ("added", "item_1", 1),
        ("changed", "item_1", 4),
        (events[-1].kind, events[-1].item_id, 5),
    ]


def test_it_keeps_its_type() -> None:
    """Who may see an item follows from its type, so another is refused."""
    book, events = a_book()
    writer = book.writer("p", "b")
    writer.upsert("k", card(1))
    with pytest.raises(InvalidValue, match="keeps its type"):
        writer.upsert("k", Message(text="x"))
    with pytest.raises(InvalidValue, match="keeps its type"):
        writer.upsert("k", Message(text="x"), status="completed")
    assert len(events) == 1


def test_a_hidden_block_never_changes_what_clients_see() -> None:
    """What it says under a key that others use is an item of its own, hidden."""
    book, events = a_book()
    book.writer("a", "a").upsert("k", card(1))
    book.writer("b", "b", "trace").upsert("k", card(2))
    book.writer("b", "b", "trace").upsert("k", card(3))
    assert [(event.kind, item_in(event).visibility) for event in events] == [
        ("added", "client"),
        ("added", "trace"),
        ("changed", "trace"),
    ]


def test_what_lies_under_a_hidden_item_is_another_item_too() -> None:
    """A key used inside a hidden container stands for nothing outside it."""
    book, events = a_book()
    group = book.writer("h", "h", "trace").open(Container(label="g"))
    plain = book.writer("a", "a")
    plain.upsert("k", card(1))
    plain.upsert("k", card(2), parent=group.id)
    book.writer("b", "b", parent=group.id).upsert("k", card(3))
    assert [
        (event.kind, item_in(event).visibility, item_in(event).provenance.parent)
        for event in events[1:]
    ] == [("added", "client", None), ("added", "trace", group.id), ("changed", "trace", group.id)]


def test_what_is_kept_nowhere_is_another_item_too() -> None:
    """What a transient step says doesn't get into the stored item of the same key."""
    book, events = a_book()
    book.writer("a", "a").upsert("k", card(1))
    book.writer("a", "a").upsert("k", card(2), transient=True)
    book.writer("t", "t", transient=True).upsert("k", card(3))
    assert [(event.kind, item_in(event).transient) for event in events] == [
        ("added", False),
        ("added", True),
        ("changed", True),
    ]


def test_of_many_threads_one_makes_it() -> None:
    """Threads that come first at the same moment make one item between them."""
    for _ in range(30):
        book, events = a_book()
        writers = [book.writer(f"s{n}", "s") for n in range(4)]
        threads = [
            threading.Thread(target=writer.upsert, args=("k", card(n)))
            for n, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.kind for event in events] == ["added", "changed", "changed", "changed"]


call = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["a", "b", "", "a/b", "\x00", "\ud800"]),
    st.integers(0, 99),
    st.sampled_from(["in_progress", "in_progress", "completed", "failed", "incomplete"]),
)


@given(st.lists(call, max_size=30))
def test_a_key_is_one_item_as_a_dict_would_have_it(
    calls: list[tuple[int, str, int, ItemStatus]],
) -> None:
    """Whatever keys there are and whoever calls: the last call before the end counts."""
    book, events = a_book()
    writers: list[ItemWriter] = [book.writer(f"s{n}", "s") for n in range(3)]
    expected: dict[str, tuple[int, ItemStatus]] = {}
    ids: dict[str, str] = {}
    for writer, key, number, status in calls:
        item_id = writers[writer].upsert(key, card(number), status=status)
        assert ids.setdefault(key, item_id) == item_id
        if expected.get(key, (0, "in_progress"))[1] == "in_progress":
            expected[key] = (number, status)
    book.close()
    seen = {event.item_id: item_in(event) for event in events}
    assert len(set(ids.values())) == len(ids) == len(seen)
    for key, (number, last) in expected.items():
        item = seen[ids[key]]
        assert item.content == card(number)
        assert item.status == ("incomplete" if last == "in_progress" else last)


# --- in a run ------------------------------------------------------------------------------------


@handler
async def begin(value: int, ctx: Context) -> int:
    ctx.items.upsert("progress", card(value))
    return value + 1


@handler(retry=Retry(attempts=3, retry_on=(OSError,), delay=0.001))
async def go_on(value: int, ctx: Context) -> int:
    ctx.items.upsert("progress", card(10 * ctx.attempt))
    if ctx.attempt < 3:
        raise OSError("not yet")
    return value + 1


@handler(inline=True)
def end(value: int, ctx: Context) -> int:
    ctx.items.upsert("progress", card(value), status="completed")
    return value


@pytest.mark.anyio
async def test_steps_and_attempts_of_a_run_share_it() -> None:
    """Over three steps and three attempts there is one stored item; a key is a request's own."""
    turn = action("turn", sequencer("turn", int).step(begin).step(go_on).step(end))
    async with Runtime(define_flow("flow", actions=[turn])) as runtime:
        for _ in range(2):
            run = await runtime.dispatch(turn, 1, session="s1")
            events = [event async for event in run.events()]
            cards = [event for event in events if item_in(event).content.type == "component"]
            assert told(cards) == [
                ("added", cards[0].item_id, 1),
                *[("changed", cards[0].item_id, 10 * attempt) for attempt in (1, 2, 3)],
                ("settled", cards[0].item_id, 3),
            ]
        stored = [item async for item in runtime.session_items("s1")]
        assert [item.content for item in stored if item.content.type == "component"] == [
            card(3),
            card(3),
        ]
