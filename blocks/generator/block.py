"""
The generator: a model call with a tool loop, as a block.

Its input becomes the prompt, its output is a text or a value of any type, and any block can be a
tool of its. pydantic-ai reaches the providers; it is imported when the first run needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Any, TypeVar, overload

from typing_extensions import Unpack

from flowstate.blocks.generator.loading import load_generate
from flowstate.blocks.generator.options import GeneratorOptions, Prompt, split_options
from flowstate.context import Context
from flowstate.define.handler import Handler, make_handler

A = TypeVar("A")
B = TypeVar("B")


@overload
def generator(
    name: str,
    *,
    input: type[A],
    output: type[B],
    prompt: Callable[[A], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[A, B]: ...
@overload
def generator(
    name: str,
    *,
    input: type[A],
    prompt: Callable[[A], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[A, str]: ...
@overload
def generator(
    name: str,
    *,
    output: type[B],
    prompt: Callable[[str], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[str, B]: ...
@overload
def generator(
    name: str,
    *,
    prompt: Callable[[str], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[str, str]: ...
@overload
def generator(
    name: str,
    *,
    input: type[A],
    output: UnionType,
    prompt: Callable[[A], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[A, Any]: ...
@overload
def generator(
    name: str,
    *,
    output: UnionType,
    prompt: Callable[[str], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[str, Any]: ...
@overload
def generator(
    name: str,
    *,
    input: UnionType,
    output: type[B],
    prompt: Callable[[Any], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[Any, B]: ...
@overload
def generator(
    name: str,
    *,
    input: UnionType,
    prompt: Callable[[Any], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[Any, str]: ...
def generator(
    name: str,
    *,
    input: object = str,
    output: object = str,
    prompt: Callable[[Any], Prompt] | None = None,
    **options: Unpack[GeneratorOptions],
) -> Handler[Any, Any]:
    """
    A block that asks a model: ``generator("review", input=Draft, output=Review, model=...)``.

    What the model says is streamed as items; each of its tool calls is one. Its own failures are
    ``ModelError``s; retries of HTTP requests are the vendor client's (``settings={"max_retries":
    n}``), and ``retry=`` runs the whole block again.

    Args:
        name: the node's name.
        input: what goes in; a text by default.
        output: what comes out; a text by default. Of any other type the model is asked for a
            value of it, which is validated.
        prompt: makes the user's prompt of the input. By default a text is the prompt, and
            anything else is written as JSON.
        options: ``model``, which is required, ``instructions``, ``tools``, ``max_turns``,
            ``output_retries``, ``settings``, ``history``, ``on_usage``: see ``GeneratorOptions``;
            and those of every block.

    Raises:
        DefinitionError: when it is built: an option is unknown or can't work. When it runs: what
            a resolver returned can't be used.
        InvalidValue: the prompt is empty.
        PydanticAiNotInstalledError: pydantic-ai isn't installed, or is too old.
        ModelUnusableError: the model is unknown, or its key or its provider's package is missing.
        ModelLoopError: its client doesn't run on this event loop.
        TransientModelError: a request failed in a way that may pass.
        ModelRequestError: a request was refused.
        ModelAnswerError: the answer was cut off at its limit, or withheld.
        InvalidOutputError: the output didn't fit its type, all corrections included.
        TurnsExhaustedError: the model wasn't done after ``max_turns`` calls of it.
    """
    settings, block = split_options(name, input, output, prompt, options)

    async def generate(value: Any, ctx: Context) -> Any:
        run = await load_generate()
        return await run(settings, value, ctx)

    made: Handler[Any, Any] = make_handler(
        generate, input_type=input, output_type=output, name=name, **block
    )
    return made
