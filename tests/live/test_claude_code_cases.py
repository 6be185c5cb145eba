"""
Trouble that users of agents have reported, met by the block in a Runtime and the SDK itself.

The agent is a small program that speaks Claude Code's protocol and misbehaves on demand: it says
what a plan holds for the prompt it gets, in whatever chunks, ignores what it is told, or is slow to
exit. It writes down when it starts and ends, and what it was started with.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from flowstate import (
    HarnessRunInput,
    Runtime,
    action,
    checkout_for,
    define_flow,
    harness_failure_kind,
)
from flowstate.blocks.claude_code import ClaudeAgentRunError, ClaudeCodeHandle, claude_code_agent
from flowstate.context import Context
from flowstate.define.flow import Action
from flowstate.errors import RequestCancelled, TimedOut
from flowstate.item.content import ErrorReport, Status, ToolOutput
from flowstate.item.item import Item
from flowstate.request.run import Run
from flowstate.testing.agent_home import DUMMY_KEY, clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import ApiError, Turn, Usage, text
from tests.blocks.claude_code import wire

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]
UNRAISABLE = "ignore::pytest.PytestUnraisableExceptionWarning"
one_backend = pytest.mark.parametrize("anyio_backend", ["asyncio"])

OLD = "0a11ce00-0000-4000-8000-000000000001"
NEW = "0a11ce00-0000-4000-8000-000000000002"

PROGRAM = """\
import json, os, signal, sys, time

plan = json.load(open(os.environ["AGENT_PLAN"], encoding="utf-8"))

def note(what):
    with open(plan["log"], "a", encoding="utf-8") as log:
        log.write(json.dumps([what, os.getpid(), sys.argv[1:]]) + "\\n")

def say(message, chunk=1 << 16):
    data = (json.dumps(message, ensure_ascii=False) + "\\n").encode()
    for start in range(0, len(data), chunk):
        sys.stdout.buffer.write(data[start:start + chunk])
        sys.stdout.buffer.flush()

def reply(request, answer):
    response = {"subtype": "success", "request_id": request["request_id"], "response": answer}
    say({"type": "control_response", "response": response})

note("start")
if plan["deaf"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
slow = 0.0
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "control_request":
        kind = heard["request"]["subtype"]
        if plan["deaf"] and kind != "initialize":
            continue
        reply(heard, {"pid": os.getpid()} if kind == "initialize" else {})
        if kind == "interrupt":
            for message in plan["interrupted"]:
                say(message)
    elif heard["type"] == "user":
        prompt = heard["message"]["content"]
        note(prompt)
        slow = plan["slow"].get(prompt, 0.0)
        for step in plan["says"].get(prompt, plan["says"].get("*", [])):
            if "file" in step:
                open(step["file"], "w").close()
                continue
            if step.get("type") == "result":
                step["user_message_uuids"] = [heard.get("uuid")]
            say(step, plan["chunk"])
while plan["deaf"]:
    time.sleep(1)
time.sleep(slow)
note("end")
"""


@dataclass
class Stub:
    """The program, its plan and its log."""

    folder: Path
    says: dict[str, list[wire.Wire]] = field(default_factory=dict)
    """What it says to each prompt; ``*`` to any other. ``{"file": name}`` makes a file."""
    slow: dict[str, float] = field(default_factory=dict)
    """Seconds that it takes to exit after a prompt."""
    deaf: bool = False
    """It ignores SIGTERM, interrupts, and the end of its input."""
    chunk: int = 1 << 16

    def agent(self, **options: Any) -> Any:
        """A block that runs it. The plan is what it is now."""
        program, plan = self.folder / "agent", self.folder / "plan.json"
        program.write_text(f"#!{sys.executable} -I\n{PROGRAM}", "utf-8")
        program.chmod(0o700)
        written = {
            "log": str(self.folder / "log"),
            "says": self.says,
            "slow": self.slow,
            "deaf": self.deaf,
            "chunk": self.chunk,
            "interrupted": [
                wire.result(None, 1, 1, 0.0, subtype="error_during_execution", is_error=True),
                wire.state("idle"),
            ],
        }
        plan.write_text(json.dumps(written), "utf-8")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "AGENT_PLAN": str(plan)}
        return claude_code_agent(
            **{
                "env": {**env, "PYTHONUTF8": "1"},
                "cwd": lambda _: self.folder,
                "options": {"cli_path": str(program)},
                **options,
            }
        )

    @property
    def log(self) -> list[tuple[str, int, list[str]]]:
        """What each process noted, in order: ``start``, its prompt, ``end``."""
        path = self.folder / "log"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    @property
    def alive(self) -> list[int]:
        """The processes of it that are still there."""
        started = [pid for what, pid, _ in self.log if what == "start"]
        return [pid for pid in started if Path(f"/proc/{pid}").exists()]


@pytest.fixture(name="stub")
def _stub(tmp_path: Path) -> Stub:
    return Stub(tmp_path)


def begins() -> list[wire.Wire]:
    """What every turn begins with."""
    return [wire.state("running"), wire.init(claude_code_version="2.1.332"), wire.requesting()]


def turn(*said: wire.Wire, session: str = wire.SESSION, **result: Any) -> list[wire.Wire]:
    """A whole turn in a conversation."""
    end = wire.result(result.pop("text", "Done."), 10, 5, 0.01, **result)
    whole = [*begins(), *said, end, wire.state("idle")]
    return [{**message, "session_id": session} for message in whole]


def flow_of(agent: Any, **policy: Any) -> tuple[Any, Action[HarnessRunInput, ClaudeCodeHandle]]:
    """A flow whose one action runs this agent."""
    run: Action[HarnessRunInput, ClaudeCodeHandle] = action("run", agent, **policy)
    return define_flow("coding", actions=[run]), run


async def items_of(run: Run[Any]) -> list[Item]:
    """All items of a run, in the order in which they settled."""
    return [item async for item in run.items()]


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that sets no event."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


# --- what it sends ------------------------------------------------------------------------------


async def test_a_long_result_in_odd_chunks_arrives_whole(stub: Stub) -> None:
    """Three million characters, cut within characters: one item, nothing replaced."""
    output = ("→ line\n" * 428_572)[:3_000_000]
    call = wire.tool("call_1", "Bash", command="cat big")
    stub.says = {"*": turn(wire.said("m", call), wire.answer("call_1", output))}
    stub.chunk = 4_093
    flow, run_it = flow_of(stub.agent())
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Show it"), session="s1")
        items = await items_of(run)
        handle = await run.output()

    (tool,) = [item for item in items if isinstance(item.content, ToolOutput)]
    assert isinstance(tool.content, ToolOutput)
    assert tool.status == "completed"
    # Compared by hand: a difference of such texts takes minutes to be told.
    told = tool.content.output
    assert isinstance(told, str)
    assert (len(told), told.count("→"), "�" in told) == (3_000_000, output.count("→"), False)
    assert sha256(told.encode()).digest() == sha256(output.encode()).digest()
    assert handle.status == "completed"


@one_backend
@pytest.mark.filterwarnings("ignore:.*unclosed.*:ResourceWarning", UNRAISABLE)
async def test_a_message_beyond_the_limit_is_a_run_error(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a bare decode error: an error item, the open call incomplete, the SDK's as the cause."""
    monkeypatch.setattr("flowstate.blocks.claude_code.arguments.BUFFER_BYTES", 1 << 20)
    call = wire.tool("call_1", "Bash", command="cat big")
    stub.says = {"*": turn(wire.said("m", call), wire.answer("call_1", "x" * 3_000_000))}
    flow, run_it = flow_of(stub.agent())
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Show it"), session="s1")
        items = await items_of(run)
        with pytest.raises(ClaudeAgentRunError, match="can't be heard") as caught:
            await run.output()

        assert caught.value.__cause__ is not None
        # The SDK leaves its end of a pipe with unread data to the garbage collector, which closes
        # it; here while there is still a loop.
        gc.collect()

    (tool,) = [item for item in items if isinstance(item.content, ToolOutput)]
    assert tool.status == "incomplete"
    reports = [item.content for item in items if isinstance(item.content, ErrorReport)]
    assert [report.code for report in reports] == ["run_failed"]
    assert stub.alive == []


# --- which conversation -------------------------------------------------------------------------


async def test_the_conversation_it_names_is_the_one_to_continue(stub: Stub) -> None:
    """It resumes one id and confirms another; cancelled right then, the hook has the new one."""
    recorded: list[str] = []
    stub.says = {"*": [{**m, "session_id": NEW} for m in begins()]}
    flow, run_it = flow_of(
        stub.agent(
            detached=True,
            resume=lambda _: recorded[-1] if recorded else OLD,
            on_session=lambda session_id, _: recorded.append(session_id),
        )
    )
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
        await until(lambda: recorded)
        run.cancel("changed my mind")
        with pytest.raises(RequestCancelled, match="changed my mind"):
            await run.output()
        assert recorded == [NEW]

        run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
        await until(lambda: len(recorded) > 1)
        run.cancel()
        await run.finished()

    started = [" ".join(argv) for what, _, argv in stub.log if what == "start"]
    assert [OLD in argv for argv in started] == [True, False]
    assert [NEW in argv for argv in started] == [False, True]


async def test_an_unknown_conversation_is_told_through_any_wrapping(tmp_path: Path) -> None:
    """Raised by the real binary, wrapped twice; the hook never fired, so the next one is fresh."""
    recorded: list[str] = []
    failures: list[Exception] = []
    asked = [str(uuid.uuid4()), None]
    elsewhere = tmp_path / "checkouts" / "b"
    elsewhere.mkdir(parents=True)
    async with ScriptedMessagesApi(Turn(text("Fresh."))) as api, clean_home(api) as home:
        flow, run_it = flow_of(
            claude_code_agent(
                env=home.env,
                cwd=lambda _: elsewhere,
                detached=True,
                resume=lambda _: asked[len(failures)],
                on_session=lambda session_id, _: recorded.append(session_id),
            )
        )
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
            try:
                await run.output()
            except Exception as error:
                step = RuntimeError("the step failed")
                step.__cause__ = error
                outer = RuntimeError("the job failed")
                outer.__cause__ = step
                failures.append(outer)
            assert harness_failure_kind(failures[0]) == "unknown-conversation"
            assert recorded == []

            run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
            assert (await run.output()).final_message == "Fresh."
            assert len(recorded) == 1


def test_a_network_error_is_no_unknown_conversation() -> None:
    """It says nothing of whether there is something to continue."""
    error = RuntimeError("the step failed")
    error.__cause__ = ConnectionResetError("connection reset by peer")
    assert harness_failure_kind(error) is None


# --- stopping it --------------------------------------------------------------------------------


@one_backend
async def test_a_deaf_agent_is_killed_in_time_and_without_a_busy_wait(stub: Stub) -> None:
    """The deadline's own error goes on within five to six seconds, and waiting costs nothing."""
    recorded: list[str] = []
    stub.deaf = True
    stub.says = {"*": begins()}
    flow, run_it = flow_of(
        stub.agent(
            deadline=2.0,
            detached=True,
            on_session=lambda session_id, _: recorded.append(session_id),
        )
    )
    async with Runtime(flow) as runtime:
        began = time.monotonic()
        run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
        await until(lambda: recorded)
        spent = time.process_time()
        items = await items_of(run)
        with pytest.raises(TimedOut, match="deadline of 2 s"):
            await run.output()
        seconds = time.monotonic() - began - 2.0

    assert time.process_time() - spent < 0.5
    assert 3.0 < seconds < 6.0
    error = next(i.content for i in items if isinstance(i.content, ErrorReport))
    assert "transcript may lack its last messages" in error.message
    assert recorded == [wire.SESSION]
    assert stub.alive == []


@one_backend
async def test_a_stop_followed_at_once_by_two_messages_keeps_their_order(stub: Stub) -> None:
    """Each begins when the process before it is gone, however slow that was; none stays queued."""
    recorded: list[str] = []
    stub.says = {"A": begins(), "*": turn()}
    stub.slow = {"A": 3.0}
    flow, run_it = flow_of(stub.agent(), concurrency="queue")
    async with Runtime(flow) as runtime:
        first = await runtime.dispatch(run_it, HarnessRunInput(prompt="A"), session="s1")
        await until(lambda: [entry for entry in stub.log if entry[0] == "A"])
        await anyio.sleep(0.05)
        first.cancel("stopped by the user")
        await anyio.sleep(0.001)
        later = [
            await runtime.dispatch(run_it, HarnessRunInput(prompt=prompt), session="s1")
            for prompt in ("B", "C")
        ]
        for run in later:
            assert (await run.output()).status == "completed"
        assert await first.finished() == "cancelled"
        recorded += [what for what, _, _ in stub.log]

    assert recorded == ["start", "A", "end", "start", "B", "end", "start", "C", "end"]
    assert stub.alive == []


# --- sessions' ids as directories ---------------------------------------------------------------


async def _checkouts(stub: Stub, who: list[tuple[str | None, str]]) -> list[Path]:
    """Where the agent of each of these tenants and sessions has written its file."""
    root = stub.folder / "checkouts"

    async def checkout(ctx: Context) -> Path:
        path = checkout_for(root, ctx.session.identity.tenant_id, ctx.session.id)
        await anyio.Path(path).mkdir(parents=True, exist_ok=True)
        return path

    stub.says = {"*": [{"file": "written"}, *turn()]}
    flow, run_it = flow_of(stub.agent(cwd=checkout, detached=True))
    found: list[Path] = []
    async with Runtime(flow, max_running=3) as runtime:
        runs = [
            await runtime.dispatch(
                run_it, HarnessRunInput(prompt="Write"), session=session, tenant=tenant
            )
            for tenant, session in who
        ]
        for run in runs:
            assert (await run.output()).status == "completed"
    for path in stub.folder.rglob("written"):
        found.append(path.parent)
    assert all(path.parent.parent == root for path in found)
    return found


@one_backend
@pytest.mark.parametrize(
    "who",
    [
        [(None, s) for s in ("../../outside/x", ".._.._outside_x", "..-..-outside-x")],
        [(tenant, s) for tenant in (None, "t", "") for s in ("..", ".", "")],
        [
            (None, s)
            for s in ("user@example.org|2031-01-01T00:00:00Z", "会話-7", "a,b;c", "token" * 2_000)
        ],
    ],
    ids=["traversal", "dots", "awkward"],
)
async def test_any_session_has_a_directory_of_its_own(
    stub: Stub, who: list[tuple[str | None, str]]
) -> None:
    """Two levels under the root, whatever the id; nothing is written anywhere else."""
    found = await _checkouts(stub, who)
    assert len(set(found)) == len(who)


# --- what the real one says of itself ------------------------------------------------------------


async def _statuses(*turns: Turn | ApiError, prompts: int = 1, **variables: str) -> list[str]:
    """The texts of the status line of runs of the real binary in one session."""
    texts: list[str] = []
    async with ScriptedMessagesApi(*turns) as api, clean_home(api) as home:
        agent = claude_code_agent(
            env={**home.env, **variables}, cwd=lambda _: home.path, model="claude-sonnet-4-5"
        )
        flow, run_it = flow_of(agent)
        async with Runtime(flow) as runtime:
            for _ in range(prompts):
                run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go on"), session="s1")
                texts += [
                    event.item.content.text
                    async for event in run.events()
                    if event.item is not None
                    and isinstance(event.item.content, Status)
                    and event.kind == "added"
                ]
                assert (await run.output()).status == "completed"
    return texts


@one_backend
async def test_a_retry_is_shown_until_something_comes() -> None:
    """The first attempt of how many, and the seconds until it."""
    texts = await _statuses(ApiError(529), Turn(text("There.")))
    (retry,) = [told for told in texts if "retrying" in told]
    pattern = r"Claude Code is retrying a failed API call \(attempt 1 of 10, in \d+ s\)…"
    assert re.fullmatch(pattern, retry)


@one_backend
async def test_a_compaction_is_shown() -> None:
    """A conversation that fills its model's context is summarized, and the run goes on."""
    small = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "1", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000"}
    full = Turn(text("<summary>They talked.</summary>"), usage=Usage(input=150_000))
    texts = await _statuses(*[full] * 6, prompts=3, **small)
    assert "Claude Code agent compacted its context." in texts


@one_backend
@pytest.mark.parametrize(
    ("credential", "told"),
    [(None, "Not logged in"), (DUMMY_KEY, "Failed to authenticate")],
    ids=["none", "refused"],
)
async def test_a_run_without_valid_credentials_is_errored(
    credential: str | None, told: str
) -> None:
    """Claude Code files it as a success; it is one error item with its own words, and a handle."""
    async with ScriptedMessagesApi(ApiError(401)) as api, clean_home(api) as home:
        env = {**home.env, "ANTHROPIC_API_KEY": credential or ""}
        flow, run_it = flow_of(
            claude_code_agent(env=env, cwd=lambda _: home.path, detached=True, api_retries=0)
        )
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go"), session="s1")
            items = [item.content for item in await items_of(run)]
            handle = await run.output()

    assert (handle.status, handle.outcome) == ("errored", "failed")
    assert handle.result_subtype == "success"
    (error,) = [content for content in items if isinstance(content, ErrorReport)]
    assert error.code == "is_error"
    assert error.message.startswith(told)
    (kept,) = [content.text for content in items if isinstance(content, Status) and content.kept]
    assert kept.startswith(f"Claude Code agent run errored ({told}")


# --- one run among others -----------------------------------------------------------------------


async def test_a_kept_status_ends_every_run(stub: Stub) -> None:
    """A failed and a completed one: each has one, last of its items."""
    bad = turn(text="Invalid API key", is_error=True)
    stub.says = {"bad": bad, "*": turn()}
    flow, run_it = flow_of(stub.agent())
    async with Runtime(flow) as runtime:
        for prompt, told in (("good", "completed in"), ("bad", "errored (Invalid API key)")):
            run = await runtime.dispatch(run_it, HarnessRunInput(prompt=prompt), session=prompt)
            items = await items_of(run)
            kept = [i.content for i in items if isinstance(i.content, Status) and i.content.kept]
            assert [told in status.text for status in kept] == [True]
