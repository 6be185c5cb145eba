"""What a node runs beneath itself: ``ctx.call``."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from flowstate import (
    Context,
    Retry,
    block_state,
    build_plan,
    define_capability,
    handler,
    run_block,
    sequencer,
    session_state,
)
from flowstate.context import Watched
from flowstate.errors import DefinitionError, InvalidValue, PlanError, TimedOut
from flowstate.item.content import Container, Message, Reasoning, RetryNote
from flowstate.testing import RecordingSink

pytestmark = pytest.mark.anyio


class Notes(BaseModel):
    """Some state."""

    lines: tuple[str, ...] = ()


@handler
async def double(number: int, ctx: Context) -> int:
    ctx.items.add(Message(text=ctx.path))
    return 2 * number


async def test_a_called_block_runs_beneath_its_caller() -> None:
    """Its paths go on from the caller's, a number for each call; its output comes back."""

    @handler
    async def ask(number: int, ctx: Context) -> list[int]:
        return [await ctx.call(double, number), await ctx.call(double, number + 1)]

    sink = RecordingSink()
    assert await run_block(sequencer("turn", int).step(ask), 4, emit=sink) == [8, 10]
    assert [item.content.text for item in sink.items if isinstance(item.content, Message)] == [
        "turn/ask/double/call[1]",
        "turn/ask/double/call[2]",
    ]


async def test_compositions_can_be_called_in_a_loop_and_at_once() -> None:
    """A whole chain with a fork and a loop of its own keeps unique paths in every turn."""
    chain = (
        sequencer("chain", int)
        .step_all(double, double)
        .map(lambda pair: pair[0])
        .do_until(lambda n: n > 50, double, max_iterations=9)
    )
    results: list[int] = []

    @handler
    async def both(number: int, ctx: Context) -> int:
        async def one(value: int) -> None:
            results.append(await ctx.call(chain, value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, number)
            tasks.start_soon(one, number + 1)
        return number + 1

    sink = RecordingSink()
    looped = sequencer("turn", int).do_until(lambda n: n >= 3, both, max_iterations=5)
    assert await run_block(looped, 1, emit=sink) == 3
    assert len(results) == 4
    paths = [item.provenance.path for item in sink.items]
    assert len(set(paths)) == len(paths)
    assert paths[0].startswith("turn/both/iter[0]/chain/call[")


async def test_a_called_block_has_its_own_settings() -> None:
    """Its timeout and its retries hold, and its failure comes out bare."""
    tries: list[int] = []

    @handler(retry=Retry(attempts=3, retry_on=(OSError,), delay=0.0))
    async def shaky(number: int, ctx: Context) -> int:
        tries.append(ctx.attempt)
        raise OSError("down")

    @handler(timeout=0.01)
    async def slow(number: int) -> int:
        await anyio.sleep_forever()
        return number

    @handler
    async def ask(number: int, ctx: Context) -> int:
        with pytest.raises(TimedOut):
            await ctx.call(slow, number)
        return await ctx.call(shaky, number)

    sink = RecordingSink()
    with pytest.raises(OSError, match="down") as caught:
        await run_block(ask, 1, emit=sink)
    assert tries == [1, 2, 3]
    assert "in step ask/shaky/call[2]/attempt[3]" in caught.value.__notes__[0]
    assert sum(isinstance(item.content, RetryNote) for item in sink.items) == 2


async def test_a_called_block_brings_what_it_declares() -> None:
    """State, a block's own state and capabilities that only the called block uses are there."""
    greeter = define_capability("greeter", str, lambda ctx: "hello")

    @handler(uses=[session_state(Notes), block_state(Notes, name="own"), greeter])
    async def remember(text: str, ctx: Context) -> int:
        await ctx.session[Notes].append("lines", f"{ctx.cap[greeter]} {text}")
        await ctx.block[Notes].append("lines", text)
        own = await ctx.block[Notes].get()
        assert own.lines == (text,)  # each execution has its own
        return len((await ctx.session[Notes].get()).lines)

    @handler
    async def ask(text: str, ctx: Context) -> int:
        await ctx.call(remember, text)
        return await ctx.call(remember, text)

    assert await run_block(ask, "x") == 2


async def test_two_things_under_one_name_are_refused() -> None:
    """A capability or a cell that clashes with the caller's plan is a fault, as in one plan."""
    mine = define_capability("store", str, lambda ctx: "mine")
    other = define_capability("store", str, lambda ctx: "other")

    class Others(BaseModel):
        pass

    @handler(uses=[other, session_state(Others, name="notes")])
    async def callee(text: str) -> str:
        return text

    @handler(uses=[mine, session_state(Notes)])
    async def ask(text: str, ctx: Context) -> str:
        return await ctx.call(callee, text)

    with pytest.raises(PlanError, match="'store'") as caught:
        await run_block(ask, "x")
    assert len(caught.value.faults) == 2


async def test_values_are_validated_on_the_way_in() -> None:
    """What doesn't fit the called block's input never reaches it."""

    @handler
    async def ask(text: str, ctx: Context) -> int:
        wrong: Any = text
        return await ctx.call(double, wrong)

    with pytest.raises(InvalidValue, match="expected int"):
        await run_block(ask, "x")


async def test_side_chains_of_a_call_end_with_it() -> None:
    """The call returns when what it began beside itself has ended, also where it fails."""
    ended: list[str] = []

    @handler
    async def beside(number: int) -> None:
        await anyio.sleep(0.01)
        ended.append("beside")

    @handler
    async def fail(number: int) -> int:
        raise ValueError("no")

    good = sequencer("good", int).side_chain(beside).step(double)
    bad = sequencer("bad", int).side_chain(beside).step(fail)

    @handler
    async def ask(number: int, ctx: Context) -> int:
        result = await ctx.call(good, number)
        assert ended == ["beside"]
        with pytest.raises(ValueError, match="no"):
            await ctx.call(bad, number)
        assert ended == ["beside", "beside"]
        return result

    assert await run_block(ask, 2) == 4


async def test_watchers_of_a_call_are_told_when_it_is_done() -> None:
    """For a watcher that a called block begins, the call is the whole plan."""
    heard: list[str] = []

    @handler(transient=True)
    async def record(number: int, ctx: Context) -> int:
        async def listen(watched: Watched) -> None:
            async for item in watched:
                heard.append(item.content.type)
            heard.append("told")

        ctx.watch(listen)
        return number

    @handler
    async def beside(number: int, ctx: Context) -> None:
        await anyio.sleep(0.01)
        ctx.items.add(Reasoning(text="beside"))

    chain = sequencer("chain", int).step(record).side_chain(beside).step(double)

    @handler
    async def ask(number: int, ctx: Context) -> int:
        result = await ctx.call(chain, number)
        assert heard == ["message", "reasoning", "told"]
        return result

    assert await run_block(ask, 2) == 4


async def test_a_cancel_ends_the_calls_and_nothing_starts_after_it() -> None:
    """A call that swallows its cancellation gets no further than its own end."""
    seen: list[str] = []

    @handler
    async def stubborn(number: int, ctx: Context) -> int:
        try:
            await anyio.sleep_forever()
        except BaseException:
            seen.append("swallowed")
        return number

    @handler
    async def after(number: int) -> int:
        seen.append("after")
        return number

    chain = sequencer("chain", int).step(stubborn).step(after)

    @handler(timeout=0.02)
    async def ask(number: int, ctx: Context) -> int:
        return await ctx.call(chain, number)

    with pytest.raises(TimedOut):
        await run_block(ask, 1)
    assert seen == ["swallowed"]


async def test_a_container_groups_the_items_of_a_call() -> None:
    """What the called block says lies in the container that its caller names."""

    @handler
    async def ask(number: int, ctx: Context) -> int:
        group = ctx.items.open(Container(label="tool"))
        result = await ctx.call(double, number, container=group.id)
        group.settle()
        return result

    sink = RecordingSink()
    await run_block(ask, 1, emit=sink)
    container, message = sink.items
    assert message.provenance.parent == container.id


async def test_a_block_that_asks_a_person_is_refused() -> None:
    """Its answer could come in days, and nobody would be there to take it."""
    asking = sequencer("asking", int).ask("sure", bool)

    @handler
    async def ask(number: int, ctx: Context) -> bool:
        return await ctx.call(asking, number)

    with pytest.raises(DefinitionError, match="asks a person"):
        await run_block(ask, 1)


def test_a_plan_may_stand_beneath_a_path() -> None:
    """Every static path of the plan goes on from the one it is given."""
    plan = build_plan(sequencer("inner", int).step(double), path="turn/ask/inner")
    assert plan.root.path == "turn/ask/inner"
    assert plan.root.children[0].path == "turn/ask/inner/double"
