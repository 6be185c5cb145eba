"""
Another process over the same file, for ``test_processes``: counts cells up and tells each commit.

Usage: ``second_process.py PATH MODE ROUNDS``. In mode ``increment`` it adds ROUNDS to one cell
through ``StateCell``, and says the value it reached each time. In mode ``batches`` it commits
batches that must stay whole, and says the number of each once it is committed.
"""

from __future__ import annotations

import sys

import anyio
from pydantic import BaseModel

from flowstate.state.cell import StateCell
from flowstate.store.record import PutCell, PutItems, PutRequest, Write
from flowstate.store.sql import SqlStore
from flowstate.testing.store_samples import cell_key, item_record, request_record


class Counter(BaseModel):
    """Counts."""

    count: int = 0


def batch(number: int) -> list[Write]:
    """The batch of this number, from 0: three tables, each row a function of the number."""
    return [
        PutCell(key=cell_key("left"), expected=number, data=str(number)),
        PutItems(records=(item_record(f"i{number}", number + 1, number + 1),)),
        PutRequest(record=request_record(created_at=number)),
        PutCell(key=cell_key("right"), expected=number, data=str(number)),
    ]


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


async def main(path: str, mode: str, rounds: int) -> None:
    """Do as the module says."""
    store = SqlStore(path)
    await store.open()
    cell = StateCell(store, cell_key("counter"), Counter)
    for number in range(rounds):
        if mode == "increment":
            _tell((await cell.increment("count")).value.count)
        else:
            await store.commit(batch(number))
            _tell(number)
    await store.close()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
