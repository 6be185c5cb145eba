"""
Values as JSON text, and back: what a store keeps of a state cell, an input or an output.

The text is plain ASCII, so that no database, file or wire can refuse or change a character of it.
It is written by ``json.dumps`` over what pydantic makes of the value, because pydantic's own JSON
writer refuses a lone surrogate and its reader refuses the escape of one. Two more things that
pydantic does in silence are undone or refused here: it replaces a lone surrogate in the key of a
mapping by three U+FFFD, so that two keys may become one, and it writes NaN and the infinities as
null where a field is not declared as a float.

Invariants:

- What was written reads back the same. The one exception is a character beyond U+FFFF spelled as
  two surrogates: it reads back as that character, since JSON has one spelling for both.
- NaN and the infinities are no JSON. They are refused when written; a model that needs them gives
  the field a serialiser that spells them as strings, which a float field reads.
- Names are those of the fields, never their aliases: aliases belong to a wire, rows outlive them.
- Text that doesn't fit is reported by its key and never repaired.

Nothing here knows what a store is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NoReturn, TypeGuard, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from flowstate.errors import CorruptRow, InvalidValue

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

_ABSENT: Final = object()


def dump_json(value: object, where: str) -> str:
    r"""
    Text for what JSON can hold as it is: None, bool, int, float, str, lists and str-keyed dicts.

    >>> dump_json({"name": "Zoë\ud800\0"}, "an example")
    '{"name":"Zo\\u00eb\\ud800\\u0000"}'

    Raises:
        InvalidValue: it holds something else, or a number that JSON has no spelling for.
    """
    try:
        return _text(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(where, value, error) from error


def load_json(text: str, key: str) -> object:
    r"""
    The value of a text made by ``dump_json``.

    >>> load_json('"\\ud800"', "an example") == "\ud800"
    True

    Raises:
        CorruptRow: it is not JSON; ``key`` names the row.
    """
    try:
        return _value(text)
    except _Misfit as misfit:
        raise CorruptRow(key, "JSON", str(misfit)) from None


def dump_model(value: BaseModel, where: str) -> str:
    """
    Text for a model, by the names of its fields, without computed ones.

    Raises:
        InvalidValue: it holds what JSON can't, or what its own fields don't allow.
    """
    return _dump(value.model_dump, value, where)


def load_model(model: type[M], text: str, key: str) -> M:
    """
    The model in a text made by ``dump_model``.

    Raises:
        CorruptRow: the text is not JSON or doesn't fit the model; ``key`` names the row. Its
            message holds places and rules, never the stored values.
    """

    try:
        return _fit_model(model, text)
    except _Misfit as misfit:
        raise CorruptRow(key, model.__name__, str(misfit)) from None


def read_back(model: type[M], text: str, where: str) -> M:
    """
    What ``load_model`` would make of a text that is about to be stored.

    Raises:
        InvalidValue: nothing, so storing it would make a row that nobody can read.
    """
    try:
        return _fit_model(model, text)
    except _Misfit as misfit:
        expected = "a value that can be read back from its JSON"
        raise InvalidValue(where, expected, model.__name__, str(misfit)) from None


def dump_value(adapter: TypeAdapter[T], value: T, where: str) -> str:
    """
    Text for a value of any type that pydantic knows.

    Raises:
        InvalidValue: it holds what JSON can't, or what its type doesn't allow.
    """

    def to_python(**options: Any) -> object:
        return adapter.dump_python(value, **options)

    return _dump(to_python, value, where)


def load_value(adapter: TypeAdapter[T], text: str, key: str) -> T:
    """
    The value in a text made by ``dump_value`` with the same type.

    Raises:
        CorruptRow: the text is not JSON or doesn't fit the type; ``key`` names the row.
    """

    def from_text(text: str) -> T:
        return adapter.validate_json(text, by_alias=False, by_name=True)

    def from_value(value: object) -> T:
        return adapter.validate_python(value, strict=False, by_alias=False, by_name=True)

    try:
        return _fit(from_text, from_value, text)
    except _Misfit as misfit:
        raise CorruptRow(key, "its type", str(misfit)) from None


def problems(error: ValidationError) -> str:
    """What a validation found, in one line: places and rules, without the values themselves."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'the whole'}: {one['msg']}"
        for one in found
    )


# --- writing ------------------------------------------------------------------------------------


def _dump(to_python: Callable[..., object], value: object, where: str) -> str:
    # `warnings="error"`: a value that its fields don't allow would be a row that can't be read.
    options: dict[str, Any] = {"by_alias": False, "round_trip": True, "warnings": "error"}
    try:
        try:
            jsonable = to_python(mode="json", **options)
        except UnicodeEncodeError:
            jsonable = _ABSENT  # The key of a mapping again, where the field's type is free.
        text = None if jsonable is _ABSENT else _text(jsonable)
        # Only then can pydantic have lost something; this keeps the usual value to one pass.
        if text is None or "null" in text or "\\ufffd" in text:
            text = _text(_unlost(to_python(mode="python", **options), jsonable))
    except (PydanticSerializationError, TypeError, ValueError, RecursionError) as error:
        raise _unwritable(where, value, error) from error
    return text


def _text(jsonable: object) -> str:
    return json.dumps(jsonable, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _unlost(native: Any, jsonable: Any) -> object:
    """
    ``jsonable`` with the keys that pydantic replaced put back.

    Args:
        native: the value as pydantic dumps it for Python, with its keys and numbers intact.
        jsonable: the same value as pydantic dumps it for JSON; ``_ABSENT`` if it got lost.

    Raises:
        ValueError: a number was lost that JSON has no spelling for.
    """
    if isinstance(native, float) and not math.isfinite(native):
        if jsonable is None or jsonable is _ABSENT:
            raise ValueError(f"Out of range float values are not JSON compliant: {native}")
        return jsonable
    if _is_mapping(native) and (jsonable is _ABSENT or _is_mapping(jsonable)):
        return _unlost_mapping(native, jsonable)
    if _is_row(native):
        if jsonable is _ABSENT:
            return [_unlost(one, _ABSENT) for one in native]
        if _is_row(jsonable) and len(jsonable) == len(native):
            return [_unlost(*pair) for pair in zip(native, jsonable, strict=True)]
    return to_jsonable_python(native) if jsonable is _ABSENT else jsonable


def _unlost_mapping(native: Mapping[Any, Any], jsonable: Any) -> dict[str, object]:
    # Two keys that became one leave a shorter mapping: no telling which value is whose.
    if jsonable is _ABSENT or len(jsonable) != len(native):
        jsonable = dict.fromkeys(range(len(native)), _ABSENT)
    kept: dict[str, object] = {}
    for (key, value), (written, other) in zip(native.items(), jsonable.items(), strict=True):
        if isinstance(key, str):
            name = str.__str__(key)  # the text itself, of a string enumeration too
        elif isinstance(written, str):
            name = written
        else:
            (name,) = to_jsonable_python({key: None})
        kept[name] = _unlost(value, other)
    return kept


# Guards, not bare isinstance: the type of what is inside must stay Any.
def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_row(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (list, tuple, set, frozenset))


def _unwritable(where: str, value: object, error: Exception) -> InvalidValue:
    # pydantic quotes the value that surprised it; a message goes to logs, a state may be secret.
    details = re.sub(r"input_value=.*, input_type=", "input_type=", str(error))
    return InvalidValue(where, "a value that JSON can hold", type(value).__name__, details)


# --- reading ------------------------------------------------------------------------------------


class _Misfit(Exception):
    """Why a text doesn't fit, without the values in it."""


def _value(text: str) -> object:
    try:
        value: object = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Misfit(f"no JSON: {error}") from None
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of its numbers")


def _fit_model(model: type[M], text: str) -> M:
    def from_text(text: str) -> M:
        return model.model_validate_json(text, by_alias=False, by_name=True)

    def from_value(value: object) -> M:
        return model.model_validate(value, strict=False, by_alias=False, by_name=True)

    return _fit(from_text, from_value, text)


def _fit(from_text: Callable[[str], T], from_value: Callable[[object], T], text: str) -> T:
    try:
        return from_text(text)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["type"] != "json_invalid":
            raise _Misfit(problems(error)) from None
    # pydantic's reader refuses lone surrogates and deep nesting; Python's doesn't. A model that
    # is strict is not so here: only JSON is read strictly and yet with dates in strings.
    value = _value(text)
    try:
        return from_value(value)
    except ValidationError as error:
        raise _Misfit(problems(error)) from None
