"""Values and outputs of actions."""

from __future__ import annotations

from flowstate import Runtime, action, define_flow, handler


@handler
async def count(text: str) -> int:
    return len(text)


counting = action("count", count)
flow = define_flow("texts", actions=[counting])


async def main() -> None:
    async with Runtime(flow) as runtime:
        await runtime.dispatch(counting, 5, session="s")  # wrong: the action takes a str
        await runtime.dispatch(counting, "five")  # wrong: session is required
        run = await runtime.dispatch(counting, "five", session="s")
        text: str = await run.output()  # wrong: its output is an int
        assert text
