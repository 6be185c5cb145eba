"""``for_each`` over a value that has no entries, and over entries of another type."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


sequencer("s", int).for_each(count)  # wrong: an int can't be iterated
sequencer("s", list[int]).for_each(count)  # wrong: the entries are int, count takes a str
