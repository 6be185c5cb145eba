"""Counts that no machine changes: how many tasks a composition takes, and that none is left."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate import build_plan, handler, run_block, sequencer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]


@handler
async def nothing(value: int) -> int:
    return value


@handler
async def waits(value: int) -> int:
    await anyio.lowlevel.checkpoint()
    return value


class Counted:
    """Counts the tasks that a loop makes while it stands."""

    def __init__(self) -> None:
        self.made = 0

    def __enter__(self) -> Counted:
        def factory(
            loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
        ) -> asyncio.Task[Any]:
            self.made += 1
            return asyncio.Task(coro, loop=loop, **options)

        asyncio.get_running_loop().set_task_factory(factory)
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.get_running_loop().set_task_factory(None)


async def test_a_chain_starts_no_task() -> None:
    """A hundred steps, waiting or not, run in the caller's own task."""
    for step in (nothing, waits):
        built = sequencer("turn", int)
        for _ in range(100):
            built = built.step(step)
        with Counted() as counted:
            await run_block(built, 1)
        assert counted.made == 0


async def test_choices_loops_and_rescues_start_no_task() -> None:
    """Only what runs side by side does."""
    built = (
        sequencer("turn", int)
        .step(sequencer("inner", int).step(nothing).tap(nothing))
        .do_until(lambda value: value > 50, handler(_add), max_iterations=100)
        .branch((lambda value: value > 9, nothing), otherwise=waits)
        .step_any(nothing, waits)
        .exit_if(lambda value: value < 0)
        .step(nothing)
    )
    with Counted() as counted:
        await run_block(built, 1)
    assert counted.made == 0


async def _add(value: int) -> int:
    return value + 1


@pytest.mark.parametrize("method", ["parallel", "step_all", "for_each"])
async def test_a_fan_out_that_never_waits_takes_four_tasks_at_most(method: str) -> None:
    """A thousand branches with nothing to wait for are done by one worker and its helpers."""
    start: Any = sequencer("turn", int)
    if method == "parallel":
        built = start.parallel(**{f"b{n}": nothing for n in range(1000)})
    elif method == "step_all":
        built = start.step_all(*[nothing] * 1000)
    else:
        built = start.map(lambda _: range(1000)).for_each(nothing)
    plan = build_plan(built)
    with Counted() as counted:
        await run_block(plan, 1)
    assert counted.made <= 4


@pytest.mark.parametrize("bound", [1, 2, 16])
async def test_a_bounded_for_each_takes_few_workers(bound: int) -> None:
    """Workers are long-lived: as many as may run at once, however many entries there are."""
    built = sequencer("turn", list[int]).for_each(waits, max_concurrency=bound)
    with Counted() as counted:
        await run_block(built, list(range(2000)))
    assert counted.made <= 2 * bound + 3


async def test_a_run_leaves_nothing_behind() -> None:
    """No task, and after collection no object that grows with the number of runs."""

    @handler
    async def fails(value: int) -> int:
        await anyio.lowlevel.checkpoint()
        raise ValueError(value)

    plan = build_plan(
        sequencer("turn", int)
        .side_chain(waits)
        .step_all(waits, nothing)
        .map(sum)
        .race(waits, fails)
        .step_all(waits, fails)
        .map(sum)
    )

    async def once() -> None:
        with pytest.raises(ValueError, match="2"):
            await run_block(plan, 1)

    before = asyncio.all_tasks()
    for _ in range(20):
        await once()
    assert asyncio.all_tasks() == before
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(50):
        await once()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
