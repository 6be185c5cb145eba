"""A rescue whose handler was written for other errors."""

from __future__ import annotations

from flowstate import Failure, handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


@handler
async def mend(failure: Failure[ValueError]) -> int:
    return len(str(failure.error))


counted = sequencer("s", str).step(count)
counted.rescue(OSError, mend)  # wrong: mend handles ValueError
counted.rescue((ValueError, OSError), mend)  # wrong: mend handles ValueError only
counted.rescue(ValueError, count)  # wrong: a rescue's handler takes a Failure
