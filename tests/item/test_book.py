"""The item book: sequences, life cycles, owners, visibility, threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest

from flowstate.errors import InvalidValue
from flowstate.item.book import ItemBook
from flowstate.item.content import (
    BlockTrace,
    Container,
    Message,
    Reasoning,
    RouterDecision,
    ToolOutput,
)
from flowstate.item.event import ItemEvent
from flowstate.item.item import Item
from flowstate.item.writer import ItemWriter, OpenItem


def counted_ids() -> Callable[[str], str]:
    """Ids that tell the order they were made in."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}_{next(numbers)}"


def a_book(after: int = 0) -> tuple[ItemBook, list[ItemEvent]]:
    """A book whose clock ticks at each look, and what it emits."""
    events: list[ItemEvent] = []
    ticks = itertools.count(1000)
    book = ItemBook(
        "req", clock=lambda: next(ticks), ids=counted_ids(), emit=events.append, after=after
    )
    return book, events


def kinds(events: list[ItemEvent]) -> list[tuple[int, str, str]]:
    """What happened to which item."""
    return [(event.sequence, event.kind, event.item_id) for event in events]


def item_in(event: ItemEvent) -> Item:
    """The item that an event must have."""
    assert event.item is not None
    return event.item


def test_an_item_is_added_grows_changes_and_settles() -> None:
    """Each call on an open item is one event, sequences from 1, the last with the whole item."""
    book, events = a_book()
    message = book.writer("turn/plan", "plan").open(Message(text="a"))
    message.append("b")
    message.append("c")
    message.change(Message(text="x"))
    message.append("y")
    message.settle()
    assert kinds(events) == [
        (1, "added", "item_1"),
        (2, "delta", "item_1"),
        (3, "delta", "item_1"),
        (4, "changed", "item_1"),
        (5, "delta", "item_1"),
        (6, "settled", "item_1"),
    ]
    assert [event.text for event in events if event.kind == "delta"] == ["b", "c", "y"]
    last = item_in(events[-1])
    assert last.content == Message(text="xy")
    assert last.status == "completed"
    assert (last.request_id, last.provenance.path, last.provenance.block) == (
        "req",
        "turn/plan",
        "plan",
    )
    assert book.sequence == 6


def test_settling_without_content_keeps_all_the_text() -> None:
    """The settled item holds its first text and everything appended."""
    book, events = a_book()
    thought = book.writer("p", "b").open(Reasoning(text="so "))
    for piece in ("much ", "", "thought"):
        thought.append(piece)
    thought.settle(status="failed")
    assert item_in(events[-1]).content == Reasoning(text="so much thought")
    assert item_in(events[-1]).status == "failed"
    assert len(events) == 4  # nothing was appended by the empty piece


def test_a_given_last_content_replaces_the_text() -> None:
    """What settle is given counts, not what was streamed before."""
    book, events = a_book()
    message = book.writer("p", "b").open(Message())
    message.append("draft")
    message.settle(Message(text="final"))
    assert item_in(events[-1]).content == Message(text="final")


def test_nothing_happens_to_a_settled_item() -> None:
    """After settle, further calls of any kind emit nothing and change nothing."""
    book, events = a_book()
    message = book.writer("p", "b").open(Message())
    assert not message.settled
    message.settle()
    assert message.settled
    message.settle(Message(text="again"), status="failed")
    message.append("more")
    message.change(Message(text="other"))
    book.close()
    assert kinds(events) == [(1, "added", "item_1"), (2, "settled", "item_1")]


def test_what_is_settled_at_once_is_one_event() -> None:
    """``add`` makes one settled event and no other."""
    book, events = a_book()
    item_id = book.writer("p", "b").add(ToolOutput(call_id="c", name="n"), status="failed")
    assert kinds(events) == [(1, "settled", item_id)]
    assert item_in(events[0]).status == "failed"


def test_only_text_can_be_appended_to() -> None:
    """Appending to a tool call is refused with the item and the way out; nothing is emitted."""
    book, events = a_book()
    call = book.writer("p", "b").open(ToolOutput(call_id="c", name="n"))
    with pytest.raises(InvalidValue, match=r"item 'item_1'.*tool_output.*use change"):
        call.append("text")
    assert len(events) == 1


def test_an_item_keeps_its_type() -> None:
    """A content of another type is refused, since who may see an item follows from its type."""
    book, _ = a_book()
    message = book.writer("p", "b").open(Message())
    with pytest.raises(InvalidValue, match="block_trace"):
        message.change(BlockTrace(block="b", kind="handler"))
    with pytest.raises(InvalidValue, match="reasoning"):
        message.settle(Reasoning())
    assert not message.settled


def test_a_step_that_ends_settles_its_own_items_only() -> None:
    """settle_open settles what this writer left open, innermost first, and lets it go on."""
    book, events = a_book()
    mine, other = book.writer("a", "a"), book.writer("b", "b")
    group = mine.open(Container(label="g"))
    kept = other.open(Message())
    inner = mine.open(Message(), parent=group.id)
    inner.append("half")
    del events[:]
    book.settle_open(mine)
    assert kinds(events) == [(5, "settled", inner.id), (6, "settled", group.id)]
    assert [item_in(event).status for event in events] == ["incomplete", "incomplete"]
    assert item_in(events[0]).content == Message(text="half")
    assert not kept.settled
    again = mine.open(Message())
    assert not again.settled
    book.settle_open(mine, "failed")
    assert item_in(events[-1]).status == "failed"


def test_a_writer_that_was_shut_is_ignored() -> None:
    """A thread that was left behind can go on calling; nobody hears it."""
    book, events = a_book()
    given_up, other = book.writer("a", "a"), book.writer("b", "b")
    opened = given_up.open(Message())
    book.shut(given_up)
    count = len(events)
    opened.append("late")
    late = given_up.open(Message())
    late.append("later")
    late.settle()
    given_up.add(Message())
    assert late.settled
    assert len(events) == count
    other.add(Message())
    assert len(events) == count + 1


def test_a_closed_book_is_silent() -> None:
    """close settles everything once; what is opened afterwards is settled and never told of."""
    book, events = a_book()
    writer = book.writer("p", "b")
    items = [writer.open(Message()), book.writer("q", "c").open(Container(label="x"))]
    book.close()
    assert [event.item_id for event in events if event.kind == "settled"] == [
        items[1].id,
        items[0].id,
    ]
    count = len(events)
    late = writer.open(Message())
    assert late.settled
    assert writer.add(Message()) not in {item.id for item in items}
    book.close()
    assert len(events) == count
    assert book.closed


def test_the_path_is_asked_for_once_and_only_for_an_item() -> None:
    """Most steps make no items and then never pay for their path."""
    asked: list[str] = []

    def path() -> str:
        asked.append("turn/x")
        return "turn/x"

    book, events = a_book()
    writer = book.writer(path, "x")
    book.settle_open(writer)
    assert asked == []
    writer.add(Message())
    writer.add(Message())
    assert asked == ["turn/x"]
    assert item_in(events[1]).provenance.path == "turn/x"


def test_visibility_follows_type_and_declaration() -> None:
    """Traces are traces whatever is declared; a block can hide its items."""
    book, events = a_book()
    book.writer("p", "b", "client").add(RouterDecision(router="r", route="x"))
    book.writer("p", "b", "trace").add(Message())
    book.writer("p", "b").add(Message())
    assert [item_in(event).visibility for event in events] == ["trace", "trace", "client"]


def test_what_is_grouped_under_a_hidden_item_is_hidden() -> None:
    """Otherwise its provenance would tell clients the hidden item's id."""
    book, events = a_book()
    group = book.writer("p", "b", "trace").open(Container(label="secret"))
    open_writer = book.writer("p", "b", "client")
    inner = open_writer.open(Container(label="in it"), parent=group.id)
    group.settle()
    open_writer.add(Message(), parent=inner.id)
    book.writer("q", "c", parent=group.id).add(Message())
    assert {item_in(event).visibility for event in events} == {"trace"}


def test_parent_and_transience_come_from_the_step_or_the_call() -> None:
    """A writer's parent is the default; a transient step makes transient items only."""
    book, events = a_book()
    writer = book.writer("p", "b", parent="item_x")
    writer.add(Message())
    writer.add(Message(), parent="item_y", transient=True)
    book.writer("p", "b", transient=True).add(Message())
    items = [item_in(event) for event in events]
    assert [item.provenance.parent for item in items] == ["item_x", "item_y", None]
    assert [item.transient for item in items] == [False, True, True]


def test_times_move_with_whole_items_only() -> None:
    """A delta carries no time; a change and the end do."""
    book, events = a_book()
    message = book.writer("p", "b").open(Message())
    message.append("x")
    message.change(Message(text="y"))
    message.settle()
    times = [(event.item.created_at, event.item.updated_at) for event in events if event.item]
    assert times == [(1000, 1000), (1000, 1001), (1000, 1002)]


def test_a_book_can_go_on_from_a_sequence() -> None:
    """A resumed request's events come after those of its earlier process."""
    book, events = a_book(after=41)
    book.writer("p", "b").add(Message())
    assert events[0].sequence == 42


def test_threads_share_a_book() -> None:
    """Events of many threads are gapless, emitted in order, and no text is lost."""
    book, events = a_book()
    shared = book.writer("p", "b").open(Message())
    start = threading.Barrier(4)

    def work(number: int) -> None:
        writer = book.writer(f"p{number}", "b")
        start.wait()
        for _ in range(200):
            own = writer.open(Message())
            own.append("a")
            shared.append(str(number))
            own.settle()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    book.close()
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert len(events) == 1 + 4 * 200 * 4 + 1
    content = item_in(events[-1]).content
    assert isinstance(content, Message)
    assert sorted(content.text) == sorted("0123" * 200)


def test_of_many_threads_one_settles() -> None:
    """An item that all threads settle at once is settled once."""
    for _ in range(50):
        book, events = a_book()
        item = book.writer("p", "b").open(Message())
        threads = [threading.Thread(target=item.settle) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.kind for event in events] == ["added", "settled"]


def test_the_writers_are_what_a_context_promises() -> None:
    """They fulfil the protocols of ``flowstate.item.writer`` (for the type checkers)."""
    book, _ = a_book()
    writer: ItemWriter = book.writer("p", "b")
    item: OpenItem = writer.open(Message())
    assert item.id == "item_1"
