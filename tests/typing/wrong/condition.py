"""Conditions on another type than the running value's."""

from __future__ import annotations

from flowstate import handler, sequencer


@handler
async def count(text: str) -> int:
    return len(text)


def shouting(text: str) -> bool:
    return text.isupper()


counted = sequencer("s", str).step(count)
counted.exit_if(shouting)  # wrong: the running value is an int
counted.step_if(lambda n: n.isupper(), count)  # wrong: an int has no isupper
counted.tap_if(shouting, print)  # wrong: the running value is an int
