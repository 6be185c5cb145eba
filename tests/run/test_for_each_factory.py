"""for_each with a factory: which block runs is chosen for each entry, among those declared."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate.define.handler import handler
from flowstate.define.sequencer import sequencer
from flowstate.errors import PlanError, WrongRoute
from flowstate.plan.build import build_plan
from flowstate.run.once import run_block

pytestmark = pytest.mark.anyio


@handler
async def add(number: int) -> int:
    return number + 1


@handler
async def double(number: int) -> int:
    return number * 2


@handler
async def shout(text: str) -> str:
    return text.upper()


async def test_each_entry_runs_the_block_chosen_for_it() -> None:
    """The results stand in input order, whichever block made them, by block or by name."""
    block = sequencer("all", list[int]).for_each(
        lambda number: add if number % 2 else "double", blocks=[add, double], max_concurrency=2
    )
    assert await run_block(block, [1, 2, 3, 4]) == [2, 4, 4, 8]
    assert build_plan(block).output_type == list[int]


async def test_a_block_that_is_not_declared_is_refused() -> None:
    """The plan knows every block that may run; another one raises, and says which there are."""
    undeclared: Any = shout
    block = sequencer("all", list[int]).for_each(lambda number: undeclared, blocks=[add, double])
    with pytest.raises(WrongRoute, match="add, double"):
        await run_block(block, [1])


async def test_all_possible_blocks_are_checked() -> None:
    """One that doesn't take what the entries are is a fault, though it may never be chosen."""
    blocks: Any = [add, shout]
    with pytest.raises(PlanError, match="'shout' takes str"):
        build_plan(sequencer("all", list[int]).for_each(lambda number: add, blocks=blocks))
