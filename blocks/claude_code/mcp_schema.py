"""
The JSON Schema of a tool's input, as Claude Code needs it: checked, normalised and copied.

Claude Code drops a tool with a faulty schema without a word, and every tool of its server where
the root's type is not ``object``; the SDK takes the keys of a schema without ``type`` and
``properties`` for parameters. So what can't work is refused here, and the two keys are added.
A reference that leads out of the schema is refused, too: following it would need the network.

Knows nothing of tools and servers. What checks is imported when the first schema is.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from flowstate.blocks.claude_code.json_value import plain
from flowstate.errors import DefinitionError

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def input_schema(where: str, schema: object) -> dict[str, Any]:
    """
    The schema with ``type: object`` and ``properties``; a copy.

    Args:
        where: names the tool in errors.
        schema: a JSON Schema, by default of the 2020-12 draft. Without a ``type`` it is an
            object's.

    Raises:
        DefinitionError: it is no JSON object, its root is of another type than ``object``, it is
            no valid JSON Schema, or a reference in it leads nowhere or out of it.

    >>> input_schema("tool 'now'", {})
    {'type': 'object', 'properties': {}}
    """
    whole = {"type": "object", **_copied(where, schema)}
    if whole["type"] != "object":
        raise DefinitionError(
            where,
            f"its schema's root is of type {whole['type']!r}, and arguments are an object",
            "Describe an object, with the value as one of its properties.",
        )
    whole.setdefault("properties", {})
    try:
        problem = _problem(json.dumps(whole))
    except ImportError:
        # What checks comes with the SDK. Without it no run starts, and the run says why.
        return whole
    if problem is not None:
        raise DefinitionError(where, problem, "Give it a complete JSON Schema.")
    return whole


def _copied(where: str, schema: object) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise DefinitionError(
            where,
            f"its schema is of type {type(schema).__name__}",
            "Give it a mapping: {'type': 'object', 'properties': {...}}.",
        )
    try:
        held = json.loads(json.dumps(dict(cast("Mapping[str, Any]", schema)), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError(
            where, f"its schema is no JSON: {error}", "Use what JSON can hold."
        ) from error
    return cast("dict[str, Any]", plain(held))


@lru_cache(maxsize=512)
def _problem(written: str) -> str | None:
    """
    What is wrong with a schema; None if nothing is. Finding out takes milliseconds, and a resolver
    makes the same tools for every run, on the event loop; so what was found is remembered.
    """
    validators: Any = importlib.import_module("jsonschema.validators")
    referencing: Any = importlib.import_module("referencing.jsonschema")
    schema: dict[str, Any] = json.loads(written)
    return _invalid(validators, schema) or _unresolved(referencing, schema)


def _invalid(validators: Any, schema: dict[str, Any]) -> str | None:
    """What is wrong with it by the rules of its draft; None if nothing is."""
    newest = validators.Draft202012Validator
    draft = validators.validator_for(schema, default=newest)
    fault: Any = next(iter(draft(draft.META_SCHEMA).iter_errors(schema)), None)
    if fault is None:
        return None
    return f"its schema is invalid at {fault.json_path}: {fault.message}"


def _unresolved(referencing: Any, schema: dict[str, Any]) -> str | None:
    """A reference that leads nowhere, or out of the schema; None if none does."""
    registry: Any = importlib.import_module("referencing").Registry()
    unresolvable: Any = importlib.import_module("referencing.exceptions").Unresolvable
    draft = referencing.specification_with(
        schema.get("$schema", ""), default=referencing.DRAFT202012
    )
    root = draft.create_resource(schema)
    open_ends = [(root, registry.resolver_with_root(root))]
    while open_ends:
        resource, resolver = open_ends.pop()
        held: object = resource.contents
        for key in _REFERENCES if isinstance(held, dict) else ():
            reference: object = cast("dict[str, object]", held).get(key)
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except unresolvable:
                    return f"its schema refers to {reference!r}, which isn't in it"
        open_ends += [(sub, resolver.in_subresource(sub)) for sub in resource.subresources()]
    return None
