"""
Serves a run the tools of this process: asks for them, answers the agent's calls, gives them back.

The SDK calls from tasks of its own, outside the run. As with approvals, each call is handed to the
run's task group, so that it is cancelled with the run and never outlives it, and the SDK waits for
the answer. A call that raises is an answer, too: the agent is told, secrets taken out.

Whatever was opened is closed once, when the run is over: in a shelter that no cancel reaches, all
servers at once, within ``CLOSE_SECONDS``. Failures are logged and change nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast, final

import anyio
from anyio.abc import TaskGroup
from pydantic_core import to_jsonable_python

from flowstate.blocks.claude_code.json_value import plain
from flowstate.blocks.claude_code.mcp_tools import (
    McpClose,
    McpContent,
    McpServer,
    McpServers,
    McpTool,
    McpToolsResolver,
    checked_servers,
    tool_name,
)
from flowstate.blocks.claude_code.resolving import awaited
from flowstate.blocks.claude_code.sdk import Sdk
from flowstate.blocks.claude_code.stopping import sheltered
from flowstate.context import Context
from flowstate.harness.clean_text import clean_text
from flowstate.harness.environment import Redactor

CLOSE_SECONDS = 5.0
"""How long the servers of a run may take to close, all together."""

ENDING = "The run is ending."
"""What a call is answered that comes too late, or is broken off."""


@dataclass(slots=True)
class _Call:
    tool: McpTool
    arguments: dict[str, Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: dict[str, Any] = field(default_factory=lambda: _failed(ENDING))
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@final
class ToolServers:
    """
    The servers of one run.

    Args:
        ctx: the run's context, which a resolver is given.
        redact: takes the secrets of the run's environment out of a text; this process's own are
            taken out besides.
    """

    def __init__(self, ctx: Context, redact: Callable[[str], str]) -> None:
        self._ctx = ctx
        self._redact_run = redact
        self._servers: McpServers = {}
        self._closing: dict[str, McpClose] = {}
        self._open: list[_Call] = []
        self._stopped = False

    async def open(self, name: str, tools: McpServers | McpToolsResolver) -> tuple[str, ...]:
        """
        Ask for the servers; the names under which the agent calls their tools.

        Raises:
            DefinitionError: what a resolver returned can't be used. What of it can be closed is
                closed nevertheless.
            Exception: whatever a resolver raised, bare.
        """
        given: object = await awaited(tools(self._ctx)) if callable(tools) else tools
        if isinstance(given, Mapping):
            self._closing = {
                str(key): server.close
                for key, server in cast("Mapping[object, object]", given).items()
                if isinstance(server, McpServer) and server.close is not None
            }
        self._servers = checked_servers(name, given)
        return tuple(
            tool_name(server, tool.name)
            for server, held in self._servers.items()
            for tool in held.tools
        )

    def sdk_servers(self, sdk: Sdk, tasks: TaskGroup) -> dict[str, Any]:
        """The same as the SDK's servers, whose calls run in this task group."""
        return {
            name: sdk.create_sdk_mcp_server(
                name,
                tools=[
                    sdk.SdkMcpTool(
                        name=tool.name,
                        description=clean_text(tool.description),
                        input_schema=dict(tool.schema),
                        handler=partial(self._answer, tasks, tool),
                    )
                    for tool in server.tools
                ],
            )
            for name, server in self._servers.items()
        }

    def stop(self) -> None:
        """Break off the calls that are going on and let no other begin."""
        self._stopped = True
        for call in self._open:
            call.scope.cancel()

    async def aclose(self) -> None:
        """Close every server, once, whatever happens to the caller meanwhile."""
        closing, self._closing = self._closing, {}
        if closing and not await sheltered(partial(self._close, closing), seconds=CLOSE_SECONDS):
            self._ctx.log.warning(
                "tool servers of the run did not close in time", servers=sorted(closing)
            )

    async def _close(self, closing: dict[str, McpClose]) -> None:
        async def close(name: str, close_server: McpClose) -> None:
            try:
                await awaited(close_server())
            except Exception as error:
                self._ctx.log.warning(
                    "a tool server of the run could not be closed",
                    server=name,
                    error=self._redacted(f"{type(error).__name__}: {error}"),
                )
            del closing[name]

        async with anyio.create_task_group() as tasks:
            for name, close_server in list(closing.items()):
                tasks.start_soon(close, name, close_server)

    async def _answer(
        self, tasks: TaskGroup, tool: McpTool, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Called by the SDK, in a task of the SDK's, maybe several times at once."""
        call = _Call(tool, arguments)
        if not self._stopped:
            self._open.append(call)
            tasks.start_soon(self._run, call)
            try:
                await call.answered.wait()
            finally:
                # Claude Code gave the call up, or has its answer.
                call.scope.cancel()
        return call.answer

    async def _run(self, call: _Call) -> None:
        try:
            with call.scope:
                call.answer = _said(await awaited(call.tool.call(call.arguments)))
        except Exception as error:
            text, kind = str(error), type(error).__name__
            call.answer = _failed(self._redacted(f"{kind}: {text}") if text else kind)
        finally:
            self._open.remove(call)
            call.answered.set()

    def _redacted(self, text: str) -> str:
        # A call runs in this process, and what it raises can hold this process's secrets.
        return self._redact_run(Redactor(os.environ)(clean_text(text)))


def _said(value: object) -> dict[str, Any]:
    """
    An answer as the SDK takes it.

    Raises:
        ValueError: the value can't be written as JSON.
    """
    match value:
        case McpContent(blocks=blocks, is_error=is_error):
            return {"content": [plain(dict(block)) for block in blocks], "is_error": is_error}
        case str():
            text = clean_text(value)
        case _:
            text = json.dumps(plain(to_jsonable_python(value)), ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "is_error": False}


def _failed(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "is_error": True}
