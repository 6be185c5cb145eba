"""What all kinds of block share: names, settings, limits, and blocks made of blocks."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic import BaseModel

from flowstate import Failure, Retry, handler, run_block, sequencer, session_state
from flowstate.errors import DefinitionError


class Ask(BaseModel):
    text: str


class Notes(BaseModel):
    lines: list[str] = []


@handler
async def size(ask: Ask) -> int:
    return len(ask.text)


@handler
async def fails(ask: Ask) -> int:
    raise ValueError(ask.text)


@pytest.mark.parametrize("name", ["", "a/b", "[", "x]", "iter[1]", None, 5])
def test_a_name_that_no_path_can_hold_is_refused(name: object) -> None:
    """Names are put together to paths, so one with a separator, or none at all, is an error."""
    with pytest.raises(DefinitionError, match="not a usable name"):
        dataclasses.replace(size, name=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a", "#2", "ünïcode", "with space", "a:if", "a.b"])
def test_any_other_text_is_a_name(name: str) -> None:
    """Nothing else is asked of a name."""
    assert size.configure(name=name).name == name


@pytest.mark.parametrize("option", ["timeout", "deadline"])
@pytest.mark.parametrize("seconds", [0, -1.5, float("nan")])
def test_a_limit_is_a_positive_number_of_seconds(option: str, seconds: float) -> None:
    """A limit that would end a block before it began is a mistake, NaN included."""
    with pytest.raises(DefinitionError, match=f"{option}="):
        dataclasses.replace(size, **{option: seconds})  # type: ignore[arg-type]


def test_configure_gives_another_block_and_leaves_the_first() -> None:
    """Blocks are values: settings are never changed in place."""
    other = size.configure(
        name="long", timeout=2, deadline=5, retry=Retry(attempts=3), uses=[session_state(Notes)]
    )
    assert (other.name, other.timeout, other.deadline) == ("long", 2, 5)
    assert other.uses == (session_state(Notes),)
    assert (size.name, size.timeout, size.deadline, size.uses) == ("size", None, None, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.name = "else"  # type: ignore[misc]


def test_blocks_are_told_apart_by_identity() -> None:
    """Two blocks that look the same are two blocks: each may stand for another place."""
    twin = size.configure()
    assert twin != size
    assert len({size, twin}) == 2


def test_a_repr_is_short_and_says_what_it_is() -> None:
    """A block is named in errors and reports by its kind and its name."""
    assert repr(size) == "<handler 'size'>"
    assert repr(sequencer("turn", Ask).step(size)) == "<sequencer 'turn' .step(<handler 'size'>)>"


@pytest.mark.anyio
async def test_connect_input_puts_a_function_before_a_block() -> None:
    """A connected block takes what its connector takes."""

    def as_ask(text: str) -> Ask:
        return Ask(text=text)

    connected = size.connect_input(as_ask)
    assert connected.name == "size"
    assert connected.input_type is str
    assert await run_block(connected, "four") == 4


@pytest.mark.anyio
async def test_rescued_puts_a_rescue_around_a_block() -> None:
    """A rescued block ends with its handler's output where it would have failed."""

    @handler
    async def mend(failure: Failure[Exception]) -> str:
        return f"mended {failure.error}"

    assert await run_block(fails.rescued(ValueError, mend), Ask(text="it")) == "mended it"
    with pytest.raises(ValueError, match="it"):
        await run_block(fails.rescued(KeyError, mend), Ask(text="it"))


def test_a_block_as_a_tool_has_the_schema_of_its_input() -> None:
    """An object is taken as it is; anything else under the one property ``value``."""
    tool = size.as_tool("Counts.", name="count")
    assert (tool.name, tool.description) == ("count", "Counts.")
    assert tool.schema()["properties"]["text"] == {"title": "Text", "type": "string"}

    @handler
    async def double(number: int) -> int:
        return number * 2

    assert double.as_tool("Doubles.").name == "double"
    assert double.as_tool("Doubles.").schema() == {
        "type": "object",
        "properties": {"value": {"type": "integer"}},
        "required": ["value"],
    }


def test_an_input_without_a_schema_makes_no_tool() -> None:
    """A block that nobody can describe to a model says so, and what to do about it."""

    class Odd:
        pass

    @handler
    async def odd(value: Odd) -> int:
        return 1

    with pytest.raises(DefinitionError, match=r"has no JSON Schema.*pydantic model"):
        odd.as_tool("Odd.").schema()
