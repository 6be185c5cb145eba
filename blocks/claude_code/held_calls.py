"""
The tool calls that wait in the conversations of a session, kept in its state.

A run that held calls writes them down, so that the next one, in whatever process, knows that they
were held. A call is struck off when it is decided. Which conversation is continued is not known
here, nor what a person said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from flowstate.blocks.claude_code.conversation import SdkAgentRuns
from flowstate.blocks.claude_code.waiting_call import WaitingCall
from flowstate.context import Context


@final
class HeldCalls:
    """
    The waiting calls of one conversation; None is a fresh one, in which none waits yet.
    """

    def __init__(self, ctx: Context, conversation: str | None) -> None:
        self._cell = ctx.session[SdkAgentRuns]
        self._conversation = conversation

    async def waiting(self) -> tuple[WaitingCall, ...]:
        """Those that were held before and not decided since."""
        if self._conversation is None:
            return ()
        return (await self._cell.get()).waiting_in(self._conversation)

    async def strike(self, fingerprint: str) -> None:
        """This one is decided."""
        conversation = self._conversation
        if conversation is not None:
            await self._cell.update(lambda runs: runs.with_decided(conversation, fingerprint))

    async def keep(self, conversation: str, calls: Sequence[WaitingCall]) -> None:
        """These were held, in the conversation that the run turned out to be in."""
        await self._cell.update(lambda runs: runs.with_waiting(conversation, calls))
