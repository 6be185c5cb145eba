"""A run between a provider's resolve and its release, with a client that a test writes down."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.conversation import agent_runs_state
from flowstate.blocks.claude_code.errors import ClaudeAgentRunError, EmptyPromptError
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.context import Context
from flowstate.errors import DefinitionError
from flowstate.harness.binding import Binding, BindingProvider
from flowstate.harness.handle import HarnessRunInput
from tests.blocks.claude_code.fake_context import FakeContext
from tests.blocks.claude_code.fake_sdk import (
    SESSION,
    FakeSdk,
    ProcessError,
    ResultMessage,
    fake_sdk,
    idle,
    init,
    running,
    says,
    until_interrupted,
)

pytestmark = pytest.mark.anyio

KEPT = "aaaaaaaa-2222-4333-8444-555555555555"


class Line:
    """A binding to a conversation that somebody else keeps; it needs no state of the session."""

    def __init__(self, kept: Lines) -> None:
        self._kept = kept

    @property
    def conversation_id(self) -> str | None:
        return KEPT

    @property
    def total_before_usd(self) -> float | None:
        return 0.5

    async def confirm(self, conversation_id: str) -> None:
        self._kept.told.append(f"confirm {conversation_id}")

    async def forget(self, conversation_id: str) -> None:
        self._kept.told.append(f"forget {conversation_id}")

    async def note_total(self, conversation_id: str, total_usd: float) -> None:
        self._kept.told.append(f"total {total_usd}")


class Lines:
    """A provider that writes down what it is told, and when the client was disconnected."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.errors: list[BaseException | None] = []
        self.sdk: FakeSdk | None = None

    async def resolve(self, ctx: Context, *, agent: str) -> Line:
        await anyio.lowlevel.checkpoint()
        self.told.append(f"resolve for {agent} at {ctx.path}")
        return Line(self)

    async def release(self, binding: Line, error: BaseException | None) -> None:
        await anyio.lowlevel.checkpoint()
        gone = self.sdk is None or "disconnect" in self.sdk.client.calls
        self.told.append("release" if gone else "release too early")
        self.errors.append(error)


def _typed(lines: Lines) -> tuple[BindingProvider[Line], Binding]:
    """Checked by the type checkers: these classes are what the protocols say."""
    return lines, Line(lines)


async def _run(lines: Lines, prompt: str = "Do it", **options: Any) -> ClaudeCodeHandle:
    handle: ClaudeCodeHandle = await claude_code_agent(provider=lines, **options).fn(
        HarnessRunInput(prompt=prompt), FakeContext().as_context()
    )
    return handle


async def test_a_run_goes_by_what_its_provider_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continues its conversation, tells it the one it is in and the cost, and lets go last."""
    lines = Lines()
    result = ResultMessage(result="hi", total_cost_usd=0.75)
    sdk = lines.sdk = fake_sdk(monkeypatch, running(), init(), says("hi"), result, idle())
    handle = await _run(lines, name="coder")

    assert sdk.client.options.resume == KEPT
    assert handle.cost is not None
    assert handle.cost.usd == 0.25
    assert lines.told == [
        "resolve for coder at turn/agent",
        f"confirm {SESSION}",
        "total 0.75",
        "release",
    ]
    assert lines.errors == [None]


async def test_a_binding_is_released_with_what_the_run_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The very exception; and nothing is resolved for a run that is refused before."""
    lines = Lines()
    lines.sdk = fake_sdk(monkeypatch, running(), init(), ProcessError("died", 1))
    with pytest.raises(ClaudeAgentRunError) as caught:
        await _run(lines)
    assert lines.errors == [caught.value]
    assert lines.told[-1] == "release"

    with pytest.raises(EmptyPromptError):
        await _run(lines, " ")
    assert len(lines.errors) == 1


async def test_a_binding_is_released_after_a_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, with the cancellation, when the process has ended."""
    lines = Lines()
    lines.sdk = fake_sdk(monkeypatch, running(), init(), until_interrupted)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: _run(lines))
        with anyio.fail_after(10):
            while f"confirm {SESSION}" not in lines.told:  # noqa: ASYNC110
                await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()

    assert lines.told[-1] == "release"
    (error,) = lines.errors
    assert isinstance(error, anyio.get_cancelled_exc_class())


def test_a_provider_is_for_a_session_and_has_both_halves() -> None:
    """Detached, nothing is continued, so there is nothing to provide; both are refused built."""
    with pytest.raises(DefinitionError, match="provider= with detached=True"):
        claude_code_agent(provider=Lines(), detached=True)
    with pytest.raises(DefinitionError, match="lacks resolve or release"):
        claude_code_agent(provider=object())  # type: ignore[arg-type]
    assert claude_code_agent(provider=Lines()).uses == (agent_runs_state(),)
