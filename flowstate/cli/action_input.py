"""
``--input JSON`` as the value that an action takes.

The text must be JSON, and must fit the action's input type as JSON fits it: a list for a tuple, a
text for a date. What doesn't fit is a ``BadInput`` that tells where, what and how to write it.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, cast, final

from pydantic import (
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)

from flowstate.plan.typename import type_name
from flowstate.plan.validator import checks_nothing

SHOWN = 5
"""How many faults are told."""


@final
class BadInput(Exception):
    """``--input`` is no JSON, or doesn't fit the action's input."""


def parse_input(text: str | None, annotation: object, action: str) -> Any:
    """
    The value of this type that the text stands for.

    Args:
        text: JSON; None, where none was given, stands for ``null``.
        annotation: the type of the action's input.
        action: the action's name, for errors.

    Raises:
        BadInput: tells what is wrong, where, and an input that would fit.

    >>> parse_input('[1, 2]', tuple[int, int], "add")
    (1, 2)
    """
    given = "null" if text is None else text
    try:
        value = json.loads(given, parse_constant=_no_constant)
    except ValueError as error:
        raise BadInput(
            f"--input is not JSON ({_place(error, given)}).\n{_way_out(annotation, given)}"
        ) from None
    except RecursionError:
        raise BadInput("--input is nested too deeply.") from None
    if checks_nothing(annotation):
        return value
    adapter = adapter_of(annotation)
    if adapter is None:
        raise BadInput(
            f"action {action!r} takes {type_name(annotation)}, which can't be made from JSON. "
            "Give its first step a pydantic model, a dataclass or a plain type as input."
        )
    try:
        return validated(adapter, given, value)
    except ValidationError as error:
        problem = (
            f"--input is missing: action {action!r} takes {type_name(annotation)}."
            if text is None
            else f"--input doesn't fit {type_name(annotation)}, the input of action {action!r}:\n"
            + faults_text(error)
        )
        raise BadInput(f"{problem}\n{_way_out(annotation, given)}") from None


def validated(adapter: TypeAdapter[Any], text: str, value: Any) -> Any:
    """The value that JSON text stands for; ``value`` is the same text as Python reads it."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["type"] != "json_invalid":
            raise
    # JSON for Python but not for pydantic: a lone surrogate, most likely.
    return adapter.validate_python(value)


def adapter_of(annotation: Any) -> TypeAdapter[Any] | None:
    """What validates a type; None where it can't be made from JSON."""
    try:
        return TypeAdapter(annotation)
    except (PydanticUserError, PydanticSchemaGenerationError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _place(error: ValueError, text: str) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if not text.strip():
        return "it is empty"
    at = text[error.pos : error.pos + 12]
    where = f"at {at!r}, " if at else "at its end, "
    return f"{error.msg} {where}line {error.lineno} column {error.colno}"


def faults_text(error: ValidationError) -> str:
    """What doesn't fit, a line each."""
    lines: list[str] = []
    faults = error.errors(include_url=False, include_context=False)
    for fault in faults[:SHOWN]:
        place = ".".join(str(part) for part in fault["loc"]) or "the whole"
        got = "" if fault["type"] == "missing" else f", got {_short(fault['input'])}"
        lines.append(f"  {place}: {fault['msg']}{got}")
    if len(faults) > SHOWN:
        lines.append(f"  and {len(faults) - SHOWN} more")
    return "\n".join(lines)


def _short(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


# --- an input that would fit ----------------------------------------------------------------------


def _way_out(annotation: object, given: str) -> str:
    if annotation is str:
        # The most likely slip: a text without the quotes of JSON.
        text = given if given not in ("null", "") else "text"
        return f"A text is JSON with quotes of its own: --input {shlex.quote(json.dumps(text))}"
    example = example_for(annotation)
    return f"For example: --input {shlex.quote(json.dumps(example, ensure_ascii=False))}"


def example_for(annotation: object) -> object:
    """A JSON value that would fit the type, or nearly."""
    adapter = None if checks_nothing(annotation) else adapter_of(annotation)
    if adapter is None:
        return {}
    try:
        schema = adapter.json_schema(by_alias=True)
    except PydanticUserError:
        return {}
    return _example_of(schema, schema.get("$defs", {}), 0)


def _example_of(schema: dict[str, Any], definitions: dict[str, Any], depth: int) -> object:
    """A value of the schema's shape: what is required, and no more."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = definitions.get(reference.rpartition("/")[2], {})
    if depth > 4:
        return {}
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    if schema.get("examples") or schema.get("enum"):
        return cast("list[object]", schema.get("examples") or schema["enum"])[0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return _example_of(schema[choice][0], definitions, depth + 1)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {
                name: _example_of(fields.get(name, {}), definitions, depth + 1)
                for name in schema.get("required", list(fields)[:1])
            }
        case "array":
            return [_example_of(each, definitions, depth + 1) for each in _entries(schema)]
        case kind:
            scalars = {"string": "…", "integer": 1, "number": 1.5, "boolean": True}
            return scalars.get(str(kind))


def _entries(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return schema.get("prefixItems") or ([schema["items"]] if schema.get("items") else [])
