"""The blocking-call detector detects: one that sleeps would look like health."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio.lowlevel
import pytest
from blockbuster import BlockingError

from flowstate import handler, run_block

pytestmark = pytest.mark.anyio


@handler(inline=True)
def naps_on_the_loop(value: int) -> int:
    time.sleep(0.001)
    return value


@handler
def naps_in_a_thread(value: int) -> int:
    time.sleep(0.001)
    return value


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_blocking_call_beneath_the_library_fails() -> None:
    """A handler that sleeps on the event loop is reported, with the call that blocks."""
    with pytest.raises(BlockingError, match=r"time\.sleep"):
        await run_block(naps_on_the_loop, 1)


async def test_a_synchronous_handler_may_block_its_thread() -> None:
    """A handler that is not inline runs in a worker thread, where blocking harms nobody."""
    assert await run_block(naps_in_a_thread, 1) == 1


@pytest.mark.may_block
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_mark_lifts_it() -> None:
    """``may_block`` is for tests of code that blocks on purpose."""
    assert await run_block(naps_on_the_loop, 1) == 1


async def test_a_test_of_its_own_may_block() -> None:
    """Only library code is watched: what a test does by itself is its own affair."""
    nap: Callable[[float], None] = time.sleep
    nap(0.001)
    await anyio.lowlevel.checkpoint()
