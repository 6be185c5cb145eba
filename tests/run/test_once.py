"""run_block: one block by itself, with nothing kept that nobody asked for."""

from __future__ import annotations

import gc

import pytest

from flowstate.context import Context
from flowstate.define.handler import handler
from flowstate.define.sequencer import sequencer
from flowstate.item.content import Message
from flowstate.item.event import ItemEvent
from flowstate.plan.build import build_plan
from flowstate.run.once import run_block

pytestmark = pytest.mark.anyio


@handler
async def talk(count: int, ctx: Context) -> int:
    for _ in range(count):
        ctx.items.add(Message(text="hi"))
    gc.collect()
    return sum(1 for one in gc.get_objects() if type(one) is ItemEvent)


async def test_events_are_kept_only_where_a_step_waits_for_items() -> None:
    """A long run of a plan that reads no items holds none of their events."""
    plain = sequencer("plain", int).step(talk)
    waiting = sequencer("waiting", int).step(talk).wait_for_condition(lambda items: len(items) > 9)
    assert not build_plan(plain).program.reads_items
    assert build_plan(waiting).program.reads_items
    assert await run_block(plain, 300) < 50
    assert await run_block(waiting, 300) >= 300
