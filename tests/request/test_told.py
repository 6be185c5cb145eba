"""One failure is one error item, whoever tells of it."""

from __future__ import annotations

import pytest

from flowstate.context import Context
from flowstate.define.block import Block
from flowstate.define.flow import action, define_flow
from flowstate.define.handler import handler
from flowstate.item.content import ErrorReport
from flowstate.item.told import mark_told, was_told
from flowstate.request.runtime import Runtime

pytestmark = pytest.mark.anyio


@handler
async def silent(value: int) -> int:
    raise OSError("disk")


@handler
async def talkative(value: int, ctx: Context) -> int:
    error = OSError("disk")
    ctx.items.add(ErrorReport(code="disk_full", message="no room left"), status="failed")
    mark_told(error)
    raise error


@pytest.mark.parametrize(("block", "code"), [(silent, "OSError"), (talkative, "disk_full")])
async def test_a_failure_is_told_once(block: Block[int, int], code: str) -> None:
    """By the request, unless the block has told of it in words of its own."""
    act = action("act", block)
    async with Runtime(define_flow("told", actions=[act])) as runtime:
        run = await runtime.dispatch(act, 1, session="s")
        items = [item async for item in run.items()]
        with pytest.raises(OSError, match="disk"):
            await run.output()
    reports = [item.content for item in items if isinstance(item.content, ErrorReport)]
    assert [report.code for report in reports] == [code]


async def test_an_error_without_attributes_is_told_all_the_same() -> None:
    """One that can't be marked is no error of ours: it is told of twice rather than not at all."""

    class Closed(Exception):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Closed()
    mark_told(error)
    assert not was_told(error)
