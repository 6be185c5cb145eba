"""Tools of this process as values: what is taken, what is refused, what is made of a schema."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.mcp_schema import input_schema
from flowstate.blocks.claude_code.mcp_tools import (
    McpContent,
    McpServer,
    McpTool,
    checked_servers,
)
from flowstate.blocks.claude_code.options import split_options
from flowstate.errors import DefinitionError


async def _answer(arguments: dict[str, Any]) -> str:
    return "ok"


def _tool(**changed: Any) -> McpTool:
    fields: dict[str, Any] = {"name": "add", "description": "Adds.", "schema": {}, "call": _answer}
    return McpTool(**{**fields, **changed})


# --- schemas ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "normalised"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}},
        ),
        (
            {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
            {
                "type": "object",
                "properties": {"n": {"$ref": "#/$defs/n"}},
                "$defs": {"n": {"type": "integer"}},
            },
        ),
    ],
)
def test_a_schema_is_completed(schema: dict[str, Any], normalised: dict[str, Any]) -> None:
    """The SDK takes a schema for one only with a type and properties, so both are there."""
    assert input_schema("tool", schema) == normalised


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, "root is of type 'string'"),
        ({"type": ["object", "null"]}, r"root is of type \['object', 'null'\]"),
        ({"type": None}, "root is of type None"),
        ([], "its schema is of type list"),
        ({"properties": {"n": {"type": "integr"}}}, r"invalid at \$.properties.n.type"),
        ({"properties": []}, r"invalid at \$.properties"),
        ({"required": "n"}, r"invalid at \$.required"),
        ({"properties": {"n": {"$ref": "#/$defs/n"}}}, "refers to '#/[$]defs/n', which isn't in"),
        ({"properties": {"n": {"$ref": "https://example.org/s.json"}}}, "which isn't in it"),
        ({"properties": {"n": {"default": float("nan")}}}, "is no JSON"),
        ({"properties": {"n": {"enum": {1, 2}}}}, "is no JSON"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"n": 1}},
            r"invalid at \$.properties.n",
        ),
    ],
)
def test_a_schema_that_cannot_work_is_refused(schema: Any, problem: str) -> None:
    """Claude Code would drop the tool, or all tools of its server, and say nothing."""
    with pytest.raises(DefinitionError, match=f"tool 'add': .*{problem}"):
        _tool(schema=schema)


def test_what_only_looks_like_a_reference_is_none() -> None:
    """A property of that name and a value that holds one are data; ids within the schema work."""
    schema = {
        "properties": {
            "$ref": {"type": "string"},
            "kind": {"const": {"$ref": "#/nowhere"}},
            "node": {"$ref": "https://example.org/node"},
        },
        "$defs": {"node": {"$id": "https://example.org/node", "type": "object"}},
    }

    assert input_schema("tool", schema)["properties"] == schema["properties"]


def test_a_schema_is_a_copy() -> None:
    """What its author changes later doesn't reach a tool that was checked."""
    schema: dict[str, Any] = {"properties": {"n": {"type": "integer"}}}
    tool = _tool(schema=schema)
    schema["properties"]["n"]["type"] = "nonsense"

    assert tool.schema["properties"]["n"] == {"type": "integer"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "$ref", "items", "enum", "$id", "$defs", "x"])
            | st.text(max_size=3),
            inner | st.sampled_from(["object", "string", "#", "#/$defs/x", "x"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "$ref", "$defs", "$id"]), JSON))
def test_any_json_is_a_whole_schema_or_refused(schema: dict[str, Any]) -> None:
    """Whatever comes in, what is taken is an object's schema that stays what it is; or an error."""
    try:
        taken = input_schema("tool", schema)
    except DefinitionError:
        return
    assert taken["type"] == "object"
    assert isinstance(taken["properties"], dict)
    assert json.loads(json.dumps(taken)) == taken
    assert input_schema("tool", taken) == taken


def test_without_the_sdk_only_the_root_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What checks schemas comes with the SDK; a flow can be built where it isn't installed."""
    for module in ("jsonschema.validators", "referencing.jsonschema"):
        monkeypatch.setitem(sys.modules, module, None)

    assert input_schema("tool", {"properties": {"n": {"type": "txt"}}})["type"] == "object"
    with pytest.raises(DefinitionError, match="root is of type"):
        input_schema("tool", {"type": "array"})


# --- tools, servers, content --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "a b"}, "tool 'a b': not a usable name"),
        ({"name": ""}, "tool '': not a usable name"),
        ({"name": 3}, "tool 3: not a usable name"),
        ({"description": None}, "description is no text"),
        ({"call": "add"}, "its call is 'add'"),
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(changed: dict[str, Any], problem: str) -> None:
    """A tool that exists has a name that Claude Code takes as it is, and something to call."""
    with pytest.raises(DefinitionError, match=problem):
        _tool(**changed)


def test_a_server_has_each_tool_once() -> None:
    """Two under one name would be one, and which one nobody would know."""
    with pytest.raises(DefinitionError, match="two tools are called 'add'"):
        McpServer(tools=[_tool(), _tool()])
    with pytest.raises(DefinitionError, match="tools holds a dict"):
        McpServer(tools=[{}])  # type: ignore[list-item]
    with pytest.raises(DefinitionError, match="close=3 is no function"):
        McpServer(close=3)  # type: ignore[arg-type]
    assert McpServer(tools=[_tool()]).tools[0].name == "add"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text"},
        {"type": "image", "data": b"x", "mimeType": "image/png"},
        {"type": "audio", "data": "x"},
        {},
        "text",
    ],
)
def test_content_that_would_be_dropped_is_refused(block: Any) -> None:
    """A block of an unknown type, or one that isn't whole, would not reach the agent."""
    with pytest.raises(DefinitionError, match="of no known type, or isn't whole"):
        McpContent([block])


# --- as an option -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ([], "mcp_tools is of type list"),
        ({"a b": McpServer()}, "names a server 'a b'"),
        ({"a__b": McpServer()}, "names a server 'a__b'"),
        ({"_a": McpServer()}, "names a server '_a'"),
        ({1: McpServer()}, "names a server 1"),
        ({"a": [_tool()]}, r"mcp_tools\['a'\] is a list"),
    ],
)
def test_servers_that_cannot_work_are_refused_when_built(servers: Any, problem: str) -> None:
    """The error names the block; a resolver's answer is refused in the same words."""
    with pytest.raises(DefinitionError, match=f"coder: .*{problem}"):
        claude_code_agent(name="coder", mcp_tools=servers)
    with pytest.raises(DefinitionError, match=problem):
        checked_servers("coder", servers)


@pytest.mark.parametrize(
    "options",
    [
        {"mcp_servers": {}},
        {"strict_mcp_config": False},
        {"extra_args": {"mcp-config": "x.json"}},
        {"extra_args": {"--strict-mcp-config": None}},
    ],
)
def test_no_other_servers_beside_them(options: dict[str, Any]) -> None:
    """The passage to the SDK is no way around a complete set; without one it is open."""
    with pytest.raises(DefinitionError, match="mcp_tools= is all the servers of a run"):
        claude_code_agent(mcp_tools={}, options=options)
    claude_code_agent(options=options)


def test_later_changes_of_the_mapping_have_no_effect() -> None:
    """Servers are copied when the block is built, and a resolver is kept as it is."""
    servers = {"tracker": McpServer(tools=[_tool()])}
    settings, _ = split_options({"mcp_tools": servers})
    servers.clear()
    assert isinstance(settings.mcp_tools, dict)
    assert list(settings.mcp_tools) == ["tracker"]

    def resolver(ctx: object) -> dict[str, McpServer]:
        return {}

    assert split_options({"mcp_tools": resolver})[0].mcp_tools is resolver
    assert split_options({})[0].mcp_tools is None
