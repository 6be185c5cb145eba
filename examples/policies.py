"""
What happens when a request comes while another of the same session runs.

    python examples/policies.py

Three actions that do the same under the policies ``allow``, ``queue`` and ``reject``. Requests of
two sessions never meet, whatever the policy.
"""

from __future__ import annotations

import anyio

from flowstate import Runtime, action, define_flow, handler, queue
from flowstate.errors import QueueTimeout, RequestRefused


@handler
async def work(name: str) -> str:
    print(f"    {name} begins")
    await anyio.sleep(0.1)
    print(f"    {name} ends")
    return name


side_by_side = action("side_by_side", work, concurrency="allow")
in_turn = action("in_turn", work, concurrency="queue")
impatient = action("impatient", work, concurrency=queue(wait=0.02))
one_only = action("one_only", work, concurrency="reject")
flow = define_flow("policies", actions=[side_by_side, in_turn, impatient, one_only])


async def main() -> None:
    async with Runtime(flow) as runtime:
        print("allow: both run at once")
        runs = [await runtime.dispatch(side_by_side, name, session="s") for name in ("a", "b")]
        for run in runs:
            await run.finished()

        print("queue: one after the other, in the order of acceptance")
        runs = [await runtime.dispatch(in_turn, name, session="s") for name in ("a", "b")]
        for run in runs:
            await run.finished()

        print("queue(wait=0.02): the second gives up")
        first = await runtime.dispatch(impatient, "a", session="s")
        second = await runtime.dispatch(impatient, "b", session="s")
        try:
            await second.output()
        except QueueTimeout as error:
            print(f"    {type(error).__name__}, behind the first: {error.behind == first.id}")
        await first.finished()

        print("reject: the second is refused, and told by what; another session is not")
        first = await runtime.dispatch(one_only, "a", session="s")
        try:
            await runtime.dispatch(one_only, "b", session="s")
        except RequestRefused as error:
            print(f"    {type(error).__name__}, by the first: {error.in_flight == first.id}")
        other = await runtime.dispatch(one_only, "c", session="another")
        await first.finished()
        await other.finished()


if __name__ == "__main__":
    anyio.run(main)
