"""
A person beside the real Claude Code binary: calls that wait for a decision, lines sent to a turn.

Against a scripted endpoint on loopback, like ``test_claude_code_block``, whose bench this uses.
"""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from flowstate.blocks.claude_code.approval import (
    AllowTool,
    DenyTool,
    HoldTool,
    ToolApprovalRequest,
    ToolDecision,
)
from flowstate.blocks.claude_code.conversation import SdkAgentRuns
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.held_answers import HeldAnswers
from flowstate.blocks.claude_code.waiting_call import fingerprint_of
from flowstate.context import Context
from flowstate.harness.steering import SteeringOffer
from flowstate.testing.received_request import ReceivedRequest
from flowstate.testing.scripted_turns import Turn, text, tool_call
from tests.blocks.claude_code.fake_context import FakeContext
from tests.live.test_claude_code_block import Bench, _bench, one_backend, until

__all__ = ["_bench"]

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]

ASKING: dict[str, Any] = {"permission_mode": "default", "allowed_tools": []}


def statuses(ctx: FakeContext) -> list[str]:
    """The status items."""
    return [content.text for content in ctx.contents("status")]


# --- calls that wait ----------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [AllowTool(), DenyTool("not today")])
async def test_a_held_call_is_decided_in_the_next_run(
    bench: Bench, answer: AllowTool | DenyTool
) -> None:
    """
    Held, it doesn't run, and nothing is an error. The next run in that conversation makes it again,
    under another id, and the person's answer decides it. A third time it is asked about anew.
    """
    path = bench.home.path / "held.txt"
    command = f"echo ran >> {path}"
    said: dict[str, AllowTool | DenyTool] = {}
    answers = HeldAnswers(lambda _: said)
    bench.api.script(
        Turn(
            text("I will write it."),
            tool_call("Bash", command=command, description="Write it"),
            tool_call("Bash", command=f"echo beside >> {path}"),
        )
    )
    ctx = FakeContext(bench.session)
    first = await bench.run(ctx=ctx, on_tool_approval=answers, **ASKING)

    assert (first.status, first.outcome, first.result_subtype) == ("completed", None, None)
    (waiting,) = first.waiting
    assert (waiting.tool_name, waiting.input["command"]) == ("Bash", command)
    assert waiting.fingerprint == fingerprint_of("Bash", {"command": command})
    assert first.final_message == "I will write it."
    assert not path.exists()
    assert ctx.contents("error") == []
    assert [i.status for i in ctx.items.shown if i.content.type == "tool_output"] == [
        *("incomplete", "incomplete"),
    ]
    assert statuses(ctx) == ["Held Bash"]
    assert (ctx.status.kept, ctx.status.shown[-1]) == ([], None)
    assert len(bench.api.conversation()) == 1
    state = await bench.session[SdkAgentRuns].get()
    assert state.waiting_in(first.session_id or "") == (waiting,)

    said[waiting.fingerprint] = answer
    again = tool_call("Bash", command=command, description="Write it, as approved")
    bench.api.script(Turn(again), Turn(text("Done."), again))
    ctx = FakeContext(bench.session)
    second = await bench.run("You may.", ctx=ctx, on_tool_approval=answers, **ASKING)

    assert second.session_id == first.session_id
    assert [call.fingerprint for call in second.waiting] == [waiting.fingerprint]
    assert second.waiting[0].call_id != waiting.call_id
    result = bench.api.conversation()[-1].tool_results[-1].text
    if isinstance(answer, AllowTool):
        assert path.read_text() == "ran\n"
        assert statuses(ctx) == ["Approved Bash", "Held Bash"]
    else:
        assert not path.exists()
        assert "not today" in result
        assert statuses(ctx) == ["Denied Bash: not today", "Held Bash"]


@one_backend
@pytest.mark.parametrize("background", [True, False])
async def test_a_sub_agent_s_held_call_stops_the_whole_run(bench: Bench, background: bool) -> None:
    """Claude Code alone would stop the sub-agent and let the main thread go on."""
    bench.api.script(
        Turn(
            tool_call(
                "Agent",
                description="Look around",
                prompt="SUBAGENT: look around",
                subagent_type="general-purpose",
                run_in_background=background,
            )
        ),
        *[Turn(text("The main thread goes on."), delay=0.5)] * 3,
    )
    bench.api.route("SUBAGENT: look around", Turn(tool_call("Bash", command="touch sub.txt")))
    ctx = FakeContext(bench.session)
    with anyio.fail_after(20):
        handle = await bench.run(ctx=ctx, on_tool_approval=lambda *_: HoldTool(), **ASKING)

    assert [call.input for call in handle.waiting] == [{"command": "touch sub.txt"}]
    assert (handle.status, handle.outcome) == ("completed", None)
    assert ctx.contents("error") == []
    assert all(item.status in ("incomplete", "completed") for item in ctx.items.shown)
    (tool,) = [i for i in ctx.items.shown if i.content.type == "tool_output"]
    assert tool.status == "incomplete"


async def test_a_detached_run_knows_only_what_its_author_keeps(bench: Bench) -> None:
    """The handle names the call; whether it was held before isn't known, and the answer decides."""
    asked: list[ToolApprovalRequest] = []

    def hold(request: ToolApprovalRequest, _: Context) -> ToolDecision:
        asked.append(request)
        return HoldTool("until somebody looks") if len(asked) == 1 else AllowTool()

    call = tool_call("Write", file_path=str(bench.home.path / "a.txt"), content="x")
    bench.api.script(Turn(call), Turn(call), Turn(text("Done.")))
    ctx = FakeContext()
    first = await bench.run(ctx=ctx, detached=True, on_tool_approval=hold, **ASKING)
    assert statuses(ctx) == ["Held Write: until somebody looks"]
    second = await bench.run(
        *("Go on", FakeContext()),
        detached=True,
        resume=lambda _: first.session_id,
        on_tool_approval=hold,
        **ASKING,
    )

    assert [request.held_before for request in asked] == [None, None]
    assert [request.fingerprint for request in asked] == [first.waiting[0].fingerprint] * 2
    assert (second.outcome, second.waiting) == ("finished", ())
    assert (bench.home.path / "a.txt").read_text() == "x"


# --- lines that are sent to a running turn ------------------------------------------------------


def _hanging_until_back(request: ReceivedRequest) -> Turn:
    back = "Come back" in "\n".join(request.user_texts)
    return Turn(text("Back.")) if back else Turn(text("On it."), hang=True)


async def test_a_line_reaches_the_turn_that_runs(bench: Bench) -> None:
    """It is in the next request of the same turn; after the run nothing is taken any more."""
    offers: list[SteeringOffer] = []
    taken: list[bool] = []

    async def steer(offer: SteeringOffer, _: Context) -> None:
        assert offer.live
        offers.append(offer)
        taken.append(await offer.send("Use the LEFT door"))

    bench.api.script(Turn(tool_call("Bash", command="sleep 1")), Turn(text("Done.")))
    handle = await bench.run(on_steerable=steer)

    assert taken == [True]
    assert handle.final_message == "Done."
    first, second = bench.api.conversation()
    assert "LEFT door" not in str(first.body)
    assert str(second.body["messages"]).count("Use the LEFT door") == 1
    assert not offers[0].live
    assert await offers[0].send("too late") is False
    assert len(offers) == 1


async def test_a_line_that_comes_too_late_for_the_turn_has_its_own(bench: Bench) -> None:
    """Sent while the last message streams, it keeps the run open and is answered in it."""
    bench.api.script(Turn(text("The last words of it. " * 10), hang=True), Turn(text("I see.")))
    taken: list[bool] = []

    async def steer(offer: SteeringOffer, _: Context) -> None:
        async with anyio.create_task_group() as tasks:

            async def send() -> None:
                taken.append(await offer.send("One more thing"))

            tasks.start_soon(send)
            await anyio.sleep(0.5)
            bench.api.release()

    handle = await bench.run(on_steerable=steer)

    assert taken == [True]
    assert handle.final_message == "I see."
    assert str(bench.api.conversation()[-1].body["messages"]).count("One more thing") == 1


async def test_a_line_under_way_at_a_cancel_is_answered_truly(bench: Bench) -> None:
    """Stopped in time in spite of it; what was not taken isn't in the conversation, and reverse."""
    bench.api.script(Turn(tool_call("Bash", command="sleep 60")), *[_hanging_until_back] * 4)
    answers: list[bool] = []
    offers: list[SteeringOffer] = []
    ctx = FakeContext(bench.session)

    async with anyio.create_task_group() as tasks:

        async def send() -> None:
            await until(lambda: offers)
            answers.append(await offers[0].send("Never mind"))

        tasks.start_soon(send)
        seconds = await bench.cancelled(
            ctx,
            lambda: "Using Bash…" in ctx.status.shown and offers,
            on_steerable=lambda offer, _: offers.append(offer),
        )
    assert seconds < 5

    with anyio.fail_after(20):
        await bench.run("Come back")
    held = "Never mind" in str(bench.api.conversation()[-1].body["messages"])
    assert answers == [held]


async def test_a_line_does_not_carry_a_run_past_a_held_call(bench: Bench) -> None:
    """The run stops for the person's decision although a line was waiting to be taken."""
    taken: list[bool] = []
    sent = anyio.Event()

    async def steer(offer: SteeringOffer, _: Context) -> None:
        sent.set()
        taken.append(await offer.send("And hurry"))

    async def hold(request: ToolApprovalRequest, _: Context) -> ToolDecision:
        await sent.wait()
        await anyio.sleep(0.3)
        return HoldTool()

    bench.api.script(Turn(tool_call("Bash", command="touch x")), *[_hanging_until_back] * 4)
    with anyio.fail_after(20):
        handle: ClaudeCodeHandle = await bench.run(
            on_steerable=steer, on_tool_approval=hold, **ASKING
        )
    assert len(handle.waiting) == 1

    with anyio.fail_after(20):
        await bench.run("Come back")
    held = "And hurry" in str(bench.api.conversation()[-1].body["messages"])
    assert taken == [held]


@pytest.mark.slow
async def test_lines_at_any_moment_are_taken_once_or_not_at_all(bench: Bench) -> None:
    """
    Whether the run ends by itself or by a cancel: what was answered with True is in the
    conversation once, and what was answered with False isn't in it.
    """
    chance = random.Random(4711)
    told: dict[str, bool] = {}

    def any_turn(request: ReceivedRequest) -> Turn:
        said = text("word " * 20)
        first = len(bench.api.conversation()) % 2
        call = [tool_call("Bash", command="sleep 0.2")] if first else []
        return Turn(said, *call, chunk_delay=0.01)

    async def send(offers: list[SteeringOffer], line: str) -> None:
        await until(lambda: offers)
        await anyio.sleep(chance.random())
        told[line] = await offers[0].send(line)

    bench.api.script(*[any_turn] * 200)
    for number in range(8):
        offers: list[SteeringOffer] = []
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as running:
            for one in range(3):
                tasks.start_soon(send, offers, f"LINE-{number}-{one}-END")
            if number % 2:
                running.start_soon(_cancel_after, running, offers, chance.random())
            await bench.run(on_steerable=lambda offer, _: offers.append(offer))  # noqa: B023
            running.cancel_scope.cancel()

    await bench.run("Come back")
    sent = str(bench.api.conversation()[-1].body["messages"])
    assert {line: sent.count(line) for line in told} == {line: int(t) for line, t in told.items()}
    assert len(told) == 24
    assert set(told.values()) == {True, False}


async def _cancel_after(tasks: TaskGroup, offers: list[SteeringOffer], seconds: float) -> None:
    await until(lambda: offers)
    await anyio.sleep(seconds)
    tasks.cancel_scope.cancel()
