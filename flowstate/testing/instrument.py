"""
A program with every block's function wrapped: how a test sees and disturbs what a plan runs.

The program stays what it was in everything else, so what is tested is the scheduler's own work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from flowstate.plan.program import (
    CALL,
    CALL_CTX,
    MAP_CTX,
    THREAD,
    Each,
    Fork,
    Guard,
    Instruction,
    Place,
    Program,
    Side,
)

Wrap: TypeAlias = Callable[[Place, Callable[..., Any], bool], Callable[..., Any]]
"""``wrap(place, fn, is_async)``: what to call instead of a block's function."""


def instrumented(program: Program, wrap: Wrap) -> Program:
    """The program with ``wrap`` around the function of every handler, at any depth."""
    instructions: list[Instruction] = []
    for instruction, place in zip(program.instructions, program.places, strict=True):
        code, fn, exact, check, argument = instruction
        own = place.site.kind == "handler" and _is_own(place, fn)
        if code in (CALL, CALL_CTX):
            fn = wrap(place, fn, True)
        elif code in (MAP_CTX, THREAD) or own:
            fn = wrap(place, fn, False)
        match argument:
            case Fork(programs=programs):
                argument = replace(
                    argument, programs=tuple(instrumented(p, wrap) for p in programs)
                )
            case Each(program=inner) | Guard(program=inner) | Side(program=inner):
                argument = replace(argument, program=instrumented(inner, wrap))
            case _:
                pass  # It holds no program.
        instructions.append((code, fn, exact, check, argument))
    solo = instructions[0][1] if program.solo is not None else None
    return replace(program, instructions=tuple(instructions), solo=solo)


def _is_own(place: Place, fn: Any) -> bool:
    """Whether this is the handler's function, and not its connector or condition."""
    return fn is not None and fn is getattr(place.site.block, "fn", None)
