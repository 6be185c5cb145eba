"""A person beside a run, with a client that a test writes down: held calls, and lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.approval import (
    AllowTool,
    DenyTool,
    HoldTool,
    ToolApprovalRequest,
    ToolDecision,
)
from flowstate.blocks.claude_code.conversation import SdkAgentRuns
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.held_answers import HeldAnswers
from flowstate.blocks.claude_code.waiting_call import fingerprint_of
from flowstate.context import Context
from flowstate.errors import DefinitionError
from flowstate.harness.handle import HarnessRunInput
from flowstate.harness.steering import SteeringOffer
from tests.blocks.claude_code.fake_context import FakeContext, FakeScope
from tests.blocks.claude_code.fake_sdk import (
    SESSION,
    Client,
    ProcessError,
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

INPUT = {"path": "a"}


def _session() -> FakeScope:
    return FakeScope("s1", (SdkAgentRuns,))


async def _run(ctx: FakeContext | None = None, **options: Any) -> ClaudeCodeHandle:
    if ctx is None:
        ctx = FakeContext()
        options.setdefault("detached", True)
    with anyio.fail_after(10):
        handle: ClaudeCodeHandle = await claude_code_agent(**options).fn(
            HarnessRunInput(prompt="Do it"), ctx
        )
    return handle


def _asks(answers: list[Any], tool: str = "Write", **input: object) -> Callable[[Client], Any]:
    async def ask(client: Client) -> None:
        context = ToolPermissionContext(tool_use_id=f"toolu_{tool}")
        answers.append(await client.options.can_use_tool(tool, dict(input) or INPUT, context))

    return ask


# --- calls that wait ----------------------------------------------------------------------------


async def test_a_held_call_stops_the_run_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent is told to stop and is interrupted; further calls aren't asked about, nor run."""
    answers: list[Any] = []
    asked: list[str] = []

    def hold(request: ToolApprovalRequest, _: Context) -> ToolDecision:
        asked.append(request.tool_name)
        return HoldTool()

    sdk = fake_sdk(
        monkeypatch,
        *(running(), init(), says("I will."), calls("Write", path="a"), _asks(answers)),
        *(_asks(answers, "Bash", command="ls"), until_interrupted),
    )
    ctx = FakeContext(_session())
    handle = await _run(ctx, on_tool_approval=hold)

    assert asked == ["Write"]
    assert [answer.interrupt for answer in answers] == [True, True]
    assert "interrupt" in sdk.client.calls
    assert (handle.status, handle.outcome, handle.result_subtype) == ("completed", None, None)
    (waiting,) = handle.waiting
    assert waiting.model_dump() == {
        "tool_name": "Write",
        "input": INPUT,
        "call_id": "toolu_Write",
        "fingerprint": fingerprint_of("Write", INPUT),
    }
    assert [item.status for item in ctx.items.shown if item.content.type == "tool_output"] == [
        "incomplete"
    ]
    assert ctx.contents("error") == []
    assert [s.text for s in ctx.contents("status")] == ["Held Write"]
    assert (ctx.status.kept, ctx.status.shown[-1]) == ([], None)
    assert (await ctx.session[SdkAgentRuns].get()).waiting_in(SESSION) == (waiting,)


async def test_a_held_call_is_known_in_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tool with the same input, until it is decided; another one isn't it."""
    session, known = _session(), list[tuple[str, bool | None]]()
    decision: ToolDecision = HoldTool()

    def decide(request: ToolApprovalRequest, _: Context) -> ToolDecision:
        known.append((str(request.input.get("path")), request.held_before))
        return decision

    async def turn(*paths: str) -> None:
        asks = [_asks([], path=path) for path in paths]
        fake_sdk(monkeypatch, running(), init(), *asks, says("ok"), ResultMessage(), idle())
        await _run(FakeContext(session), on_tool_approval=decide)

    await turn("a")
    assert known == [("a", False)]
    decision = AllowTool()
    await turn("b", "a", "a")
    assert known[1:] == [("b", False), ("a", True), ("a", False)]
    assert (await session[SdkAgentRuns].get()).waiting == ()


async def test_an_approval_is_used_up_before_the_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it can't be struck off, the call is denied: it might run twice."""
    session, answers = _session(), list[Any]()
    fake_sdk(monkeypatch, running(), init(), _asks([]), until_interrupted)
    await _run(FakeContext(session), on_tool_approval=lambda *_: HoldTool())

    def full(*_: object) -> SdkAgentRuns:
        raise OSError("the disk is full")

    monkeypatch.setattr(SdkAgentRuns, "with_decided", full)
    fake_sdk(monkeypatch, running(), init(), _asks(answers), ResultMessage(), idle())
    await _run(FakeContext(session), on_tool_approval=lambda *_: AllowTool())

    assert [answer.message for answer in answers] == ["The call could not be approved."]


async def test_a_call_stays_held_when_the_process_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run raises, and the next one still knows what waits."""
    fake_sdk(monkeypatch, running(), init(), _asks([]), ProcessError("gone", -9))
    ctx = FakeContext(_session())
    with pytest.raises(Exception, match="SIGKILL"):
        await _run(ctx, on_tool_approval=lambda *_: HoldTool())

    assert len((await ctx.session[SdkAgentRuns].get()).waiting_in(SESSION)) == 1


async def test_a_call_that_is_allowed_too_late_does_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is stopping for another one; only that one waits for a person."""
    answers: list[Any] = []

    async def decide(request: ToolApprovalRequest, _: Context) -> ToolDecision:
        if request.tool_name == "Bash":
            return HoldTool()
        await anyio.sleep(0.02)
        return AllowTool()

    async def both(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_asks(answers, "Write"), client)
            tasks.start_soon(_asks(answers, "Bash"), client)

    fake_sdk(monkeypatch, running(), init(), both, until_interrupted)
    ctx = FakeContext()
    handle = await _run(ctx, detached=True, on_tool_approval=decide)

    assert [getattr(answer, "interrupt", None) for answer in answers] == [True, True]
    assert [call.tool_name for call in handle.waiting] == ["Bash"]
    assert [s.text for s in ctx.contents("status")] == ["Held Bash"]


def _request(held_before: bool | None, path: str = "a") -> ToolApprovalRequest:
    return ToolApprovalRequest(tool_name="Write", input={"path": path}, held_before=held_before)


@pytest.mark.parametrize("held_before", [True, None])
@pytest.mark.parametrize("answer", [AllowTool(), DenyTool("no")])
async def test_an_answer_decides_one_call(
    held_before: bool | None, answer: AllowTool | DenyTool
) -> None:
    """A second one of the same run, and one without an answer, are held; the next run is new."""
    answers = HeldAnswers(lambda _: {_request(True).fingerprint: answer})
    one, two = FakeContext().as_context(), FakeContext().as_context()

    assert await answers(_request(held_before), one) == answer
    assert await answers(_request(held_before), one) == HoldTool()
    assert await answers(_request(held_before, "b"), one) == HoldTool()
    assert await answers(_request(held_before), two) == answer


async def test_an_answer_is_no_answer_to_a_call_that_was_not_held() -> None:
    """In session an approval that was used up doesn't count for a call that comes later."""

    async def kept(_: Context) -> dict[str, AllowTool]:
        return {_request(False).fingerprint: AllowTool()}

    assert await HeldAnswers(kept)(_request(False), FakeContext().as_context()) == HoldTool()


# --- lines --------------------------------------------------------------------------------------


def _shows(client: Client) -> None:
    """A step of a script: the next result says that all was taken so far."""
    client.say(ResultMessage(user_message_uuids=[client.prompt_id, *client.line_ids]), idle())


async def test_a_line_is_sent_and_shown_to_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on until the agent has shown it, although there was a result before."""
    taken: list[bool] = []

    async def steer(offer: SteeringOffer, _: Context) -> None:
        taken.append(await offer.send("Left"))

    async def sent(client: Client) -> None:
        while not client.line_ids:  # noqa: ASYNC110 - the fake sets no event
            await anyio.sleep(0.001)

    first = ResultMessage(result="first")
    sdk = fake_sdk(
        monkeypatch, running(), init(), first, sent, idle(), running(), says("ok"), _shows
    )
    handle = await _run(on_steerable=steer)

    assert taken == [True]
    assert handle.final_message == "ok"
    assert sdk.client.calls[1:3] == ["query Do it", "query Left"]


@pytest.mark.parametrize("fails", [True, False])
async def test_the_hook_ends_with_the_run(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """It may fail, or go on for ever: the run isn't kept by it, and its offer is over after."""
    offers: list[SteeringOffer] = []
    ended: list[bool] = []

    async def steer(offer: SteeringOffer, _: Context) -> None:
        offers.append(offer)
        if fails:
            raise RuntimeError("a bug")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    fake_sdk(monkeypatch, running(), init(), says("hi"), ResultMessage(), idle())
    ctx = FakeContext()
    assert (await _run(ctx, detached=True, on_steerable=steer)).status == "completed"

    assert not offers[0].live
    assert await offers[0].send("late") is False
    assert ended == ([] if fails else [True])
    assert any("on_steerable" in str(call) for call in ctx.logger.calls) is fails


async def test_a_line_is_answered_when_the_process_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was never shown to be taken, so it can be sent again."""
    taken: list[bool] = []

    async def steer(offer: SteeringOffer, _: Context) -> None:
        taken.append(await offer.send("Left"))

    async def dies(client: Client) -> None:
        while not client.line_ids:  # noqa: ASYNC110
            await anyio.sleep(0.001)
        raise ProcessError("gone", -9)

    fake_sdk(monkeypatch, running(), init(), ResultMessage(), says("more"), dies)
    with pytest.raises(Exception, match="SIGKILL"):
        await _run(on_steerable=steer)

    assert taken == [False]


def test_the_hook_is_a_function() -> None:
    """Anything else is refused when the block is built."""
    with pytest.raises(DefinitionError, match="on_steerable"):
        claude_code_agent(on_steerable="yes")  # type: ignore[arg-type]
