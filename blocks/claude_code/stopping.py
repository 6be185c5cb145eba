"""
How a running agent is ended: asked first, then told, then killed, within five seconds in all.

Two sequences run side by side. ``wind_down`` asks: interrupt the turn, wait until the agent has
settled and written its transcript, end what it left in the background, disconnect. ``enforce``
watches the clock: the vendor's own disconnect waits up to ten seconds and can't be cut short from
inside, so the signals that end its waiting come from beside it.

Nothing here knows the SDK: an agent is anything that is ``Stoppable``. Errors on the way are not
raised, since what is being ended may be gone already; the report tells what happened.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, final

import anyio


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """
    By when each step of a stop is over, in seconds since it began. The steps are in this order.
    """

    interrupt: float = 2.0
    """The agent has acknowledged the interrupt."""
    settle: float = 3.0
    """It has settled: the turn's last messages were read and are in the transcript."""
    background: float = 3.4
    """Its background tasks were told to end."""
    terminate: float = 3.6
    """It has exited by itself; now it gets SIGTERM."""
    kill: float = 4.4
    """It has exited by SIGTERM; now it, and what it left behind, gets SIGKILL."""


FINISH_SECONDS = 8.0
"""How long an agent that has ended its work may take to exit before it is stopped."""


@final
@dataclass(slots=True, kw_only=True)
class StopReport:
    """What it took to end an agent."""

    begun: bool = False
    """The agent had been given its prompt."""
    interrupted: bool = False
    """The agent acknowledged an interrupt."""
    settled: bool = False
    """The agent was idle when it was disconnected."""
    terminated: bool = False
    """It was sent SIGTERM."""
    killed: bool = False
    """It was sent SIGKILL, and commands that it left behind with it."""
    seconds: float = 0.0
    """From the wish to end it until it had ended."""

    @property
    def transcript_complete(self) -> bool:
        """Whether the transcript holds all that was said; else it may lack its end."""
        return not self.begun or (self.settled and not self.terminated and not self.killed)


class Stoppable(Protocol):
    """What an agent has to offer in order to be ended."""

    async def interrupt(self) -> None:
        """End the turn that is going on; returns when that is acknowledged."""
        ...

    async def settle(self) -> bool:
        """Returns once the agent is idle (True), or once nothing more can be heard of it."""
        ...

    async def end_background(self) -> None:
        """Tell background tasks to end."""
        ...

    async def disconnect(self) -> None:
        """Let it exit, and return when it has."""
        ...

    async def signal(self, number: signal.Signals) -> bool:
        """Send it a signal; False if there is nothing to send it to. SIGKILL reaches leftovers."""
        ...


async def wind_down(
    agent: Stoppable, report: StopReport, patience: Patience, *, interrupt: bool
) -> None:
    """
    Ask an agent to end, step by step, and disconnect from it. Call it shielded.

    Args:
        interrupt: whether a turn is going on that has to be broken off.
    """
    began = anyio.current_time()
    if interrupt:
        report.interrupted = await _within(began + patience.interrupt, agent.interrupt)
        if report.interrupted:
            with anyio.CancelScope(deadline=began + patience.settle):
                report.settled = await agent.settle()
    else:
        report.settled = True
    await _within(began + patience.background, agent.end_background)
    # No deadline: the vendor shields it. `enforce` ends the process, and with it the waiting.
    await _within(float("inf"), agent.disconnect)


async def enforce(agent: Stoppable, report: StopReport, patience: Patience) -> None:
    """Send the signals when their time has come. Runs beside ``wind_down``; cancel it after."""
    await anyio.sleep(patience.terminate)
    report.terminated = await agent.signal(signal.SIGTERM)
    await anyio.sleep(patience.kill - patience.terminate)
    report.killed = await agent.signal(signal.SIGKILL)


async def sheltered(work: Callable[[], Awaitable[object]], *, seconds: float) -> bool:
    """
    Do this although the caller is being cancelled, for so many seconds at most.

    It runs in a task of its own: a shield keeps anyio's cancellations out, but not a bare
    ``task.cancel()`` of asyncio's, which reaches only the task it is meant for. Such a cancel is
    raised here when the work has ended, so put all that has to be done into one call.

    Returns:
        Whether it was done in time. An exception of its own is raised as it is.
    """
    done = False
    raised: Exception | None = None

    async def run() -> None:
        nonlocal done, raised
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + seconds):
            try:
                await work()
                done = True
            except Exception as error:
                raised = error

    with anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
    if raised is not None:
        raise raised
    return done


async def _within(deadline: float, step: Callable[[], Awaitable[object]]) -> bool:
    with anyio.CancelScope(deadline=deadline):
        try:
            await step()
        except Exception:
            # The agent may be dead already, which is what we want of it.
            return False
        return True
    return False
