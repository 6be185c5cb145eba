"""
Steering: a person's line reaches the turn of a coding agent that is running.

The contract that all agents share. A harness whose run can take a line hands its author an offer;
who sends lines to it, and what becomes of a line that wasn't taken, is the author's. It knows no
agent, no session and no queue of turns.

A line is delivered when the agent shows that it took it, never merely because it was written to
it. What ``send`` answers with False was not shown to be taken, so it can be sent as the next turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, final

from flowstate.context import Context
from flowstate.errors import HarnessError


@final
class EmptyLineError(HarnessError):
    """The line holds nothing but white space; nothing was sent."""

    def __init__(self) -> None:
        super().__init__("the line is empty; give the agent something to read")


class SteeringOffer(Protocol):
    """
    What a run that can take lines offers. It ends with the run, and is used on the run's own event
    loop, from any task there.
    """

    @property
    def live(self) -> bool:
        """Whether a line sent now may still be taken; False for good once it is False."""
        ...

    async def send(self, line: str) -> bool:
        """
        Send a line to the running turn, and wait until the agent has shown that it took it.

        That may last as long as the tool that is running. Lines are taken in the order in which
        they were sent, each at most once. While one is on its way the run isn't over. Cancelled, a
        line that wasn't written to the agent yet is withdrawn; one that was is with the agent.

        Returns:
            True once it was taken; False when the run is over, or ended before it was taken.

        Raises:
            EmptyLineError: there is nothing in it.
        """
        ...


OnSteerable: TypeAlias = Callable[[SteeringOffer, Context], "object | Awaitable[object]"]
"""
Called once, when a run can take lines. An async one may go on sending as long as the run goes on;
the run doesn't wait for it, and when it is over ends it, a ``send`` under way being answered first.
"""
