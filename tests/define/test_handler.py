"""The handler: what a function may look like, and what is read off it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from flowstate import Context, handler, run_block, sequencer
from flowstate.define.handler import make_handler
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import DefinitionError


async def plain(value: int) -> str:
    return str(value)


def test_types_and_name_are_the_functions() -> None:
    """Input, output and name come from the function itself."""
    block = handler(plain)
    assert (block.name, block.input_type, block.output_type) == ("plain", int, str)
    assert block.is_async
    assert not block.takes_context


def test_options_stand_before_the_function() -> None:
    """``@handler(...)`` is a decorator with settings."""

    @handler(name="other", timeout=3, visibility="trace", transient=True, pure=True)
    async def function(value: int) -> int:
        return value

    assert (function.name, function.timeout, function.visibility) == ("other", 3, "trace")
    assert function.transient
    assert function.pure


def test_what_is_not_annotated_is_unknown() -> None:
    """A missing annotation is no error: the edge is checked when it runs."""
    block = make_handler(lambda value: value)
    assert (block.name, block.input_type, block.output_type) == (
        "lambda",
        UNKNOWN_TYPE,
        UNKNOWN_TYPE,
    )


def test_an_annotation_that_cant_be_resolved_is_unknown() -> None:
    """A forward reference to a name that isn't there doesn't break the definition."""

    async def odd(value: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
        return 1

    assert handler(odd).input_type is UNKNOWN_TYPE


class Callable1:
    """An object that is called like a function."""

    async def __call__(self, value: int) -> str:
        return str(value)


class Bound:
    """Something with methods."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    async def times(self, value: int) -> int:
        return value * self.factor

    async def told(self, value: int, ctx: Context) -> str:
        return f"{ctx.path} {value * self.factor}"


@pytest.mark.anyio
async def test_methods_objects_and_partials_are_functions_too() -> None:
    """Whatever can be called with the input makes a block."""
    assert await run_block(handler(Bound(3).times), 2) == 6
    assert await run_block(handler(Bound(3).told), 2) == "told 6"
    called = handler(Callable1())
    assert (called.name, called.input_type, called.is_async) == ("Callable1", int, True)
    assert await run_block(called, 2) == "2"

    async def add(more: int, value: int) -> int:
        return more + value

    part: Callable[[int], Any] = functools.partial(add, 5)
    assert await run_block(make_handler(part, name="part", input_type=int), 2) == 7


@pytest.mark.anyio
async def test_a_second_argument_with_a_default_is_no_context() -> None:
    """Only a required second argument asks for the context; a default is the author's own."""

    @handler
    async def scaled(value: int, factor: int = 10) -> int:
        return value * factor

    assert not scaled.takes_context
    assert await run_block(scaled, 2) == 20


def nothing() -> None: ...


def three(a: int, b: int, c: int) -> None: ...


def named(a: int, *, b: int) -> None: ...


def rest(*values: int) -> None: ...


@pytest.mark.parametrize("function", [nothing, three, named, rest])
def test_a_function_of_another_form_is_refused(function: Any) -> None:
    """A block's function takes the input, or the input and the context."""
    with pytest.raises(DefinitionError, match=r"takes \(input\) or \(input, ctx\)"):
        make_handler(function)


@pytest.mark.parametrize("option", ["inline", "abandon"])
def test_an_async_handler_has_no_use_for_thread_settings(option: str) -> None:
    """``inline`` and ``abandon`` say how a thread is used, and an async handler has none."""
    options: Any = {option: True}
    with pytest.raises(DefinitionError, match="for synchronous functions"):
        make_handler(plain, **options)


@pytest.mark.parametrize("limit", ["timeout", "deadline"])
def test_a_limit_on_a_thread_is_refused_unless_the_thread_may_be_left(limit: str) -> None:
    """A thread can't be killed, so a limit on it could not hold; ``abandon`` says it is meant."""
    options: Any = {limit: 1.0}

    def work(value: int) -> int:
        return value

    with pytest.raises(DefinitionError, match="a thread can't be stopped"):
        make_handler(work, **options)
    with pytest.raises(DefinitionError, match="a thread can't be stopped"):
        handler(work).configure(**options)
    assert make_handler(work, abandon=True, **options).abandon


def test_a_limit_on_a_sequencer_of_threads_is_fine() -> None:
    """A sequencer waits for the thread under way and starts no other, so its limit can hold."""

    @handler
    def work(value: int) -> int:
        return value

    assert sequencer("turn", int, timeout=1).step(work).timeout == 1
