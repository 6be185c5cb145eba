"""Contents whose text grows: by what is appended, and in nothing else."""

from __future__ import annotations

import typing

import pytest
from pydantic import BaseModel

from flowstate.item.content import Content, Message, Reasoning, Status
from flowstate.item.growing import GROWING, grown

MODELS: tuple[type[BaseModel], ...] = typing.get_args(typing.get_args(Content)[0])


@pytest.mark.parametrize(
    "content", [Message(text="a", role="user"), Message(text="a"), Reasoning(text="a")]
)
def test_only_the_text_grows(content: Message | Reasoning) -> None:
    """Every other field stays what it was, whatever fields the model has."""
    assert grown(content, "b") == content.model_copy(update={"text": "ab"})
    assert content.text == "a"


def test_every_field_of_what_grows_is_known() -> None:
    """A content is made anew with these, so one that is added has to be added there, too."""
    assert {*Message.model_fields} == {"type", "text", "role"}
    assert {*Reasoning.model_fields} == {"type", "text"}


def test_the_types_that_grow_are_those_two() -> None:
    """Told by name: the names are the models'."""
    growing = {model.model_fields["type"].default for model in (Message, Reasoning)}
    assert growing == GROWING
    assert growing < {model.model_fields["type"].default for model in MODELS}


def test_what_does_not_grow_stays() -> None:
    """A content of another type is given back."""
    status = Status(text="a")
    assert grown(status, "b") is status
