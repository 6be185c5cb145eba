"""
The options of a generator: what may be written, and what is refused when it is built.

The input decides the prompt; everything else is a value or a resolver of the context. pydantic-ai
isn't needed here: a generator can be defined, planned and drawn where it isn't installed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Required, TypeAlias, cast, final

from pydantic import PydanticUserError, TypeAdapter

from flowstate.blocks.generator.output import OutputShape, output_shape
from flowstate.blocks.generator.usage import OnModelUsage
from flowstate.context import Context
from flowstate.define.block import Block, BlockSettings
from flowstate.define.handler import Handler
from flowstate.define.tool import Tool
from flowstate.errors import DefinitionError
from flowstate.item.selection import Called, Said, Utterance

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent
    from pydantic_ai.models import Model

AnyModel: TypeAlias = "str | Model"
"""A name as pydantic-ai reads it, ``anthropic:claude-sonnet-5-5``, or a model object of its."""
ModelChoice: TypeAlias = "AnyModel | Callable[[Context], AnyModel | Awaitable[AnyModel]]"
Instructions: TypeAlias = "str | Callable[[Context], str | Awaitable[str]]"
Prompt: TypeAlias = "str | Sequence[UserContent]"
"""A text, or pydantic-ai's user content: texts, images, documents."""
HistoryResolver: TypeAlias = (
    "Callable[[Any, Context], Sequence[Utterance] | Awaitable[Sequence[Utterance]]]"
)

MAX_TURNS = 20
OUTPUT_RETRIES = 2
OUTPUT_TOOL = "final_result"
"""The tool by whose arguments a model gives a typed output, where its provider has nothing else."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class GeneratorOptions(BlockSettings, total=False):
    """What ``generator`` takes besides its name, its types and its prompt."""

    model: Required[ModelChoice]
    """A name (``provider:model``), a model of pydantic-ai's, or a function of the context."""
    instructions: Instructions | None
    """The system prompt; what the capabilities in ``uses`` say comes after it."""
    tools: Sequence[Tool | Block[Any, Any]]
    """What the model may call, besides the tools of the capabilities in ``uses``."""
    max_turns: int
    """How often the model may be called in one run, 1 or more; 20 by default."""
    output_retries: int
    """How often an output that doesn't fit may be corrected, 0 or more; 2 by default."""
    settings: Mapping[str, Any] | None
    """pydantic-ai's model settings: ``max_tokens``, ``temperature``, ``timeout``, ``max_retries``
    (how often the vendor's client tries a failed HTTP request again, 2 by default), …"""
    history: Sequence[Utterance] | HistoryResolver | None
    """What was said before: see ``flowstate.item.selection.history``; or a function of the input
    and the context."""
    on_usage: OnModelUsage | None
    """Told of what each call of the model used."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSettings:
    """The options, checked; sequences and mappings are copies."""

    name: str
    output: OutputShape
    model: ModelChoice
    instructions: Instructions | None
    prompt: Callable[[Any], Prompt]
    tools: tuple[Tool, ...]
    max_turns: int
    output_retries: int
    settings: Mapping[str, Any]
    history: Sequence[Utterance] | HistoryResolver
    on_usage: OnModelUsage | None


def split_options(
    name: str,
    input_type: object,
    output_type: object,
    prompt: Callable[[Any], Prompt] | None,
    options: Mapping[str, Any],
) -> tuple[GeneratorSettings, dict[str, Any]]:
    """
    The generator's settings and the block's, checked.

    Raises:
        DefinitionError: an option is unknown or has a value that can't work.
    """
    given = dict(options)
    block = {key: given.pop(key) for key in BlockSettings.__annotations__ if key in given}
    unknown = sorted(set(given) - set(GeneratorOptions.__annotations__))
    if unknown:
        raise DefinitionError(
            name,
            f"unknown option {', '.join(unknown)}",
            "Give what is meant for the model in settings={...}.",
        )
    if block.get("pure"):
        raise DefinitionError(name, "a model is never pure", "Drop pure=True.")
    settings = GeneratorSettings(
        name=name,
        output=output_shape(name, output_type),
        model=_model(name, given.get("model")),
        instructions=_instructions(name, given.get("instructions")),
        prompt=_prompt(name, input_type, prompt),
        tools=checked_tools(name, [as_tool(name, tool) for tool in _tools(name, given)]),
        max_turns=_whole(name, "max_turns", given.get("max_turns", MAX_TURNS), 1),
        output_retries=_whole(
            name, "output_retries", given.get("output_retries", OUTPUT_RETRIES), 0
        ),
        settings=_mapping(name, given.get("settings")),
        history=_history(name, given.get("history")),
        on_usage=_function(name, "on_usage", given.get("on_usage")),
    )
    return settings, block


def as_tool(name: str, value: Tool | Block[Any, Any]) -> Tool:
    """
    A tool as it is; a block as the tool of its name, described by its function's docstring.

    Raises:
        DefinitionError: it is neither.
    """
    if isinstance(value, Tool):
        return value
    if isinstance(value, Block):
        text = value.fn.__doc__ if isinstance(value, Handler) else None
        return value.as_tool(" ".join((text or "").split()))
    raise DefinitionError(
        name,
        f"tools holds a {type(value).__name__}",
        "Give it blocks, or what block.as_tool(...) makes.",
    )


def checked_tools(name: str, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """
    The tools, the same one or the same block once; each can be offered to a model.

    Raises:
        DefinitionError: a name is not usable or stands for two things, or an input has no schema.
    """
    known: dict[str, Tool] = {}
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool.name) or tool.name == OUTPUT_TOOL:
            raise DefinitionError(
                name,
                f"{tool.name!r} can't name a tool",
                "Use up to 64 letters, digits, '_' and '-', other than "
                f"{OUTPUT_TOOL!r}: block.as_tool(..., name=...).",
            )
        before = known.setdefault(tool.name, tool)
        if before.block is not tool.block:
            raise DefinitionError(
                name,
                f"two tools are called {tool.name!r}",
                "Name one differently: block.as_tool(..., name=...).",
            )
        tool.schema()
    return tuple(known.values())


def checked_history(name: str, value: object) -> tuple[Utterance, ...]:
    """
    What was said before, copied.

    Raises:
        DefinitionError: it is no sequence of what ``history`` gives.
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        entries = tuple(cast("Sequence[object]", value))
        if all(isinstance(entry, Said | Called) for entry in entries):
            return cast("tuple[Utterance, ...]", entries)
    raise DefinitionError(
        name,
        "history holds something else than what was said",
        "Give it what flowstate.item.selection.history makes of items.",
    )


def _model(name: str, value: object) -> Any:
    if (isinstance(value, str) and value) or callable(value) or hasattr(value, "request_stream"):
        return value
    raise DefinitionError(
        name,
        f"model={value!r}",
        "Give a name like 'anthropic:claude-sonnet-5-5', a model object, or a function of the "
        "context.",
    )


def _instructions(name: str, value: object) -> Any:
    if value is None or isinstance(value, str) or callable(value):
        return value
    raise DefinitionError(
        name,
        f"instructions is of type {type(value).__name__}",
        "Give a text or a function of the context.",
    )


def _prompt(
    name: str, input_type: Any, prompt: Callable[[Any], Prompt] | None
) -> Callable[[Any], Prompt]:
    if prompt is not None:
        made: Callable[[Any], Prompt] = _function(name, "prompt", prompt)
        return made
    if input_type is str:
        return str
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(input_type)
    except (PydanticUserError, NameError, TypeError) as error:
        raise DefinitionError(
            name,
            f"an input of {input_type!r} can't be written as JSON",
            "Say how it becomes a prompt: prompt=lambda value: ....",
        ) from error

    def as_json(value: Any) -> str:
        return adapter.dump_json(value, indent=2).decode("utf-8")

    return as_json


def _tools(name: str, given: Mapping[str, Any]) -> Sequence[Tool | Block[Any, Any]]:
    tools: Any = given.get("tools", ())
    if isinstance(tools, list | tuple):
        return cast("Sequence[Tool | Block[Any, Any]]", tools)
    raise DefinitionError(name, f"tools={given['tools']!r}", "Give a list: tools=[...].")


def _whole(name: str, option: str, value: object, least: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise DefinitionError(name, f"{option}={value!r}", f"Give a whole number, {least} or more.")


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    # The value isn't shown: it may hold a header with a key.
    raise DefinitionError(
        name, f"settings is of type {type(value).__name__}", "Give settings a mapping."
    )


def _history(name: str, value: object) -> Any:
    if callable(value):
        return value
    return () if value is None else checked_history(name, value)


def _function(name: str, option: str, value: object) -> Any:
    if value is None or callable(value):
        return value
    raise DefinitionError(name, f"{option}={value!r} is no function", f"Give {option} a function.")
