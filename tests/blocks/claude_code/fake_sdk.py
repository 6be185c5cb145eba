"""
A stand-in for the SDK: a client whose conversation a test writes down, and no process at all.

``hear`` goes by the names of classes, so messages are made of classes that bear the SDK's names.
"""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import anyio
import pytest

SESSION = "11111111-2222-4333-8444-555555555555"


@dataclass
class SystemMessage:
    subtype: str
    data: dict[str, Any]


@dataclass
class TextBlock:
    text: str


@dataclass
class ToolUseBlock:
    id: str
    name: str
    input: dict[str, Any]


@dataclass
class AssistantMessage:
    content: list[Any]
    message_id: str = "msg_1"
    model: str = "claude-x"
    parent_tool_use_id: str | None = None
    error: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


@dataclass
class ResultMessage:
    subtype: str = "success"
    is_error: bool = False
    result: str | None = None
    errors: list[str] | None = None
    usage: dict[str, Any] = field(default_factory=lambda: {"input_tokens": 3, "output_tokens": 2})
    total_cost_usd: float | None = None
    terminal_reason: str | None = "completed"
    session_id: str = SESSION
    uuid: str | None = None
    model_usage: dict[str, Any] | None = None
    user_message_uuids: list[str | None] | None = None
    """None: the test's client puts the prompt's id in."""


def running() -> SystemMessage:
    return SystemMessage("session_state_changed", {"state": "running"})


def idle() -> SystemMessage:
    return SystemMessage("session_state_changed", {"state": "idle"})


def init(session_id: str = SESSION, **data: object) -> SystemMessage:
    return SystemMessage("init", {"session_id": session_id, **data})


def says(text: str) -> AssistantMessage:
    return AssistantMessage([TextBlock(text)], message_id=f"msg_{text}")


def calls(name: str, **arguments: object) -> AssistantMessage:
    return AssistantMessage(
        [ToolUseBlock(f"toolu_{name}", name, dict(arguments))], message_id=f"msg_{name}"
    )


class ProcessError(Exception):
    """As the SDK's: a process that ended with a code."""

    def __init__(self, text: str, exit_code: int | None = None) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class ResultError(ProcessError):
    """As the SDK's: raised in place of a bare exit code."""

    def __init__(self, errors: list[str], exit_code: int = 1) -> None:
        super().__init__("; ".join(errors), exit_code)
        self.errors = errors
        self.subtype = "error_during_execution"


class CanUseToolShadowedWarning(UserWarning):
    """As the SDK's."""


@dataclass
class ClaudeAgentOptions:
    """Takes what the block sends; ``fallback_model`` stands for what the SDK adds later."""

    cwd: str | None = None
    model: str | None = None
    resume: str | None = None
    system_prompt: Any = None
    env: dict[str, str] = field(default_factory=dict)
    permission_mode: str | None = None
    allowed_tools: list[str] = field(default_factory=list)
    disallowed_tools: list[str] = field(default_factory=list)
    sandbox: Any = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    agents: Any = None
    hooks: Any = None
    plugins: list[Any] = field(default_factory=list)
    skills: Any = None
    include_partial_messages: bool = False
    verbatim_prompts: bool = False
    forward_subagent_text: bool = False
    max_buffer_size: int | None = None
    extra_args: dict[str, Any] = field(default_factory=dict)
    setting_sources: list[str] | None = None
    settings: str | None = None
    strict_mcp_config: bool = False
    mcp_servers: Any = None
    cli_path: Any = None
    stderr: Any = None
    can_use_tool: Any = None
    fallback_model: str | None = None


@dataclass
class SdkMcpTool:
    """As the SDK's; a test calls its ``handler`` in the agent's place."""

    name: str
    description: str
    input_schema: dict[str, Any]
    handler: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def create_sdk_mcp_server(name: str, *, tools: list[SdkMcpTool]) -> dict[str, SdkMcpTool]:
    """Not as the SDK's: a server is just its tools by name."""
    return {tool.name: tool for tool in tools}


@dataclass
class PermissionResultAllow:
    updated_input: dict[str, Any] | None = None


@dataclass
class PermissionResultDeny:
    message: str = ""
    interrupt: bool = False


@dataclass
class ToolPermissionContext:
    tool_use_id: str | None = "toolu_1"
    agent_id: str | None = None
    description: str | None = None


class Client:
    """
    One client. ``script`` speaks for the agent: it is called with the client once it was asked,
    and ends when it likes; an exception of its own comes out of the messages.
    """

    def __init__(self, sdk: FakeSdk, options: ClaudeAgentOptions) -> None:
        self.sdk = sdk
        self.options = options
        self.calls: list[str] = []
        self.connected = False
        self.interrupted = anyio.Event()
        self.prompt_id: str | None = None
        self.line_ids: list[str] = []
        """The ids of what was sent after the prompt."""
        self._send, self._receive = anyio.create_memory_object_stream[Any](math.inf)
        sdk.clients.append(self)

    def say(self, *messages: object) -> None:
        """Send messages, as far as the client is still there."""
        for message in messages:
            self._send.send_nowait(message)

    async def connect(self) -> None:
        self.calls.append("connect")
        try:
            await self.sdk.on_connect(self)
        except BaseException:
            await self.disconnect()
            raise
        self.connected = True

    async def get_server_info(self) -> dict[str, Any]:
        return {}

    async def query(self, prompt: AsyncIterator[dict[str, Any]]) -> None:
        async for message in prompt:
            self.calls.append(f"query {message['message']['content']}")
            if self.prompt_id is None:
                self.prompt_id = message["uuid"]
                self._send.send_nowait("begin")
            else:
                self.line_ids.append(message["uuid"])

    async def receive_messages(self) -> Any:
        if not self.connected:
            raise ConnectionError("not connected")
        try:
            async for message in self._receive:
                if message == "begin":
                    async for said in self._scripted():
                        yield said
                else:
                    yield message
        except anyio.ClosedResourceError:
            return

    async def _scripted(self) -> Any:
        for step in self.sdk.script:
            if callable(step):
                told = step(self)
                if isinstance(told, Awaitable):
                    await told
            elif isinstance(step, BaseException):
                raise step
            elif step == "end":
                self._send.close()
            else:
                await anyio.lowlevel.checkpoint()
                if isinstance(step, ResultMessage) and step.user_message_uuids is None:
                    step = replace(step, user_message_uuids=[self.prompt_id])
                yield step

    async def interrupt(self) -> None:
        self.calls.append("interrupt")
        self.interrupted.set()
        self.say(
            ResultMessage("error_during_execution", True, terminal_reason="aborted_tools"), idle()
        )

    async def stop_task(self, task_id: str) -> None:
        self.calls.append(f"stop_task {task_id}")

    async def disconnect(self) -> None:
        self.calls.append("disconnect")
        self._send.close()
        self._receive.close()


async def _at_once(client: Client) -> None:
    await anyio.lowlevel.checkpoint()


class FakeSdk(ModuleType):
    """The module; install it with ``fake_sdk(monkeypatch, ...)``."""

    def __init__(self, script: tuple[object, ...]) -> None:
        super().__init__("claude_agent_sdk")
        self.__file__ = __file__
        self.script = script
        self.clients: list[Client] = []
        self.on_connect: Callable[[Client], Awaitable[None]] = _at_once
        self.ClaudeAgentOptions = ClaudeAgentOptions
        self.ResultError = ResultError
        self.CanUseToolShadowedWarning = CanUseToolShadowedWarning
        self.SdkMcpTool = SdkMcpTool
        self.create_sdk_mcp_server = create_sdk_mcp_server
        self.PermissionResultAllow = PermissionResultAllow
        self.PermissionResultDeny = PermissionResultDeny
        self.ClaudeSDKClient = lambda options: Client(self, options)

    @property
    def client(self) -> Client:
        """The one client that there was."""
        (client,) = self.clients
        return client


def fake_sdk(monkeypatch: pytest.MonkeyPatch, *script: object) -> FakeSdk:
    """
    Put a fake in the SDK's place for this test.

    Args:
        script: what the agent does once it was asked: messages that it sends, exceptions that come
            out of its stream, functions of the client that are called (and awaited), and ``"end"``
            for a stream that ends.
    """
    sdk = FakeSdk(script)
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", sdk)
    return sdk


async def until_interrupted(client: Client) -> None:
    """A step of a script: the agent works until it is interrupted."""
    await client.interrupted.wait()
