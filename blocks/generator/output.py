"""
The output of a generator: a text, or any type that pydantic can describe and validate.

A type whose schema is no object is asked for under the one property ``value``, since providers
take objects only. Pure; it knows no provider and nothing of how an answer arrived.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, final

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from flowstate.errors import DefinitionError

_FENCE = re.compile(r"\A\s*```\w*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_MOST_PROBLEMS = 8


@final
class UnfitOutput(ValueError):
    """What the model gave doesn't fit; its text is for the model."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """What a generator gives, and how the model is asked for it."""

    name: str
    """Of the type, for people."""
    is_text: bool
    """True: the output is what the model says."""
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    """JSON Schema of an object; empty for a text."""
    description: str | None = None
    wrapped: bool = False
    """Whether the output is the object's one property, ``value``."""
    adapter: TypeAdapter[Any] | None = None

    def read(self, answer: str) -> Any:
        """
        The output that this JSON stands for.

        Raises:
            UnfitOutput: it doesn't fit the type; pydantic's error is the cause.
        """
        assert self.adapter is not None
        fenced = _FENCE.match(answer)
        try:
            value = self.adapter.validate_json(fenced[1] if fenced else answer)
        except ValidationError as error:
            raise UnfitOutput(problems_of(error)) from error
        return value["value"] if self.wrapped else value


def output_shape(where: str, annotation: Any) -> OutputShape:
    """
    The shape of an output type.

    Args:
        where: the generator's name, for the error.
        annotation: ``str``, or any type with a JSON Schema.

    Raises:
        DefinitionError: it is no type, or has no JSON Schema.
    """
    if annotation is str:
        return OutputShape(name="text", is_text=True)
    name = getattr(annotation, "__name__", None) or str(annotation)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = adapter.json_schema()
        wrapped = schema.get("type") != "object"
        if wrapped:
            # An alias of the type itself, so that its definitions stay where its references look.
            adapter = TypeAdapter(_under_value(annotation))
            schema = adapter.json_schema()
            schema.pop("title", None)
    except (PydanticUserError, NameError, TypeError) as error:
        raise DefinitionError(
            where,
            f"output={annotation!r} has no JSON Schema",
            "Give it a pydantic model, or another type that pydantic can describe.",
        ) from error
    described = schema.get("description")
    return OutputShape(
        name=name,
        is_text=False,
        schema=schema,
        description=described if isinstance(described, str) else None,
        wrapped=wrapped,
        adapter=adapter,
    )


def problems_of(error: ValidationError) -> str:
    """What is wrong, one problem after the other, without the values."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ")
        for problem in found[:_MOST_PROBLEMS]
    ]
    more = len(found) - len(texts)
    return "; ".join(texts) + (f"; and {more} more" if more else "")


def _under_value(annotation: Any) -> Any:
    from typing_extensions import TypedDict

    make: Any = TypedDict
    return make("Output", {"value": annotation})
