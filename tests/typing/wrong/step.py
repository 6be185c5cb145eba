"""A step that doesn't take what the step before it gives."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


sequencer("s", str).step(count).step(count)  # wrong: count takes a str, the running value is int
sequencer("s", int).step(sequencer("t", str).step(count))  # wrong: the same, one level down
