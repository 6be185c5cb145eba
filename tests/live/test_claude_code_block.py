"""
The block with the real Claude Code binary, against a scripted endpoint on loopback.

Permission checks stay on (``acceptEdits`` and named tools). Every test ends by looking for what
must not be there: processes that carry the run's marker, and files in the temporary directory.
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from flowstate.blocks.claude_code.account import (
    ClaudeAccount,
    ClaudeModels,
    NoClaudeAccount,
    list_claude_models,
    probe_claude_account,
    read_claude_usage,
)
from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.approval import AllowTool, DenyTool, ToolApprovalRequest
from flowstate.blocks.claude_code.conversation import SdkAgentRuns
from flowstate.blocks.claude_code.environment import CONTROL_NAMES
from flowstate.blocks.claude_code.errors import (
    ClaudeAgentRunError,
    MissingDirectoryError,
    SandboxUnavailableError,
)
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.context import Context
from flowstate.harness.failure import UnknownConversationError, harness_failure_kind
from flowstate.harness.handle import HarnessRunInput
from flowstate.harness.process import MARKER
from flowstate.harness.usage import HarnessUsageReport, UsageWindows
from flowstate.testing.agent_home import CleanHome, clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import (
    ApiError,
    Turn,
    rate_limit_headers,
    text,
    thinking,
    tool_call,
)
from tests.blocks.claude_code.fake_context import FakeContext, FakeScope

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]

MODEL = "claude-sonnet-4-5"
SLEEP = "python3 -c 'import time; time.sleep(300)'"
one_backend = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For what doesn't depend on the event loop."""


@dataclass
class Bench:
    """A scripted endpoint, a home, and a session that outlives its runs."""

    api: ScriptedMessagesApi
    home: CleanHome
    session: FakeScope

    async def run(
        self, prompt: str = "Do it", ctx: FakeContext | None = None, **options: Any
    ) -> ClaudeCodeHandle:
        """Run an agent in the home; in session, unless it is said to be detached."""
        block = claude_code_agent(
            **{
                "env": self.home.env,
                "permission_mode": "acceptEdits",
                "allowed_tools": ["Bash", "Write"],
                "model": MODEL,
                "cwd": lambda _: self.home.path,
                **options,
            }
        )
        handle: ClaudeCodeHandle = await block.fn(
            HarnessRunInput(prompt=prompt), ctx or FakeContext(self.session)
        )
        return handle

    async def cancelled(
        self, ctx: FakeContext, when: Callable[[], object], **options: Any
    ) -> float:
        """Run, cancel when something has happened; the seconds from the cancel to the end."""
        began = 0.0
        raised: Exception | None = None
        with anyio.CancelScope() as scope:

            async def cancel() -> None:
                nonlocal began
                await until(when)
                began = anyio.current_time()
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                try:
                    await self.run(ctx=ctx, **options)
                except Exception as error:
                    raised = error
                    tasks.cancel_scope.cancel()
        if raised is not None:
            raise raised
        assert scope.cancelled_caught
        return anyio.current_time() - began

    @property
    def last_texts(self) -> str:
        """What the user said in the last request to the model, all of it."""
        return "\n".join(self.api.conversation()[-1].user_texts)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that sets no event."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def processes(needle: str, *, of: str = "environ") -> list[int]:
    """The live processes whose environment, or command line, holds this text."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                content = (entry / of).read_bytes()
            except OSError:
                continue
            if needle.encode() in content:
                found.append(int(entry.name))
    return found


def sleeping(bench: Bench) -> list[int]:
    """The commands of this bench's runs that sleep; other tests' agents may sleep beside them."""
    own = set(processes(f"{bench.home.path}/config"))
    return [pid for pid in processes("time.sleep(300)", of="cmdline") if pid in own]


def in_transcript(bench: Bench, words: str) -> int:
    """How often the transcripts of a bench's home hold these words: Claude Code writes late."""
    files = (bench.home.path / "config" / "projects").glob("*/*.jsonl")
    return sum(file.read_text(errors="replace").count(words) for file in files)


def agent_of(bench: Bench) -> int:
    """The process of the one agent that runs in a bench's home."""
    (pid,) = (
        pid
        for pid in processes(f"{bench.home.path}/config")
        if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    )
    return pid


@pytest.fixture(name="bench")
async def _bench(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, anyio_backend: object
) -> AsyncIterator[Bench]:
    scratch = tmp_path / "scratch"
    async with ScriptedMessagesApi() as api, clean_home(api) as home:
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        yield Bench(api, home, FakeScope("s1", (SdkAgentRuns,)))
        assert list(scratch.iterdir()) == [], "a run left files behind"
        # All processes of a bench have its home in their environment, whatever their run.
        assert processes(f"{home.path}/config") == [], "a run left processes behind"


@pytest.fixture(autouse=True)
def _server_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_DB_PASSWORD", "hunter2-of-the-server")


# --- a run, and the next one --------------------------------------------------------------------


async def test_a_run_streams_writes_and_runs_a_command(bench: Bench) -> None:
    """Thinking, streamed text, a Write and a Bash call with results, statuses, the handle."""
    bench.api.script(
        Turn(
            thinking("Let me think about it."),
            text("I will write a module and look at it."),
            tool_call("Write", file_path=str(bench.home.path / "a.py"), content="x = 1\n"),
        ),
        Turn(tool_call("Bash", command="cat a.py", description="Show the module")),
        Turn(text("Done.")),
    )
    ctx = FakeContext(bench.session)
    handle = await bench.run(ctx=ctx)

    assert (handle.status, handle.outcome) == ("completed", "finished")
    assert handle.final_message == "Done."
    assert handle.tools_observed == ("Write", "Bash")
    assert handle.usage is not None
    assert handle.usage.input_tokens == 30
    assert handle.cost is not None
    assert handle.cost.usd > 0
    assert (bench.home.path / "a.py").read_text() == "x = 1\n"
    messages = [item for item in ctx.items.shown if item.content.type == "message"]
    assert len(messages[0].deltas) > 1
    assert [item.content.type for item in ctx.items.shown] == [
        *("reasoning", "message", "tool_output", "tool_output", "message"),
    ]
    assert {item.status for item in ctx.items.shown} == {"completed"}
    assert "x = 1" in ctx.contents("tool_output")[1].output
    assert [s for s in ctx.status.shown if s] == [
        *("Starting Claude Code…", "Using Write…", "Show the module"),
    ]
    assert ctx.status.shown[-1] is None
    assert ctx.status.kept[0].startswith("Claude Code agent run completed in ")


async def test_a_session_continues_the_same_conversation(bench: Bench) -> None:
    """The second request sends the first one's history, and costs only its own part."""
    bench.api.script(Turn(text("I am one.")), Turn(text("I am two.")))
    first = await bench.run("The first question")
    second = await bench.run("The second question")

    assert first.session_id == second.session_id
    assert "The first question" in bench.last_texts
    assert first.cost is not None
    assert second.cost is not None
    assert second.cost.usd == pytest.approx(first.cost.usd)


async def test_two_runs_at_once(bench: Bench) -> None:
    """Each has its own process and conversation, and hears only its own answer."""
    handles: dict[str, ClaudeCodeHandle] = {}

    async def one(name: str) -> None:
        handles[name] = await bench.run(f"{name}: say it", FakeContext(), detached=True)

    for name in ("alpha", "beta"):
        bench.api.route(f"{name}: say it", Turn(text(f"I am {name}")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "alpha")
        tasks.start_soon(one, "beta")

    assert {n: h.final_message for n, h in handles.items()} == {
        "alpha": "I am alpha",
        "beta": "I am beta",
    }
    assert handles["alpha"].session_id != handles["beta"].session_id


# --- ending it ----------------------------------------------------------------------------------


async def test_a_cancel_in_a_command_ends_all_of_it(bench: Bench) -> None:
    """Over within five seconds, the command gone, the transcript complete, the session resumes."""
    bench.api.script(
        Turn(text("I start to sleep."), tool_call("Bash", command=f"{SLEEP}; echo woke up"))
    )
    ctx = FakeContext(bench.session)
    ctx.cancelled = "a person stopped it"
    seconds = await bench.cancelled(ctx, lambda: sleeping(bench))

    assert seconds < 5
    assert sleeping(bench) == []
    (report,) = ctx.contents("error")
    assert (report.code, report.message) == ("cancelled", "a person stopped it")
    assert ctx.status.kept == ["Claude Code agent run errored (a person stopped it)."]

    bench.api.script(Turn(text("I am back.")))
    handle = await bench.run("Go on")
    assert handle.final_message == "I am back."
    sent = bench.api.conversation()[-1].body["messages"]
    assert "I start to sleep." in str(sent)
    assert "tool_result" in str(sent)


async def test_a_cancel_while_it_streams_keeps_what_was_said(bench: Bench) -> None:
    """The partial message is shown as far as it came, and the conversation goes on from it."""
    bench.api.script(Turn(text("A beginning that never ends."), hang=True))
    ctx = FakeContext(bench.session)
    seconds = await bench.cancelled(ctx, lambda: ctx.contents("message"))

    assert seconds < 5
    bench.api.script(Turn(text("Here.")))
    await bench.run("Go on")
    assert "A beginning" in str(bench.api.conversation()[-1].body["messages"])


async def test_a_cancel_while_it_starts_leaves_nothing(bench: Bench) -> None:
    """Before Claude Code has answered at all there is a process already, and then none."""
    ctx = FakeContext(bench.session)
    seconds = await bench.cancelled(ctx, lambda: processes(f"{bench.home.path}/config"))

    assert seconds < 5
    assert bench.api.requests == ()


@one_backend
async def test_an_agent_that_hangs_is_killed_with_its_commands(bench: Bench) -> None:
    """A process that reacts to nothing gets SIGKILL in time, and so does what it left running."""
    bench.api.script(Turn(tool_call("Bash", command=SLEEP)))
    ctx = FakeContext(bench.session)

    def stopped() -> bool:
        if not sleeping(bench):
            return False
        os.kill(agent_of(bench), signal.SIGSTOP)
        return True

    seconds = await bench.cancelled(ctx, stopped)

    assert seconds < 5.5  # five, and what a loaded machine takes to see the end
    assert "transcript may lack its last messages" in ctx.contents("error")[0].message


async def test_an_agent_that_is_killed_is_told_and_cleaned_up_after(bench: Bench) -> None:
    """
    The system's out-of-memory killer, say: the error names the signal, and no command is left.
    The next run first hears of the killed commands, in a turn that isn't its own, and then answers.
    """
    bench.api.script(
        Turn(tool_call("Bash", command=SLEEP, run_in_background=True)),
        Turn(tool_call("Bash", command=SLEEP)),
    )
    ctx = FakeContext(bench.session)

    async def kill() -> None:
        await until(lambda: len(bench.api.conversation()) == 2 and len(ctx.items.shown) == 2)
        await until(lambda: len(sleeping(bench)) > 1)
        # Killed before it had written any, the conversation would never have come to be.
        await until(lambda: in_transcript(bench, '"tool_use"') > 1)
        os.kill(agent_of(bench), signal.SIGKILL)

    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        try:
            await bench.run(ctx=ctx)
        except ClaudeAgentRunError as error:
            raised = error

    assert raised is not None
    assert "killed by SIGKILL" in str(raised)
    assert raised.__cause__ is not None
    assert [item.status for item in ctx.items.shown] == ["completed", "incomplete", "completed"]
    assert sleeping(bench) == []

    bench.api.script(Turn(text("I am back.")))
    handle = await bench.run("Go on")
    assert (handle.status, handle.final_message) == ("completed", "I am back.")


@one_backend
async def test_an_endless_background_command_does_not_hold_up_the_end(bench: Bench) -> None:
    """The run ends when the agent has; what it left in the background ends with it."""
    bench.api.script(
        Turn(tool_call("Bash", command=SLEEP, run_in_background=True)),
        Turn(text("It runs in the background.")),
    )
    with anyio.fail_after(20):
        handle = await bench.run()

    assert handle.status == "completed"
    assert sleeping(bench) == []


@pytest.mark.slow
async def test_cancels_at_any_moment_leave_nothing(bench: Bench) -> None:
    """Whatever it is at, it ends in time with nothing open, and the session goes on or says why."""

    def any_turn(request: object) -> Turn | ApiError:
        number = len(bench.api.conversation())
        turns = (
            Turn(text("word " * 30), chunk_delay=0.05, hang=True),
            Turn(tool_call("Bash", command=SLEEP)),
            ApiError(529),
            Turn(tool_call("Bash", command=SLEEP, run_in_background=True)),
            Turn(text("A beginning."), hang=True),
        )
        return turns[number % len(turns)]

    bench.api.script(*[any_turn] * 200)
    for moment in range(9):
        ctx = FakeContext(bench.session)
        began = anyio.current_time()

        def due(began: float = began, moment: int = moment) -> bool:
            return anyio.current_time() - began > moment * 0.2

        # Cancelled before there was a transcript, a conversation never comes to be.
        with contextlib.suppress(UnknownConversationError):
            assert await bench.cancelled(ctx, due) < 5.5
        assert all(item.settled for item in ctx.items.shown)
        assert len(ctx.status.kept) == 1
        assert ctx.status.shown[-1] is None
        assert processes(f"{bench.home.path}/config") == []


# --- its environment ----------------------------------------------------------------------------


@one_backend
async def test_a_run_sees_exactly_its_environment(bench: Bench) -> None:
    """A secret of the server's is not there; every name is given, ours, or Claude Code's own."""
    bench.api.script(Turn(tool_call("Bash", command="env -0 | base64 -w0")), Turn(text("ok")))
    await bench.run(env={**bench.home.env, "CI": "1", "EMPTY": ""})

    told = bench.api.conversation()[-1].tool_results[0].text.split("\n")[0]
    entries = base64.b64decode(told).decode().split("\0")
    seen = dict(entry.split("=", 1) for entry in entries if entry)
    own = {*bench.home.env, "CI", "EMPTY", *CONTROL_NAMES}
    assert "MY_DB_PASSWORD" not in seen
    assert (seen["CI"], seen["EMPTY"]) == ("1", "")
    assert seen[MARKER]
    of_the_agent = {"AI_AGENT", "CLAUDECODE", "CLAUDE_PID", "GIT_EDITOR", "SHELL", "SHLVL", "_"}
    of_the_agent |= {"COREPACK_ENABLE_AUTO_PIN", "NoDefaultCurrentDirectoryInExePath", "OLDPWD"}
    more = {n for n in set(seen) - own - of_the_agent if not n.startswith("CLAUDE_CODE_")}
    assert more == set()


@one_backend
async def test_without_an_environment_it_has_the_server_s(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open by default, as a command in a terminal would be."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in bench.home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MY_DB_PASSWORD", "hunter2-of-the-server")
    bench.api.script(
        Turn(tool_call("Bash", command="echo it is $MY_DB_PASSWORD")), Turn(text("ok"))
    )
    await bench.run(env=None)

    assert "it is hunter2-of-the-server" in bench.api.conversation()[-1].tool_results[0].text


# --- refused starts and errors ------------------------------------------------------------------


async def test_an_unknown_conversation_is_told_apart(bench: Bench) -> None:
    """The kind is found whatever wraps it; in the handle's place there is an exception."""
    gone = str(uuid.uuid4())
    with pytest.raises(Exception, match=gone) as caught:
        await bench.run(ctx=FakeContext(), detached=True, resume=lambda _: gone)

    assert harness_failure_kind(caught.value) == "unknown-conversation"
    assert harness_failure_kind(ExceptionGroup("x", [caught.value])) == "unknown-conversation"


@one_backend
async def test_a_missing_sandbox_refuses_the_start(bench: Bench) -> None:
    """Enabled means required; what is missing is told. Allowed to be missing, the run goes on."""
    env = {**bench.home.env, "PATH": "/nowhere"}
    with pytest.raises(SandboxUnavailableError):
        await bench.run(ctx=FakeContext(), detached=True, env=env, sandbox={"enabled": True})

    bench.api.script(Turn(text("Unsandboxed.")))
    handle = await bench.run(env=env, sandbox={"enabled": True, "failIfUnavailable": False})
    assert handle.final_message == "Unsandboxed."


@one_backend
async def test_a_start_that_fails_says_why(bench: Bench) -> None:
    """The process's own words, and a directory that isn't there."""
    with pytest.raises(ClaudeAgentRunError, match="exit code 1") as caught:
        await bench.run(options={"extra_args": {"no-such-flag": None}})
    assert "no-such-flag" in "\n".join(caught.value.stderr)

    with pytest.raises(MissingDirectoryError, match="gone' doesn't exist"):
        await bench.run(cwd=lambda _: bench.home.path / "gone")


@one_backend
async def test_api_retries_are_as_many_as_were_asked_for(bench: Bench) -> None:
    """None at all: the API's refusal is the outcome, at once, and a handle."""
    bench.api.script(*[ApiError(529)] * 5)
    ctx = FakeContext()
    handle = await bench.run(ctx=ctx, detached=True, api_retries=0)

    assert (handle.status, handle.result_subtype) == ("errored", "success")
    assert [e.code for e in ctx.contents("error")] == ["is_error"]
    assert len(bench.api.conversation()) == 1


@one_backend
async def test_a_limit_is_an_outcome(bench: Bench) -> None:
    """max_turns ends the run as the agent's own report."""
    bench.api.script(*[Turn(tool_call("Bash", command="true"))] * 3)
    handle = await bench.run(max_turns=2)

    assert (handle.status, handle.outcome) == ("errored", "stopped-at-limit")
    assert handle.result_subtype == "error_max_turns"


# --- prompts and tools --------------------------------------------------------------------------


@one_backend
async def test_a_prompt_is_data(bench: Bench) -> None:
    """A file that it names isn't read, a command that it looks like isn't run."""
    secret = bench.home.path / "secret.txt"
    secret.write_text("the secret is 4711")
    bench.api.script(Turn(text("ok")), Turn(text("ok")))
    await bench.run(f"Look at @{secret}")
    assert "4711" not in str(bench.api.conversation()[-1].body)

    await bench.run("/usage")
    assert bench.api.conversation()[-1].user_texts[-1].endswith("/usage")


@one_backend
async def test_system_prompts_hold_on_resumed_runs(bench: Bench) -> None:
    """Preset by default; an appended text and a text are the present ones, not the recorded."""
    bench.api.script(*[Turn(text("ok"))] * 6)
    preset = {"type": "preset", "preset": "claude_code"}

    async def sent(prompt: object) -> str:
        await bench.run(system_prompt=prompt)
        return bench.api.conversation()[-1].system_text

    assert len(await sent(None)) > 5_000
    assert "RULE ONE" in await sent({**preset, "append": "RULE ONE"})
    second = await sent({**preset, "append": "RULE TWO"})
    assert "RULE TWO" in second
    assert "RULE ONE" not in second
    text_only = await sent("BE BRIEF")
    assert text_only.endswith("BE BRIEF")
    assert len(text_only) < 1_000
    assert "BE" not in await sent("")
    assert ("X" * 150_000) in await sent({**preset, "append": "X" * 150_000})


@one_backend
@pytest.mark.parametrize("disallowed", [[], ["TaskUpdate"]])
async def test_to_do_tools_are_offered_on_newer_models(bench: Bench, disallowed: list[str]) -> None:
    """Claude Code switches them off there unless they are named; disallowed ones stay away."""
    bench.api.script(Turn(text("ok")))
    env = {**bench.home.env, "ENABLE_TOOL_SEARCH": "false"}
    await bench.run(model="claude-opus-5-5", env=env, disallowed_tools=disallowed)
    offered = set(bench.api.conversation()[-1].tool_names)

    assert "TaskCreate" in offered
    assert ("TaskUpdate" in offered) is (not disallowed)


async def test_tool_calls_are_approved_or_denied_by_the_hook(bench: Bench) -> None:
    """A denied call doesn't run and the model is told why; an approved one runs."""
    path = bench.home.path / "b.txt"
    bench.api.script(
        Turn(tool_call("Bash", command=f"touch {path}")),
        Turn(tool_call("Write", file_path=str(path), content="approved")),
        Turn(text("ok")),
    )

    async def decide(request: ToolApprovalRequest, _: Context) -> AllowTool | DenyTool:
        await anyio.sleep(0.01)
        return DenyTool("no shell") if request.tool_name == "Bash" else AllowTool()

    ctx = FakeContext()
    await bench.run(
        ctx=ctx,
        detached=True,
        permission_mode="default",
        allowed_tools=[],
        on_tool_approval=decide,
    )

    assert "no shell" in bench.api.conversation()[1].tool_results[0].text
    assert path.read_text() == "approved"
    assert [s.text for s in ctx.contents("status")] == ["Denied Bash: no shell", "Approved Write"]


@one_backend
@pytest.mark.parametrize("background", [True, False])
async def test_a_sub_agent_s_items_are_grouped(bench: Bench, background: bool) -> None:
    """Its text and its calls lie in a container; the run waits for it, the last result counts."""
    bench.api.script(
        Turn(
            tool_call(
                "Agent",
                description="Look around",
                prompt="SUBAGENT: look around",
                subagent_type="general-purpose",
                run_in_background=background,
            )
        ),
        Turn(text("The main thread goes on.")),
        Turn(text("The sub-agent is done.")),
    )
    bench.api.route(
        "SUBAGENT: look around",
        Turn(text("I look."), tool_call("Bash", command="echo sub")),
        Turn(text("I saw it."), delay=0.3),
    )
    ctx = FakeContext(bench.session)
    handle = await bench.run(ctx=ctx)

    (container,) = [item for item in ctx.items.shown if item.content.type == "container"]
    inside = [item.content for item in ctx.items.shown if item.parent == container.id]
    assert [c.type for c in inside] == ["message", "tool_output", "message"]
    assert container.status == "completed"
    assert handle.status == "completed"
    if background:
        assert handle.final_message == "The sub-agent is done."


# --- asking about itself ------------------------------------------------------------------------


async def test_a_credential_is_found_without_a_run(bench: Bench) -> None:
    """A key, or none at all: told by Claude Code itself, and no request reaches the model."""
    env = dict(bench.home.env)
    with_key = await probe_claude_account(env=env)
    del env["ANTHROPIC_API_KEY"]
    without = await probe_claude_account(env=env)

    assert with_key == ClaudeAccount(api_key_source="ANTHROPIC_API_KEY")
    assert isinstance(without, NoClaudeAccount)
    assert not without.unanswered
    assert bench.api.conversation() == ()


@one_backend
async def test_models_are_listed_with_their_own_ids(bench: Bench) -> None:
    """Every entry is a concrete model, one of them is the default, none is there twice."""
    listed = await list_claude_models(env=bench.home.env)

    assert isinstance(listed, ClaudeModels)
    ids = [model.id for model in listed.models]
    assert len(ids) == len(set(ids)) > 1
    assert all(model_id.startswith("claude-") for model_id in ids)
    assert sum(model.is_default for model in listed.models) == 1


@one_backend
async def test_usage_of_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a token, a run tells where the limits stand, and the reader says that there are some."""
    reports: list[HarnessUsageReport] = []
    headers = rate_limit_headers("allowed_warning", utilization=0.91, surpassed=0.9)
    async with ScriptedMessagesApi() as api, clean_home(api, oauth=True) as home:
        api.script(Turn(text("ok"), headers=headers))
        bench = Bench(api, home, FakeScope("s1"))
        await bench.run(
            ctx=FakeContext(), detached=True, on_usage=lambda report, _: reports.append(report)
        )
        assert await read_claude_usage(env=home.env) == UsageWindows()

    window = reports[-1].window
    assert (window.id, window.minutes, window.level) == ("five_hour", 300, "warning")
    assert window.used_percent == 91.0
    assert window.resets_at is not None
