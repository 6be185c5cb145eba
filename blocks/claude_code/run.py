"""
One run of a Claude Code agent: resolvers asked, a process owned, what it says joined to the run.

The run's own task takes what the owner's listener heard wherever it concerns what an author wrote,
so that the resolvers and hooks are called here, and cancelled with the run. The rest, most of it,
becomes items where it is heard. However the run ends, the owner
has ended its process before this returns or raises, and what was heard last has been joined.

A cancel is a throw: the process is stopped, shielded and bounded; then come the error item, the
kept status and ``on_errored``; then the same cancellation goes on.
"""

from __future__ import annotations

import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, final

import anyio
from anyio.abc import TaskGroup

from flowstate.blocks.claude_code.approval import Approvals
from flowstate.blocks.claude_code.arguments import Resolved, sdk_arguments
from flowstate.blocks.claude_code.client import ClientOwner
from flowstate.blocks.claude_code.conversation import Conversation
from flowstate.blocks.claude_code.errors import (
    EmptyPromptError,
    MissingDirectoryError,
    MissingHomeError,
)
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.heard import Heard, SessionHeard, Took, UsageHeard
from flowstate.blocks.claude_code.held_calls import HeldCalls
from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.json_value import text_of
from flowstate.blocks.claude_code.launch import launch_arguments
from flowstate.blocks.claude_code.listeners import Listeners
from flowstate.blocks.claude_code.mcp_serving import ToolServers
from flowstate.blocks.claude_code.options import AgentSettings
from flowstate.blocks.claude_code.refusal import (
    StderrTail,
    error_item_of,
    errors_of,
    refusal_of,
    require_sandbox,
    run_error,
)
from flowstate.blocks.claude_code.resolving import find_conversation, resolve
from flowstate.blocks.claude_code.sdk import Sdk, load_sdk, option_names
from flowstate.blocks.claude_code.steering import offer_lines
from flowstate.blocks.claude_code.stopping import sheltered
from flowstate.blocks.claude_code.translator import Translator
from flowstate.blocks.claude_code.waiting_call import WaitingCall
from flowstate.context import Context
from flowstate.errors import DefinitionError, HarnessError
from flowstate.harness.effect import Effect, MessageActivity, SessionNamed, ToolActivity
from flowstate.harness.environment import Redactor
from flowstate.harness.failure import UnknownConversationError
from flowstate.harness.handle import HarnessCost, HarnessRunInput
from flowstate.harness.joiner import Joiner
from flowstate.harness.launcher import PrivateFiles
from flowstate.item.told import mark_told

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

CONFIRM_SECONDS = 2.0
"""How long writing down the conversation may still take once the run is being cancelled."""

AFTER_SECONDS = 10.0
"""How long ``on_errored`` may take after a cancel."""


@final
class AgentRun:
    """One run; ``run`` is called once."""

    def __init__(self, settings: AgentSettings, value: HarnessRunInput, ctx: Context) -> None:
        self._settings = settings
        self._prompt = value.prompt
        self._ctx = ctx
        self._joiner = Joiner(ctx)
        self._listeners = Listeners(settings, ctx)
        self._translator = Translator(
            now=time.monotonic,
            forward_partial_messages=settings.forward_partial_messages,
            activity=settings.on_activity is not None,
        )
        self._dispatched_at = int(time.time() * 1000)
        self._redact = Redactor(os.environ if settings.env is None else settings.env)
        self._stderr = StderrTail(self._redact)
        self._run_id = uuid.uuid4().hex
        self._resolved = Resolved()
        self._conversation: Conversation | None = None
        self._servers = ToolServers(ctx, self._redact)
        self._unconfirmed: str | None = None
        self._confirming: anyio.CancelScope | None = None
        self._owner: ClientOwner | None = None
        self._approvals: Approvals | None = None
        self._held_calls: HeldCalls | None = None
        self._held_before: tuple[WaitingCall, ...] | None = None
        self._offered = settings.on_steerable is None
        self._authors = self._listeners.concerned
        self._shown = False

    async def run(self) -> ClaudeCodeHandle:
        """
        Run the agent and say how it ended.

        Raises:
            HarnessError: the start was refused, or the outcome could not be heard.
        """
        raised: BaseException | None = None
        try:
            return await self._run()
        except Exception as error:
            raised = error
            self._end(*error_item_of(error, self._redact))
            if self._shown:
                mark_told(error)
            await self._after(error)
            raise
        except BaseException as cancellation:
            raised = cancellation
            reason = self._ctx.cancelled or "cancelled"
            if self._owner is not None and not self._owner.report.transcript_complete:
                reason += "; the conversation's transcript may lack its last messages"
            self._end("cancelled", reason)
            await sheltered(partial(self._after, cancellation), seconds=AFTER_SECONDS)
            raise
        finally:
            try:
                await self._servers.aclose()
            finally:
                if self._conversation is not None:
                    await self._conversation.release(raised)
                del raised  # with its traceback it would keep this frame, and the context

    # --- before -----------------------------------------------------------------------------

    async def _run(self) -> ClaudeCodeHandle:
        if not self._prompt.strip():
            raise EmptyPromptError
        self._shown = True
        self._join(self._translator.started())
        if self._settings.env is not None and not self._settings.env.get("HOME"):
            raise MissingHomeError
        sdk = await load_sdk()
        unknown = sorted(self._settings.options.keys() - option_names(sdk))
        if unknown:
            raise DefinitionError(
                self._settings.name,
                f"options names {', '.join(unknown)}, which this release of the SDK doesn't know",
                "Check the names, or the installed version of claude-agent-sdk.",
            )
        self._conversation = find_conversation(self._settings, self._ctx)
        self._resolved = await resolve(self._settings, self._conversation, self._servers, self._ctx)
        if self._settings.on_tool_approval is not None and not self._settings.detached:
            self._held_calls = HeldCalls(self._ctx, self._resolved.conversation)
            self._held_before = await self._held_calls.waiting()
        await self._drive(sdk)
        self._raise_unheard()
        return await self._handle()

    # --- while it runs ----------------------------------------------------------------------

    async def _drive(self, sdk: Sdk) -> None:
        raised: Exception | None = None
        approvals: Approvals | None = None
        try:
            async with anyio.create_task_group() as tasks:
                if self._settings.on_tool_approval is not None:
                    # The SDK warns that allowed tools aren't asked about. That is what they are
                    # for, and the to-do tools among them are not the author's.
                    warnings.simplefilter("ignore", sdk.CanUseToolShadowedWarning)
                    approvals = self._approvals = Approvals(
                        self._settings.on_tool_approval,
                        self._ctx,
                        sdk,
                        tasks,
                        waiting=self._held_before,
                        strike=self._held_calls and self._held_calls.strike,
                        stop=self._hold,
                    )
                owner = self._owner = ClientOwner(
                    sdk=sdk,
                    build=self._builder(sdk, approvals, tasks),
                    prompt=self._prompt,
                    run_id=self._run_id,
                    take=self._take_at_once,
                    admit=self._admit,
                )
                tasks.start_soon(owner.run)
                try:
                    while (heard := await owner.next()) is not None:
                        await self._take(heard, tasks)
                    owner.finish()
                    await owner.done.wait()
                except Exception as error:
                    # Raised after the group: in it, it would come out as a group of one.
                    raised = error
                finally:
                    owner.stop()
                    self._servers.stop()
                    if approvals is not None:
                        approvals.close()
                    if self._confirming is not None:
                        self._confirming.deadline = anyio.current_time() + CONFIRM_SECONDS
        finally:
            if self._owner is not None:
                for heard in self._owner.rest():
                    self._join(self._translator.feed(heard))
        if raised is not None:
            raise raised

    def _take_at_once(self, heard: Heard) -> bool:
        """Take what concerns none of the author's functions; False for what does."""
        if isinstance(heard, self._authors):
            return False
        self._join(self._translator.feed(heard))
        return True

    async def _take(self, heard: Heard, tasks: TaskGroup) -> None:
        if isinstance(heard, SessionHeard):
            require_sandbox(self._resolved.sandbox, heard.sandboxed)
        self._join(self._translator.feed(heard))
        if self._unconfirmed is not None:
            await self._confirm(tasks)
        if isinstance(heard, Took):
            self._offer(tasks)
        if isinstance(heard, UsageHeard) and self._owner is not None:
            await self._listeners.usage(
                heard.window,
                run_started_at=self._dispatched_at,
                account_id=text_of(self._owner.account.get("email")),
            )

    def _admit(self, info: Mapping[str, Any]) -> None:
        require_sandbox(self._resolved.sandbox, info.get("sandbox_enabled"))

    def _offer(self, tasks: TaskGroup) -> None:
        """Offer to take lines, once: when the prompt is seen to be taken, so will lines be."""
        owner, hook = self._owner, self._settings.on_steerable
        if self._offered or owner is None or hook is None or not owner.watch.taken:
            return
        self._offered = True
        tasks.start_soon(offer_lines, hook, owner.lines, self._ctx, owner.done)

    def _hold(self, call_id: str | None) -> None:
        """A call waits for a person: the run stops. A call without an id is known by its result."""
        self._translator.hold(call_id or "")
        if self._owner is not None:
            # Claude Code itself stops only the thread that made the call, maybe a sub-agent's.
            self._owner.stop()

    @property
    def _held(self) -> tuple[WaitingCall, ...]:
        return tuple(self._approvals.held) if self._approvals is not None else ()

    async def _keep_held(self) -> None:
        conversation = self._translator.session_id or self._resolved.conversation
        if self._held and self._held_calls is not None and conversation is not None:
            await self._held_calls.keep(conversation, self._held)

    async def _confirm(self, tasks: TaskGroup) -> None:
        """
        Write the conversation down, in a task that outlives a cancel of the run for a moment: a
        run that is cancelled is the one that its author most wants to continue.
        """
        raised: Exception | None = None
        written = anyio.Event()
        self._confirming = anyio.CancelScope(shield=True)

        async def write(scope: anyio.CancelScope) -> None:
            nonlocal raised
            try:
                with scope:
                    await self._write_conversation()
                if scope.cancelled_caught:
                    self._ctx.log.warning("the conversation could not be written down in time")
            except Exception as error:
                raised = error
            finally:
                written.set()

        tasks.start_soon(write, self._confirming)
        await written.wait()
        self._confirming = None
        if raised is not None:
            raise raised

    async def _write_conversation(self) -> None:
        session_id, self._unconfirmed = self._unconfirmed, None
        if session_id is not None and self._conversation is not None:
            await self._conversation.confirm(session_id)

    def _join(self, effects: Iterable[Effect]) -> None:
        for effect in self._joiner.join(effects):
            if isinstance(effect, SessionNamed):
                self._unconfirmed = effect.session_id
            elif isinstance(effect, MessageActivity | ToolActivity):
                self._listeners.activity(effect)

    def _builder(
        self, sdk: Sdk, approvals: Approvals | None, tasks: TaskGroup
    ) -> Callable[[PrivateFiles], ClaudeAgentOptions]:
        settings = self._settings

        def build(files: PrivateFiles) -> ClaudeAgentOptions:
            if self._resolved.cwd is not None and not os.path.isdir(self._resolved.cwd):
                raise MissingDirectoryError(self._resolved.cwd)
            arguments = sdk_arguments(settings, self._resolved, files)
            if settings.mcp_tools is not None:
                arguments["mcp_servers"] = self._servers.sdk_servers(sdk, tasks)
            arguments |= launch_arguments(
                sdk,
                files,
                env=settings.env,
                run_id=self._run_id,
                api_retries=settings.api_retries,
                options=settings.options,
            )
            options: ClaudeAgentOptions = sdk.ClaudeAgentOptions(
                **arguments, stderr=self._stderr.add, can_use_tool=approvals
            )
            return options

        return build

    # --- after ------------------------------------------------------------------------------

    def _raise_unheard(self) -> None:
        """
        Raise what keeps us from knowing the outcome, if anything does. A result that was heard and
        still stands is preferred to whatever went wrong after it.
        """
        assert self._owner is not None
        failure, watch = self._owner.failure, self._owner.watch
        results = self._translator.results
        told = results[-1].errors if results and self._translator.session_id is None else ()
        refused = refusal_of((*errors_of(failure), *told), self._resolved.conversation)
        if refused is not None:
            raise refused from failure
        if watch.over or watch.settled:
            if failure is not None:
                self._ctx.log.info("Claude Code failed after its result", error=str(failure))
            return
        if isinstance(failure, HarnessError):
            # Raised while the start was prepared: it says what is wrong by itself.
            raise failure
        raise run_error(failure, self._stderr.lines, self._redact) from failure

    async def _handle(self) -> ClaudeCodeHandle:
        translator = self._translator
        await self._write_conversation()
        await self._keep_held()
        outcome, held = translator.outcome, self._held
        handle = ClaudeCodeHandle(
            status="completed" if held else outcome.status,
            session_id=translator.session_id or self._resolved.conversation,
            dispatched_at=self._dispatched_at,
            outcome=None if held else outcome.outcome,
            final_message=translator.final_message,
            usage=translator.usage,
            cost=await self._cost(),
            result_subtype=None if held else outcome.result_subtype,
            tools_observed=translator.tools_observed,
            waiting=held,
        )
        self._end(None, None)
        return handle

    async def _cost(self) -> HarnessCost | None:
        """
        What Claude Code reports is the whole conversation's cost: this run's is the difference.
        """
        total, conversation = self._translator.cost_total_usd, self._conversation
        if total is None or conversation is None:
            return None
        try:
            await self._note_total()
        except Exception as error:
            # The agent's work is done, and only a later run's cost depends on this.
            log_hook_failure(self._ctx, "the conversation's cost could not be noted", error)
        before = conversation.total_before_usd
        if before is None or total < before:
            return None
        return HarnessCost(usd=total - before, basis="reported")

    async def _note_total(self) -> None:
        session_id, total = self._translator.session_id, self._translator.cost_total_usd
        if self._conversation is not None and session_id is not None and total is not None:
            await self._conversation.note_total(session_id, total)

    def _end(self, code: str | None, reason: str | None) -> None:
        if not self._shown:
            # An empty prompt: nothing began, so nothing is shown to end.
            return
        if code is None or reason is None:
            self._join(self._translator.end(held=bool(self._held)))
        else:
            self._join(self._translator.end(reason, code=code))
        self._joiner.close()

    async def _after(self, error: BaseException) -> None:
        """What is left to do after a throw; nothing here changes or hides the error."""
        asked = self._resolved.conversation
        try:
            await self._write_conversation()
            if isinstance(error, UnknownConversationError) and self._conversation and asked:
                await self._conversation.forget(asked)
            await self._keep_held()
            await self._note_total()
        except Exception as failure:
            log_hook_failure(self._ctx, "the conversation could not be written down", failure)
        await self._listeners.errored(error)
