"""
Tools that this process serves to a run, as values: tools, the servers that group them, answers.

Valid by construction: a tool that exists has a name that Claude Code takes as it is and a schema
that it will not drop. No address, no header and no credential: the run never learns where a tool's
work is done. Nothing of a run is known here; ``mcp_serving`` serves them to one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, final

from flowstate.blocks.claude_code.mcp_schema import input_schema
from flowstate.context import Context
from flowstate.errors import DefinitionError

McpCall: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]
"""
Answers one call, given its arguments, which fit the tool's schema.

A text is the answer as it is, ``McpContent`` says it in content blocks, and anything else is
written as JSON (pydantic models and dataclasses, too). What it raises is a failed call, whose text
the agent is told, with the secrets of the environments taken out. It runs in the run's own task
group and is cancelled with the run, or when the agent gives up the call.
"""

McpClose: TypeAlias = Callable[[], "object | Awaitable[object]"]

# Claude Code replaces other characters, and takes two underscores for the end of a server's name.
_SERVER_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]+")

_BLOCKS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "resource_link": {"uri": str},
    "resource": {"resource": Mapping},
}
"""The content blocks that reach the agent, and what each must hold."""


@final
@dataclass(frozen=True, slots=True)
class McpContent:
    """
    An answer in MCP's own content blocks, for images and for what another server said.

    Raises:
        DefinitionError: a block is of no type that reaches the agent (``text``, ``image`` with
            ``data`` in base64 and ``mimeType``, ``resource_link``, ``resource``), or isn't whole.
    """

    blocks: Sequence[Mapping[str, Any]]
    is_error: bool = False
    """True: the call failed, and the blocks say why."""

    def __post_init__(self) -> None:
        for block in self.blocks:
            needed = _BLOCKS.get(str(block.get("type"))) if isinstance(block, Mapping) else None
            if needed is None or not all(isinstance(block.get(k), t) for k, t in needed.items()):
                raise DefinitionError(
                    "McpContent",
                    "a content block is of no known type, or isn't whole",
                    f"Use blocks of the types {', '.join(_BLOCKS)}.",
                )
        object.__setattr__(self, "blocks", tuple(dict(block) for block in self.blocks))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """
    One tool; the agent calls it as ``mcp__<server>__<name>``.

    Raises:
        DefinitionError: its name, its description or its schema can't be used.
    """

    name: str
    """Letters, digits, ``_`` and ``-``."""
    description: str
    """What it does and when to use it, for the agent."""
    schema: Mapping[str, Any]
    """The JSON Schema of its arguments; ``type: object`` and ``properties`` are added."""
    call: McpCall

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _TOOL_NAME.fullmatch(self.name):
            raise DefinitionError(
                f"tool {self.name!r}",
                "not a usable name",
                "Use letters, digits, '_' and '-'.",
            )
        where = f"tool {self.name!r}"
        if not isinstance(self.description, str):
            raise DefinitionError(where, "its description is no text", "Say what it does.")
        if not callable(self.call):
            raise DefinitionError(
                where, f"its call is {self.call!r}", "Give an async function of the arguments."
            )
        object.__setattr__(self, "schema", input_schema(where, self.schema))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """
    Tools under one name, and how what they need is given back.

    Raises:
        DefinitionError: something else than a tool is among the tools, or two have one name.
    """

    tools: Sequence[McpTool] = ()
    close: McpClose | None = None
    """
    Awaited once when a run ends, however it ends, for a few seconds at most; what it raises is
    logged. A server that is a value, rather than made by a resolver, is closed after every run.
    """

    def __post_init__(self) -> None:
        tools = tuple(self.tools)
        names: set[str] = set()
        for tool in tools:
            if not isinstance(tool, McpTool):
                raise DefinitionError(
                    "McpServer", f"tools holds a {type(tool).__name__}", "Give it McpTools."
                )
            if tool.name in names:
                raise DefinitionError(
                    "McpServer", f"two tools are called {tool.name!r}", "Name one differently."
                )
            names.add(tool.name)
        if self.close is not None and not callable(self.close):
            raise DefinitionError(
                "McpServer", f"close={self.close!r} is no function", "Give an async function."
            )
        object.__setattr__(self, "tools", tools)


McpServers: TypeAlias = Mapping[str, McpServer]
"""Servers by name. Letters, digits, ``-`` and single ``_`` make a name."""

McpToolsResolver: TypeAlias = Callable[[Context], "McpServers | Awaitable[McpServers]"]


def checked_servers(name: str, servers: object) -> McpServers:
    """
    The servers of a block, copied.

    Raises:
        DefinitionError: they are no mapping, a name can't be used, or something is no server.
    """
    if not isinstance(servers, Mapping):
        raise DefinitionError(
            name,
            f"mcp_tools is of type {type(servers).__name__}",
            "Give a mapping from names to McpServers; {} for no tools at all.",
        )
    copied = dict(cast("Mapping[object, object]", servers))
    for key, server in copied.items():
        if not isinstance(key, str) or not _SERVER_NAME.fullmatch(key):
            raise DefinitionError(
                name,
                f"mcp_tools names a server {key!r}",
                "Use letters, digits, '-', and single '_' between them.",
            )
        if not isinstance(server, McpServer):
            raise DefinitionError(
                name, f"mcp_tools[{key!r}] is a {type(server).__name__}", "Give an McpServer."
            )
    return cast("McpServers", copied)


def check_alone(name: str, options: Mapping[str, Any]) -> None:
    """
    Refuse further options of the SDK's that would add servers to those of ``mcp_tools``.

    Raises:
        DefinitionError: there is one.
    """
    flags = cast("Mapping[str, Any]", options.get("extra_args") or {})
    named = {*options, *(flag.lstrip("-").replace("-", "_") for flag in flags)}
    for option in ("mcp_servers", "strict_mcp_config", "mcp_config"):
        if option in named:
            raise DefinitionError(
                name,
                f"options names {option!r}, and mcp_tools= is all the servers of a run",
                "Use one of the two.",
            )


def tool_name(server: str, tool: str) -> str:
    """
    The name under which the agent calls a tool.

    >>> tool_name("tracker", "add")
    'mcp__tracker__add'
    """
    return f"mcp__{server}__{tool}"
