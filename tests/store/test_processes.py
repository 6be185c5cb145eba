"""A SQLite file under two processes, and under one that is killed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from flowstate.define.resource import resource
from flowstate.state.cell import StateCell
from flowstate.state.collection import ResourceCollection
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import cell_key, collection_key, resource_key

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).with_name("second_process.py")
SECOND: Any = runpy.run_path(str(SCRIPT))
COUNTER: Any = SECOND["Counter"]


async def _lines(process: Process) -> list[int]:
    assert process.stdout is not None
    text = "".join([part async for part in TextReceiveStream(process.stdout)])
    # The last line may be cut off: it was being written as the process was killed.
    return [int(line) for line in text.split("\n")[:-1]]


async def _start(path: Path, mode: str, rounds: int) -> Process:
    return await anyio.open_process([sys.executable, str(SCRIPT), str(path), mode, str(rounds)])


async def test_two_processes_lose_no_increment(tmp_path: Path) -> None:
    """Two more processes and five tasks here count one cell up together; none is lost."""
    path = tmp_path / "store.db"
    rounds, tasks_here = 40, 5
    store = SqlStore(path)
    await store.open()
    cell = StateCell(store, cell_key("counter"), COUNTER)
    reached: list[int] = []

    async def count_here() -> None:
        for _ in range(rounds // tasks_here):
            reached.append((await cell.increment("count")).value.count)

    async def listen(process: Process) -> None:
        reached.extend(await _lines(process))

    async with (
        await _start(path, "increment", rounds) as one,
        await _start(path, "increment", rounds) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listen, one)
        tasks.start_soon(listen, two)
        # Once they count, so that it is three at a time.
        while (await cell.get()).count < 2:  # noqa: ASYNC110
            await anyio.sleep(0.005)
        for _ in range(tasks_here):
            tasks.start_soon(count_here)
    # The values that came back are the proof that each process ended well.
    assert (await cell.get()).count == 3 * rounds
    assert sorted(reached) == list(range(1, 3 * rounds + 1))
    await store.close()


async def test_two_processes_lose_no_write_of_an_entry(tmp_path: Path) -> None:
    """
    Each version of an entry is written by exactly one of three processes, over deletes too, and
    all that were acknowledged count.
    """
    path = tmp_path / "store.db"
    rounds = 40
    store = SqlStore(path)
    await store.open()
    entries = ResourceCollection(store, collection_key(), resource("counters/{id}", COUNTER))
    reached: list[int] = []

    async def listen(process: Process) -> None:
        reached.extend(await _lines(process))

    async with (
        await _start(path, "entry", rounds) as one,
        await _start(path, "entry", rounds) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listen, one)
        tasks.start_soon(listen, two)
        for _ in range(rounds):
            reached.append(await SECOND["count_entry"](entries))
    assert sorted(reached) == list(range(1, 3 * rounds + 1))
    record = await store.resource(resource_key("counters/counter"))
    assert record is not None
    assert record.version == 3 * rounds
    await store.close()


@pytest.mark.parametrize("acknowledged", [1, 5, 30])
async def test_a_killed_process_leaves_whole_batches(tmp_path: Path, acknowledged: int) -> None:
    """After kill -9 everything it told is there, and what it was at is whole or not at all."""
    path = tmp_path / "store.db"
    told: list[int] = []
    async with await _start(path, "batches", 1_000_000) as process:
        assert process.stdout is not None
        text = ""
        async for part in TextReceiveStream(process.stdout):
            text += part
            if text.count("\n") >= acknowledged and process.returncode is None:
                process.kill()
    told = [int(line) for line in text.split("\n")[:-1]]
    assert process.returncode != 0
    assert len(told) >= acknowledged

    store = SqlStore(path)
    await store.open()
    left, right = await store.cell(cell_key("left")), await store.cell(cell_key("right"))
    request = await store.request("r1")
    items = await store.items("r1", limit=1_000_000)
    entry = await store.resource(resource_key())
    entries = await store.resources(collection_key(), prefix="notes/i", limit=1_000_000)
    assert left is not None
    assert right is not None
    assert request is not None
    assert left.version >= len(told)
    assert right.version == left.version
    assert entry is not None
    assert entry.version == left.version
    assert len(entries) == left.version
    assert [item.last_sequence for item in items] == list(range(1, left.version + 1))
    assert request.created_at == left.version - 1
    await store.commit([])
    await store.close()
