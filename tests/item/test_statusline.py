"""The one status line of a request: latest wins, clearing only one's own, keeping."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flowstate.item.book import ItemBook
from flowstate.item.content import Status
from flowstate.item.event import ItemEvent
from flowstate.item.writer import StatusLine


def lines(count: int) -> tuple[ItemBook, list[StatusLine], list[ItemEvent]]:
    """A book, the status lines of so many steps, and what is emitted."""
    events: list[ItemEvent] = []
    numbers = itertools.count(1)
    book = ItemBook(
        "req", clock=lambda: 0, ids=lambda prefix: f"{prefix}_{next(numbers)}", emit=events.append
    )
    return book, [book.status(book.writer(f"s{n}", f"s{n}")) for n in range(count)], events


def told(events: list[ItemEvent]) -> list[tuple[str, str, bool]]:
    """Each event's kind, text, and whether it is transient."""
    texts: list[tuple[str, str, bool]] = []
    for event in events:
        assert event.item is not None
        assert isinstance(event.item.content, Status)
        texts.append((event.kind, event.item.content.text, event.item.transient))
    return texts


def test_a_status_is_a_transient_item_in_progress() -> None:
    """While it is shown it is open; cleared, it is settled as completed."""
    _, (a,), events = lines(1)
    a.show("working")
    a.clear()
    a.clear()
    assert told(events) == [("added", "working", True), ("settled", "working", True)]
    assert events[1].item is not None
    assert events[1].item.status == "completed"


@pytest.mark.parametrize("text", [3, None])
def test_what_is_no_text_is_refused(text: Any) -> None:
    """As for any content; what was shown stays."""
    _, (a,), events = lines(1)
    a.show("two\nlines")
    with pytest.raises(ValidationError):
        a.keep(text)
    with pytest.raises(ValidationError):
        a.show(text)
    assert told(events) == [("added", "two\nlines", True)]


def test_showing_replaces_whosever_status_it_was() -> None:
    """The old one is settled before the new one is added, whoever showed them."""
    _, (a, b), events = lines(2)
    a.show("one")
    b.show("two")
    b.show("three")
    assert told(events) == [
        ("added", "one", True),
        ("settled", "one", True),
        ("added", "two", True),
        ("settled", "two", True),
        ("added", "three", True),
    ]


def test_a_late_clear_leaves_anothers_status_alone() -> None:
    """Who was replaced has nothing to clear any more."""
    _, (a, b), events = lines(2)
    a.show("one")
    b.show("two")
    del events[:]
    a.clear()
    assert events == []
    b.clear()
    assert told(events) == [("settled", "two", True)]


def test_a_kept_status_is_history_and_leaves_the_line_empty() -> None:
    """It is one settled item, not transient, marked as kept; what was shown is settled."""
    _, (a, b), events = lines(2)
    a.show("working")
    b.keep("done in 3 s")
    assert told(events) == [
        ("added", "working", True),
        ("settled", "working", True),
        ("settled", "done in 3 s", False),
    ]
    kept = events[-1].item
    assert kept is not None
    assert kept.content == Status(text="done in 3 s", kept=True)
    assert kept.status == "completed"
    a.clear()
    b.clear()
    assert len(events) == 3


def test_a_step_that_ends_takes_its_status_with_it() -> None:
    """Its own is cleared, another's stays; the end of the request clears the last."""
    events: list[ItemEvent] = []
    book = ItemBook("req", clock=lambda: 0, ids=lambda prefix: prefix, emit=events.append)
    first, second = book.writer("a", "a"), book.writer("b", "b")
    book.status(first).show("one")
    book.settle_open(second)
    assert len(events) == 1
    book.settle_open(first)
    assert told(events)[1:] == [("settled", "one", True)]
    book.status(second).show("two")
    book.close()
    assert told(events)[2:] == [("added", "two", True), ("settled", "two", True)]
    book.status(second).show("three")
    assert len(events) == 4


@given(st.lists(st.tuples(st.sampled_from(["show", "keep", "clear"]), st.integers(0, 2))))
def test_one_status_at_most_is_shown(moves: list[tuple[str, int]]) -> None:
    """Whatever the steps do, the line holds one text or none, and the rules say which."""
    _, steps, events = lines(3)
    shown: tuple[int, str] | None = None
    for number, (move, step) in enumerate(moves):
        line = steps[step]
        if move == "show":
            line.show(str(number))
            shown = (step, str(number))
        elif move == "keep":
            line.keep(str(number))
            shown = None
        else:
            line.clear()
            if shown is not None and shown[0] == step:
                shown = None
        still_open: dict[str, str] = {}
        for event in events:
            assert event.item is not None
            assert isinstance(event.item.content, Status)
            if event.kind == "added":
                still_open[event.item_id] = event.item.content.text
            else:
                still_open.pop(event.item_id, None)
        assert list(still_open.values()) == ([] if shown is None else [shown[1]])
