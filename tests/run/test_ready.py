"""The machine of a fork, alone: what may start, who stops whom, how it all ends."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.run.ready import Ready

Modes = Literal["all", "any", "race"]


def test_all_start_in_declared_order_up_to_the_limit() -> None:
    """Then one for each that ends."""
    ready = Ready(4, "all", 2)
    assert [ready.take(), ready.take(), ready.take()] == [0, 1, None]
    assert not ready.more
    assert ready.succeeded(1, "b") is False
    assert ready.take() == 2
    ready.succeeded(0, "a")
    assert ready.take() == 3
    ready.succeeded(2, "c")
    ready.succeeded(3, "d")
    assert ready.outcome("x") == ["a", "b", "c", "d"]


def test_the_first_failure_of_all_stops_the_rest() -> None:
    """Later ones are notes on it."""
    ready = Ready(3, "all")
    for _ in range(3):
        ready.take()
    first, late = ValueError("first"), KeyError("late")
    assert ready.failed(2, first) is True
    assert ready.stopped
    assert ready.failed(0, late) is False
    ready.cancelled()
    with pytest.raises(ValueError, match="first") as caught:
        ready.outcome("turn/parallel")
    assert caught.value.__notes__ == ["branch 0 of turn/parallel failed too: KeyError('late')"]


def test_any_starts_one_after_the_other() -> None:
    """Each when the one before it has failed."""
    ready = Ready(3, "any")
    assert [ready.take(), ready.take()] == [0, None]
    assert ready.failed(0, ValueError()) is False
    assert ready.take() == 1
    assert ready.succeeded(1, "won") is True
    assert ready.take() is None
    assert ready.outcome("x") == ["won"]


def test_a_race_has_one_winner() -> None:
    """A second success that came before it could be cancelled is dropped."""
    ready = Ready(3, "race")
    assert [ready.take() for _ in range(4)] == [0, 1, 2, None]
    ready.failed(0, ValueError())
    assert ready.succeeded(2, "won") is True
    assert ready.succeeded(1, "late") is False
    assert ready.outcome("x") == ["won"]


def test_the_repr_tells_a_story() -> None:
    """What a debugger shows is what one wants to know."""
    ready = Ready(4, "all", 2)
    ready.take()
    ready.take()
    ready.failed(0, ValueError())
    assert repr(ready) == "<all: 2 of 4 started, 1 running, 1 failed, stopped>"


@given(
    mode=st.sampled_from(["all", "any", "race"]),
    count=st.integers(1, 8),
    limit=st.one_of(st.none(), st.integers(1, 9)),
    script=st.lists(st.tuples(st.integers(0, 7), st.booleans()), min_size=60, max_size=60),
)
def test_every_fork_comes_to_its_end(
    mode: Modes, count: int, limit: int | None, script: list[tuple[int, bool]]
) -> None:
    """
    However segments end: the limit holds, each starts once, a stop starts nothing more, and the
    outcome is what the table says.
    """
    ready = Ready(count, mode, limit)
    running: list[int] = []
    started: list[int] = []
    ended: list[tuple[int, bool]] = []
    for number, fails in script:
        while (index := ready.take()) is not None:
            started.append(index)
            running.append(index)
        bound = 1 if mode == "any" else (limit or count)
        assert len(running) <= bound
        if not running:
            break
        index = running.pop(number % len(running))
        ended.append((index, fails))
        if fails:
            stop = ready.failed(index, ValueError(index))
        else:
            stop = ready.succeeded(index, index * 10)
        if stop:
            assert ready.take() is None
            for _ in running:
                ready.cancelled()
            running.clear()
            break
    assert not running
    assert started == list(range(len(started)))
    failures = [index for index, fails in ended if fails]
    wins = [index for index, fails in ended if not fails]
    if mode == "all" and failures:
        assert not ready.complete
        with pytest.raises(ValueError, match=rf"^{failures[0]}$") as caught:
            ready.outcome("x")
        assert caught.value.args == (failures[0],)
    elif mode != "all" and not wins:
        assert not ready.complete
        with pytest.raises(ExceptionGroup) as group:
            ready.outcome("x")
        assert [error.args for error in group.value.exceptions] == [(n,) for n in range(count)]
    else:
        assert ready.complete
        expected = [index * 10 for index in range(count)] if mode == "all" else [wins[0] * 10]
        assert ready.outcome("x") == expected
