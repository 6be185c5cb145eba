"""
A block under its limits: deadline(retry(timeout(attempt))), and its status while it runs.

A timeout is when stopping starts. Only what the limit itself cancelled becomes TimedOut; a cancel
from outside goes on as it is.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel

from flowstate.define.retry import Retry
from flowstate.errors import TimedOut
from flowstate.item.content import Container, RetryNote
from flowstate.plan.program import Guard, Place
from flowstate.run.frame import Execute, Frame
from flowstate.run.gate import Gate


async def guard(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    """Run a block's program under the block's limits."""
    block = what.block
    if block.container is not None:
        return await _in_container(execute, frame, place, turns, what, value)
    return await _with_status(execute, frame, place, turns, what, value)


async def _in_container(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    block = what.block
    assert block.container is not None
    step = frame.services.book.writer(
        lambda: frame.path(place, turns),
        place.site.name,
        block.visibility,
        block.transient,
        frame.container,
    )
    group = step.open(Container(label=block.container, kind="block"))
    inner = frame.twin()
    inner.container = group.id
    try:
        result = await _with_status(execute, inner, place, turns, what, value)
    except Exception:
        group.settle(status="failed")
        raise
    except BaseException:
        group.settle(status="incomplete")
        raise
    group.settle()
    return result


async def _with_status(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
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
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    seconds = what.block.deadline
    if seconds is None:
        return await _attempts(execute, frame, place, turns, what, value)
    with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
        inner = frame.twin()
        inner.limits = (*frame.limits, scope)
        result = await _attempts(execute, inner, place, turns, what, value)
        if not scope.cancel_called:
            return result
    # Either the limit cancelled it, or it swallowed that and returned: both are too late.
    raise TimedOut(frame.path(place, turns), "deadline", seconds)


async def _attempts(
    execute: Execute, frame: Frame, place: Place, turns: tuple[int, ...], what: Guard, value: Any
) -> Any:
    retry = what.block.retry
    attempt = 1
    while True:
        gate = Gate(frame.gate)
        try:
            result = await _attempt(execute, frame, place, turns, what, value, attempt, gate)
        except Exception as error:
            if retry is None or attempt >= retry.attempts or not isinstance(error, retry.retry_on):
                gate.leave()
                raise
            # What the failed attempt began beside itself must not run beside the next one.
            gate.close()
            gate.leave()
            # A cancel that came meanwhile goes first: there will be no next one.
            await anyio.lowlevel.checkpoint_if_cancelled()
            await frame.services.side_chains.end_beneath(gate)
            attempt += 1
            delay = retry.delay_before(attempt, frame.services.random.random())
            _tell(frame, place, turns, attempt, delay, error, retry)
            await anyio.sleep(delay)
        except BaseException:
            # Cancelled: what it began ends with it.
            gate.close()
            gate.leave()
            raise
        else:
            gate.leave()
            return result


def _tell(
    frame: Frame,
    place: Place,
    turns: tuple[int, ...],
    attempt: int,
    delay: float,
    error: Exception,
    retry: Retry,
) -> None:
    """A retry is seen: an item with its attempt and delay, and a log line."""
    path = frame.path(place, turns)
    text = (
        f"{place.site.name} failed ({type(error).__name__}), attempt {attempt} of "
        f"{retry.attempts} in {delay:.1f} s…"
    )
    block = place.site.block
    declared = None if block is None else block.visibility
    frame.services.book.writer(path, place.site.name, declared).add(
        RetryNote(
            attempt=attempt, of=retry.attempts, delay=delay, error=type(error).__name__, text=text
        )
    )
    frame.services.log.info(
        "retry",
        path=path,
        attempt=attempt,
        of=retry.attempts,
        delay=round(delay, 3),
        error=type(error).__name__,
    )


async def _attempt(
    execute: Execute,
    frame: Frame,
    place: Place,
    turns: tuple[int, ...],
    what: Guard,
    value: Any,
    attempt: int,
    gate: Gate,
) -> Any:
    seconds = what.block.timeout
    inner = Frame(
        what.program,
        frame.services,
        gate,
        frame,
        place,
        turns,
        None if what.block.retry is None else "attempt",
        attempt,
        attempt,
    )
    if seconds is None:
        return await execute(inner, value)
    with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
        inner.limits = (*inner.limits, scope)
        result = await execute(inner, value)
        if not scope.cancel_called:
            return result
    gate.close()
    raise TimedOut(frame.path(place, turns), "timeout", seconds)
