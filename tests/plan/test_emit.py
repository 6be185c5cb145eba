"""From sites to a program: flat, with jumps that land, and an exception table in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from flowstate import Failure, build_plan, handler, router, sequencer
from flowstate.plan.program import (
    BREATHE,
    CALL,
    CHECK,
    EXIT_IF,
    FORK,
    GUARD,
    JUMP,
    JUMP_UNLESS,
    MAP,
    NEXT_TURN,
    POP,
    PUSH,
    ROUTE,
    Each,
    Fork,
    Guard,
    Program,
    Route,
    Side,
    Turn,
)
from flowstate.testing.compositions import sequencers


@handler
async def add(value: int) -> int:
    return value + 1


@handler
async def mend(failure: Failure[Exception]) -> int:
    return 0


START = sequencer("turn", int)


def codes(built: Any) -> list[int]:
    """The instruction codes of the plan's program."""
    return [row[0] for row in build_plan(built).program.instructions]


def programs(program: Program) -> Iterator[Program]:
    """A program and all inside it."""
    yield program
    for row in program.instructions:
        match row[4]:
            case Fork(programs=inner):
                for each in inner:
                    yield from programs(each)
            case Each(program=one) | Guard(program=one) | Side(program=one):
                yield from programs(one)


def test_a_straight_run_is_a_call_a_step() -> None:
    """Nested sequencers are laid in line: depth costs nothing."""
    inner = sequencer("inner", int).step(add).step(sequencer("deep", int).step(add))
    assert codes(START.step(add).step(inner).map(str)) == [CALL, CALL, CALL, MAP]


def test_a_proven_edge_has_no_check() -> None:
    """Only what the types didn't prove is looked at."""
    assert CHECK not in codes(START.step(add).step(add))
    assert codes(START.map(lambda value: value).step(add)) == [MAP, CHECK, CALL]


def test_a_tap_keeps_the_value_on_the_stack() -> None:
    """Put there before its connector, taken back behind its block."""
    assert codes(START.tap(add)) == [PUSH, CALL, POP]
    assert codes(START.tap(lambda value: value + 1, add)) == [PUSH, MAP, CHECK, CALL, POP]


def test_a_condition_jumps_over_all_of_its_step() -> None:
    """Tap and connector included."""
    rows = build_plan(START.tap_if(bool, abs, add)).program.instructions
    assert rows[0][0] == JUMP_UNLESS
    assert rows[0][4] == len(rows)


def test_limits_make_a_program_of_their_own() -> None:
    """Whatever has a timeout, deadline, retry or status runs beneath a guard."""
    assert codes(START.step(add.configure(timeout=1))) == [GUARD]
    assert codes(START.step(sequencer("inner", int, status="…").step(add))) == [GUARD]
    assert codes(START.step_all(add, add)) == [FORK]


def test_a_program_of_one_call_is_called_without_a_coroutine_of_ours() -> None:
    """Where nothing else stands in it."""
    (fork,) = build_plan(START.step_all(add, START.step(add), START.map(str))).program.instructions
    alone, nested, mapped = fork[4].programs
    assert alone.solo is add.fn
    assert nested.solo is add.fn
    assert mapped.solo is None


def test_the_table_is_in_the_order_of_the_handlers() -> None:
    """The first row after the failing step wins, so a handler is covered by later rescues only."""
    program = build_plan(
        START.step(add).rescue(ValueError, mend).step(add).rescue(KeyError, mend)
    ).program
    first, second = program.rows
    assert (first.start, second.start) == (0, 0)
    assert first.end < first.handler < second.end < second.handler
    assert not first.start <= first.handler < first.end
    assert second.start <= first.handler < second.end


def test_the_loop_is_looked_at_now_and_then() -> None:
    """A long run of steps lets others in between, without asking the clock at each."""
    built = START
    for _ in range(200):
        built = built.step(add)
    assert codes(built).count(BREATHE) == 3


def test_only_what_begins_side_chains_says_so() -> None:
    """At any depth: such programs need gates of their own."""
    plain = build_plan(START.step_all(add, add)).program
    deep = build_plan(START.step_all(add, START.for_each(range, START.side_chain(add)))).program
    assert not plain.has_side_chains
    assert deep.has_side_chains
    ((_, _, _, _, fork),) = deep.instructions
    assert [program.has_side_chains for program in fork.programs] == [False, True]


def test_a_router_goes_to_its_routes() -> None:
    """Each route's name leads to its first instruction."""
    way = router("way", routes=[add, add.configure(name="b")], select=lambda _: "b")
    row = build_plan(START.step(way)).program.instructions[0]
    assert row[0] == ROUTE
    assert isinstance(row[4], Route)
    assert row[4].by_name == {"add": 1, "b": 3}


def _targets(code: int, argument: Any) -> list[int]:
    match code, argument:
        case (c, int(target)) if c in (JUMP, JUMP_UNLESS):
            return [target]
        case (c, (target, _)) if c == EXIT_IF:
            return [target]
        case (c, Turn(start=start)) if c == NEXT_TURN:
            return [start]
        case (_, Route(by_name=by_name)):
            return list(by_name.values())
    return []


@settings(max_examples=60)
@given(block=sequencers())
def test_every_jump_lands_and_every_depth_is_right(block: Any) -> None:
    """
    In any composition: jumps land inside their program or at its end, each instruction has its
    place, rows cover what stands before their handlers, and the stack is as deep wherever an
    instruction is reached from.
    """
    for program in programs(build_plan(block).program):
        rows = program.instructions
        assert len(program.places) == len(rows)
        for code, _, _, check, argument in rows:
            assert code != CHECK or check is not None
            assert all(0 <= target <= len(rows) for target in _targets(code, argument))
        for row in program.rows:
            assert 0 <= row.start <= row.end < row.handler <= len(rows)
            assert rows[row.end][0] == JUMP
        _walk(program)


def _walk(program: Program) -> None:
    """Follow every way through a program, counting the stack."""
    from flowstate.plan.program import ENTER_LOOP

    rows = program.instructions
    depths: dict[int, int] = {}
    todo = [(0, 0), *((row.handler, row.depth) for row in program.rows)]
    while todo:
        pc, depth = todo.pop()
        if pc in depths:
            assert depths[pc] == depth, f"{program.path} at {pc}"
            continue
        depths[pc] = depth
        if pc == len(rows):
            assert depth == 0
            continue
        code, _, _, _, argument = rows[pc]
        if code in (PUSH, ENTER_LOOP):
            todo.append((pc + 1, depth + 1))
        elif code == POP:
            todo.append((pc + 1, depth - 1))
        elif code == JUMP:
            todo.append((argument, depth))
        elif code == JUMP_UNLESS:
            todo += [(pc + 1, depth), (argument, depth)]
        elif code == EXIT_IF:
            todo += [(pc + 1, depth), argument]
        elif code == NEXT_TURN:
            assert argument.depth < depth
            todo += [(argument.start, argument.depth + 1), (pc + 1, argument.depth)]
        elif code == ROUTE:
            todo += [(target, depth) for target in argument.by_name.values()]
        else:
            todo.append((pc + 1, depth))
        for place, at in program.places[pc].turns:
            assert at < depth or code == ENTER_LOOP, (place, at, depth)
    assert len(rows) in depths or not rows or any(True for _ in rows)
