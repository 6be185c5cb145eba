"""What was said before, as the messages of pydantic-ai: from a history to a conversation. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from flowstate.blocks.generator.wording import clean_json
from flowstate.harness.clean_text import clean_text
from flowstate.item.selection import Called, Said, Utterance

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes; other agents use other characters."""


def messages_of(history: Iterable[Utterance]) -> list[ModelMessage]:
    """
    The conversation as messages, neighbours of one side in one message.

    A call's id is kept where every provider takes it and nothing else has it; else it is numbered.
    """
    messages: list[ModelMessage] = []
    taken: set[str] = set()
    for told in history:
        match told:
            case Said(role="assistant", text=text):
                _answer(messages, TextPart(content=clean_text(text)))
            case Said(role="system", text=text):
                _request(messages, SystemPromptPart(content=clean_text(text)))
            case Said(text=text):
                _request(messages, UserPromptPart(content=clean_text(text)))
            case Called():
                _call(messages, told, taken)
    return messages


def sent_back(response: ModelResponse) -> ModelResponse:
    """
    An answer as it goes back to the model: what no request can carry is replaced, so that one
    slip of the model's doesn't end the run.

    That is a lone surrogate anywhere, and arguments that are no JSON object.
    """
    return replace(response, parts=[_sendable(part) for part in response.parts])


def arguments_of(part: ToolCallPart) -> tuple[object, str | None]:
    """A call's arguments, and what is wrong with their form: they have to be an object."""
    given: object = part.args
    if given is None or given == "":
        return {}, None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            return given, str(error)
    if isinstance(given, dict):
        return cast("dict[str, object]", given), None
    return given, f"they are a {type(given).__name__}"


def _sendable(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart(content=text) if (clean := clean_text(text)) != text:
            return replace(part, content=clean)
        case ToolCallPart():
            given, problem = arguments_of(part)
            if problem is not None:
                return replace(part, args=json.dumps({"invalid": clean_json(given)}))
            if (clean_args := clean_json(given)) != given:
                return replace(part, args=json.dumps(clean_args))
        case _:
            pass
    return part


def _call(messages: list[ModelMessage], told: Called, taken: set[str]) -> None:
    call_id = told.call_id
    if not _CALL_ID.fullmatch(call_id) or call_id in taken:
        number = len(taken) + 1
        while (call_id := f"call_{number}") in taken:
            number += 1
    taken.add(call_id)
    _answer(
        messages,
        ToolCallPart(
            tool_name=told.name, args=clean_json(_arguments(told.arguments)), tool_call_id=call_id
        ),
    )
    _request(
        messages,
        ToolReturnPart(
            tool_name=told.name,
            content=clean_text(told.text),
            tool_call_id=call_id,
            outcome="failed" if told.is_error else "success",
        ),
    )


def _arguments(arguments: Any) -> dict[str, Any]:
    """An object, as providers want it, whatever another agent's call was made with."""
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return {str(key): value for key, value in cast("Mapping[object, Any]", arguments).items()}
    return {"value": arguments}


def _request(messages: list[ModelMessage], part: ModelRequestPart) -> None:
    last = messages[-1] if messages else None
    if isinstance(last, ModelRequest):
        last.parts = [*last.parts, part]
    else:
        messages.append(ModelRequest(parts=[part]))


def _answer(messages: list[ModelMessage], part: ModelResponsePart) -> None:
    last = messages[-1] if messages else None
    if isinstance(last, ModelResponse):
        last.parts = [*last.parts, part]
    else:
        messages.append(ModelResponse(parts=[part]))
