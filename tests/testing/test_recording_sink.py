"""The sink that remembers what a run told."""

from __future__ import annotations

import anyio
import pytest

from flowstate import Context, Runtime, action, define_flow, handler, run_block, sequencer
from flowstate.item.content import Component, ErrorReport, Message, Reasoning, Status
from flowstate.testing import RecordingSink

pytestmark = pytest.mark.anyio


@handler
async def answer(question: str, ctx: Context) -> str:
    ctx.status.show("Thinking")
    ctx.items.add(Message(role="user", text=question))
    thought = ctx.items.open(Reasoning())
    thought.append("so")
    thought.settle(status="incomplete")
    message = ctx.items.open(Message(text="4"))
    message.append("2")
    message.append("!")
    message.settle()
    ctx.items.upsert("card", Component(name="card", properties={"n": 1}), status="completed")
    return "42"


TURN = sequencer("turn", str).step(answer)


async def test_a_run_s_items_as_they_are_in_the_end() -> None:
    """Folded from the events: whole texts, last statuses, in the order they began."""
    sink = RecordingSink()
    await run_block(TURN, "why?", emit=sink)
    assert [item.content.type for item in sink.items] == [
        "status",
        "message",
        "reasoning",
        "message",
        "component",
    ]
    assert sink.texts() == ["why?", "42!"]
    assert sink.texts(role="assistant") == ["42!"]
    assert sink.contents(Reasoning) == [Reasoning(text="so")]
    assert sink.open == []
    (user, assistant) = sink.of_type(Message)
    assert sink.streamed(assistant) == ["2", "!"]
    assert sink.streamed(user) == []
    assert sink.at("turn/answer") == sink.at("turn") == sink.items
    assert sink.at("turn/ans") == []


async def test_it_tells_a_story() -> None:
    """A line an item, for people and for tests; a long content is cut."""
    sink = RecordingSink()
    await run_block(TURN, "why " * 40, emit=sink)
    assert sink.story()[1:] == [
        f"user message, completed: {'why ' * 40!r:.59}… at turn/answer",
        "reasoning, incomplete: 'so' at turn/answer",
        "assistant message, completed: '42!' at turn/answer",
        "component, completed: name='card', properties={'n': 1} at turn/answer",
    ]
    assert repr(sink).startswith(f"<RecordingSink: 5 items, {len(sink.events)} events\n  status")
    assert repr(RecordingSink()) == "<RecordingSink: nothing>"


async def test_what_is_open_shows() -> None:
    """While a run goes on, and only then."""
    sink = RecordingSink()
    seen: list[str] = []

    @handler
    async def looks(value: int, ctx: Context) -> int:
        ctx.items.open(Message(text="hm"))
        seen.extend(sink.story())
        assert len(sink.open) == 1
        return value

    await run_block(sequencer("turn", int).step(looks), 1, emit=sink)
    assert seen == ["assistant message, in progress: 'hm' at turn/looks"]
    assert sink.open == []
    assert sink.items[0].status == "incomplete"


async def test_it_reads_a_run_of_a_runtime() -> None:
    """From the first event to the end, live or afterwards; an error is one of its items."""

    @handler
    async def fail(value: str) -> str:
        raise ValueError(value)

    turn = action("turn", TURN.step(fail))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, "why?", session="s1")
        sink = RecordingSink()
        with anyio.fail_after(10):
            assert await sink.read(run.events()) is sink
        assert sink.texts() == ["why?", "42!"]
        assert [error.code for error in sink.contents(ErrorReport)] == ["ValueError"]
        later = await RecordingSink().read(run.events())
        # The status is transient: who comes later isn't told of what is gone.
        assert [item for item in later.items if not isinstance(item.content, Status)] == [
            item for item in sink.items if not isinstance(item.content, Status)
        ]
