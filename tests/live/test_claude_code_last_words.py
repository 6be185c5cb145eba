"""
A program in Claude Code's place that dies while it is being connected to: why is always told.

Each way of dying is tried many times, since what is heard first differs from time to time: that
the program's input is closed, that its output is, or that it has ended.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from flowstate.blocks.claude_code import ClaudeAgentRunError, claude_code_agent, last_words
from flowstate.blocks.claude_code.last_words import END_SECONDS, LOOK_SECONDS
from flowstate.harness.handle import HarnessRunInput
from tests.blocks.claude_code import wire
from tests.blocks.claude_code.fake_context import FakeContext
from tests.live.test_claude_code_block import one_backend, processes, until

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]

TIMES = 100 if os.environ.get("FLOWSTATE_SOAK") else 8

left_to_gc = pytest.mark.filterwarnings(
    "ignore:.*unclosed.*:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""The SDK leaves its end of a pipe that it hasn't read to the end to the garbage collector."""

DEATHS = {
    "at once": "echo first >&2; echo last words >&2; exit 3",
    "asked": "read -r question; echo first >&2; echo last words >&2; exit 3",
    "deaf": "exec <&-; echo first >&2; sleep 0.05; echo last words >&2; exit 3",
    "mute": "exec >&-; echo first >&2; sleep 0.05; echo last words >&2; exit 3",
    "half a line": "echo first >&2; printf 'last words' >&2; exit 3",
}
"""Ways of dying, as programs for a shell."""

REFUSE = """\
read -r question
id=$(printf '%s' "$question" | sed 's/.*"request_id": *"\\([^"]*\\)".*/\\1/')
said='"subtype": "error", "error": "not today"'
printf '{"type": "control_response", "response": {"request_id": "%s", %s}}\\n' "$id" "$said"
"""
"""A program that answers to being connected to with an error."""

SLOW = """\
import json, os, sys, time

early, late = json.load(open(sys.argv[0] + ".says"))

def say(message):
    print(json.dumps(message), flush=True)

for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "control_request":
        request = heard["request_id"]
        if heard["request"]["subtype"] == "initialize":
            for message in early:
                say(message)
            time.sleep(0.5)
        answer = {"subtype": "success", "request_id": request, "response": {"pid": os.getpid()}}
        say({"type": "control_response", "response": answer})
    elif heard["type"] == "user":
        for message in late:
            if message["type"] == "result":
                message["user_message_uuids"] = [heard["uuid"]]
            say(message)
"""
"""A program that says something before it has answered to being connected to."""


def dying(folder: Path, program: str, *, launched: bool) -> Any:
    """
    An agent that runs this program.

    Args:
        launched: with an environment of its own, and thus through the launcher, which takes a
            moment; else it is started as it is and may be gone before anything is written to it.
    """
    path = folder / "agent"
    path.write_text(f"#!/bin/sh\n{program}\n", "utf-8")
    path.chmod(0o700)
    return claude_code_agent(
        env={"PATH": os.environ["PATH"], "HOME": str(folder)} if launched else None,
        detached=True,
        options={"cli_path": str(path)},
    )


@pytest.mark.parametrize("launched", [True, False], ids=["launched", "direct"])
@pytest.mark.parametrize("death", DEATHS)
async def test_a_program_that_dies_is_heard_out(tmp_path: Path, death: str, launched: bool) -> None:
    """Its exit code and all its last words, whatever was noticed first."""
    agent = dying(tmp_path, DEATHS[death], launched=launched)
    heard = set()
    for _ in range(TIMES):
        with pytest.raises(ClaudeAgentRunError) as caught:
            await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())
        heard.add((caught.value.exit_code, caught.value.stderr))

    assert heard == {(3, ("first", "last words"))}


@one_backend
@left_to_gc
async def test_a_program_that_refuses_and_stays_is_not_waited_for(tmp_path: Path) -> None:
    """Being heard out is bounded: it is ended like any other, and what it said is told."""
    program = f"{REFUSE}echo last words >&2; while :; do sleep 0.05; done"
    agent = dying(tmp_path, program, launched=False)
    with (
        anyio.fail_after(END_SECONDS + 10),  # what the SDK takes to end it, and more
        pytest.raises(ClaudeAgentRunError, match="can't be heard: not today") as caught,
    ):
        await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())

    assert caught.value.stderr == ("last words",)
    gc.collect()


@one_backend
@left_to_gc
async def test_a_program_that_ends_without_an_error_is_not_waited_for(tmp_path: Path) -> None:
    """One that only tells its version, say; the SDK would wait for its answer for a minute."""
    agent = dying(tmp_path, "echo 1.2.3; echo last words >&2; exit 0", launched=True)
    with (
        anyio.fail_after(LOOK_SECONDS + END_SECONDS + 15),
        pytest.raises(ClaudeAgentRunError, match="its process ended before it had answered") as e,
    ):
        await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())

    assert e.value.stderr == ("last words",)
    assert processes(str(tmp_path), of="cmdline") == []
    gc.collect()


@left_to_gc
async def test_a_cancel_does_not_wait_for_a_start(tmp_path: Path) -> None:
    """A program that can't be connected to and ignores SIGTERM is ended in time like any other."""
    said = tmp_path / "said"
    program = f"trap '' TERM; exec <&-; echo on > {said}; while :; do sleep 0.05; done"
    agent = dying(tmp_path, program, launched=False)
    began = 0.0
    with anyio.CancelScope() as scope:

        async def cancel() -> None:
            nonlocal began
            await until(said.exists)
            began = anyio.current_time()
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())

    assert scope.cancelled_caught
    assert anyio.current_time() - began < 5.5  # five, and what a loaded machine takes to see it
    assert processes(str(tmp_path), of="cmdline") == []
    gc.collect()


async def test_what_is_said_during_a_slow_start_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for the end of a process that hasn't answered takes nothing away from the run."""
    monkeypatch.setattr(last_words, "LOOK_SECONDS", 0.05)
    whole = [*wire.turn_begins(), wire.said("m", wire.text("Hello")), wire.result("Hello", 1, 1, 0)]
    says = [whole[:2], [*whole[2:], wire.state("idle")]]
    (tmp_path / "agent.says").write_text(json.dumps(says), "utf-8")
    program = tmp_path / "agent"
    program.write_text(f"#!{sys.executable} -I\n{SLOW}", "utf-8")
    program.chmod(0o700)
    named: list[str] = []
    agent = claude_code_agent(
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        detached=True,
        on_session=lambda session_id, _: named.append(session_id),
        options={"cli_path": str(program)},
    )
    handle = await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())

    assert (handle.status, handle.final_message) == ("completed", "Hello")
    assert named == [wire.SESSION]
