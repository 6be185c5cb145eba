"""
What ties a session to an agent's conversation from one run to the next: the same for every agent.

A provider is asked at the start of each run and told at its end; in between, the binding is told
what the run learns. The thin provider of a block keeps an id in the session's state, which is
enough where an agent resumes cheaply by id. Another one can hold something heavier behind it, for
example an open connection that the next run goes on using.

Both are called in the run's own task, so nothing that is to outlive the run may be started in it.
What a provider holds from one run to the next it has the Runtime keep, ``await ctx.keep(name,
open)``: it then lives in a task of the Runtime's, one for each session, and is closed when the
Runtime is left or by ``await ctx.let_go(name)``. Nothing of any vendor and nothing of how state is
stored is known here.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from flowstate.context import Context

B = TypeVar("B", bound="Binding")


class Binding(Protocol):
    """One run's hold on a conversation."""

    @property
    def conversation_id(self) -> str | None:
        """The agent's id of the conversation to continue; None for a fresh one."""
        ...

    @property
    def total_before_usd(self) -> float | None:
        """
        What the agent said that the conversation had cost before this run, in US dollars; 0 for a
        fresh one, None if it isn't known, and then the run's own cost isn't either.
        """
        ...

    async def confirm(self, conversation_id: str) -> None:
        """
        The agent has named the conversation that the run is in: keep it for the next run. At most
        once a run, as early as it is known; a cancelled run is given a moment for it. What this
        raises fails the run.
        """
        ...

    async def forget(self, conversation_id: str) -> None:
        """The agent doesn't know this conversation: don't ask for it again."""
        ...

    async def note_total(self, conversation_id: str, total_usd: float) -> None:
        """The conversation has cost so much in all, as the agent reports it."""
        ...


class BindingProvider(Protocol[B]):
    """Finds the conversation of a run, and lets go of it when the run has ended."""

    async def resolve(self, ctx: Context, *, agent: str) -> B:
        """
        The binding for a run that starts now. What this raises fails the run, bare.

        Args:
            ctx: the run's context.
            agent: the name of the block: agents of different names have conversations of their own.
        """
        ...

    async def release(self, binding: B, error: BaseException | None) -> None:
        """
        The run has ended, and its agent's process with it. Called once for every binding that was
        resolved, in a shelter that no cancel reaches, for a few seconds at most; what it raises
        is logged.

        Args:
            binding: what ``resolve`` returned for this run.
            error: what the run raised, a cancellation too; None if it returned a handle.
        """
        ...
