"""Functions that no block can be made of."""

from __future__ import annotations

from flowstate import handler


@handler  # wrong: a handler takes (input) or (input, ctx)
async def add(a: int, b: int) -> int:
    return a + b


@handler  # wrong: a handler takes an input
async def nothing() -> int:
    return 1
