"""A loop whose body can't take its own output, and a loop without a bound."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


@handler
async def double(number: int) -> int:
    return 2 * number


sequencer("s", str).do_until(lambda s: s == "", count, max_iterations=3)  # wrong: str in, int out
sequencer("s", int).do_while(lambda n: n < 9, double)  # wrong: max_iterations is required
