"""
An item as JSON, and back: what stores keep and what other programs are sent.

The JSON is plain ASCII, so that any text survives any database and any pipe: NUL, U+2028 and lone
surrogates are escapes in it. That is why it is written here, with the standard library's functions,
and not by pydantic, which refuses a lone surrogate and would mend one in the keys of an agent's
JSON. Names are the wire's camelCase, as the models' aliases say.

Items are written while an agent speaks, between two pieces of its text. So little is looked at to
write one: no model is dumped, and what can't change in the life of an item is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from flowstate.errors import InvalidValue
from flowstate.item.content import Content
from flowstate.item.item import Item


def _plain(value: object) -> Any:
    return to_jsonable_python(value, by_alias=True)


_quoted = json.encoder.encode_basestring_ascii
_encode = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain
).encode


def item_json(item: Item, fallback: Callable[[Any], Any] | None = None) -> str:
    r"""
    The item as JSON text, plain ASCII.

    Args:
        fallback: makes something of what neither JSON nor pydantic has a form for.

    Raises:
        InvalidValue: its content holds something that JSON can't.

    >>> from flowstate.item.content import Message
    >>> from flowstate.item.item import Provenance
    >>> item = Item(
    ...     id="item_1",
    ...     request_id="req_1",
    ...     status="completed",
    ...     content=Message(text="é"),
    ...     provenance=Provenance(path="turn/say", block="say"),
    ...     visibility="client",
    ...     created_at=1,
    ...     updated_at=2,
    ... )
    >>> print(item_json(item)[-64:])
    "content":{"type":"message","role":"assistant","text":"\u00e9"}}
    """
    before, after = parts_of(item, constant_part(item), fallback)
    return before + after


def constant_part(item: Item) -> str:
    """The beginning of the item's JSON: what stays the same for life."""
    origin = item.provenance
    parent = "null" if origin.parent is None else _quoted(origin.parent)
    return (
        f'{{"id":{_quoted(item.id)},"requestId":{_quoted(item.request_id)},"provenance":'
        f'{{"path":{_quoted(origin.path)},"block":{_quoted(origin.block)},"parent":{parent}}},'
        f'"visibility":"{item.visibility}","transient":{"true" if item.transient else "false"},'
        f'"createdAt":{item.created_at}'
    )


def parts_of(
    item: Item, constant: str, fallback: Callable[[Any], Any] | None = None
) -> tuple[str, str]:
    """
    The item's JSON in two parts: where its text can grow, more of it goes in between, escaped.

    Args:
        constant: the item's ``constant_part``.
        fallback: see ``item_json``.

    Raises:
        InvalidValue: its content holds something that JSON can't.
    """
    content = item.content
    start = f'{constant},"status":"{item.status}","updatedAt":{item.updated_at},"content":{{'
    if content.type == "message":
        text = _quoted(content.text)[:-1]
        return f'{start}"type":"message","role":"{content.role}","text":{text}', '"}}'
    if content.type == "reasoning":
        return f'{start}"type":"reasoning","text":{_quoted(content.text)[:-1]}', '"}}'
    try:
        try:
            return f"{start}{_fields(content)}", "}}"
        except (TypeError, ValueError):
            # It holds more than JSON has (a NaN, a date for a key); pydantic knows something near.
            near = content.model_dump(mode="json", by_alias=True, fallback=fallback)
            return f"{start}{_encode(near)[1:-1]}", "}}"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"item {item.id!r} of {item.provenance.path!r}",
            "a content that JSON can hold",
            content.type,
            str(error),
        ) from error


def grown_text(pieces: list[str]) -> str:
    """Pieces of text as they go between the two parts."""
    return _quoted("".join(pieces))[1:-1]


def read_item(data: str) -> Item:
    """
    The item that this JSON text is of.

    Raises:
        ValueError: it is none. A ``pydantic.ValidationError`` says where.
    """
    return _reader()(json.loads(data))


def _fields(content: Content) -> str:
    """The content's fields, without the braces."""
    values = content.__dict__
    fields: list[str] = []
    for name, key in _names(type(content)).items():
        value = values[name]
        if type(value) is str:
            fields.append(key + _quoted(value))
        elif value is None:
            fields.append(f"{key}null")
        elif value is True or value is False:
            fields.append(f"{key}true" if value else f"{key}false")
        else:
            fields.append(key + _encode(value))
    return ",".join(fields)


@cache
def _names(model: type[Content]) -> Mapping[str, str]:
    """The fields of a model that are written, each with the beginning of its JSON."""
    return {
        name: f"{_encode(to_camel(name))}:"
        for name, field in model.model_fields.items()
        if not field.exclude
    }


@cache
def _reader() -> Callable[[object], Item]:
    return TypeAdapter(Item).validate_python
