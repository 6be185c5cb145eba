"""
The scheduler: runs a program in one coroutine.

The loop below is the whole of it for a straight run of steps; the instructions that fork, wait or
repeat under limits call out to ``fork`` and ``guard``. The ``try`` stands outside the loop, where
it costs nothing until something is raised; the failing instruction is where ``pc`` points.

Cancellation is a BaseException on both backends and passes through untouched. Before every
instruction the gate and the limits are read, so that nothing starts after a cancel or a timeout,
whatever swallowed it.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import anyio
import anyio.lowlevel
import anyio.to_thread

from flowstate.define.block import Failure
from flowstate.errors import LoopExhausted, NoMatchingBranch, TimedOut
from flowstate.plan.program import (
    ASK,
    BREATHE,
    CALL,
    CALL_CTX,
    CHECK,
    EACH,
    ENTER_LOOP,
    EXIT_IF,
    FORK,
    GUARD,
    JUMP,
    JUMP_UNLESS,
    LAST_NODE,
    MAP,
    MAP_CTX,
    NEXT_TURN,
    NO_BRANCH,
    POP,
    PUSH,
    ROUTE,
    SIDE,
    THREAD,
    THROW_IF,
    WAIT,
    WAIT_ITEMS,
    Row,
)
from flowstate.run.attribution import note_path
from flowstate.run.fork import each, fork
from flowstate.run.frame import Frame, turns_at
from flowstate.run.guard import guard
from flowstate.run.item_wait import wait_for_items
from flowstate.run.node_context import NodeContext
from flowstate.run.routing import choose
from flowstate.run.side_chains import begin
from flowstate.run.slice import breathe


async def execute(frame: Frame, value: Any) -> Any:
    """Run the frame's program on ``value``; returns the running value at its end."""
    program = frame.program
    instructions = program.instructions
    places = program.places
    gate = frame.gate
    limits = frame.limits
    listener = frame.services.listener
    stack: list[Any] = []
    end = len(instructions)
    held_since = 0.0
    pc = 0
    while True:
        try:
            while pc < end:
                if gate.closed or (limits and over(limits)):
                    await stopped()
                code, fn, exact, check, argument = instructions[pc]
                if listener is not None and code <= LAST_NODE:
                    place = places[pc]
                    turns = turns_at(place, stack) if place.turns else ()
                    listener(("start", frame, pc, turns, value))
                if code == CALL:
                    result = await fn(value)
                elif code == CALL_CTX:
                    place = places[pc]
                    ctx = NodeContext(frame, place, turns_at(place, stack) if place.turns else ())
                    try:
                        result = await fn(value, ctx)
                    finally:
                        if ctx.step is not None:
                            ctx.finish()
                elif code == MAP:
                    result = fn(value)
                elif code == JUMP:
                    pc = argument
                    continue
                elif code == JUMP_UNLESS:
                    pc = pc + 1 if fn(value) else argument
                    continue
                elif code == NEXT_TURN:
                    turn = stack[argument.depth] + 1
                    if not turn & 63 and (held_since := await breathe(held_since)) and gate.closed:
                        await stopped()
                    if bool(fn(value)) is not argument.until:
                        if argument.limit is None or turn < argument.limit:
                            stack[argument.depth] = turn
                            pc = argument.start
                            continue
                        if not argument.keep:
                            # Raised at the loop, not in its last turn.
                            around = turns_at(places[pc], stack)[:-1]
                            raise LoopExhausted(frame.path(places[pc], around), turn)
                    del stack[argument.depth :]
                    pc += 1
                    continue
                elif code == PUSH:
                    stack.append(value)
                    pc += 1
                    continue
                elif code == POP:
                    value = stack.pop()
                    pc += 1
                    continue
                elif code == ENTER_LOOP:
                    stack.append(0)
                    pc += 1
                    continue
                elif code == EXIT_IF:
                    if fn(value):
                        pc, depth = argument
                        del stack[depth:]
                    else:
                        pc += 1
                    continue
                elif code == THROW_IF:
                    if fn(value):
                        raise thrown(argument, value)
                    pc += 1
                    continue
                elif code == CHECK:
                    if exact is None or type(value) is not exact:
                        value = check(value)  # type: ignore[misc]
                    pc += 1
                    continue
                elif code == BREATHE:
                    held_since = await breathe(held_since)
                    pc += 1
                    continue
                elif code == MAP_CTX:
                    ctx = NodeContext(frame, places[pc], turns_at(places[pc], stack))
                    try:
                        result = fn(value, ctx)
                    finally:
                        ctx.finish()
                elif code == THREAD:
                    ctx = NodeContext(frame, places[pc], turns_at(places[pc], stack))
                    try:
                        result = await in_thread(fn, value, ctx, *argument)
                    finally:
                        ctx.finish(abandoned=argument[1])
                elif code == FORK:
                    result = await fork(
                        execute, frame, places[pc], turns_at(places[pc], stack), argument, value
                    )
                elif code == EACH:
                    result = await each(
                        execute, frame, places[pc], turns_at(places[pc], stack), argument, value
                    )
                elif code == GUARD:
                    result = await guard(
                        execute, frame, places[pc], turns_at(places[pc], stack), argument, value
                    )
                elif code == ASK:
                    turns = turns_at(places[pc], stack)
                    text = None if fn is None else fn(value)
                    result = await frame.services.questions.ask(
                        frame, places[pc], turns, argument, text
                    )
                elif code == ROUTE:
                    pc = choose(frame, places[pc], turns_at(places[pc], stack), fn, argument, value)
                    continue
                elif code == SIDE:
                    begin(execute, frame, places[pc], turns_at(places[pc], stack), argument, value)
                    pc += 1
                    continue
                elif code == WAIT:
                    path, seconds, raises = argument
                    if (
                        not await frame.services.side_chains.wait_for(frame, path, seconds)
                        and raises
                    ):
                        raise TimedOut(
                            frame.path(places[pc], turns_at(places[pc], stack)),
                            "wait for side chains",
                            seconds,
                        )
                    pc += 1
                    continue
                elif code == WAIT_ITEMS:
                    seconds, raises = argument
                    if not await wait_for_items(frame.services, fn, seconds) and raises:
                        raise TimedOut(
                            frame.path(places[pc], turns_at(places[pc], stack)),
                            "wait for a condition",
                            seconds,
                        )
                    pc += 1
                    continue
                elif code == NO_BRANCH:
                    raise NoMatchingBranch(
                        frame.path(places[pc], turns_at(places[pc], stack)), value
                    )
                else:
                    raise AssertionError(f"no instruction {code}")
                if exact is not None:
                    if type(result) is not exact:
                        result = check(result)  # type: ignore[misc]
                elif check is not None:
                    result = check(result)
                value = result
                if listener is not None:
                    place = places[pc]
                    turns = turns_at(place, stack) if place.turns else ()
                    listener(("end", frame, pc, turns, value))
                pc += 1
            if gate.closed or (limits and over(limits)):
                await stopped()
            return value
        except Exception as error:
            place = places[pc]
            turns = turns_at(place, stack)
            if listener is not None and instructions[pc][0] <= LAST_NODE:
                listener(("error", frame, pc, turns, error))
            note_path(error, frame, place, turns, value)
            row = _row_for(program.rows, pc, error)
            if row is None:
                raise
            # A cancel that came meanwhile is caught by nothing, so it goes first.
            if gate.closed:
                await stopped()
            await anyio.lowlevel.checkpoint_if_cancelled()
            value = Failure(error, value, frame.path(place, turns))
            del stack[row.depth :]
            pc = row.handler


def _row_for(rows: tuple[Row, ...], pc: int, error: Exception) -> Row | None:
    for row in rows:
        if row.start <= pc < row.end and isinstance(error, row.errors):
            return row
    return None


def over(limits: tuple[anyio.CancelScope, ...]) -> bool:
    """Whether time has run out for one of these limits."""
    return any(limit.cancel_called for limit in limits)


def thrown(error: Any, value: Any) -> BaseException:
    """
    What ``throw_if`` raises: its function's answer, or a copy of its exception. The one in the
    definition serves every run, so it must not gather their notes and tracebacks.
    """
    if not isinstance(error, BaseException):
        made: BaseException = error(value)
        return made
    try:
        fresh = copy.copy(error)
    except Exception:
        # Its class can't be made anew from its arguments.
        return error.with_traceback(None)
    return fresh if type(fresh) is type(error) else error.with_traceback(None)


async def stopped() -> NoReturn:
    """Wait, behind a closed gate or a passed limit, for the cancellation that is on its way."""
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


async def in_thread(
    fn: Any, value: Any, ctx: NodeContext, takes_context: bool, abandon: bool
) -> Any:
    """Call a synchronous handler in a worker thread; the context variables are copied."""
    arguments = (value, ctx) if takes_context else (value,)
    result = await anyio.to_thread.run_sync(fn, *arguments, abandon_on_cancel=abandon)
    # The thread was waited for behind a shield: a cancel that came meanwhile is felt only here.
    await anyio.lowlevel.checkpoint_if_cancelled()
    return result
