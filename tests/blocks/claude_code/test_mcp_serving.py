"""Serving a run: whose task a call runs in, what the agent is answered, what is closed when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from flowstate.blocks.claude_code import mcp_serving
from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.errors import ClaudeAgentRunError, MissingDirectoryError
from flowstate.blocks.claude_code.mcp_serving import ENDING, ToolServers
from flowstate.blocks.claude_code.mcp_tools import McpContent, McpServer, McpServers, McpTool
from flowstate.context import Context
from flowstate.errors import DefinitionError
from flowstate.harness.environment import Redactor
from flowstate.harness.handle import HarnessRunInput
from tests.blocks.claude_code.fake_context import FakeContext
from tests.blocks.claude_code.fake_sdk import (
    Client,
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


def _servers(call: Callable[..., Any], **server: Any) -> McpServers:
    tool = McpTool(name="do", description="Does.", schema={}, call=call)
    return {"tracker": McpServer(tools=[tool], **server)}


@dataclass
class Served:
    """The servers of a run that goes on, and its context."""

    servers: ToolServers
    handler: Callable[[dict[str, Any]], Any]
    ctx: FakeContext

    async def text(self, **arguments: Any) -> tuple[str, bool]:
        """Call the tool as the SDK would: what it is answered, and whether that is an error."""
        answer = await self.handler(arguments)
        (block,) = answer["content"]
        return block["text"], answer["is_error"]


@asynccontextmanager
async def _serving(call: Callable[..., Any], **env: str) -> AsyncIterator[Served]:
    ctx = FakeContext()
    servers = ToolServers(ctx.as_context(), Redactor(env))
    assert await servers.open("coder", _servers(call)) == ("mcp__tracker__do",)
    async with anyio.create_task_group() as tasks:
        made = servers.sdk_servers(FakeSdk(()), tasks)
        yield Served(servers, made["tracker"]["do"].handler, ctx)
        servers.stop()


class Issue(BaseModel):
    id: int
    title: str


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\ud800", "as it is\ufffd"),
        ({"é": [1, None]}, '{"é": [1, null]}'),
        ([], "[]"),
        (None, "null"),
        (Issue(id=1, title="x"), '{"id": 1, "title": "x"}'),
        ({"at": float("inf")}, '{"at": "inf"}'),
    ],
)
async def test_an_answer_is_a_text_or_json(value: object, text: str) -> None:
    """A text goes as it is; everything else that JSON can hold is written as JSON."""

    async def call(arguments: dict[str, Any]) -> object:
        assert arguments == {"n": 1}
        return value

    async with _serving(call) as served:
        assert await served.text(n=1) == (text, False)


async def test_content_blocks_go_as_they_are() -> None:
    """Images, say; and a failure that another server told."""

    async def call(arguments: dict[str, Any]) -> McpContent:
        return McpContent([{"type": "image", "data": "eA==", "mimeType": "image/png"}], True)

    async with _serving(call) as served:
        assert await served.handler({}) == {
            "content": [{"type": "image", "data": "eA==", "mimeType": "image/png"}],
            "is_error": True,
        }


async def test_a_failure_is_an_answer_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the run's environment nor this process's shows; nothing is raised."""
    monkeypatch.setenv("DB_PASSWORD", "server-secret")

    async def call(arguments: dict[str, Any]) -> object:
        if arguments:
            raise ValueError
        raise OSError("server-secret and run-secret")

    async with _serving(call, API_TOKEN="run-secret") as served:
        assert await served.text() == ("OSError: [redacted] and [redacted]", True)
        assert await served.text(n=1) == ("ValueError", True)


async def test_what_is_no_json_is_a_failure() -> None:
    """The agent is told that the tool is at fault."""

    async def call(arguments: dict[str, Any]) -> object:
        return object()

    async with _serving(call) as served:
        told, is_error = await served.text()
        assert is_error
        assert "PydanticSerializationError" in told


# --- tasks --------------------------------------------------------------------------------------

REQUEST: ContextVar[str] = ContextVar("request", default="nobody's")


async def test_a_call_sees_the_context_variables_of_its_caller() -> None:
    """They come with the SDK's tasks, which the run itself has started."""

    async def call(arguments: dict[str, Any]) -> str:
        return REQUEST.get()

    REQUEST.set("the run's")
    async with _serving(call) as served:
        assert await served.text() == ("the run's", False)


async def test_a_call_that_the_agent_gives_up_is_cancelled() -> None:
    """Nobody waits for it any more, so it doesn't go on; others do."""
    cancelled = anyio.Event()

    async def call(arguments: dict[str, Any]) -> str:
        if not arguments:
            return "ok"
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    async with _serving(call) as served:
        with anyio.move_on_after(0.05):
            await served.handler({"n": 1})
        with anyio.fail_after(10):
            await cancelled.wait()
        assert await served.text() == ("ok", False)


async def test_calls_are_broken_off_when_the_run_ends_and_no_other_begins() -> None:
    """The agent's process may still be winding down; it is answered that the run is ending."""
    entered, begun = anyio.Event(), list[int]()

    async def call(arguments: dict[str, Any]) -> str:
        begun.append(1)
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    answers: list[tuple[str, bool]] = []

    async def ask(served: Served) -> None:
        answers.append(await served.text())

    async with _serving(call) as served, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, served)
        with anyio.fail_after(10):
            await entered.wait()
        served.servers.stop()
        with anyio.fail_after(10):
            answers.append(await served.text())

    assert answers == [(ENDING, True)] * 2
    assert begun == [1]


# --- closing ------------------------------------------------------------------------------------


async def test_every_server_is_closed_once_whatever_the_others_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One raises, one never comes back: both are logged, secrets taken out, and nothing raised."""
    monkeypatch.setattr(mcp_serving, "CLOSE_SECONDS", 0.2)
    closed: list[str] = []

    async def close() -> None:
        await anyio.lowlevel.checkpoint()
        closed.append("good")

    async def fail() -> None:
        raise OSError("run-secret")

    ctx = FakeContext()
    servers = ToolServers(ctx.as_context(), Redactor({"A_KEY": "run-secret"}))
    await servers.open(
        "coder",
        {
            "endless": McpServer(close=anyio.sleep_forever),
            "failing": McpServer(close=fail),
            "good": McpServer(close=close),
            "none": McpServer(),
        },
    )
    with anyio.CancelScope() as scope:
        scope.cancel()
        await servers.aclose()
    await servers.aclose()

    assert closed == ["good"]
    assert [call.kwargs for call in ctx.logger.calls] == [
        {
            "event": "a tool server of the run could not be closed",
            "server": "failing",
            "error": "OSError: [redacted]",
        },
        {
            "event": "tool servers of the run did not close in time",
            "servers": ["endless"],
        },
    ]


class Closing:
    """A resolver that makes one server, and whether that was closed."""

    def __init__(self, answer: Callable[[McpServers], Any] | None = None) -> None:
        self.closed = 0
        self.asked = 0
        self._answer = answer

    async def __call__(self, ctx: Context) -> Any:
        self.asked += 1
        served = _servers(self._do, close=self._close)
        return self._answer(served) if self._answer else served

    async def _do(self, arguments: dict[str, Any]) -> str:
        return "ok"

    async def _close(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1


async def _run(**options: Any) -> None:
    await claude_code_agent(detached=True, **options).fn(
        HarnessRunInput(prompt="Do it"), FakeContext().as_context()
    )


async def test_a_run_hands_its_servers_over_and_closes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked once a run; the SDK is told that they are all there are, and that they are allowed."""
    closing = Closing()
    answers: list[Any] = []

    async def call_it(client: Client) -> None:
        assert closing.closed == 0
        answers.append(await client.options.mcp_servers["tracker"]["do"].handler({}))

    sdk = fake_sdk(
        monkeypatch, running(), init(), call_it, says("hi"), ResultMessage(result="hi"), idle()
    )
    await _run(mcp_tools=closing, settings={"disableClaudeAiConnectors": False, "x": 1})

    assert (closing.asked, closing.closed) == (1, 1)
    assert answers == [{"content": [{"type": "text", "text": "ok"}], "is_error": False}]
    options = sdk.client.options
    assert options.strict_mcp_config
    assert options.allowed_tools[0] == "mcp__tracker__do"
    assert options.settings == '{"disableClaudeAiConnectors": true, "x": 1}'


async def test_servers_are_closed_however_a_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that isn't there, a process that dies, an answer that can't be used."""
    fake_sdk(monkeypatch, running(), init(), ProcessError("died", 1))
    closing = Closing()
    with pytest.raises(MissingDirectoryError):
        await _run(mcp_tools=closing, cwd=lambda _: "/nowhere/at/all")
    assert closing.closed == 1
    with pytest.raises(ClaudeAgentRunError):
        await _run(mcp_tools=closing)
    assert closing.closed == 2

    unusable = Closing(lambda served: {**served, "a b": McpServer()})
    with pytest.raises(DefinitionError, match="names a server 'a b'"):
        await _run(mcp_tools=unusable)
    assert unusable.closed == 1
    with pytest.raises(DefinitionError, match="mcp_tools is of type NoneType"):
        await _run(mcp_tools=lambda _: None)


async def test_servers_are_closed_when_a_run_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cancel doesn't reach the closing."""
    closing = Closing()
    working = anyio.Event()

    def work(client: Client) -> None:
        working.set()

    fake_sdk(monkeypatch, running(), init(), work, until_interrupted)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: _run(mcp_tools=closing))
        with anyio.fail_after(10):
            await working.wait()
        tasks.cancel_scope.cancel()

    assert closing.closed == 1
