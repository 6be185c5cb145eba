"""Where an error came from: the note in its traceback, at any depth."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Retry, handler, router, run_block, sequencer
from flowstate.run.attribution import path_of
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


@handler
async def fails(value: int) -> int:
    raise ValueError("deep down")


def around(kind: str, block: Any) -> Any:
    """A sequencer that runs the block by this method."""
    start = sequencer(kind, int)
    match kind:
        case "step":
            return start.step(block)
        case "tap":
            return start.tap(block)
        case "parallel":
            return start.parallel(branch=block).map(lambda _: 0)
        case "step_all":
            return start.step_all(block).map(lambda _: 0)
        case "for_each":
            return start.map(lambda value: [value]).for_each(block).map(lambda _: 0)
        case "loop":
            return start.do_until(lambda _: True, block, max_iterations=1)
        case "branch":
            return start.branch((lambda _: True, block))
        case "retry":
            return start.step(block.configure(retry=Retry(attempts=2)))
        case _:
            return start.step(router("way", routes=[block], select=lambda _: block.name))


PARTS = {
    "step": "step/{}",
    "tap": "tap/{}",
    "parallel": "parallel/parallel/branch",
    "step_all": "step_all/step_all/{}",
    "for_each": "for_each/{}/item[0]",
    "loop": "loop/{}/iter[0]",
    "branch": "branch/branch/{}",
    "retry": "retry/{}/attempt[1]",
    "router": "router/way/{}",
}


@given(kinds=st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=4))
async def test_an_error_tells_its_path_through_everything(kinds: list[str]) -> None:
    """Whatever stands around the failing step is in the path, with turns, items and attempts."""
    built: Any = fails
    for kind in reversed(kinds):
        built = around(kind, built)
    with pytest.raises(ValueError, match="deep down") as caught:
        await run_block(built, 5)
    path = kinds[0]
    for index, kind in enumerate(kinds):
        inner = kinds[index + 1] if index + 1 < len(kinds) else "fails"
        path += PARTS[kind].removeprefix(kind).format(inner)
    assert caught.value.__notes__ == [f"in step {path}, input: int"]
    assert path_of(caught.value) == path


async def test_the_traceback_shows_it() -> None:
    """What a person sees in a terminal names the step, and ends in the author's own line."""
    built = sequencer("turn", int).parallel(left=sequencer("inner", int).step(fails))
    with pytest.raises(ValueError, match="deep down") as caught:
        await run_block(built, 1)
    text = "".join(traceback.format_exception(caught.value))
    assert "ValueError: deep down\nin step turn/parallel/left/fails, input: int" in text
    assert 'raise ValueError("deep down")' in text


async def test_the_input_is_summed_up_and_never_shown() -> None:
    """By type and size: an input may be large, or secret."""
    secret = "sk-" + "x" * 5000

    @handler
    async def breaks(value: Any) -> Any:
        raise ValueError("broken")

    for value, summary in (
        (secret, "str of 5003"),
        ({"key": secret}, "dict of 1"),
        ([1, 2], "list of 2"),
        (None, "NoneType"),
        (object(), "object"),
    ):
        with pytest.raises(ValueError, match="broken") as caught:
            await run_block(sequencer("turn").step(breaks), value)
        assert caught.value.__notes__ == [f"in step turn/breaks, input: {summary}"]


class Slotted(Exception):
    """An exception that takes no attributes."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        if name != "__notes__":
            raise AttributeError(name)
        super().__setattr__(name, value)


async def test_an_exception_without_room_for_a_mark_has_its_note_once() -> None:
    """However many levels it passes through."""
    deep = sequencer("a", int).step_all(
        sequencer("b", int).step_all(Journal().failing("c", Slotted("x")))
    )
    with pytest.raises(Slotted) as caught:
        await run_block(deep, 1)
    assert caught.value.__notes__ == ["in step a/step_all/b/step_all/c, input: int"]


async def test_a_run_inside_a_run_keeps_the_inner_path() -> None:
    """A block may run another; its error tells where it was raised first."""

    @handler
    async def runs(value: int) -> int:
        return await run_block(sequencer("inner", int).step(fails), value)

    with pytest.raises(ValueError, match="deep down") as caught:
        await run_block(sequencer("outer", int).step(runs), 1)
    assert path_of(caught.value) == "inner/fails"


async def test_an_error_of_nowhere_has_no_path() -> None:
    """What didn't come out of a run says nothing."""
    assert path_of(ValueError("x")) is None
