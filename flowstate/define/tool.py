"""A block as a tool: what a model is told of it, and the block that a call runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

from flowstate.errors import DefinitionError, InvalidValue

if TYPE_CHECKING:
    from flowstate.define.block import Block


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """A tool that models and agents may call. Made by ``block.as_tool``."""

    name: str
    description: str
    block: Block[Any, Any]

    def schema(self) -> dict[str, Any]:
        """
        The JSON Schema of its input: an object, as every model provider wants it. A block whose
        input is no object takes it under the one property ``value``.

        Raises:
            DefinitionError: the input's type has no schema.
        """
        schema = self._input_schema()
        if schema.get("type") == "object":
            schema.setdefault("properties", {})
            return schema
        definitions = schema.pop("$defs", None)
        wrapped: dict[str, Any] = {
            "type": "object",
            "properties": {"value": schema},
            "required": ["value"],
        }
        if definitions is not None:
            wrapped["$defs"] = definitions
        return wrapped

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """
        The input that a call's arguments stand for, validated as JSON is: a date may be a text.

        Raises:
            InvalidValue: they don't fit the schema; pydantic's own error is the cause.
            DefinitionError: the input's type has no schema.
        """
        value: Any = dict(arguments)
        if self._input_schema().get("type") != "object":
            if value.keys() != {"value"}:
                raise InvalidValue(
                    f"tool {self.name!r}",
                    "the one argument 'value'",
                    ", ".join(map(repr, value)) or "none",
                    "give its input under that name",
                )
            value = value["value"]
        annotation: Any = self.block.input_type
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        try:
            # Through JSON: Python's own rules would take no text for a date, nor a list for a set.
            return adapter.validate_json(to_json(value))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False, include_context=False)
            raise InvalidValue(
                f"tool {self.name!r}",
                "arguments that fit its schema",
                "others",
                "; ".join(
                    f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ")
                    for problem in problems[:8]
                ),
            ) from error

    def _input_schema(self) -> dict[str, Any]:
        annotation: Any = self.block.input_type
        try:
            return TypeAdapter(annotation).json_schema()
        except PydanticUserError as error:
            raise DefinitionError(
                f"tool {self.name!r}",
                f"its input {self.block.input_type!r} has no JSON Schema",
                "Annotate the block's input with a pydantic model.",
            ) from error
