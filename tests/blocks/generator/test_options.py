"""What may be written in ``generator(...)``, and what is refused when it is built."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flowstate import handler, sequencer
from flowstate.blocks.generator import generator
from flowstate.define.handler import Handler
from flowstate.errors import DefinitionError
from flowstate.plan.build import build_plan


class Draft(BaseModel):
    """Some input."""

    text: str


class NoSchema:
    """Nothing that pydantic knows."""


@handler
async def lookup(term: str) -> str:
    """Looks a term up."""
    return term


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model": ""}, "model=''"),
        ({"model": None}, "model=None"),
        ({"model": 5}, "model=5"),
        ({"temperature": 1}, "unknown option temperature"),
        ({"instructions": 5}, "instructions is of type int"),
        ({"tools": lookup}, "tools=<handler 'lookup'>"),
        ({"tools": [print]}, "tools holds a builtin_function_or_method"),
        ({"max_turns": 0}, "max_turns=0"),
        ({"max_turns": True}, "max_turns=True"),
        ({"output_retries": -1}, "output_retries=-1"),
        ({"settings": "hot"}, "settings is of type str"),
        ({"history": ["hello"]}, "history holds something else"),
        ({"history": "hello"}, "history holds something else"),
        ({"on_usage": 5}, "on_usage=5 is no function"),
        ({"prompt": "hello"}, "prompt='hello' is no function"),
        ({"input": NoSchema}, "can't be written as JSON"),
        ({"output": NoSchema}, "has no JSON Schema"),
        ({"output": 5}, "has no JSON Schema"),
        ({"pure": True}, "a model is never pure"),
        ({"timeout": 0}, "timeout=0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    """Each error names the generator, the option and what to write instead."""
    written: Any = {"model": "test", **options}
    with pytest.raises(DefinitionError, match=r"^ask: ") as caught:
        generator("ask", **written)
    assert problem in str(caught.value)


def test_settings_stay_out_of_errors() -> None:
    """They may hold a header with a key."""
    secret: Any = [("x-api-key", "sk-secret")]
    with pytest.raises(DefinitionError) as caught:
        generator("ask", model="test", settings=secret)
    assert "sk-secret" not in str(caught.value)


def test_it_is_a_frozen_block_with_the_settings_of_every_block() -> None:
    """Options of blocks mean what they do anywhere; ``configure`` makes another one."""
    block = generator("ask", model="test", deadline=9.0, status="Asking…", visibility="trace")
    assert isinstance(block, Handler)
    assert (block.name, block.input_type, block.output_type) == ("ask", str, str)
    assert (block.deadline, block.status, block.visibility) == (9.0, "Asking…", "trace")
    assert block.configure(name="again").name == "again"
    with pytest.raises(AttributeError):
        block.name = "other"  # type: ignore[misc]


def test_a_plan_follows_its_types() -> None:
    """A neighbour that doesn't fit is found before anything runs."""
    ask = generator("ask", input=Draft, output=int, model="test")
    chain: Any = sequencer("turn", str)
    with pytest.raises(Exception, match="Draft"):
        build_plan(chain.step(ask))
    assert build_plan(sequencer("turn", Draft).step(ask)).output_type is int


def test_the_same_tool_twice_is_there_once() -> None:
    """By its block: the block itself, and what ``as_tool`` makes of it."""
    generator("ask", model="test", tools=[lookup, lookup, lookup.as_tool("Looks.")])
    other = handler(lookup.fn).configure(name="lookup")
    with pytest.raises(DefinitionError, match="two tools are called 'lookup'"):
        generator("ask", model="test", tools=[lookup, other])
