"""Block traces: one for every execution, with the run's own values by reference."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flowstate import Context, Runtime, action, define_flow, handler, sequencer, session_state
from flowstate.item.content import BlockTrace, StateChange

pytestmark = pytest.mark.anyio


class Draft(BaseModel):
    words: list[str]


@handler
async def shout(draft: Draft) -> Draft:
    return Draft(words=[word.upper() for word in draft.words])


@handler
async def broken(draft: Draft) -> int:
    raise ValueError("no")


async def traces_of(block: Any, value: Any) -> list[BlockTrace]:
    turn = action("turn", block)
    async with Runtime(define_flow("f", actions=[turn]), trace=True) as runtime:
        run = await runtime.dispatch(turn, value, session="s")
        items = [item async for item in run.items(visibility="trace")]
    return [item.content for item in items if isinstance(item.content, BlockTrace)]


async def test_the_values_are_referenced_and_not_copied() -> None:
    """A reader in the process has the very objects that went from block to block."""
    draft = Draft(words=["a"] * 1000)
    first, second = await traces_of(sequencer("turn", Draft).step(shout).step(shout), draft)
    assert first.input is draft
    assert first.output is second.input
    assert isinstance(second.output, Draft)
    assert (first.block, second.block) == ("shout", "shout#2")


async def test_on_the_wire_only_their_types_are_named() -> None:
    """Whatever the values hold, no word of it leaves the process."""
    (trace,) = await traces_of(sequencer("turn", Draft).step(shout), Draft(words=["secret"]))
    wire = trace.model_dump_json(by_alias=True)
    assert "secret" not in wire.lower()
    assert "secret" not in repr(trace).lower()
    again = BlockTrace.model_validate_json(wire)
    assert (again.input_type, again.output_type) == ("Draft", "Draft")
    assert (again.input, again.output) == (None, None)


async def test_a_failure_has_an_input_and_no_output() -> None:
    """What went in is there to look at; the error is named."""
    draft = Draft(words=["x"])
    (trace,) = await traces_of(sequencer("turn", Draft).step(broken), draft)
    assert trace.input is draft
    assert (trace.error, trace.output_type, trace.output) == ("ValueError", None, None)


class Notes(BaseModel):
    lines: int = 0


@handler(uses=[session_state(Notes)])
async def count(draft: Draft, ctx: Context) -> int:
    await ctx.session[Notes].increment("lines", 0)
    written = await ctx.session[Notes].increment("lines", len(draft.words))
    return written.version


@pytest.mark.parametrize("traced", [True, False])
async def test_a_write_of_state_is_told_where_somebody_listens(traced: bool) -> None:
    """Once it is committed, with its version; what changes nothing is no write; kept nowhere."""
    turn = action("turn", count)
    async with Runtime(define_flow("f", actions=[turn]), trace=traced) as runtime:
        run = await runtime.dispatch(turn, Draft(words=["a", "b"]), session="s")
        items = [item async for item in run.items(visibility="trace")]
        changes = [item for item in items if isinstance(item.content, StateChange)]
        assert await runtime.store.items(run.id) == []
        assert await run.output() == 2
    told = [(item.content, item.provenance.path, item.visibility) for item in changes]
    wanted = [
        (StateChange(scope="session", cell="notes", version=version), "count", "trace")
        for version in (1, 2)
    ]
    assert told == (wanted if traced else [])
