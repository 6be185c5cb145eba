"""Retry as a value: how long it waits, and what it may try again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Retry
from flowstate.errors import DefinitionError


@given(
    attempt=st.integers(2, 60),
    jitter=st.floats(0, 1, exclude_max=True),
    delay=st.floats(0, 10),
    factor=st.floats(1, 4),
    longest=st.floats(0, 60),
)
def test_the_wait_grows_up_to_the_longest(
    attempt: int, jitter: float, delay: float, factor: float, longest: float
) -> None:
    """Each wait lies between half of and the whole of the bounded exponential."""
    retry = Retry(attempts=99, delay=delay, factor=factor, max_delay=longest)
    whole = min(longest, delay * factor ** (attempt - 2))
    waited = retry.delay_before(attempt, jitter)
    assert whole / 2 <= waited <= whole


def test_nothing_is_tried_again_by_default() -> None:
    """Which errors are worth another attempt is the author's to say."""
    assert Retry(attempts=3).retry_on == ()


@pytest.mark.parametrize("wrong", [BaseException, KeyboardInterrupt, asyncio.CancelledError, "x"])
def test_a_cancellation_cant_be_named(wrong: Any) -> None:
    """Only errors can be tried again; whatever stops a program can't."""
    with pytest.raises(DefinitionError, match="subclasses of Exception"):
        Retry(attempts=2, retry_on=(ValueError, wrong))


@pytest.mark.parametrize("attempts", [0, -1])
def test_there_is_a_first_attempt(attempts: int) -> None:
    """The first time counts as one."""
    with pytest.raises(DefinitionError, match="attempts="):
        Retry(attempts=attempts)
