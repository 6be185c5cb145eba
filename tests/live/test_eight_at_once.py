"""
Eight agents at once: what that does to the event loop that everything else runs on.

``bench/claude_code.py`` prints the numbers; here only what no machine may exceed is checked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from flowstate import HarnessRunInput, Runtime, action, define_flow
from flowstate.blocks.claude_code import claude_code_agent
from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import Turn, text, tool_call

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

AT_ONCE = 8
WORDS = "The module is short, so I read it whole before I change anything. " * 6


@contextmanager
def steps_timed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, float]]:
    """
    The longest step of the event loop, in seconds of this thread's own time.

    A step's time on the clock would rather tell how many others want the processors.
    """
    longest = {"step": 0.0}
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest["step"] = max(longest["step"], time.thread_time() - began)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", timed)
        yield longest


async def test_eight_agents_do_not_hold_up_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of the loop is short, starting and ending the processes included."""
    async with ScriptedMessagesApi() as api, clean_home(api) as home:
        for number in range(AT_ONCE):
            working = [Turn(text(WORDS), tool_call("Bash", command="true"))] * 3
            api.route(f"agent {number}", *working, Turn(text(f"I was {number}.")))
        agent = claude_code_agent(
            env=home.env,
            cwd=lambda _: home.path,
            permission_mode="acceptEdits",
            allowed_tools=["Bash"],
            detached=True,
        )
        run_it = action("run", agent)
        said: dict[int, str | None] = {}

        async with Runtime(define_flow("coding", actions=[run_it])) as runtime:

            async def one(number: int) -> None:
                run = await runtime.dispatch(
                    run_it, HarnessRunInput(prompt=f"agent {number}"), session=f"s{number}"
                )
                async for _ in run.events():
                    pass
                said[number] = (await run.output()).final_message

            with steps_timed(monkeypatch) as longest:
                async with anyio.create_task_group() as tasks:
                    for number in range(AT_ONCE):
                        tasks.start_soon(one, number)

    assert said == {number: f"I was {number}." for number in range(AT_ONCE)}
    assert longest["step"] < 0.25


async def test_a_step_that_takes_long_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself: work in the loop counts, and so does work of a task."""

    async def busy() -> None:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    with steps_timed(monkeypatch) as longest:
        await asyncio.create_task(busy())
    assert longest["step"] >= 0.05
