"""
A block under its limits: deadline(retry(timeout(attempt))), and its status while it runs.

A timeout is when stopping starts. Only what the limit itself cancelled becomes TimedOut; a cancel
from outside goes on as it is.
"""

from __future__ import annotations

from typing import Any

import anyio

from flowstate.errors import TimedOut
from flowstate.plan.program import Guard, Place
from flowstate.run.fork import Execute
from flowstate.run.frame import Frame
from flowstate.run.gate import Gate


async def guard(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    """Run a block's program under the block's limits."""
    block = what.block
    if block.status is None:
        return await _within_deadline(execute, frame, place, turns, what, value)
    text = block.status if isinstance(block.status, str) else block.status(value)
    book = frame.services.book
    step = book.writer(lambda: frame.path(place, turns), place.site.name, block.visibility)
    book.status(step).show(text)
    try:
        return await _within_deadline(execute, frame, place, turns, what, value)
    finally:
        book.settle_open(step)


async def _within_deadline(
    execute: Execute,
    frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    seconds = what.block.deadline
    if seconds is None:
        return await _attempts(execute, frame, place, turns, what, value)
    with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
        result = await _attempts(execute, frame, place, turns, what, value)
        if not scope.cancel_called:
            return result
    # Either the limit cancelled it, or it swallowed that and returned: both are too late.
    raise TimedOut(frame.path(place, turns), "deadline", seconds)


async def _attempts(
    execute: Execute,
    frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    retry = what.block.retry
    if retry is None:
        return await _attempt(execute, frame, place, turns, what, value, 1)
    attempt = 1
    while True:
        try:
            return await _attempt(execute, frame, place, turns, what, value, attempt)
        except retry.retry_on as error:
            if attempt >= retry.attempts:
                raise
            attempt += 1
            delay = retry.delay_before(attempt, frame.services.random.random())
            frame.services.log.info(
                "retry",
                path=frame.path(place, turns),
                attempt=attempt,
                of=retry.attempts,
                delay=round(delay, 3),
                error=type(error).__name__,
            )
            await anyio.sleep(delay)


async def _attempt(
    execute: Execute,
    frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any, attempt: int
) -> Any:
    seconds = what.block.timeout
    counted = what.block.retry is not None
    gate = Gate(frame.gate)
    inner = Frame(
        what.program,
        frame.services,
        gate,
        frame,
        place,
        turns,
        "attempt" if counted else None,
        attempt,
        attempt,
    )
    try:
        if seconds is None:
            return await execute(inner, value)
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            result = await execute(inner, value)
            if not scope.cancel_called:
                return result
        raise TimedOut(frame.path(place, turns), "timeout", seconds)
    finally:
        gate.leave()
