"""A connector that gives something else than the block takes, or reads what isn't there."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


def pair(text: str) -> tuple[str, str]:
    return text, text


sequencer("s", str).step(pair, count)  # wrong: count takes a str, pair gives a tuple
sequencer("s", str).step(count).map(lambda n: n.upper())  # wrong: the running value is an int
