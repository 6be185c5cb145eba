"""
Asks the author's hook about a tool call, in a task of the run, and answers the SDK.

The SDK calls from tasks of its own, outside the run: the hook would not be cancelled with the run
and would not see its context variables. So each question is handed to the run's task group and
the SDK waits for the answer. A hook that fails denies; nothing is ever allowed by accident.

A call may be held: a person decides it later. It doesn't run, the run is told to stop, and from
then on nothing else is asked or allowed. A call that was held in an earlier run is decided like any
other; before such a one runs it is struck off, so that one approval never lets it run twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

import anyio
from anyio.abc import TaskGroup

from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.sdk import Sdk
from flowstate.blocks.claude_code.waiting_call import WaitingCall, fingerprint_of, waiting_call
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
    held_before: bool | None = None
    """
    Whether the same call was held in this conversation and nobody has decided it since. None
    detached, where nothing is remembered.
    """

    @property
    def fingerprint(self) -> str:
        """What is equal for the same tool with the same input; see ``fingerprint_of``."""
        return fingerprint_of(self.tool_name, self.input)


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


@final
@dataclass(frozen=True, slots=True)
class HoldTool:
    """
    Don't let the call run, and stop: a person decides it later. The run ends without an error and
    its handle names the call. In the next run the agent makes it again, and it is asked about anew.
    """

    reason: str | None = None
    """Shown on the status item."""


ToolDecision: TypeAlias = AllowTool | DenyTool | HoldTool
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
    """
    The SDK's ``can_use_tool`` of one run; hand over the object itself.

    Args:
        waiting: the calls held before in the conversation; None if that isn't known.
        strike: awaited before a decision about one of them is given: it waits no more.
        stop: called when a call is held, with its id, before the agent is told.

    Attributes:
        held: the calls that this run holds.
    """

    def __init__(
        self,
        decide: OnToolApproval,
        ctx: Context,
        sdk: Sdk,
        tasks: TaskGroup,
        *,
        waiting: Iterable[WaitingCall] | None = None,
        strike: Callable[[str], Awaitable[object]] | None = None,
        stop: Callable[[str | None], object] | None = None,
    ) -> None:
        self.held: list[WaitingCall] = []
        self._waiting = None if waiting is None else {call.fingerprint for call in waiting}
        self._strike = strike
        self._stop = stop
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
                held_before=self._held_before(tool_name, input),
            )
        )
        if self.held:
            question.decision = self._left_undone(context.tool_use_id)
        elif not self._closed:
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
            case HoldTool():
                hold: PermissionResultDeny = self._sdk.PermissionResultDeny(
                    message="A person will decide about this call.", interrupt=True
                )
                return hold

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
                if not isinstance(decision, AllowTool | DenyTool | HoldTool):
                    raise TypeError(f"on_tool_approval returned {decision!r}")
                if self.held and isinstance(decision, AllowTool):
                    question.decision = self._left_undone(question.request.call_id)
                    return
                await self._note(decision, question.request)
                question.decision = decision
                self._show(decision, name)
        except Exception as error:
            log_hook_failure(self._ctx, "on_tool_approval failed, the call is denied", error)
            question.decision = DenyTool("The call could not be approved.")
            self._show(question.decision, name)
        finally:
            self._open.remove(question)
            question.answered.set()

    def _held_before(self, name: str, input: Mapping[str, Any]) -> bool | None:
        return None if self._waiting is None else fingerprint_of(name, input) in self._waiting

    def _left_undone(self, call_id: str | None) -> HoldTool:
        """
        The run is stopping for another call. This one doesn't run, and nobody has to decide it: the
        agent may make it again when it goes on.
        """
        if self._stop is not None:
            self._stop(call_id)
        return HoldTool()

    async def _note(self, decision: ToolDecision, request: ToolApprovalRequest) -> None:
        if isinstance(decision, HoldTool):
            self.held.append(waiting_call(request.tool_name, request.input, request.call_id))
            if self._stop is not None:
                self._stop(request.call_id)
        elif request.held_before and self._waiting is not None:
            self._waiting.discard(request.fingerprint)
            if self._strike is not None:
                await self._strike(request.fingerprint)

    def _show(self, decision: ToolDecision, name: str) -> None:
        match decision:
            case AllowTool():
                text = f"Approved {name}"
            case DenyTool(message=message):
                text = f"Denied {name}: {message}"
            case HoldTool(reason=reason):
                text = f"Held {name}: {reason}" if reason else f"Held {name}"
        # An item of its own: the status line keeps saying what the agent is doing.
        self._ctx.items.add(Status(text=text, kept=True))
