"""
Which conversation a run continues, and where the one it turned out to be in is written down.

In session, a provider of bindings says which one is continued; the thin one that stands there by
default keeps the runs so far in a state cell and continues the last. Detached, the author decides
with ``resume`` and records with ``on_session``; no state is declared or written. Claude Code takes
titles as well as ids, so an id is checked to be one before it gets near it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, final

from pydantic import BaseModel

from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.stopping import sheltered
from flowstate.blocks.claude_code.waiting_call import WaitingCall, merged
from flowstate.context import Context
from flowstate.define.uses import StateDeclaration, session_state
from flowstate.errors import DefinitionError
from flowstate.harness.binding import Binding, BindingProvider
from flowstate.harness.failure import UnknownConversationError
from flowstate.item.content import WIRE

AGENT = "Claude Code"
KEPT_RUNS = 50
"""How many runs a session remembers; the oldest are forgotten first."""

RELEASE_SECONDS = 5.0
"""How long a provider may take to let go of a binding."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

Resume: TypeAlias = Callable[[Context], "str | None | Awaitable[str | None]"]
OnSession: TypeAlias = Callable[[str, Context], "object | Awaitable[object]"]


class SdkAgentRun(BaseModel):
    """One run of a Claude Code agent, written as soon as Claude Code named its conversation."""

    model_config = WIRE
    agent: str
    """The name that the agent was built with: each name has a conversation of its own."""
    session_id: str
    """Claude Code's id of the conversation."""
    request_id: str
    """The request that the run belongs to."""
    path: str
    """The run's execution path in that request."""
    cost_total_usd: float | None = None
    """
    What Claude Code said the conversation had cost in all when the run ended; None if it didn't.
    """


class SdkWaitingCalls(BaseModel):
    """The tool calls of a conversation that were held and that nobody has decided yet."""

    model_config = WIRE
    session_id: str
    """Claude Code's id of the conversation."""
    calls: tuple[WaitingCall, ...]
    """Oldest first; at least one."""


class SdkAgentRuns(BaseModel):
    """The session state that in-session agents share: their runs, and what waits in them."""

    model_config = WIRE
    runs: tuple[SdkAgentRun, ...] = ()
    """Oldest first."""
    waiting: tuple[SdkWaitingCalls, ...] = ()
    """By conversation; the one that a call was held in last comes last."""

    def last_of(self, agent: str) -> SdkAgentRun | None:
        """The last run of this agent; None if it had none."""
        return next((run for run in reversed(self.runs) if run.agent == agent), None)

    def with_run(self, run: SdkAgentRun) -> SdkAgentRuns:
        """With one more run, and without the oldest if there are too many."""
        return self.model_copy(update={"runs": (*self.runs, run)[-KEPT_RUNS:]})

    def with_total(self, session_id: str, total_usd: float) -> SdkAgentRuns:
        """With the conversation's total on its last run."""
        runs = list(self.runs)
        for index in range(len(runs) - 1, -1, -1):
            if runs[index].session_id == session_id:
                runs[index] = runs[index].model_copy(update={"cost_total_usd": total_usd})
                break
        return self.model_copy(update={"runs": tuple(runs)})

    def without(self, session_id: str) -> SdkAgentRuns:
        """Without the runs of a conversation that is gone."""
        return SdkAgentRuns(
            runs=tuple(run for run in self.runs if run.session_id != session_id),
            waiting=tuple(held for held in self.waiting if held.session_id != session_id),
        )

    def waiting_in(self, session_id: str) -> tuple[WaitingCall, ...]:
        """The calls that wait in this conversation, oldest first."""
        return next((held.calls for held in self.waiting if held.session_id == session_id), ())

    def with_waiting(self, session_id: str, calls: Sequence[WaitingCall]) -> SdkAgentRuns:
        """With more calls that wait in this conversation."""
        return self._with_calls(session_id, merged(self.waiting_in(session_id), calls))

    def with_decided(self, session_id: str, fingerprint: str) -> SdkAgentRuns:
        """Without a call of this conversation, which is decided."""
        calls = (c for c in self.waiting_in(session_id) if c.fingerprint != fingerprint)
        return self._with_calls(session_id, tuple(calls))

    def _with_calls(self, session_id: str, calls: tuple[WaitingCall, ...]) -> SdkAgentRuns:
        others = tuple(held for held in self.waiting if held.session_id != session_id)
        mine = (SdkWaitingCalls(session_id=session_id, calls=calls),) if calls else ()
        return self.model_copy(update={"waiting": (*others, *mine)[-KEPT_RUNS:]})


def agent_runs_state() -> StateDeclaration:
    """The declaration of the session state that holds ``SdkAgentRuns``."""
    return session_state(SdkAgentRuns, name="sdk_agent_runs")


class Conversation(Protocol):
    """How one run finds its conversation and says which one it is in."""

    async def wanted(self) -> str | None:
        """The conversation to continue; None for a fresh one."""
        ...

    async def confirm(self, session_id: str) -> None:
        """Claude Code named the conversation. Called at most once a run."""
        ...

    async def forget(self, session_id: str) -> None:
        """Claude Code doesn't know this conversation: don't ask for it again."""
        ...

    async def note_total(self, session_id: str, total_usd: float) -> None:
        """The conversation has cost so much in all, as Claude Code reports it."""
        ...

    async def release(self, error: BaseException | None) -> None:
        """The run has ended: with an exception, or with a handle. Raises nothing of its own."""
        ...

    @property
    def total_before_usd(self) -> float | None:
        """What it had cost before this run; None if that isn't known. Asked after ``wanted``."""
        ...


@final
class SessionBinding:
    """A run's place in the session's state. Made by ``SessionBindings``."""

    def __init__(self, agent: str, ctx: Context, last: SdkAgentRun | None) -> None:
        self._agent = agent
        self._ctx = ctx
        self._cell = ctx.session[SdkAgentRuns]
        self._last = last

    @property
    def conversation_id(self) -> str | None:
        """The agent's last conversation in this session."""
        return self._last.session_id if self._last is not None else None

    @property
    def total_before_usd(self) -> float | None:
        """What the last run wrote down."""
        return self._last.cost_total_usd if self._last is not None else 0.0

    async def confirm(self, conversation_id: str) -> None:
        """Write the run down."""
        run = SdkAgentRun(
            agent=self._agent,
            session_id=conversation_id,
            request_id=self._ctx.request.request_id,
            path=self._ctx.path,
        )
        await self._cell.update(lambda runs: runs.with_run(run))

    async def forget(self, conversation_id: str) -> None:
        """Take its runs out, so that the next run starts a fresh conversation."""
        await self._cell.update(lambda runs: runs.without(conversation_id))

    async def note_total(self, conversation_id: str, total_usd: float) -> None:
        """Write it to the run, for the next one to start from."""
        await self._cell.update(lambda runs: runs.with_total(conversation_id, total_usd))


@final
class SessionBindings:
    """
    The thin provider: the last run that is written down in the session's ``SdkAgentRuns``.

    Another provider can be built upon it. The block declares the state whichever one it is given.
    """

    async def resolve(self, ctx: Context, *, agent: str) -> SessionBinding:
        """The last run of this agent in the session, if it had one."""
        return SessionBinding(agent, ctx, (await ctx.session[SdkAgentRuns].get()).last_of(agent))

    async def release(self, binding: SessionBinding, error: BaseException | None) -> None:
        """Nothing to do: an id is all that it holds."""


@final
class SessionConversation:
    """Continuity through a provider; the block's own if none is given."""

    def __init__(
        self, agent: str, ctx: Context, provider: BindingProvider[Any] | None = None
    ) -> None:
        self._agent = agent
        self._ctx = ctx
        self._provider: BindingProvider[Any] = provider or SessionBindings()
        self._binding: Binding | None = None

    async def wanted(self) -> str | None:
        """The conversation of the binding that is resolved now."""
        binding: Binding = await self._provider.resolve(self._ctx, agent=self._agent)
        self._binding = binding
        return checked_id(binding.conversation_id)

    async def confirm(self, session_id: str) -> None:
        """Tell the binding."""
        if self._binding is not None:
            await self._binding.confirm(session_id)

    async def forget(self, session_id: str) -> None:
        """Tell the binding."""
        if self._binding is not None:
            await self._binding.forget(session_id)

    async def note_total(self, session_id: str, total_usd: float) -> None:
        """Tell the binding."""
        if self._binding is not None:
            await self._binding.note_total(session_id, total_usd)

    async def release(self, error: BaseException | None) -> None:
        """Let go of the binding, once, whatever happens to the caller meanwhile."""
        binding, self._binding = self._binding, None
        if binding is not None:
            release = partial(self._release, binding, error)
            if not await sheltered(release, seconds=RELEASE_SECONDS):
                self._ctx.log.warning("the conversation was not released in time")

    async def _release(self, binding: Binding, error: BaseException | None) -> None:
        try:
            await self._provider.release(binding, error)
        except Exception as failure:
            log_hook_failure(self._ctx, "the conversation could not be released", failure)

    @property
    def total_before_usd(self) -> float | None:
        """What the binding says."""
        return self._binding.total_before_usd if self._binding is not None else None


@final
class DetachedConversation:
    """Continuity in the author's hands: two functions, either of which may be missing."""

    def __init__(self, resume: Resume | None, on_session: OnSession | None, ctx: Context) -> None:
        self._resume = resume
        self._on_session = on_session
        self._ctx = ctx
        self._total_before_usd: float | None = 0.0

    async def wanted(self) -> str | None:
        """What ``resume`` says; None and an empty text mean a fresh conversation."""
        if self._resume is None:
            return None
        answer = self._resume(self._ctx)
        wanted = checked_id(await answer if inspect.isawaitable(answer) else answer)
        if wanted is not None:
            self._total_before_usd = None
        return wanted

    async def confirm(self, session_id: str) -> None:
        """Tell ``on_session``, and wait for it."""
        if self._on_session is not None:
            told = self._on_session(session_id, self._ctx)
            if inspect.isawaitable(told):
                await told

    async def forget(self, session_id: str) -> None:
        """Nothing to do: what was recorded is the author's."""

    async def note_total(self, session_id: str, total_usd: float) -> None:
        """Nothing to do: nothing is written."""

    async def release(self, error: BaseException | None) -> None:
        """Nothing to do: nothing is held."""

    @property
    def total_before_usd(self) -> float | None:
        """Nothing for a fresh conversation; not known for a continued one."""
        return self._total_before_usd


def checked_id(value: object) -> str | None:
    """
    A conversation's id; None for None and an empty text.

    Raises:
        UnknownConversationError: it is no id of Claude Code's, so no conversation can have it.

    >>> checked_id("") is None
    True
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise UnknownConversationError(AGENT, str(value), "an id is a UUID")
    return value


def check_provider(name: str, provider: object, *, detached: bool) -> None:
    """
    Refuse what is no provider of bindings, and any for a detached agent.

    Raises:
        DefinitionError: it is one of these.
    """
    if detached:
        raise DefinitionError(
            name,
            "provider= with detached=True: a detached run continues nothing by itself",
            "Drop detached=True, or use resume= and on_session=.",
        )
    if not all(callable(getattr(provider, part, None)) for part in ("resolve", "release")):
        raise DefinitionError(
            name,
            f"provider={provider!r} lacks resolve or release",
            "Give a BindingProvider.",
        )
