"""
Another process over the same file, for ``test_processes``: counts cells up and tells each commit.

Usage: ``second_process.py PATH MODE ROUNDS``. In mode ``increment`` it adds ROUNDS to one cell
through ``StateCell``, and says the value it reached each time. In mode ``entry`` it does the same
with an entry of a ``ResourceCollection``, and deletes it whenever it has reached a multiple of ten.
In mode ``batches`` it commits batches that must stay whole, and says the number of each once it is
committed.
"""

from __future__ import annotations

import sys

import anyio
from pydantic import BaseModel

from flowstate.define.resource import resource
from flowstate.errors import VersionConflict
from flowstate.state.cell import StateCell
from flowstate.state.collection import ResourceCollection
from flowstate.store.record import PutCell, PutItems, PutRequest, PutResource, Write
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import (
    cell_key,
    collection_key,
    item_record,
    request_record,
    resource_key,
)


class Counter(BaseModel):
    """Counts."""

    count: int = 0


def batch(number: int) -> list[Write]:
    """The batch of this number, from 0: four tables, each row a function of the number."""
    return [
        PutCell(key=cell_key("left"), expected=number, data=str(number)),
        PutItems(records=(item_record(f"i{number}", number + 1, number + 1),)),
        PutRequest(record=request_record(created_at=number)),
        PutResource(key=resource_key(), expected=number, data=str(number)),
        PutResource(key=resource_key(f"notes/i{number}"), expected=0, data=str(number)),
        PutCell(key=cell_key("right"), expected=number, data=str(number)),
    ]


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


async def count_entry(counters: ResourceCollection[Counter, str]) -> int:
    """Count the one entry up, across its deletes; gives the value reached."""
    while True:
        held = await counters.get("counter")
        try:
            if held is None:
                made = await counters.create("counter", Counter(count=1))
                return made.version
            next = Counter(count=held.value.count + 1)
            if next.count % 10 == 0:
                gone = await counters.delete("counter", expected=held.version)
                assert gone is not None
                return gone.version
            written = await counters.upsert("counter", next, expected=held.version)
            return written.version
        except VersionConflict:
            continue


async def main(path: str, mode: str, rounds: int) -> None:
    """Do as the module says."""
    store = SqlStore(path)
    await store.open()
    cell = StateCell(store, cell_key("counter"), Counter)
    counters = ResourceCollection(store, collection_key(), resource("counters/{id}", Counter))
    for number in range(rounds):
        if mode == "increment":
            _tell((await cell.increment("count")).value.count)
        elif mode == "entry":
            _tell(await count_entry(counters))
        else:
            await store.commit(batch(number))
            _tell(number)
    await store.close()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
