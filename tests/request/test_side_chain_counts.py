"""What a run tells of its side chains."""

from __future__ import annotations

import anyio
import pytest

from flowstate import Runtime, action, define_flow, handler, sequencer
from flowstate.request.run import SideChainCounts

pytestmark = pytest.mark.anyio


async def test_a_run_counts_its_side_chains() -> None:
    """Begun, running and failed: none before it starts, those under way, and in the end none."""
    release = anyio.Event()

    @handler
    async def wait(value: int) -> int:
        await release.wait()
        return value

    @handler
    async def fail(value: int) -> int:
        raise ValueError(value)

    turn = action(
        "turn",
        sequencer("turn", int)
        .side_chain(wait)
        .for_each_side_chain(lambda n: range(n), wait)
        .side_chain(fail),
    )
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 3, session="s1")
        with anyio.fail_after(10):
            assert await run.output() == 3
            failure = await anext(run.items())
            assert failure.content.type == "error"
            assert run.side_chains == SideChainCounts(begun=5, running=4, failed=1)
            release.set()
            await run.finished()
        assert run.side_chains == SideChainCounts(begun=5, running=0, failed=1)


async def test_a_cancelled_run_has_none_running() -> None:
    """They end with it; a cancelled side chain didn't fail."""

    waiting = anyio.Event()

    @handler
    async def wait(value: int) -> int:
        waiting.set()
        await anyio.sleep_forever()
        return value

    turn = action("turn", sequencer("turn", int).side_chain(wait))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 3, session="s1")
        with anyio.fail_after(10):
            await waiting.wait()
            assert run.side_chains == SideChainCounts(begun=1, running=1, failed=0)
            run.cancel()
            await run.finished()
        assert run.side_chains == SideChainCounts(begun=1, running=0, failed=0)


async def test_a_run_without_side_chains_counts_none() -> None:
    """Asking makes no difference."""

    @handler
    async def plain(value: int) -> int:
        return value

    turn = action("turn", plain)
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 3, session="s1")
        assert run.side_chains == (0, 0, 0)
        assert await run.output() == 3
        assert run.side_chains == (0, 0, 0)
