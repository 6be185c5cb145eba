"""A plain function where a block is needed."""

from __future__ import annotations

from flowstate import sequencer


async def count(text: str) -> int:
    return len(text)


sequencer("s", str).step(count)  # wrong: it lacks @handler
