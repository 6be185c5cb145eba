"""
The tool calls of one answer: items, status, and the blocks that they run, all at once.

A block runs beneath the generator (``ctx.call``), so its settings, state, items and paths are its
own. What it raises is told to the model, which may do better; what no model can mend (a definition
that can't work, a store that can't write) ends the run, and so does every cancellation: the other
calls are cancelled and waited for, then the first failure goes on, bare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import anyio
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.tools import ToolDefinition

from flowstate.blocks.generator.conversation import arguments_of
from flowstate.blocks.generator.wording import bad_json, cut, failure, told, unknown_tool, using
from flowstate.context import Context
from flowstate.define.handler import Handler
from flowstate.define.tool import Tool
from flowstate.errors import (
    DefinitionError,
    InvalidValue,
    LeaseLost,
    PlanError,
    RuntimeClosed,
    StoreError,
    UndeclaredCapability,
    UndeclaredState,
)
from flowstate.harness.clean_text import clean_text
from flowstate.item.content import Container, ToolOutput
from flowstate.item.writer import OpenItem

NOT_FOR_MODELS = (
    DefinitionError,
    LeaseLost,
    PlanError,
    RuntimeClosed,
    StoreError,
    UndeclaredCapability,
    UndeclaredState,
)
"""What ends the run: the author or the host can put it right, and no other call can."""


@final
@dataclass(slots=True, eq=False)
class _Call:
    """One call under way."""

    part: ToolCallPart
    arguments: object
    """As the item shows them: JSON, or the text where it is none."""
    problem: str | None
    """What is wrong with the arguments' form; None where they are an object."""
    item: OpenItem
    result: ToolReturnPart | None = None


@final
class ToolCalls:
    """
    Runs what a model calls.

    Args:
        ctx: the run's context.
        tools: what the model may call.
        redact: takes secrets out of a failure's text.
    """

    def __init__(self, ctx: Context, tools: Sequence[Tool], redact: Callable[[str], str]) -> None:
        self._ctx = ctx
        self._tools = {tool.name: tool for tool in tools}
        self._redact = redact
        self._running: list[_Call] = []
        self._broken: BaseException | None = None

    def definitions(self) -> list[ToolDefinition]:
        """The tools, as pydantic-ai tells a provider of them."""
        return [
            ToolDefinition(
                name=tool.name,
                description=clean_text(tool.description) or None,
                parameters_json_schema=tool.schema(),
            )
            for tool in self._tools.values()
        ]

    async def run(self, parts: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
        """
        Run the calls of one answer, and give their results in the order of the calls.

        Raises:
            Exception: the first of ``NOT_FOR_MODELS`` that a call raised, bare.
        """
        calls = [self._begin(part) for part in parts]
        for call in calls:
            self._show(call)  # in order, whichever task runs first
        try:
            async with anyio.create_task_group() as tasks:
                for call in calls:
                    tasks.start_soon(self._answer, call, tasks.cancel_scope)
        finally:
            for call in calls:
                call.item.settle(status="incomplete")  # a settled one stays what it is
            self._running.clear()
            self._ctx.status.clear()
        broken, self._broken = self._broken, None
        if broken is not None:
            # Raised after the group: in it, it would come out as a group of one.
            raise broken
        return [call.result for call in calls if call.result is not None]

    def _begin(self, part: ToolCallPart) -> _Call:
        arguments, problem = arguments_of(part)
        content = ToolOutput(call_id=part.tool_call_id, name=part.tool_name, arguments=arguments)
        return _Call(part, arguments, problem, self._ctx.items.open(content))

    async def _answer(self, call: _Call, scope: anyio.CancelScope) -> None:
        """One call; runs in a task of its own."""
        try:
            output, text = told(await self._call(call))
            is_error = False
        except NOT_FOR_MODELS as error:
            self._settle(call, None, failure(error, self._redact), is_error=True)
            self._break(error, scope)
            return
        except Exception as error:
            text = self._told_failure(error)
            output, is_error = text, True
        except BaseException as cancellation:
            # Not the model's business. Where it is nobody else's either (a native cancel of this
            # very task), the group would forget it.
            self._break(cancellation, scope)
            raise
        finally:
            self._running.remove(call)
            self._show(self._running[-1] if self._running else None)
        self._settle(call, output, text, is_error=is_error)

    async def _call(self, call: _Call) -> object:
        tool = self._tools.get(call.part.tool_name)
        if tool is None:
            raise ToolFailed(unknown_tool(call.part.tool_name, [*self._tools]))
        if call.problem is not None:
            raise ToolFailed(bad_json(call.problem))
        value = tool.read(cast("dict[str, Any]", call.arguments))
        if not _says(tool):
            return await self._ctx.call(tool.block, value)
        # What a tool says is a conversation of its own: told again, it is its result alone.
        group = self._ctx.items.open(Container(label=tool.name, kind="sub_agent"))
        try:
            output: object = await self._ctx.call(tool.block, value, container=group.id)
        except Exception:
            group.settle(status="failed")
            raise
        except BaseException:
            group.settle(status="incomplete")
            raise
        group.settle()
        return output

    def _told_failure(self, error: Exception) -> str:
        match error:
            case ModelRetry(message=message) | ToolFailed(message=message):
                return cut(self._redact(clean_text(message)))
            case InvalidValue():
                return cut(self._redact(clean_text(str(error))))
            case _:
                return failure(error, self._redact)

    def _settle(self, call: _Call, output: object, text: str, *, is_error: bool) -> None:
        part = call.part
        call.result = ToolReturnPart(
            tool_name=part.tool_name,
            content=text,
            tool_call_id=part.tool_call_id,
            outcome="failed" if is_error else "success",
        )
        call.item.settle(
            ToolOutput(
                call_id=part.tool_call_id,
                name=part.tool_name,
                arguments=call.arguments,
                output=text if output is None and is_error else output,
                is_error=is_error,
            ),
            status="failed" if is_error else "completed",
        )

    def _break(self, error: BaseException, scope: anyio.CancelScope) -> None:
        if self._broken is None and not scope.cancel_called:
            self._broken = error
            scope.cancel()

    def _show(self, call: _Call | None) -> None:
        """Show on the status line what runs now: the latest call that still does."""
        if call is None:
            self._ctx.status.clear()
            return
        if call not in self._running:
            self._running.append(call)
        self._ctx.status.show(using(call.part.tool_name))


def _says(tool: Tool) -> bool:
    """Whether the tool's block could make items: a function without a context makes none."""
    block = tool.block
    return not isinstance(block, Handler) or block.takes_context
