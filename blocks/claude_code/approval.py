"""
Asks the author's hook about a tool call, in a task of the run, and answers the SDK.

The SDK calls from tasks of its own, outside the run: the hook would not be cancelled with the run
and would not see its context variables. So each question is handed to the run's task group and
the SDK waits for the answer. A hook that fails denies; nothing is ever allowed by accident.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

import anyio
from anyio.abc import TaskGroup

from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.sdk import Sdk
from flowstate.context import Context
from flowstate.item.content import Status

if TYPE_CHECKING:
    from claude_agent_sdk import (
        PermissionResultAllow,
        PermissionResultDeny,
        ToolPermissionContext,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalRequest:
    """A tool call that Claude Code would ask a person about."""

    tool_name: str
    input: Mapping[str, Any]
    """The call's arguments, as the agent gave them."""
    call_id: str | None = None
    """The call's id, the same as on its tool_output item."""
    agent_id: str | None = None
    """The sub-agent that makes the call; None for the run itself."""
    description: str | None = None
    """What the call does, in Claude Code's words, where it has any."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllowTool:
    """Let the call run, with other arguments if given."""

    updated_input: Mapping[str, Any] | None = None


@final
@dataclass(frozen=True, slots=True)
class DenyTool:
    """Don't let the call run; the agent is told why and goes on."""

    message: str = "The call was denied."


ToolDecision: TypeAlias = AllowTool | DenyTool
"""What a hook decides about a call."""

OnToolApproval: TypeAlias = Callable[
    [ToolApprovalRequest, Context], ToolDecision | Awaitable[ToolDecision]
]


@dataclass(slots=True)
class _Question:
    request: ToolApprovalRequest
    answered: anyio.Event = field(default_factory=anyio.Event)
    decision: ToolDecision = field(default_factory=lambda: DenyTool("The run is ending."))
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@final
class Approvals:
    """The SDK's ``can_use_tool`` of one run; hand over the object itself."""

    def __init__(self, decide: OnToolApproval, ctx: Context, sdk: Sdk, tasks: TaskGroup) -> None:
        self._decide = decide
        self._ctx = ctx
        self._sdk = sdk
        self._tasks = tasks
        self._open: list[_Question] = []
        self._closed = False

    async def __call__(
        self, tool_name: str, input: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """Called by the SDK, in a task of the SDK's, maybe several times at once."""
        question = _Question(
            ToolApprovalRequest(
                tool_name=tool_name,
                input=input,
                call_id=context.tool_use_id,
                agent_id=context.agent_id,
                description=context.description,
            )
        )
        if not self._closed:
            self._open.append(question)
            self._tasks.start_soon(self._ask, question)
            try:
                await question.answered.wait()
            finally:
                # Claude Code took the question back, or has its answer.
                question.scope.cancel()
        match question.decision:
            case AllowTool(updated_input=updated):
                allow: PermissionResultAllow = self._sdk.PermissionResultAllow(
                    updated_input=dict(updated) if updated is not None else None
                )
                return allow
            case DenyTool(message=message):
                deny: PermissionResultDeny = self._sdk.PermissionResultDeny(message=message)
                return deny

    def close(self) -> None:
        """Deny what is still open; called when the run ends."""
        self._closed = True
        for question in self._open:
            question.scope.cancel()

    async def _ask(self, question: _Question) -> None:
        name = question.request.tool_name
        try:
            with question.scope:
                answer = self._decide(question.request, self._ctx)
                decision = await answer if inspect.isawaitable(answer) else answer
                if not isinstance(decision, AllowTool | DenyTool):
                    raise TypeError(f"on_tool_approval returned {decision!r}")
                question.decision = decision
                self._show(decision, name)
        except Exception as error:
            log_hook_failure(self._ctx, "on_tool_approval failed, the call is denied", error)
            question.decision = DenyTool("The call could not be approved.")
            self._show(question.decision, name)
        finally:
            self._open.remove(question)
            question.answered.set()

    def _show(self, decision: ToolDecision, name: str) -> None:
        match decision:
            case AllowTool():
                text = f"Approved {name}"
            case DenyTool(message=message):
                text = f"Denied {name}: {message}"
        # An item of its own: the status line keeps saying what the agent is doing.
        self._ctx.items.add(Status(text=text, kept=True))
