"""
Which conversation a run continues, and where the one it turned out to be in is written down.

In session, a state cell holds the runs so far and the last one is continued. Detached, the author
decides with ``resume`` and records with ``on_session``; no state is declared or written. Claude
Code takes titles as well as ids, so an id is checked to be one before it gets near it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, final

from pydantic import BaseModel

from flowstate.context import Context
from flowstate.define.uses import StateDeclaration, session_state
from flowstate.harness.failure import UnknownConversationError
from flowstate.item.content import WIRE

AGENT = "Claude Code"
KEPT_RUNS = 50
"""How many runs a session remembers; the oldest are forgotten first."""

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


class SdkAgentRuns(BaseModel):
    """The session state that in-session agents share: their runs, oldest first."""

    model_config = WIRE
    runs: tuple[SdkAgentRun, ...] = ()

    def last_of(self, agent: str) -> SdkAgentRun | None:
        """The last run of this agent; None if it had none."""
        return next((run for run in reversed(self.runs) if run.agent == agent), None)

    def with_run(self, run: SdkAgentRun) -> SdkAgentRuns:
        """With one more run, and without the oldest if there are too many."""
        return SdkAgentRuns(runs=(*self.runs, run)[-KEPT_RUNS:])

    def with_total(self, session_id: str, total_usd: float) -> SdkAgentRuns:
        """With the conversation's total on its last run."""
        runs = list(self.runs)
        for index in range(len(runs) - 1, -1, -1):
            if runs[index].session_id == session_id:
                runs[index] = runs[index].model_copy(update={"cost_total_usd": total_usd})
                break
        return SdkAgentRuns(runs=tuple(runs))

    def without(self, session_id: str) -> SdkAgentRuns:
        """Without the runs of a conversation that is gone."""
        return SdkAgentRuns(runs=tuple(r for r in self.runs if r.session_id != session_id))


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

    @property
    def total_before_usd(self) -> float | None:
        """What it had cost before this run; None if that isn't known. Asked after ``wanted``."""
        ...


@final
class SessionConversation:
    """Continuity through the session's state."""

    def __init__(self, agent: str, ctx: Context) -> None:
        self._agent = agent
        self._ctx = ctx
        self._cell = ctx.session[SdkAgentRuns]
        self._total_before_usd: float | None = None

    async def wanted(self) -> str | None:
        """The agent's last conversation in this session."""
        last = (await self._cell.get()).last_of(self._agent)
        self._total_before_usd = last.cost_total_usd if last is not None else 0.0
        return checked_id(last.session_id) if last is not None else None

    async def confirm(self, session_id: str) -> None:
        """Write the run down."""
        run = SdkAgentRun(
            agent=self._agent,
            session_id=session_id,
            request_id=self._ctx.request.request_id,
            path=self._ctx.path,
        )
        await self._cell.update(lambda runs: runs.with_run(run))

    async def forget(self, session_id: str) -> None:
        """Take its runs out, so that the next run starts a fresh conversation."""
        await self._cell.update(lambda runs: runs.without(session_id))

    async def note_total(self, session_id: str, total_usd: float) -> None:
        """Write it to the run, for the next one to start from."""
        await self._cell.update(lambda runs: runs.with_total(session_id, total_usd))

    @property
    def total_before_usd(self) -> float | None:
        """What the last run wrote down."""
        return self._total_before_usd


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
