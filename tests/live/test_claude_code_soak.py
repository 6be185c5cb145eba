"""
Runs of the real Claude Code, cancelled at random moments: nothing may be left of any of them.

Twenty in an ordinary run of the tests, two hundred with ``FLOWSTATE_SOAK``. They go through a
Runtime, a few sessions at once, and every run continues what the one before left in its session.
The seed is in the failure's output; ``FLOWSTATE_SEED`` plays it again.
"""

from __future__ import annotations

import gc
import os
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import anyio
import pytest

from flowstate import (
    HarnessRunInput,
    Runtime,
    action,
    checkout_for,
    define_flow,
    harness_failure_kind,
)
from flowstate.blocks.claude_code import claude_code_agent
from flowstate.context import Context
from flowstate.errors import RequestCancelled
from flowstate.item.fold import OpenItems
from flowstate.lease.memory import MemoryLease
from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.received_request import ReceivedRequest
from flowstate.testing.scripted_turns import ApiError, Turn, text, thinking, tool_call

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.slow]

SOAK: Final = bool(os.environ.get("FLOWSTATE_SOAK"))
RUNS: Final = {"asyncio": 120 if SOAK else 12, "trio": 80 if SOAK else 8}
AT_ONCE: Final = 4
LATEST: Final = 4.0 if SOAK else 2.5
"""Seconds from the request to the latest cancel; a run that is let be is over in about one."""

SLEEP = "python3 -c 'import time; time.sleep(300)'"


def processes(needle: str) -> list[str]:
    """The command lines of the live processes whose environment holds this text."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if needle.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text("utf-8", "replace")[:200])
            except OSError:
                continue
    return found


def any_turn(chance: random.Random) -> Turn | ApiError:
    """A turn of any kind in which a run can be caught; half of them end it."""
    kinds: list[Turn | ApiError] = [
        Turn(text("All is well.")),
        Turn(thinking("Let me see."), text("It is done.")),
        Turn(text("A word " * 20), chunk_delay=0.02),
        Turn(text("And another " * 20), chunk_delay=0.05),
        Turn(text("A beginning that has no end."), hang=True),
        Turn(text("Late."), delay=1.0),
        Turn(text("I look."), tool_call("Bash", command="true")),
        Turn(tool_call("Bash", command=SLEEP), tool_call("Bash", command=SLEEP)),
        Turn(tool_call("Bash", command=SLEEP, run_in_background=True)),
        Turn(text("I write."), tool_call("Write", file_path="a.txt", content="a" * 20_000)),
        Turn(
            tool_call(
                "Agent",
                description="Look around",
                prompt="Look around and tell me",
                subagent_type="general-purpose",
                run_in_background=chance.random() < 0.5,
            )
        ),
        ApiError(529),
        ApiError(400),
    ]
    return chance.choice(kinds)


async def test_cancels_at_random_moments_leave_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    anyio_backend_name: str,
) -> None:
    """No process, file, open item or place is left; each session goes on, or says why not."""
    seed = int(os.environ.get("FLOWSTATE_SEED", random.randrange(1 << 32)))
    print(f"FLOWSTATE_SEED={seed}")  # noqa: T201  (shown when the test fails)
    chance, said = random.Random(seed), random.Random(seed)
    ended: Counter[str] = Counter()
    slowest = 0.0
    lease = MemoryLease()

    async def checkout(ctx: Context) -> Path:
        path = checkout_for(tmp_path / "checkouts", None, ctx.session.id)
        await anyio.Path(path).mkdir(parents=True, exist_ok=True)
        return path

    def answer(_: ReceivedRequest) -> Turn | ApiError:
        return any_turn(said)

    async with ScriptedMessagesApi(*[answer] * 5_000) as api, clean_home(api) as home:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        agent = claude_code_agent(
            env=home.env,
            cwd=checkout,
            permission_mode="acceptEdits",
            allowed_tools=["Bash", "Write"],
            model="claude-sonnet-4-5",
            api_retries=2,
        )
        run_it = action("run", agent, concurrency="queue")
        flow = define_flow("coding", actions=[run_it])

        async def one(runtime: Runtime, session: str, wait: float) -> None:
            nonlocal slowest
            run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session=session)
            open_items, settled, asked = OpenItems(), 0, 0.0
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    nonlocal asked
                    await anyio.sleep(wait)
                    asked = anyio.current_time()
                    run.cancel("at random")

                tasks.start_soon(cancel)
                async for event in run.events():
                    open_items.note(event)
                    settled += event.kind == "settled"
                tasks.cancel_scope.cancel()
            ended[await run.finished()] += 1
            if asked:
                slowest = max(slowest, anyio.current_time() - asked)
            assert open_items.now() == {}
            assert settled >= 1
            try:
                await run.output()
            except RequestCancelled:
                pass
            except Exception as error:
                # Cancelled before there was a transcript, its conversation never came to be.
                if harness_failure_kind(error) != "unknown-conversation":
                    raise
                ended["unknown-conversation"] += 1

        def nothing_left(when: str) -> None:
            assert processes(f"{home.path}/config") == [], when
            assert list(scratch.iterdir()) == [], when
            assert repr(lease) == "<MemoryLease: 0 held, 0 waiting>", when

        sessions = [f"s{number}" for number in range(AT_ONCE)]
        async with Runtime(flow, lease=lease) as runtime:
            descriptors = 0
            for batch in range(RUNS[anyio_backend_name] // AT_ONCE):
                async with anyio.create_task_group() as tasks:
                    for session in sessions:
                        tasks.start_soon(one, runtime, session, chance.uniform(0, LATEST))
                nothing_left(f"after batch {batch} of seed {seed}: {ended}")
                gc.collect()
                descriptors = descriptors or len(os.listdir("/proc/self/fd"))

            # The last word of every session: the run completes. One whose last run never came to
            # have a transcript says so, once, and begins anew.
            monkeypatch.setattr(said, "choice", lambda kinds: kinds[0])
            for session in sessions:
                for _ in range(2):
                    run = await runtime.dispatch(
                        run_it, HarnessRunInput(prompt="Are you there?"), session=session
                    )
                    await run.finished()
                    try:
                        handle = await run.output()
                    except Exception as error:
                        if harness_failure_kind(error) != "unknown-conversation":
                            raise
                        continue
                    assert handle.final_message == "All is well."
                    break
                else:
                    pytest.fail(f"session {session} doesn't go on (seed {seed})")
            nothing_left(f"at the end of seed {seed}")
            gc.collect()
            assert len(os.listdir("/proc/self/fd")) <= descriptors + AT_ONCE
    print(f"ended: {dict(ended)}, slowest stop {slowest:.1f} s")  # noqa: T201
    assert ended["cancelled"] > 0
    assert slowest < 8  # five, and what a machine with too little time for all of them takes
