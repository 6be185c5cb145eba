"""A run as lines of JSON."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from pydantic import BaseModel

from flowstate import Context, Runtime, action, define_flow, handler
from flowstate.cli.ndjson import JsonLines, jsonable
from flowstate.cli.show import OutputClosed
from flowstate.item.content import Message, ToolOutput
from flowstate.item.event import ItemEvent
from flowstate.item.fold import fold
from flowstate.item.item import Item
from flowstate.item.wire import read_item

pytestmark = pytest.mark.anyio

WORDS = ["é ", "\u2028", "\ud800", "\x1b[31m", '"\n', "\0"]


class Answer(BaseModel):
    total_cost: float


@handler
async def speak(count: int, ctx: Context) -> Answer:
    message = ctx.items.open(Message())
    for word in WORDS:
        message.append(word)
    message.settle()
    ctx.items.add(ToolOutput(call_id="c", name="T", output=[math.nan, "\udfff", count]))
    return Answer(total_cost=1.5)


@handler
async def breaks(count: int) -> int:
    raise ValueError("no \udc80")


SPEAK, BREAK = action("speak", speak), action("break", breaks)
FLOW = define_flow("lines", actions=[SPEAK, BREAK])


async def lines_of(stream: io.StringIO, name: str) -> list[dict[str, Any]]:
    show = JsonLines(stream)
    async with Runtime(FLOW, trace=True) as runtime:
        run = await runtime.dispatch(FLOW.action(name), 3, session="s")
        await show.follow(run)
        await run.finished()
        try:
            show.completed(run, await run.output())
        except ValueError as error:
            show.ended(run, error)
    text = stream.getvalue()
    assert text.isascii()
    assert text.endswith("\n")
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


async def test_every_event_is_a_line_and_they_fold_to_the_items() -> None:
    """A program that reads them knows what a reader of the stream knows."""
    *events, end = await lines_of(io.StringIO(), "speak")
    assert {line["type"] for line in events} == {"event"}
    assert [line["sequence"] for line in events] == list(range(1, len(events) + 1))
    items: dict[str, Item] = {}
    for line in events:
        item = None if line["kind"] == "delta" else read_item(json.dumps(line["item"]))
        fold(
            items,
            ItemEvent(line["sequence"], line["kind"], line["itemId"], item, line.get("text", "")),
        )
    contents = [item.content for item in items.values()]
    assert Message(text="".join(WORDS)) in contents
    assert end == {
        "type": "end",
        "requestId": events[0]["requestId"],
        "status": "completed",
        "output": {"total_cost": 1.5},
    }


async def test_names_are_the_wires() -> None:
    """camelCase, in the envelope and in the contents."""
    *events, _ = await lines_of(io.StringIO(), "speak")
    tool = next(
        line["item"]
        for line in events
        if "item" in line and line["item"]["content"]["type"] == "tool_output"
    )
    assert tool["content"]["callId"] == "c"
    assert tool["content"]["isError"] is False
    assert tool["requestId"] == events[0]["requestId"]


async def test_a_failure_is_an_error_and_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback, with the path of the step, goes to the standard error."""
    *_, error, end = await lines_of(io.StringIO(), "break")
    assert error["type"] == "error"
    assert error["code"] == "ValueError"
    assert error["message"] == "no \udc80"
    assert end == {"type": "end", "requestId": error["requestId"], "status": "failed"}
    assert "in step breaks" in capsys.readouterr().err


async def test_each_line_is_flushed() -> None:
    """A program at the other end of the pipe sees it now."""

    class Counting(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    stream = Counting()
    lines = await lines_of(stream, "speak")
    assert stream.flushed == len(lines)


async def test_a_reader_that_has_gone_is_told() -> None:
    """By an error of its own."""

    class Closed(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    async with Runtime(FLOW) as runtime:
        run = await runtime.dispatch(SPEAK, 1, session="s")
        closed = False
        try:
            await JsonLines(Closed()).follow(run)
        except OutputClosed:
            closed = True
        assert closed


def test_what_json_has_no_word_for_is_text() -> None:
    """Objects by their repr, numbers that aren't any by their names."""
    assert jsonable([math.inf]) == ["inf"]
    assert jsonable({"x": object}) == {"x": repr(object)}
