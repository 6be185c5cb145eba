"""Lines on their way to an agent: each decided once, none lost."""

from __future__ import annotations

import anyio
import pytest

from flowstate.blocks.claude_code.steering import Line, LineOffer, Lines
from flowstate.harness.steering import EmptyLineError, SteeringOffer

pytestmark = pytest.mark.anyio


class Rig:
    """Lines, what was decided of them, and what a carrier wrote."""

    def __init__(self) -> None:
        self.decisions = 0
        self.lines = Lines(self._decided)
        self.offer: SteeringOffer = LineOffer(self.lines)
        self.written: list[Line] = []
        self.answers: dict[str, bool] = {}

    def _decided(self) -> None:
        self.decisions += 1

    async def carry(self) -> None:
        while (line := await self.lines.next_to_write()) is not None:
            self.written.append(line)

    async def send(self, text: str) -> None:
        self.answers[text] = await self.offer.send(text)


async def _settled() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_a_line_is_taken_when_the_agent_shows_it() -> None:
    """Written is not taken; the wrong id decides nothing, and a repeated one not twice."""
    rig = Rig()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.carry)
        tasks.start_soon(rig.send, "one")
        await _settled()
        assert [line.text for line in rig.written] == ["one"]
        rig.lines.took(["another"])
        assert rig.answers == {}
        assert rig.lines.pending
        rig.lines.took([rig.written[0].id])
        rig.lines.took([rig.written[0].id])
        await _settled()
        assert (rig.answers, rig.decisions, rig.lines.pending) == ({"one": True}, 1, False)
        rig.lines.end()


async def test_lines_are_written_in_the_order_in_which_they_were_sent() -> None:
    """Also those that were sent before anybody wrote."""
    rig = Rig()
    async with anyio.create_task_group() as tasks:
        for text in ("one", "two", "three"):
            tasks.start_soon(rig.send, text)
            await _settled()
        tasks.start_soon(rig.carry)
        await _settled()
        assert [line.text for line in rig.written] == ["one", "two", "three"]
        rig.lines.end()
    assert rig.answers == {"one": False, "two": False, "three": False}


async def test_closing_refuses_what_is_not_written_and_waits_for_what_is() -> None:
    """A line that the agent may yet show to have taken isn't given up before the end."""
    rig = Rig()
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as carrier:
            tasks.start_soon(rig.send, "written")
            await _settled()
            carrier.start_soon(rig.carry)
            await _settled()
            carrier.cancel_scope.cancel()
        tasks.start_soon(rig.send, "not written")
        await _settled()
        rig.lines.close()
        await _settled()
        assert rig.answers == {"not written": False}
        assert not rig.offer.live
        rig.lines.took([rig.written[0].id])
        await _settled()
    assert rig.answers == {"not written": False, "written": True}
    assert await rig.offer.send("after") is False


async def test_a_cancelled_send_withdraws_what_is_not_written() -> None:
    """It never reaches the agent; one that was written stays with it."""
    rig = Rig()
    with anyio.move_on_after(0.01):
        await rig.offer.send("withdrawn")
    assert (rig.lines.pending, rig.decisions) == (False, 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.carry)
        with anyio.move_on_after(0.05):
            await rig.offer.send("written")
        assert [line.text for line in rig.written] == ["written"]
        assert rig.lines.pending
        rig.lines.end()
    assert not rig.lines.pending


@pytest.mark.parametrize("nothing", ["", " \n\t"])
async def test_an_empty_line_is_refused(nothing: str) -> None:
    """There would be nothing in it to take."""
    with pytest.raises(EmptyLineError):
        await Rig().offer.send(nothing)
