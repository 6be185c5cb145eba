"""A model that plays a script, on pydantic-ai's FunctionModel: no key, no network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)
from pydantic_ai.profiles import ModelProfile

Wait: TypeAlias = Callable[[], Awaitable[object]]


@final
@dataclass(frozen=True)
class Think:
    """A piece of thinking."""

    text: str


@final
@dataclass(frozen=True)
class Use:
    """A tool call; ``arguments`` is JSON, or a text that is none."""

    name: str
    arguments: Any = None
    call_id: str | None = None


Piece: TypeAlias = str | Think | Use | Exception | Wait
"""What a turn is made of: text, thinking, a call, something to raise, something to wait for."""


@final
class Script:
    """
    Turns that are played one after the other, and what was asked for them.

    Neighbouring texts, and neighbouring pieces of thinking, are one part in several pieces. A
    script that has run out says so in a text.

    Args:
        turns: what the model says and calls, one list for each request.
        profile: what the model can do, for pydantic-ai.
    """

    def __init__(self, *turns: Sequence[Piece], profile: ModelProfile | None = None) -> None:
        self._turns = list(turns)
        self.messages: list[list[ModelMessage]] = []
        """The messages of each request."""
        self.asked: list[AgentInfo] = []
        """What each request offers: tools, output tools, instructions."""
        self.model = FunctionModel(
            stream_function=self._play, model_name="scripted", profile=profile
        )

    async def _play(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]]:
        self.messages.append(list(messages))
        self.asked.append(info)
        turn = self._turns.pop(0) if self._turns else ["(no further turn)"]
        index, before = 0, None
        for number, piece in enumerate(turn):
            if before is not None and not (isinstance(piece, type(before)) and _grows(piece)):
                index += 1
            before = piece
            match piece:
                case str():
                    yield piece
                case Think(text=text):
                    yield {index: DeltaThinkingPart(content=text)}
                case Use(name=name, arguments=arguments, call_id=call_id):
                    given = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
                    call_id = call_id or f"call_{len(self.messages)}_{number}"
                    yield {index: DeltaToolCall(name, given, tool_call_id=call_id)}
                case Exception():
                    raise piece
                case _:
                    await piece()

    @property
    def prompts(self) -> list[str]:
        """The user's texts of the last request."""
        return [
            str(part.content)
            for message in self.messages[-1]
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]

    @property
    def results(self) -> list[tuple[str, str, bool]]:
        """The results that the last request told: name, text, and whether it is an error."""
        last = self.messages[-1][-1]
        return [
            (part.tool_name, str(part.content), part.outcome != "success")
            for part in last.parts
            if isinstance(part, ToolReturnPart)
        ]


def _grows(piece: Piece) -> bool:
    return isinstance(piece, str | Think)
