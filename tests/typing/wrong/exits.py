"""What an exit leaves with is part of a sequencer's output."""

from __future__ import annotations

from flowstate import Block, handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


early = sequencer("s", str).exit_if(lambda s: not s).step(count)
always: Block[str, int] = early  # wrong: it may also leave with a str
sequencer("t", str).step(early).map(lambda n: n + 1)  # wrong: n may be a str
