"""Inputs and outputs as the JSON that a store keeps of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from flowstate.errors import InvalidValue
from flowstate.store.codec import dump_json

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def stored_input(value: Any, where: str) -> str:
    """
    A request's input as JSON.

    Raises:
        InvalidValue: it can't be written as JSON.
    """
    return dump_json(_jsonable(value, where), where)


def stored_output(annotation: object, value: Any, log: FilteringBoundLogger) -> str | None:
    """
    A request's output as JSON, or None where it has none: the run is over and its output is the
    caller's, so this is a warning and no failure.
    """
    try:
        return dump_json(_jsonable(value, "output"), "output")
    except InvalidValue as error:
        log.warning("output_not_stored", type=type(value).__name__, error=str(error))
        return None


def _jsonable(value: Any, where: str) -> Any:
    try:
        return to_jsonable_python(value, fallback=repr, inf_nan_mode="strings", by_alias=False)
    except Exception as error:
        # It holds itself, or its own serializer or repr raised: foreign code, whatever it raises.
        raise InvalidValue(where, "JSON", type(value).__name__, str(error)) from error
