"""A run from its prompt to its handle, with a client that a test writes down."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.approval import AllowTool, DenyTool, ToolApprovalRequest
from flowstate.blocks.claude_code.conversation import SdkAgentRuns
from flowstate.blocks.claude_code.errors import (
    ClaudeAgentRunError,
    ClaudeAgentSdkNotInstalledError,
    EmptyPromptError,
    MissingHomeError,
    SandboxUnavailableError,
)
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.context import Context
from flowstate.errors import DefinitionError
from flowstate.harness.effect import MessageActivity, ToolActivity
from flowstate.harness.failure import harness_failure_kind
from flowstate.harness.handle import HarnessRunInput
from flowstate.harness.usage import HarnessUsageReport
from tests.blocks.claude_code.fake_context import FakeContext, FakeScope
from tests.blocks.claude_code.fake_sdk import (
    SESSION,
    Client,
    FakeSdk,
    ProcessError,
    ResultError,
    ResultMessage,
    ToolPermissionContext,
    calls,
    fake_sdk,
    idle,
    init,
    running,
    says,
    until_interrupted,
)

pytestmark = pytest.mark.anyio

OTHER = "aaaaaaaa-2222-4333-8444-555555555555"
GOOD = (running(), init(), says("hi"), ResultMessage(result="hi"), idle())


def _session() -> FakeScope:
    return FakeScope("s1", (SdkAgentRuns,))


async def _run(
    ctx: FakeContext | None = None, prompt: str = "Do it", **options: Any
) -> ClaudeCodeHandle:
    """Run an agent on a context; without one, detached on a fresh one."""
    if ctx is None:
        ctx = FakeContext()
        options.setdefault("detached", True)
    handle: ClaudeCodeHandle = await claude_code_agent(**options).fn(
        HarnessRunInput(prompt=prompt), ctx
    )
    return handle


async def _until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - what it looks at sets no event
            await anyio.sleep(0.001)


# --- the usual end ------------------------------------------------------------------------------


async def test_a_run_returns_what_the_agent_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handle, an item for what was said, the kept status; the client is disconnected once."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    ctx = FakeContext(_session())
    handle = await _run(ctx)

    assert handle.status == "completed"
    assert handle.outcome == "finished"
    assert handle.session_id == SESSION
    assert handle.final_message == "hi"
    assert handle.result_subtype == "success"
    assert [m.text for m in ctx.contents("message")] == ["hi"]
    assert ctx.status.shown[0] == "Starting Claude Code…"
    assert ctx.status.kept == ["Claude Code agent run completed in less than a second."]
    assert sdk.client.calls == ["connect", "query Do it", "disconnect"]


async def test_an_errored_result_is_a_handle_and_no_throw(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent itself reports raises nothing and doesn't concern on_errored."""
    failed = ResultMessage("error_max_turns", True, errors=["Reached maximum number of turns (2)"])
    fake_sdk(monkeypatch, running(), init(), failed, idle())
    ctx, errors = FakeContext(), list[BaseException]()
    handle = await _run(ctx, detached=True, on_errored=lambda error, _: errors.append(error))

    assert (handle.status, handle.outcome) == ("errored", "stopped-at-limit")
    assert [e.code for e in ctx.contents("error")] == ["error_max_turns"]
    assert errors == []


async def test_the_first_result_of_several_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result while the agent is still running is a turn's; the last one before idle counts."""
    fake_sdk(
        monkeypatch,
        running(),
        init(),
        ResultMessage(result="first"),
        says("later"),
        ResultMessage("error_max_turns", True),
        idle(),
    )

    assert (await _run()).result_subtype == "error_max_turns"


async def test_a_turn_that_is_not_the_prompt_s_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A resumed conversation may first tell of killed commands, with a result and an idle state."""
    injected = ResultMessage(result="", user_message_uuids=[])
    fake_sdk(monkeypatch, running(), init(), injected, idle(), running(), says("hi"), *GOOD[-2:])

    assert (await _run()).final_message == "hi"


# --- before it starts ---------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["", " \n\t"])
async def test_an_empty_prompt_starts_nothing(monkeypatch: pytest.MonkeyPatch, prompt: str) -> None:
    """It is refused before anything is shown or loaded; the hook hears of it like of any throw."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    ctx, errors = FakeContext(), list[BaseException]()
    with pytest.raises(EmptyPromptError):
        await _run(ctx, prompt, detached=True, on_errored=lambda error, _: errors.append(error))

    assert sdk.clients == []
    assert ctx.items.shown == []
    assert ctx.status.shown == ctx.status.kept == []
    assert [type(error) for error in errors] == [EmptyPromptError]


@pytest.mark.parametrize("env", [{"PATH": "/bin"}, {"HOME": ""}])
async def test_an_environment_without_home_is_refused(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    """Claude Code would use the account's real home."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    with pytest.raises(MissingHomeError, match="harness_env"):
        await _run(env=env)

    assert sdk.clients == []


async def test_without_the_sdk_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is an error with the way out, an error item, and nothing else."""

    class Blocker:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "claude_agent_sdk":
                raise ModuleNotFoundError("No module named 'claude_agent_sdk'")

    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Blocker(), *sys.meta_path])
    ctx = FakeContext()
    with pytest.raises(ClaudeAgentSdkNotInstalledError, match="pip install") as caught:
        await _run(ctx, detached=True)

    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert [e.code for e in ctx.contents("error")] == ["run_failed"]
    assert ctx.status.shown[0] == "Starting Claude Code…"


async def test_the_start_status_comes_before_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing takes seconds, so a reader sees that something goes on; the loop isn't held up."""
    sdk, ctx, seen = FakeSdk(GOOD), FakeContext(), list[str | None]()

    def slow(name: str) -> Any:
        assert name == "claude_agent_sdk"
        seen.extend(ctx.status.shown)
        assert threading.current_thread() is not threading.main_thread()
        monkeypatch.setitem(sys.modules, name, sdk)
        return sdk

    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)
    monkeypatch.setattr(importlib, "import_module", slow)
    await _run(ctx, detached=True)

    assert seen == ["Starting Claude Code…"]


@dataclass
class _Old:
    """Options of an SDK from before."""

    stderr: object = None


async def test_an_old_sdk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that lacks what a run needs is refused by name, not by a TypeError later."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    sdk.ClaudeAgentOptions = _Old  # type: ignore[assignment]
    with pytest.raises(ClaudeAgentSdkNotInstalledError, match=r"too old: it lacks .*verbatim"):
        await _run()


async def test_unknown_options_are_told_with_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this release of the SDK doesn't know is named; what it knows goes through."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    with pytest.raises(DefinitionError, match="options names modell"):
        await _run(options={"modell": "x"})

    await _run(options={"fallback_model": "y"})
    assert sdk.client.options.fallback_model == "y"


# --- resolvers ----------------------------------------------------------------------------------


async def test_resolvers_are_asked_once_with_the_one_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Two resolvers can share a value by the context, which is what a checkout needs."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    ctx, asked = FakeContext(), list[str]()
    shared: weakref.WeakKeyDictionary[Context, str] = weakref.WeakKeyDictionary()

    async def cwd(given: Context) -> str:
        asked.append("cwd")
        shared[given] = str(tmp_path)
        return shared[given]

    def sandbox(given: Context) -> dict[str, Any]:
        asked.append("sandbox")
        return {"enabled": False, "filesystem": {"allowWrite": [shared[given]]}}

    def model(given: Context) -> str | None:
        asked.append("model")
        assert given is ctx.as_context()
        return None

    await _run(ctx, detached=True, cwd=cwd, sandbox=sandbox, model=model)

    assert sorted(asked) == ["cwd", "model", "sandbox"]
    assert sdk.client.options.cwd == str(tmp_path)
    assert sdk.client.options.sandbox["filesystem"] == {"allowWrite": [str(tmp_path)]}
    assert sdk.client.options.model is None


async def test_an_unusable_directory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that returns no path is named."""
    sdk = fake_sdk(monkeypatch, *GOOD)
    with pytest.raises(DefinitionError, match="cwd returned None"):
        await _run(cwd=lambda _: None)

    assert sdk.clients == []


# --- conversations ------------------------------------------------------------------------------


async def test_a_session_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request resumes what the first wrote down; cost is the difference of totals."""
    session = _session()
    fake_sdk(monkeypatch, running(), init(), ResultMessage(total_cost_usd=0.25), idle())
    first = await _run(FakeContext(session))
    sdk = fake_sdk(monkeypatch, running(), init(), ResultMessage(total_cost_usd=0.75), idle())
    second = await _run(FakeContext(session))

    assert sdk.client.options.resume == SESSION
    assert first.cost is not None
    assert first.cost.usd == 0.25
    assert second.cost is not None
    assert (second.cost.usd, second.cost.basis) == (0.5, "reported")


async def test_a_detached_run_writes_nothing_and_its_handle_has_the_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No state is touched (the session declares none), and a resumed run's cost isn't known."""
    sdk = fake_sdk(monkeypatch, running(), init(), ResultMessage(total_cost_usd=0.75), idle())
    handle = await _run(resume=lambda _: OTHER)

    assert sdk.client.options.resume == OTHER
    assert handle.session_id == SESSION
    assert handle.cost is None


async def test_a_resumed_run_s_id_starts_as_the_one_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the agent never names its conversation, the handle has the one that was asked for."""
    fake_sdk(monkeypatch, running(), ResultMessage(), idle())

    assert (await _run(resume=lambda _: OTHER)).session_id == OTHER


async def test_the_hook_is_awaited_once_before_anything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is heard after the naming waits for it; a repeated init doesn't call it again."""
    ctx, named = FakeContext(), list[str]()

    async def on_session(session_id: str, _: Context) -> None:
        await anyio.sleep(0.02)
        assert ctx.contents("message") == []
        named.append(session_id)

    fake_sdk(monkeypatch, running(), init(), says("hi"), init(), ResultMessage(), idle())
    await _run(ctx, detached=True, on_session=on_session)

    assert named == [SESSION]
    assert len(ctx.contents("message")) == 1


async def test_a_hook_that_fails_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that could not be recorded would be lost, so the agent is stopped and the error out."""

    def on_session(session_id: str, _: Context) -> None:
        raise KeyError("no database")

    sdk = fake_sdk(monkeypatch, running(), init(), until_interrupted)
    with pytest.raises(KeyError, match="no database"):
        await _run(on_session=on_session)

    assert sdk.client.calls[-2:] == ["interrupt", "disconnect"]


@pytest.mark.parametrize("refused_at", ["connect", "stream"])
async def test_an_unknown_conversation_is_told_and_forgotten(
    monkeypatch: pytest.MonkeyPatch, refused_at: str
) -> None:
    """It is raised, wherever the SDK raises it; the next run in the session starts afresh."""
    refusal = ResultError([f"No conversation found with session ID: {SESSION}"])
    session = _session()
    fake_sdk(monkeypatch, *GOOD)
    await _run(FakeContext(session))

    sdk = fake_sdk(monkeypatch, refusal)
    if refused_at == "connect":

        async def refuse(_: Client) -> None:
            raise refusal

        sdk.on_connect = refuse
    ctx = FakeContext(session)
    with pytest.raises(Exception, match=SESSION) as caught:
        await _run(ctx)
    assert harness_failure_kind(caught.value) == "unknown-conversation"
    assert caught.value.__cause__ is refusal
    assert [e.code for e in ctx.contents("error")] == ["unknown_conversation"]

    sdk = fake_sdk(monkeypatch, *GOOD)
    await _run(FakeContext(session))
    assert sdk.client.options.resume is None


async def test_a_refusal_that_comes_as_a_result_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heard as a message before any naming, it is the same refusal."""
    text = f"No conversation found with session ID: {OTHER}"
    result = ResultMessage("error_during_execution", True, errors=[text])
    fake_sdk(monkeypatch, result, ProcessError("", 1))
    with pytest.raises(Exception, match=OTHER) as caught:
        await _run(resume=lambda _: OTHER)

    assert harness_failure_kind(caught.value) == "unknown-conversation"


# --- throws -------------------------------------------------------------------------------------


async def test_a_process_that_dies_is_told_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK's error is the cause, the exit code is named, and secrets are out of the text."""
    died = ProcessError("Command failed", -9)

    def complain(client: Client) -> None:
        client.options.stderr("fatal: token hunter22 refused")

    fake_sdk(monkeypatch, running(), init(), calls("Bash", command="x"), complain, died)
    monkeypatch.setenv("SOME_TOKEN", "hunter22")
    ctx, errors = FakeContext(), list[BaseException]()
    with pytest.raises(ClaudeAgentRunError, match="SIGKILL, exit code -9") as caught:
        await _run(ctx, detached=True, on_errored=lambda error, _: errors.append(error))

    assert caught.value.__cause__ is died
    assert caught.value.stderr == ("fatal: token [redacted] refused",)
    assert errors == [caught.value]
    assert [item.status for item in ctx.items.shown] == ["incomplete", "completed"]
    (report,) = ctx.contents("error")
    assert report.message == str(caught.value)
    assert len(ctx.status.kept) == 1


async def test_a_stream_that_ends_without_a_result_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is no outcome."""
    fake_sdk(monkeypatch, running(), init(), says("hi"), "end")
    with pytest.raises(ClaudeAgentRunError, match="ended without a result"):
        await _run()


@pytest.mark.parametrize("ending", [ProcessError("x", 1), "end"])
async def test_a_result_that_was_heard_is_preferred(
    monkeypatch: pytest.MonkeyPatch, ending: object
) -> None:
    """After an error result the process exits with a code; the result says more."""
    failed = ResultMessage("success", True, result="Invalid API key")
    fake_sdk(monkeypatch, running(), init(), failed, ending)
    handle = await _run()

    assert (handle.status, handle.result_subtype) == ("errored", "success")


async def test_a_result_of_an_earlier_turn_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies in the turn after it takes the outcome with it."""
    fake_sdk(monkeypatch, running(), init(), ResultMessage(), says("more"), ProcessError("x", -9))
    with pytest.raises(ClaudeAgentRunError, match="-9"):
        await _run()


async def test_a_run_without_the_sandbox_it_requires_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Claude Code may start without one; the run ends before it could do anything."""
    sdk = fake_sdk(monkeypatch, running(), init(sandbox_enabled=False), until_interrupted)
    named: list[object] = []
    with pytest.raises(SandboxUnavailableError):
        await _run(sandbox={"enabled": True}, on_session=lambda *told: named.append(told))

    assert named == []
    assert sdk.client.calls[-2:] == ["interrupt", "disconnect"]
    fake_sdk(monkeypatch, running(), init(sandbox_enabled=False), ResultMessage(), idle())
    assert (await _run(sandbox={"enabled": True, "failIfUnavailable": False})).status == "completed"


async def test_hooks_that_fail_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A throw in on_activity or on_errored is logged; the run's own end stays what it was."""

    def fail(*_: object) -> None:
        raise RuntimeError("a hook")

    fake_sdk(monkeypatch, *GOOD)
    assert (await _run(on_activity=fail)).status == "completed"

    fake_sdk(monkeypatch, ProcessError("x", 3))
    with pytest.raises(ClaudeAgentRunError, match="exit code 3"):
        await _run(on_errored=fail)


async def test_activity_is_messages_and_tool_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completed messages and started calls are told with the run's context, nothing else."""
    fake_sdk(monkeypatch, running(), init(), says("hi"), calls("Bash", command="x"),
             ResultMessage(), idle())  # fmt: skip
    ctx, told = FakeContext(), list[tuple[object, Context]]()
    await _run(ctx, detached=True, on_activity=lambda *what: told.append(what))

    assert [activity for activity, _ in told] == [
        MessageActivity("hi"),
        ToolActivity("Bash", '{"command": "x"}'),
    ]
    assert all(given is ctx.as_context() for _, given in told)


@dataclass
class RateLimitEvent:
    """As the SDK's."""

    rate_limit_info: dict[str, object]


async def test_usage_windows_are_told_and_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """One report for each event, with the account that the run is signed in as."""
    event = RateLimitEvent({"rateLimitType": "five_hour", "status": "allowed"})
    ctx, reports = FakeContext(), list[HarnessUsageReport]()

    async def on_usage(report: HarnessUsageReport, given: Context) -> None:
        assert given is ctx.as_context()
        await anyio.lowlevel.checkpoint()
        reports.append(report)

    async def info(_: Client) -> dict[str, Any]:
        return {"account": {"email": "ada@example.com"}}

    monkeypatch.setattr(Client, "get_server_info", info)
    fake_sdk(monkeypatch, running(), init(), event, event, ResultMessage(), idle())
    await _run(ctx, detached=True, on_usage=on_usage)

    assert [(r.window.id, r.account_id, r.harness) for r in reports] == [
        ("five_hour", "ada@example.com", "claude-code")
    ] * 2
    assert reports[0].run_started_at <= reports[0].observed_at

    def fail(*_: object) -> None:
        raise RuntimeError("a hook")

    fake_sdk(monkeypatch, running(), init(), event, ResultMessage(), idle())
    assert (await _run(on_usage=fail)).status == "completed"


# --- cancellation -------------------------------------------------------------------------------


async def _cancelled(ctx: FakeContext, when: Callable[[], object], **options: Any) -> None:
    """Run, cancel when something has happened, and see that the cancellation went on."""
    returned = False
    with anyio.CancelScope() as scope:

        async def cancel() -> None:
            await _until(when)
            ctx.cancelled = "a person stopped it"
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await _run(ctx, **options)
            returned = True
    assert scope.cancelled_caught
    assert not returned


async def test_a_cancel_is_a_throw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent is interrupted and ended, the hook and the items tell, the cancellation goes on."""
    sdk = fake_sdk(monkeypatch, running(), init(), calls("Bash", command="x"), until_interrupted)
    ctx, errors = FakeContext(_session()), list[BaseException]()
    await _cancelled(
        ctx,
        lambda: ctx.contents("tool_output"),
        on_errored=lambda error, _: errors.append(error),
    )

    assert sdk.client.calls == ["connect", "query Do it", "interrupt", "disconnect"]
    assert [item.status for item in ctx.items.shown] == ["incomplete", "completed"]
    (report,) = ctx.contents("error")
    assert (report.code, report.message) == ("cancelled", "a person stopped it")
    assert ctx.status.kept == ["Claude Code agent run errored (a person stopped it)."]
    assert [type(error) for error in errors] == [anyio.get_cancelled_exc_class()]
    runs = await ctx.session[SdkAgentRuns].get()
    assert [run.session_id for run in runs.runs] == [SESSION]


async def test_a_cancel_while_it_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was asked, so nothing is interrupted; the client has cleaned up after itself."""
    sdk = fake_sdk(monkeypatch, *GOOD)

    async def hang(_: Client) -> None:
        await anyio.sleep_forever()

    sdk.on_connect = hang
    await _cancelled(FakeContext(), lambda: sdk.clients and sdk.client.calls, detached=True)

    assert sdk.client.calls == ["connect", "disconnect"]


async def test_a_cancel_while_a_resolver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there is a process, a cancel just goes on, with its items and its hook."""
    sdk, ctx, asked = fake_sdk(monkeypatch, *GOOD), FakeContext(), list[object]()

    async def cwd(given: Context) -> str:
        asked.append(given)
        await anyio.sleep_forever()
        raise AssertionError

    await _cancelled(ctx, lambda: asked, detached=True, cwd=cwd)

    assert sdk.clients == []
    assert [e.code for e in ctx.contents("error")] == ["cancelled"]


async def test_a_cancel_while_the_conversation_is_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hook gets a moment to end: this is the run that its author wants to continue."""
    begun: list[str] = []
    recorded: list[str] = []

    async def on_session(session_id: str, _: Context) -> None:
        begun.append(session_id)
        await anyio.sleep(0.05)
        recorded.append(session_id)

    fake_sdk(monkeypatch, running(), init(), until_interrupted)
    await _cancelled(FakeContext(), lambda: begun, detached=True, on_session=on_session)

    assert recorded == [SESSION]


async def test_a_name_heard_while_stopping_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """An init that came too late for the run's own task still counts."""
    named: list[str] = []
    sdk = fake_sdk(monkeypatch, running(), until_interrupted, init())
    await _cancelled(
        FakeContext(),
        lambda: sdk.clients and "query Do it" in sdk.client.calls,
        detached=True,
        on_session=lambda session_id, _: named.append(session_id),
    )

    assert named == [SESSION]


async def test_a_slow_hook_after_a_cancel_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """on_errored releases what the run held, so it isn't cancelled itself."""
    released: list[str] = []

    async def on_errored(error: BaseException, _: Context) -> None:
        await anyio.sleep(0.02)
        released.append(type(error).__name__)

    sdk = fake_sdk(monkeypatch, running(), init(), until_interrupted)
    await _cancelled(
        FakeContext(),
        lambda: sdk.clients and "query Do it" in sdk.client.calls,
        detached=True,
        on_errored=on_errored,
    )

    assert len(released) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_bare_task_cancels_do_not_leave_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio's task.cancel(), a second one included, ends the agent before it goes on."""
    ended: list[str] = []

    async def slowly(client: Client) -> None:
        await client.interrupted.wait()
        await anyio.sleep(0.05)
        ended.append("agent")

    sdk = fake_sdk(monkeypatch, running(), init(), slowly)
    ctx = FakeContext()
    task = asyncio.create_task(_run(ctx, detached=True))
    await _until(lambda: sdk.clients and "query Do it" in sdk.client.calls)
    task.cancel("first")
    await _until(lambda: "interrupt" in sdk.client.calls)
    task.cancel("second")
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == ["agent"]
    assert sdk.client.calls[-1] == "disconnect"
    assert [e.code for e in ctx.contents("error")] == ["cancelled"]
    assert len(ctx.status.kept) == 1


# --- approvals ----------------------------------------------------------------------------------


def _asking(answers: list[object], tool: str = "Write") -> Callable[[Client], Any]:
    async def ask(client: Client) -> None:
        answers.append(
            await client.options.can_use_tool(tool, {"path": "a"}, ToolPermissionContext())
        )

    return ask


async def test_the_hook_decides_about_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allowed, allowed with other arguments, denied: each answered, and shown as a status item."""
    seen: list[ToolApprovalRequest] = []

    async def decide(request: ToolApprovalRequest, _: Context) -> AllowTool | DenyTool:
        seen.append(request)
        match request.tool_name:
            case "Write":
                return AllowTool()
            case "Edit":
                return AllowTool(updated_input={"path": "b"})
            case _:
                return DenyTool("no shell")

    answers: list[Any] = []
    fake_sdk(
        monkeypatch,
        running(),
        init(),
        *(_asking(answers, tool) for tool in ("Write", "Edit", "Bash")),
        ResultMessage(),
        idle(),
    )
    ctx = FakeContext()
    await _run(ctx, detached=True, on_tool_approval=decide)

    assert [(r.tool_name, r.input, r.call_id) for r in seen[:1]] == [
        ("Write", {"path": "a"}, "toolu_1")
    ]
    assert [vars(answer) for answer in answers] == [
        {"updated_input": None},
        {"updated_input": {"path": "b"}},
        {"message": "no shell", "interrupt": False},
    ]
    assert [s.text for s in ctx.contents("status")] == [
        "Approved Write",
        "Approved Edit",
        "Denied Bash: no shell",
    ]


@pytest.mark.parametrize("wrong", [RuntimeError("a bug"), {"decision": "allow"}])
async def test_a_hook_that_fails_denies(monkeypatch: pytest.MonkeyPatch, wrong: object) -> None:
    """A throw, or an answer that is none, never lets a call run, and the run goes on."""

    def decide(request: ToolApprovalRequest, _: Context) -> Any:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    answers: list[Any] = []
    fake_sdk(monkeypatch, running(), init(), _asking(answers), ResultMessage(), idle())
    handle = await _run(on_tool_approval=decide)

    assert handle.status == "completed"
    assert [answer.message for answer in answers] == ["The call could not be approved."]


async def test_a_cancel_while_a_call_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is taken back with the run, and the call is denied."""
    answers: list[Any] = []
    asked: list[object] = []

    async def decide(request: ToolApprovalRequest, _: Context) -> AllowTool:
        asked.append(request)
        await anyio.sleep_forever()
        return AllowTool()

    fake_sdk(monkeypatch, running(), init(), _asking(answers))
    await _cancelled(FakeContext(), lambda: asked, detached=True, on_tool_approval=decide)

    assert [answer.message for answer in answers] == ["The run is ending."]
