"""Arms that don't take the running value."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


@handler
async def double(number: int) -> int:
    return 2 * number


def is_empty(text: str) -> bool:
    return not text


sequencer("s", str).branch((is_empty, double))  # wrong: double takes an int
sequencer("s", str).branch((is_empty, count), otherwise=double)  # wrong: double takes an int
