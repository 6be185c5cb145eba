"""From a history to messages: sides alternate, every call has its result, nothing is lost."""

from __future__ import annotations

import re
from itertools import pairwise, zip_longest
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from flowstate.blocks.generator.conversation import arguments_of, messages_of, sent_back
from flowstate.item.selection import Called, Said, Utterance

TEXTS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
SAID = st.builds(Said, role=st.sampled_from(["user", "assistant", "system"]), text=TEXTS)
CALLED = st.builds(
    Called,
    call_id=st.sampled_from(["a", "a", "b", "x/y", "", "call_1", "ü"]),
    name=st.sampled_from(["lookup", "save"]),
    arguments=JSON,
    output=JSON,
    is_error=st.booleans(),
)
HISTORIES: st.SearchStrategy[list[Utterance]] = st.lists(SAID | CALLED, max_size=12)


@given(HISTORIES)
def test_sides_alternate_and_every_call_is_answered_at_once(history: list[Utterance]) -> None:
    """No two messages of one side meet, and each call's result opens the next request."""
    messages = messages_of(history)
    kinds = [message.kind for message in messages]
    assert all(one != other for one, other in pairwise(kinds))
    ids: list[str] = []
    for message, following in zip_longest(messages, messages[1:]):
        if not isinstance(message, ModelResponse):
            continue
        made = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        ids += made
        if made:
            assert isinstance(following, ModelRequest)
            answered = [
                part.tool_call_id for part in following.parts if isinstance(part, ToolReturnPart)
            ]
            assert answered == made
    assert len(set(ids)) == len(ids) == sum(isinstance(told, Called) for told in history)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in ids)


@given(HISTORIES)
def test_everything_said_is_told_and_can_be_sent(history: list[Utterance]) -> None:
    """One part for each message, two for each call, and all of it has a UTF-8 form."""
    parts = [part for message in messages_of(history) for part in message.parts]
    assert len(parts) == sum(2 if isinstance(told, Called) else 1 for told in history)
    for part in parts:
        if isinstance(part, ToolCallPart):
            part.args_as_json_str().encode()
        else:
            str(getattr(part, "content", "")).encode()


@given(
    st.lists(
        st.builds(TextPart, content=TEXTS)
        | st.builds(
            ToolCallPart,
            tool_name=st.just("t"),
            args=st.none() | TEXTS | st.dictionaries(TEXTS, JSON, max_size=3),
            tool_call_id=st.just("c"),
        ),
        max_size=5,
    )
)
def test_an_answer_can_always_be_sent_back(parts: list[TextPart | ToolCallPart]) -> None:
    """Whatever a model said: texts encode, and a call's arguments are an object."""
    back = sent_back(ModelResponse(parts=parts))
    assert len(back.parts) == len(parts)
    for part in back.parts:
        if isinstance(part, ToolCallPart):
            given_back, problem = arguments_of(part)
            assert problem is None
            assert isinstance(given_back, dict)
            part.args_as_json_str().encode()
        elif isinstance(part, TextPart):
            part.content.encode()


def test_a_failed_call_is_told_as_one() -> None:
    """Its flag goes on to the provider; its text is the output, JSON where it is none."""
    history = [Called(call_id="c", name="t", output={"a": 1}, is_error=True)]
    response, request = messages_of(history)
    assert isinstance(response, ModelResponse)
    (result,) = request.parts
    assert isinstance(result, ToolReturnPart)
    assert (result.outcome, result.content) == ("failed", '{"a": 1}')
