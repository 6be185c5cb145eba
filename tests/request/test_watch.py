"""Watchers: told of the rest of a request, waited for only at its end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from flowstate import Context, Runtime, action, define_flow, handler, run_block, sequencer
from flowstate.context import Watched
from flowstate.errors import DefinitionError
from flowstate.item.content import ErrorReport, Message
from flowstate.testing import simulate

pytestmark = pytest.mark.anyio


class Notebook:
    """What a recorder wrote down, and how its watching ended."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.types: list[str] = []
        self.ended: list[str] = []
        self.gate: anyio.Event | None = None

    def recorder(self, **options: Any) -> Any:
        @handler(transient=True)
        async def recorder(value: int, ctx: Context) -> None:
            async def listen(items: Watched) -> None:
                try:
                    async for item in items:
                        self.types.append(item.content.type)
                        if isinstance(item.content, Message):
                            self.texts.append(item.content.text)
                except BaseException:
                    self.ended.append("cancelled")
                    raise
                if self.gate is not None:
                    await self.gate.wait()
                ctx.items.add(Message(text=f"{len(self.texts)} messages"))
                self.ended.append("told")

            ctx.watch(listen, **options)

        return recorder


@handler
async def talk(value: int, ctx: Context) -> int:
    ctx.items.add(Message(text=f"said {value}"))
    return value + 1


@handler
async def beside(value: int, ctx: Context) -> None:
    await anyio.sleep(0.02)
    ctx.items.add(Message(text="said beside"))


async def test_a_recorder_hears_the_rest_of_the_request() -> None:
    """What came before isn't told, side chains are, and its own items are not."""
    notes = Notebook()
    chain = (
        sequencer("turn", int).step(talk).tap(notes.recorder()).step(talk).side_chain(beside)
    ).step(talk)
    turn = action("turn", chain)
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        assert await run.output() == 4
        assert await run.finished() == "completed"
        assert notes.texts == ["said 2", "said 3", "said beside"]
        assert notes.ended == ["told"]
        stored = await runtime.store.items(run.id)
    # The recorder's own message is transient: shown, and kept nowhere.
    assert [record.data.count("said") for record in stored] == [1, 1, 1, 1]


async def test_the_output_does_not_wait_for_a_watcher() -> None:
    """It is answered at the main chain's end; the request is over when the watcher is."""
    notes = Notebook()
    notes.gate = anyio.Event()
    turn = action("turn", sequencer("turn", int).tap(notes.recorder()).step(talk))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        assert await run.output() == 2
        await anyio.sleep(0.02)
        assert run.status == "running"
        notes.gate.set()
        assert await run.finished() == "completed"
    assert notes.ended == ["told"]


async def test_a_watcher_that_does_not_end_is_cut_off() -> None:
    """Within ``drain_timeout``, and the request keeps its output."""
    notes = Notebook()
    notes.gate = anyio.Event()
    turn = action("turn", sequencer("turn", int).tap(notes.recorder()).step(talk))
    async with Runtime(define_flow("f", actions=[turn]), drain_timeout=0.05) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        assert await run.finished() == "completed"
        assert await run.output() == 2


async def test_a_failing_chain_is_told_with_its_error() -> None:
    """A recorder hears of the failure that ends the chain, once, and may finish."""
    notes = Notebook()

    @handler
    async def broken(value: int) -> int:
        raise ValueError("no")

    turn = action("turn", sequencer("turn", int).tap(notes.recorder()).step(talk).step(broken))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        with pytest.raises(ValueError, match="no"):
            await run.output()
        assert await run.finished() == "failed"
        reports = [i.content for i in [i async for i in run.items()] if i.content.type == "error"]
    assert notes.types == ["message", "error"]
    assert notes.ended == ["told"]
    assert reports == [ErrorReport(code="ValueError", message="no")]


async def test_a_cancelled_request_ends_its_watchers() -> None:
    """They are cancelled with the rest."""
    notes = Notebook()

    @handler
    async def forever(value: int) -> int:
        await anyio.sleep_forever()
        return value

    turn = action("turn", sequencer("turn", int).tap(notes.recorder()).step(talk).step(forever))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        with anyio.fail_after(5):
            while notes.texts != ["said 1"]:  # noqa: ASYNC110
                await anyio.sleep(0.001)
        run.cancel()
        assert await run.finished() == "cancelled"
    assert notes.ended == ["cancelled"]


async def test_a_cancelled_branch_ends_the_watchers_begun_beneath_it() -> None:
    """A race's loser listens no more."""
    notes = Notebook()

    @handler
    async def forever(value: int) -> int:
        await anyio.sleep_forever()
        return value

    @handler
    async def soon(value: int) -> int:
        await anyio.sleep(0.02)
        return value

    loser = sequencer("loser", int).tap(notes.recorder()).step(forever)
    turn = action("turn", sequencer("turn", int).race(loser, soon).step(talk))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        assert await run.output() == 2
        await run.finished()
    assert notes.ended == ["cancelled"]
    assert notes.texts == []


async def test_a_watcher_that_fails_is_an_item_and_no_more() -> None:
    """The chain goes on, and ends well."""

    @handler(transient=True)
    async def recorder(value: int, ctx: Context) -> None:
        async def listen(items: Watched) -> None:
            async for _ in items:
                raise OSError("disk full")

        ctx.watch(listen)

    turn = action("turn", sequencer("turn", int).tap(recorder).step(talk).step(talk))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        assert await run.finished() == "completed"
        reports = [i async for i in run.items() if isinstance(i.content, ErrorReport)]
    assert [(i.provenance.path, i.content.message) for i in reports] == [  # type: ignore[union-attr]
        ("turn/recorder", "disk full")
    ]


async def test_what_it_listens_to_can_be_chosen() -> None:
    """By type, and hidden items only where they are asked for."""
    notes, hidden = Notebook(), Notebook()

    @handler(visibility="trace")
    async def whisper(value: int, ctx: Context) -> int:
        ctx.items.add(Message(text="whispered"))
        ctx.items.add(ErrorReport(code="c", message="m"))
        return value

    chain = (
        sequencer("turn", int)
        .tap(notes.recorder(types={"message"}))
        .tap(hidden.recorder(types={"message"}, visibility="trace"))
        .step(whisper)
        .step(talk)
    )
    turn = action("turn", chain)
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s")
        await run.finished()
    assert notes.texts == ["said 1"]
    assert hidden.texts == ["whispered", "said 1"]
    assert set(hidden.types) == {"message"}


async def test_only_a_transient_asynchronous_block_may_watch() -> None:
    """Any other says at once what to write."""

    async def listen(items: Watched) -> None:
        raise AssertionError

    @handler
    async def kept(value: int, ctx: Context) -> int:
        ctx.watch(listen)
        return value

    @handler(transient=True)
    def threaded(value: int, ctx: Context) -> int:
        ctx.watch(listen)
        return value

    with pytest.raises(DefinitionError, match="must be transient"):
        await run_block(sequencer("turn", int).step(kept), 1)
    with pytest.raises(DefinitionError, match="Make the handler asynchronous"):
        await run_block(sequencer("turn", int).step(threaded), 1)


async def test_a_run_by_itself_has_watchers_too() -> None:
    """The same without a Runtime."""
    notes = Notebook()
    chain = sequencer("turn", int).tap(notes.recorder()).step(talk).side_chain(beside)
    assert await run_block(chain, 1) == 2
    assert notes.texts == ["said 1", "said beside"]
    assert notes.ended == ["told"]


def test_cancelled_anywhere_a_watcher_leaves_nothing() -> None:
    """At every scheduling point of a run that watches."""
    chain = sequencer("turn", int).tap(Notebook().recorder()).step(talk).side_chain(beside)
    turns = simulate(chain, 1).turns
    assert turns > 5
    for at in range(1, turns + 1):
        assert simulate(chain, 1, cancel_at=at).faults == ()
