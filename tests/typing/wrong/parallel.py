"""Branches that don't all take the running value."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


@handler
async def double(number: int) -> int:
    return 2 * number


start = sequencer("s", str)
start.parallel(count=count, double=double)  # wrong: double takes an int
start.step_all(count, double)  # wrong: double takes an int
start.race(count, double)  # wrong: double takes an int
start.step_any(count, double)  # wrong: double takes an int
