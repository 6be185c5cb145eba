"""Steps in a row: step, step_if, map, tap and their connectors, by value and by failure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flowstate import handler, run_block, sequencer
from flowstate.errors import InvalidValue
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def double(value: int) -> int:
    return value * 2


@handler
async def fails(value: int) -> int:
    raise ValueError(f"no {value}")


async def test_the_output_of_a_step_is_the_next_ones_input() -> None:
    """Steps run in order, each on what the last gave."""
    assert await run_block(sequencer("turn", int).step(add_one).step(double), 3) == 8
    assert await run_block(sequencer("turn", int).step(double).step(add_one), 3) == 7


async def test_an_empty_sequencer_gives_its_input() -> None:
    """No steps change nothing."""
    assert await run_block(sequencer("turn", int), 3) == 3
    assert await run_block(sequencer("turn", int).step(sequencer("inner", int)), 3) == 3


async def test_a_failing_step_ends_the_chain_with_its_own_error() -> None:
    """What a block raises comes out bare, and nothing after it starts."""
    journal = Journal()
    with pytest.raises(ValueError, match="no 4"):
        await run_block(
            sequencer("turn", int).step(add_one).step(fails).step(journal.block("b")), 3
        )
    assert journal.lines == []


async def test_a_connector_makes_the_input_of_its_block_only() -> None:
    """The connector's value goes into the block, whose output goes on."""
    built = sequencer("turn", int).step(lambda value: value * 10, add_one)
    assert await run_block(built, 3) == 31


async def test_step_if_runs_where_its_condition_holds() -> None:
    """If not, the running value stays and the connector isn't called."""
    asked: list[int] = []

    def connector(value: int) -> int:
        asked.append(value)
        return value

    built = sequencer("turn", int).step_if(lambda value: value > 5, connector, double).step(add_one)
    assert await run_block(built, 6) == 13
    assert await run_block(built, 5) == 6
    assert asked == [6]


async def test_a_map_reshapes_without_a_block() -> None:
    """The function's result is the running value, and its errors are the chain's."""
    assert await run_block(sequencer("turn", int).map(str).map(len), 1234) == 4
    with pytest.raises(ZeroDivisionError):
        await run_block(sequencer("turn", int).map(lambda value: 1 // value), 0)


async def test_a_tap_leaves_the_value_and_is_waited_for() -> None:
    """A tap's output is dropped, and the next step starts when the tap has ended."""
    journal = Journal()
    built = (
        sequencer("turn", int)
        .tap(journal.block("tap", lambda value: value * 100, waits=3))
        .step(journal.block("next"))
    )
    assert await run_block(built, 3) == 3
    assert journal.lines.index("tap is over") < journal.lines.index("next starts")


async def test_a_taps_failure_is_a_steps() -> None:
    """A tap that fails aborts the chain."""
    journal = Journal()
    with pytest.raises(ValueError, match="no 3"):
        await run_block(sequencer("turn", int).tap(fails).step(journal.block("next")), 3)
    assert journal.lines == []


async def test_a_tap_may_be_a_plain_function_or_take_a_connector() -> None:
    """Functions, sync or async, and connected blocks can be taps."""
    seen: list[object] = []

    async def later(value: int) -> None:
        seen.append(("later", value))

    @handler
    async def note(text: str) -> None:
        seen.append(text)

    built = sequencer("turn", int).tap(seen.append).tap(later).tap(str, note)
    assert await run_block(built, 3) == 3
    assert seen == [3, ("later", 3), "3"]


async def test_tap_if_runs_where_its_condition_holds() -> None:
    """If not, nothing of it runs."""
    seen: list[int] = []
    built = sequencer("turn", int).tap_if(lambda value: value > 5, seen.append)
    assert [await run_block(built, value) for value in (5, 6)] == [5, 6]
    assert seen == [6]


async def test_taps_nest() -> None:
    """A tap inside a tapped sequencer takes back its own value, not another's."""
    seen: list[int] = []
    inner = sequencer("inner", int).step(double).tap(fails.rescued(ValueError, _zero)).step(double)
    built = sequencer("turn", int).tap(inner.tap(seen.append)).step(add_one)
    assert await run_block(built, 3) == 4
    assert seen == [12]


@handler
async def _zero(failure: Any) -> int:
    return 0


async def test_a_failing_condition_is_a_failure_of_its_step() -> None:
    """A condition or connector that raises can be rescued like a step."""
    built = sequencer("turn", int).step_if(lambda value: 1 // value > 0, add_one)
    with pytest.raises(ZeroDivisionError):
        await run_block(built, 0)
    assert await run_block(built.rescue(ZeroDivisionError, _zero), 0) == 0


class Ask(BaseModel):
    text: str


class Sharp(Ask):
    edge: int = 1


async def test_an_output_is_checked_where_it_is_made() -> None:
    """A block that gives something else than it says fails there, not three steps later."""

    @handler
    async def lies(value: int) -> Ask:
        wrong: Any = {"text": 5}
        return wrong  # type: ignore[no-any-return]

    with pytest.raises(InvalidValue, match=r"turn/lies: expected Ask, got dict"):
        await run_block(sequencer("turn", int).step(lies).map(lambda ask: ask.text), 1)


async def test_a_connector_is_handed_what_it_says_it_takes() -> None:
    """Behind something unannotated its input is checked before it is called, in every method."""
    called: list[object] = []

    def connector(value: int) -> int:
        called.append(value)
        return value

    def several(value: int) -> list[int]:
        called.append(value)
        return [value]

    start: Any = sequencer("turn", int)
    unknown = start.map(lambda value: value if value < 5 else "no number")
    for built in (
        unknown.step(connector, add_one),
        unknown.step_if(lambda _: True, connector, add_one),
        unknown.tap(connector, add_one),
        unknown.for_each(several, add_one),
        unknown.for_each_side_chain(several, add_one),
    ):
        await run_block(built, 3)
        assert called == [3]
        with pytest.raises(InvalidValue, match="turn/add_one: expected int, got str"):
            await run_block(built, 9)
        assert called == [3]
        called.clear()
    # A side chain's own failure, its connector's included, is an item and nobody's error.
    events: list[Any] = []
    await run_block(unknown.side_chain(connector, add_one), 9, emit=events.append)
    assert [event.item.content.code for event in events] == ["InvalidValue"]
    assert called == []


async def test_a_subclass_is_a_value_of_its_base() -> None:
    """Values go on as they are: a subclass keeps its own fields."""

    @handler
    async def sharp(value: int) -> Ask:
        return Sharp(text=str(value), edge=value)

    assert await run_block(sequencer("turn", int).step(sharp), 7) == Sharp(text="7", edge=7)


async def test_the_input_is_checked() -> None:
    """What goes in is validated like what a block makes."""
    wrong: Any = "three"
    with pytest.raises(InvalidValue, match=r"turn \(input\): expected int, got str"):
        await run_block(sequencer("turn", int).step(add_one), wrong)


@given(
    value=st.integers(),
    numbers=st.lists(st.integers(-5, 5), max_size=6),
    at=st.integers(0, 6),
    kept=st.booleans(),
)
async def test_a_tap_and_an_unmet_step_if_change_nothing(
    value: int, numbers: list[int], at: int, kept: bool
) -> None:
    """Put one anywhere into a chain: what comes out is the same."""
    plain: Any = sequencer("turn", int)
    other = plain
    for index, number in enumerate([*numbers, 0]):
        if index == min(at, len(numbers)):
            other = other.tap(double) if kept else other.step_if(lambda _: False, double)
        plain = plain.map(lambda running, more=number: running + more)
        other = other.map(lambda running, more=number: running + more)
    assert await run_block(other, value) == await run_block(plain, value)
