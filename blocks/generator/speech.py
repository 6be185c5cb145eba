"""
What a model says while it answers, as items: its text as messages, its thinking as reasoning.

An item opens with the first character of its part and settles with the part, or when another part
speaks. Some providers go on with a part after another has begun: what comes then is another item,
so that items stand in the order in which things were said. Tool calls are no speech: they become
items when they are called.
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
    The item that one answer is speaking, if any; one at a time.

    Args:
        ctx: the run's context.
        shows_text: False where the text is a typed output in JSON, which nobody wants to read.
    """

    def __init__(self, ctx: Context, *, shows_text: bool) -> None:
        self._ctx = ctx
        self._shows_text = shows_text
        self._open: OpenItem | None = None
        self._part: int | None = None
        """The index of its part."""

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Join one event of the stream to the items."""
        if isinstance(event, PartStartEvent | PartDeltaEvent) and event.index != self._part:
            # Another part, a call too: what was being said is said.
            self.close(complete=True)
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
        if self._open is not None:
            self._open.settle(status="completed" if complete else "incomplete")
        self._open = self._part = None

    def _text(self, index: int, text: str) -> None:
        if text and self._shows_text:
            self._say(index, text, Message)

    def _thinking(self, index: int, text: str) -> None:
        if text:
            self._say(index, text, Reasoning)

    def _say(self, index: int, text: str, kind: type[Message | Reasoning]) -> None:
        if self._open is None:
            self._open, self._part = self._ctx.items.open(kind()), index
        self._open.append(text)

    def _end(self, index: int) -> None:
        if self._part == index:
            self.close(complete=True)
