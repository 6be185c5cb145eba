"""A block as a tool: what a model is told of it, and the block that a call runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pydantic import PydanticUserError, TypeAdapter

from flowstate.errors import DefinitionError

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
        annotation: Any = self.block.input_type
        try:
            schema = TypeAdapter(annotation).json_schema()
        except PydanticUserError as error:
            raise DefinitionError(
                f"tool {self.name!r}",
                f"its input {self.block.input_type!r} has no JSON Schema",
                "Annotate the block's input with a pydantic model.",
            ) from error
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
