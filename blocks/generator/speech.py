"""
What a model says while it answers, as items: its text as messages, its thinking as reasoning.

An item opens with the first character of its part and settles with the part. Some providers go on
with a part after another has begun: what comes then is another item, so that items stand in the
order in which things were said. Tool calls are no speech: they become items when they are called.
"""

from __future__ import annotations

from typing import final

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)

from flowstate.context import Context
from flowstate.item.content import Message, Reasoning
from flowstate.item.writer import OpenItem


@final
class Speech:
    """
    The open items of one answer, by the index of their part.

    Args:
        ctx: the run's context.
        shows_text: False where the text is a typed output in JSON, which nobody wants to read.
    """

    def __init__(self, ctx: Context, *, shows_text: bool) -> None:
        self._ctx = ctx
        self._shows_text = shows_text
        self._open: dict[int, OpenItem] = {}

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Join one event of the stream to the items."""
        match event:
            case PartStartEvent(index=index, part=TextPart(content=text)):
                self._end(index)
                self._text(index, text)
            case PartStartEvent(index=index, part=ThinkingPart(content=text)):
                self._end(index)
                self._thinking(index, text)
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                self._text(index, text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=text)):
                self._thinking(index, text or "")
            case PartEndEvent(index=index):
                self._end(index)
            case _:
                return

    def close(self, *, complete: bool) -> None:
        """The answer is over; where it isn't complete, what is still open was cut off."""
        for item in self._open.values():
            item.settle(status="completed" if complete else "incomplete")
        self._open.clear()

    def _text(self, index: int, text: str) -> None:
        if not text or not self._shows_text:
            return
        if index not in self._open:
            self._open[index] = self._ctx.items.open(Message())
        self._open[index].append(text)

    def _thinking(self, index: int, text: str) -> None:
        if not text:
            return
        if index not in self._open:
            self._open[index] = self._ctx.items.open(Reasoning())
        self._open[index].append(text)

    def _end(self, index: int) -> None:
        item = self._open.pop(index, None)
        if item is not None:
            item.settle()
