"""A generator in a Runtime: a conversation over several requests, and a cancelled one."""

from __future__ import annotations

import anyio
import pytest

from flowstate import Context, Runtime, action, define_flow, handler, sequencer
from flowstate.blocks.generator import generator
from flowstate.errors import RequestCancelled
from flowstate.item.content import ErrorReport, Message, ToolOutput
from flowstate.item.selection import Utterance, contents, history, of_type
from tests.blocks.generator.script import Script, Use

pytestmark = pytest.mark.anyio


@handler
async def lookup(term: str) -> str:
    """Looks a term up."""
    return f"{term} is known"


async def test_a_session_is_told_to_the_model_again() -> None:
    """The host reads the session's items, and the generator gets them as a history."""
    script = Script([Use("lookup", {"value": "tea"}, "c1")], ["Known."], ["As I said."])

    async def before(question: str, ctx: Context) -> list[Utterance]:
        items = [item async for item in runtime.session_items(ctx.session.id)]
        return history(items)[:-1]  # the question itself is the prompt

    @handler
    async def note_question(question: str, ctx: Context) -> str:
        ctx.items.add(Message(role="user", text=question))
        return question

    answer = generator("answer", model=script.model, tools=[lookup], history=before)
    turn = action("turn", sequencer("turn", str).step(note_question).step(answer))
    async with Runtime(define_flow("chat", actions=[turn])) as runtime:
        for question, expected in (("What is tea?", "Known."), ("Sure?", "As I said.")):
            run = await runtime.dispatch(turn, question, session="s1")
            assert await run.output() == expected
            await run.finished()
    kinds = [[part.part_kind for part in message.parts] for message in script.messages[-1]]
    assert kinds == [
        ["user-prompt"],
        ["tool-call"],
        ["tool-return"],
        ["text"],
        ["user-prompt"],
    ]


async def test_a_cancelled_request_keeps_what_was_said() -> None:
    """What is stored of it: the message as far as it went, the call without a result; no error."""
    begun = anyio.Event()

    @handler
    async def wait(text: str, ctx: Context) -> str:
        begun.set()
        await anyio.sleep_forever()
        return text

    script = Script(["Wait.", Use("wait", {"value": "x"})], ["never"])
    turn = action("turn", generator("answer", model=script.model, tools=[wait]))
    async with Runtime(define_flow("chat", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, "go", session="s1")
        await begun.wait()
        run.cancel("enough")
        with pytest.raises(RequestCancelled):
            await run.output()
        await run.finished()
        items = [item async for item in runtime.session_items("s1")]
    assert contents(items, Message) == [Message(text="Wait.")]
    (call,) = of_type(items, ToolOutput)
    assert call.status == "incomplete"
    assert of_type(items, ErrorReport) == []
    assert len(script.messages) == 1
