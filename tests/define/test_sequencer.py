"""The sequencer as a value: methods give longer ones, and refuse what could never work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from flowstate import handler, sequencer
from flowstate.define.step import MapStep, RunStep
from flowstate.errors import DefinitionError


@handler
async def add(value: int) -> int:
    return value + 1


@handler
async def mend(failure: Any) -> int:
    return 0


def is_odd(value: int) -> bool:
    return value % 2 == 1


async def is_odd_later(value: int) -> bool:
    return value % 2 == 1


def start() -> Any:
    return sequencer("turn", int)


def test_each_method_gives_a_new_sequencer() -> None:
    """A prefix can be shared: what is added to one continuation is not in the other."""
    prefix = sequencer("turn", int).step(add)
    longer, other = prefix.map(str), prefix.step(add)
    assert [type(step) for step in prefix.steps] == [RunStep]
    assert [type(step) for step in longer.steps] == [RunStep, MapStep]
    assert [type(step) for step in other.steps] == [RunStep, RunStep]
    assert longer.name == prefix.name == "turn"


def test_settings_stay_when_steps_are_added() -> None:
    """Whatever the sequencer was given holds for the longer one too."""
    assert sequencer("turn", int, timeout=4, status="Working…").step(add).timeout == 4


def test_many_steps_cost_as_much_as_they_are() -> None:
    """Adding a step doesn't copy those before it: ten thousand are added in no time."""
    built = start()
    began = time.perf_counter()
    for _ in range(10_000):
        built = built.step(add)
    assert len(built.steps) == 10_000
    assert time.perf_counter() - began < 5


WRONG: list[tuple[str, Callable[[Any], Any]]] = [
    ("is no block.*@handler", lambda s: s.step(is_odd)),
    ("is no block.*Give a block", lambda s: s.step(5)),
    ("is no block", lambda s: s.step(is_odd, is_odd)),
    ("is no function", lambda s: s.step(5, add)),
    ("is no function", lambda s: s.step(add, add)),
    ("is asynchronous", lambda s: s.step(is_odd_later, add)),
    ("is no function", lambda s: s.step_if(True, add)),
    ("is asynchronous", lambda s: s.step_if(is_odd_later, add)),
    ("is no function", lambda s: s.map(add)),
    ("is asynchronous", lambda s: s.map(is_odd_later)),
    ("is no block", lambda s: s.tap(5)),
    ("is no function", lambda s: s.tap_if("yes", add)),
    ("no branches", lambda s: s.parallel()),
    ("no branches", lambda s: s.parallel(dict)),
    ("can't be called", lambda s: s.parallel(5, a=add)),
    ("is no block", lambda s: s.parallel(a=is_odd)),
    ("not a usable name", lambda s: s.parallel(**{"a/b": add})),
    ("max_concurrency=0", lambda s: s.parallel(a=add, max_concurrency=0)),
    ("max_concurrency='2'", lambda s: s.step_all(add, max_concurrency="2")),
    ("no branches", lambda s: s.step_all()),
    ("no blocks", lambda s: s.step_any()),
    ("no blocks", lambda s: s.race()),
    ("is no block", lambda s: s.race(add, is_odd)),
    ("max_concurrency=-1", lambda s: s.for_each(add, max_concurrency=-1)),
    ("max_iterations=0", lambda s: s.do_until(is_odd, add, max_iterations=0)),
    ("max_iterations=1.5", lambda s: s.do_while(is_odd, add, max_iterations=1.5)),
    ("is asynchronous", lambda s: s.do_until(is_odd_later, add, max_iterations=1)),
    (
        "on_exhausted='stop'",
        lambda s: s.do_until(is_odd, add, max_iterations=1, on_exhausted="stop"),
    ),
    ("is no function", lambda s: s.loop_back("add", True, max_iterations=1)),
    ("max_iterations=0", lambda s: s.loop_back("add", is_odd, max_iterations=0)),
    ("no arms", lambda s: s.branch()),
    ("no arms", lambda s: s.branch(otherwise=add)),
    ("is no arm", lambda s: s.branch(add)),
    ("is no function", lambda s: s.branch((True, add))),
    ("is no block", lambda s: s.branch((is_odd, is_odd))),
    ("is no function", lambda s: s.exit_if(True)),
    ("is asynchronous", lambda s: s.exit_if(is_odd_later)),
    ("is no error", lambda s: s.throw_if(is_odd, "no")),
    ("is no error", lambda s: s.throw_if(is_odd, KeyboardInterrupt())),
    ("no errors named", lambda s: s.step(add).rescue((), mend)),
    ("can't be rescued", lambda s: s.step(add).rescue(BaseException, mend)),
    ("can't be rescued", lambda s: s.step(add).rescue((ValueError, KeyboardInterrupt), mend)),
    ("can't be rescued", lambda s: s.step(add).rescue(ValueError("x"), mend)),
    ("there is no step before it", lambda s: s.rescue(ValueError, mend)),
    ("is no block", lambda s: s.step(add).rescue(ValueError, is_odd)),
    ("timeout=0", lambda s: s.wait_for_side_chains(timeout=0)),
    ("is no block", lambda s: s.side_chain(is_odd)),
    ("is no block", lambda s: s.for_each_side_chain(is_odd)),
]


@pytest.mark.parametrize(("problem", "method"), WRONG)
def test_what_can_never_work_is_refused_where_it_is_written(
    problem: str, method: Callable[[Any], Any]
) -> None:
    """A wrong argument is an error of that line, naming the sequencer and the way out."""
    with pytest.raises(DefinitionError, match=problem) as caught:
        method(start())
    assert str(caught.value).startswith("turn.")


@pytest.mark.parametrize("method", ["do_until", "do_while", "loop_back"])
def test_a_loop_says_its_bound_aloud(method: str) -> None:
    """There is no default bound, and none is only meant when ``None`` is written."""
    arguments: tuple[Any, ...] = ("add", is_odd) if method == "loop_back" else (is_odd, add)
    with pytest.raises(TypeError, match="max_iterations"):
        getattr(start().step(add), method)(*arguments)
    getattr(start().step(add), method)(*arguments, max_iterations=None)


def test_the_repr_reads_like_the_definition() -> None:
    """A failing property test prints the composition as its author would write it."""
    built = (
        sequencer("turn", int)
        .step(add)
        .step_if(is_odd, add)
        .tap(add)
        .parallel(a=add, b=add)
        .map(len)
        .do_until(is_odd, add, max_iterations=3)
        .exit_if(is_odd)
        .rescue((ValueError, OSError), mend)
        .side_chain(add)
        .wait_for_side_chains()
    )
    assert repr(built) == (
        "<sequencer 'turn' .step(<handler 'add'>) .step_if(<handler 'add'>) "
        ".tap(<handler 'add'>) .parallel(a=<handler 'add'>, b=<handler 'add'>) .map(len) "
        ".do_until(<handler 'add'>, max_iterations=3) .exit_if(...) "
        ".rescue(ValueError, OSError: <handler 'mend'>) .side_chain(<handler 'add'>) "
        ".wait_for_side_chains(timeout=None)>"
    )
