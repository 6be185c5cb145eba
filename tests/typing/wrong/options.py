"""Settings that don't exist or have another type."""

from __future__ import annotations

from flowstate import action, handler, session_state


@handler(retries=3)  # wrong: there is no such setting
async def count(text: str) -> int:
    return len(text)


@handler
async def double(number: int) -> int:
    return 2 * number


double.configure(timeout="5s")  # wrong: seconds are a number
action("double", double, concurrency="queu")  # wrong: no such policy
session_state(int)  # wrong: state is a pydantic model
