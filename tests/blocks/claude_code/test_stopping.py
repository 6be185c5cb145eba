"""Ending an agent: asked first, then told, then killed; nothing is ever waited for without end."""

from __future__ import annotations

import asyncio
import signal

import anyio
import pytest

from flowstate.blocks.claude_code.stopping import (
    Patience,
    StopReport,
    enforce,
    sheltered,
    wind_down,
)

pytestmark = pytest.mark.anyio

QUICK = Patience(interrupt=0.1, settle=0.2, background=0.3, terminate=0.4, kill=0.5)


class _Agent:
    """An agent that behaves as badly as it is told to."""

    def __init__(self, *stuck: str, fails: str = "", dies_of: signal.Signals | None = None) -> None:
        self.steps: list[str] = []
        self._stuck = stuck
        self._fails = fails
        self._dies_of = dies_of
        self._dead = anyio.Event()

    async def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self._fails:
            raise RuntimeError("the process is gone")
        if name in self._stuck:
            await anyio.sleep_forever()

    async def interrupt(self) -> None:
        await self._step("interrupt")

    async def settle(self) -> bool:
        await self._step("settle")
        return True

    async def end_background(self) -> None:
        await self._step("end_background")

    async def disconnect(self) -> None:
        # Like the vendor's: shielded, it waits for the process whatever happens around it.
        self.steps.append("disconnect")
        if self._dies_of is not None:
            with anyio.CancelScope(shield=True):
                await self._dead.wait()

    async def signal(self, number: signal.Signals) -> bool:
        self.steps.append(number.name)
        if number == self._dies_of:
            self._dead.set()
        return True


async def _end(agent: _Agent, *, interrupt: bool = True) -> StopReport:
    report = StopReport(begun=True)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(enforce, agent, report, QUICK)
            await wind_down(agent, report, QUICK, interrupt=interrupt)
            tasks.cancel_scope.cancel()
    return report


async def test_a_willing_agent_is_only_asked() -> None:
    """It acknowledges, settles and exits: no signal is sent, and the transcript is complete."""
    agent = _Agent()
    report = await _end(agent)

    assert agent.steps == ["interrupt", "settle", "end_background", "disconnect"]
    assert report.interrupted
    assert report.transcript_complete


async def test_without_a_turn_nothing_is_interrupted() -> None:
    """An agent that has ended its work is only let go."""
    agent = _Agent()
    report = await _end(agent, interrupt=False)

    assert agent.steps == ["end_background", "disconnect"]
    assert report.transcript_complete


async def test_an_agent_that_does_not_answer_is_disconnected() -> None:
    """No acknowledgement: nothing is waited for any further, and the report says so."""
    agent = _Agent("interrupt")
    report = await _end(agent)

    assert agent.steps == ["interrupt", "end_background", "disconnect"]
    assert not report.interrupted
    assert not report.transcript_complete


async def test_an_agent_that_does_not_settle_is_disconnected() -> None:
    """Acknowledged but never idle, with background tasks that don't end: it goes on in time."""
    agent = _Agent("settle", "end_background")
    report = await _end(agent)

    assert agent.steps == ["interrupt", "settle", "end_background", "disconnect"]
    assert report.interrupted
    assert not report.transcript_complete


@pytest.mark.parametrize("step", ["interrupt", "end_background"])
async def test_errors_on_the_way_are_not_raised(step: str) -> None:
    """What is being ended may be gone already; the rest is done all the same."""
    agent = _Agent(fails=step)
    await _end(agent)

    assert agent.steps[-1] == "disconnect"


async def test_signals_end_a_disconnect_that_cannot_be_cut_short() -> None:
    """The vendor's disconnect waits shielded, so SIGTERM, then SIGKILL come from beside it."""
    by_term = _Agent(dies_of=signal.SIGTERM)
    report = await _end(by_term)
    assert by_term.steps[-2:] == ["disconnect", "SIGTERM"]
    assert (report.terminated, report.killed) == (True, False)
    assert not report.transcript_complete

    by_kill = _Agent("interrupt", dies_of=signal.SIGKILL)
    report = await _end(by_kill)
    assert by_kill.steps[-3:] == ["disconnect", "SIGTERM", "SIGKILL"]
    assert (report.terminated, report.killed) == (True, True)


def test_the_whole_of_it_fits_into_five_seconds() -> None:
    """By default the last resort comes early enough for the end to be within five seconds."""
    patience = Patience()

    assert patience.interrupt < patience.settle < patience.background
    assert patience.background < patience.terminate < patience.kill < 4.5


def test_an_agent_that_was_never_asked_lost_nothing() -> None:
    """Without a prompt there is no transcript to be incomplete."""
    assert StopReport().transcript_complete
    assert not StopReport(begun=True).transcript_complete


async def test_shelter_keeps_a_cancellation_out() -> None:
    """What has to be done is done, although everything around it is cancelled."""
    done: list[str] = []

    async def work() -> None:
        await anyio.sleep(0.02)
        done.append("work")

    with anyio.CancelScope() as scope:
        scope.cancel()
        assert await sheltered(work, seconds=10)
        done.append("after")

    assert done == ["work", "after"]


async def test_shelter_is_bounded() -> None:
    """Work that doesn't end is given up on, and the caller told."""
    with anyio.fail_after(10):
        assert not await sheltered(anyio.sleep_forever, seconds=0.02)


async def test_an_error_in_the_shelter_comes_out_bare() -> None:
    """No group of one around it."""

    async def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await sheltered(fail, seconds=10)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_shelter_keeps_bare_task_cancels_out() -> None:
    """asyncio's own task.cancel() doesn't respect shields; the work is done all the same."""
    begun, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(0.05)
        done.set()

    task = asyncio.create_task(sheltered(work, seconds=10))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done.is_set()
