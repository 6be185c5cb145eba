"""Items as JSON: the same as their models say, for every content, and readable again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from flowstate.errors import InvalidValue
from flowstate.item.content import (
    BlockTrace,
    Component,
    Container,
    Content,
    ErrorReport,
    Message,
    Reasoning,
    ResourceChange,
    RetryNote,
    RouterDecision,
    Source,
    StateChange,
    Status,
    Suspension,
    ToolOutput,
    unchecked,
)
from flowstate.item.item import Item, Provenance
from flowstate.item.wire import constant_part, grown_text, item_json, parts_of, read_item
from tests.item.samples import an_item


def joined(text: str) -> str:
    """The text with halves of a character that stand side by side as that character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8).map(joined)
"""Any text: line breaks of every kind, NUL and lone surrogates included."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip

C = TypeVar("C", bound=BaseModel)


def made(model: type[C], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[C]:
    """Contents of these fields; ``st.builds`` would give the aliases in the signature, too."""
    return st.fixed_dictionaries(fields).map(lambda values: model(**values))


BRANCHES: list[st.SearchStrategy[Content]] = [
    made(Message, text=TEXTS, role=st.sampled_from(["assistant", "user", "system"])),
    made(Reasoning, text=TEXTS),
    made(
        ToolOutput,
        call_id=TEXTS,
        name=TEXTS,
        arguments=VALUES,
        output=VALUES,
        is_error=st.booleans(),
    ),
    made(Status, text=TEXTS, kept=st.booleans()),
    made(Container, label=TEXTS, kind=TEXTS),
    made(Component, name=TEXTS, properties=st.dictionaries(TEXTS, VALUES, max_size=3)),
    made(Source, title=TEXTS, url=st.none() | TEXTS),
    made(ErrorReport, code=TEXTS, message=TEXTS),
    made(StateChange, scope=TEXTS, cell=TEXTS, version=st.integers()),
    made(
        ResourceChange,
        collection=TEXTS,
        key=TEXTS,
        version=st.integers(),
        deleted=st.booleans(),
    ),
    made(
        Suspension,
        name=TEXTS,
        question_id=TEXTS,
        question=VALUES,
        answer_schema=VALUES,
        answer=VALUES,
    ),
    made(BlockTrace, block=TEXTS, kind=TEXTS, duration=st.none() | st.just(0.25)),
    made(RouterDecision, router=TEXTS, route=TEXTS),
    made(
        RetryNote,
        attempt=st.integers(),
        of=st.integers(),
        delay=st.just(1.5),
        error=TEXTS,
        text=TEXTS,
    ),
]

CONTENTS = st.one_of(BRANCHES)

ITEMS = st.builds(
    Item,
    id=TEXTS,
    request_id=TEXTS,
    status=st.sampled_from(["in_progress", "completed", "incomplete", "failed"]),
    content=CONTENTS,
    provenance=st.builds(Provenance, path=TEXTS, block=TEXTS, parent=st.none() | TEXTS),
    visibility=st.sampled_from(["client", "trace"]),
    transient=st.booleans(),
    created_at=st.integers(0, 2**53),
    updated_at=st.integers(0, 2**53),
)


@given(data=st.data())
def test_no_kind_of_content_is_left_out_here(data: st.DataObject) -> None:
    """The strategy above has a branch for each of them."""
    kinds = {kind.__name__ for kind in get_args(get_args(Content)[0])}
    assert {type(data.draw(branch)).__name__ for branch in BRANCHES} == kinds


@given(item=ITEMS)
def test_what_is_written_reads_back(item: Item) -> None:
    """Any text and any JSON survive, and the JSON itself is plain ASCII."""
    data = item_json(item)
    assert data.isascii()
    assert read_item(data) == item


@given(item=ITEMS)
def test_the_names_are_those_of_the_models(item: Item) -> None:
    """It is what pydantic dumps by the models' aliases, only in another order."""
    dumped = TypeAdapter(Item).dump_python(item, by_alias=True)
    assert json.loads(item_json(item)) == json.loads(json.dumps(dumped))


@given(
    content=made(Message, text=TEXTS, role=st.sampled_from(["assistant", "user"]))
    | made(Reasoning, text=TEXTS),
    pieces=st.lists(TEXTS, max_size=4),
)
def test_a_text_grows_between_the_parts(content: Message | Reasoning, pieces: list[str]) -> None:
    """What was appended is part of the text, wherever it was cut."""
    item = an_item(content)
    before, after = parts_of(item, constant_part(item))
    grown = read_item(before + "".join(grown_text([piece]) for piece in pieces) + after).content
    assert isinstance(grown, Message | Reasoning)
    whole = content.text + "".join(pieces)
    assert grown.text == joined(whole)


def test_what_pydantic_knows_a_form_for_is_written_in_it() -> None:
    """Dates, models by their aliases, keys that are no text; what isn't finite is null."""

    class Point(BaseModel):
        x_axis: int = 1

    arguments: dict[Any, Any] = {"on": date(2026, 11, 30), "at": Point(), "by": {1}}
    written = json.loads(item_json(an_item(ToolOutput(call_id="c", name="n", arguments=arguments))))
    assert written["content"]["arguments"] == {"on": "2026-11-30", "at": {"x_axis": 1}, "by": [1]}
    odd = {date(2026, 11, 30): math.nan}
    written = json.loads(item_json(an_item(ToolOutput(call_id="c", name="n", arguments=odd))))
    assert written["content"]["arguments"] == {"2026-11-30": None}


def test_what_nobody_knows_a_form_for_is_refused_or_made_a_text() -> None:
    """The error names the item, its step and the kind of content."""
    item = an_item(ToolOutput(call_id="c", name="n", arguments=object))
    with pytest.raises(InvalidValue, match=r"'item_1' of 'turn/x'.*tool_output"):
        item_json(item)
    written = json.loads(item_json(item, fallback=repr))
    assert written["content"]["arguments"] == repr(object)


@pytest.mark.parametrize("data", ["", "[]", "{}", '{"id":1}', "nonsense"])
def test_what_is_no_item_is_a_value_error(data: str) -> None:
    """Nothing is made up for what is missing."""
    with pytest.raises(ValueError, match=r"."):
        read_item(data)


def test_an_unknown_field_is_refused() -> None:
    """An item of a later release isn't read as if it were whole."""
    item = json.loads(item_json(an_item(Message())))
    with pytest.raises(ValueError, match="newer"):
        read_item(json.dumps({**item, "newer": 1}))


def test_an_unchecked_content_is_like_any_other() -> None:
    """Equal, as good as a key, and it copies, compares and dumps the same."""
    quick = unchecked(ToolOutput, call_id="c", name="n", arguments={"a": 1})
    usual = ToolOutput(call_id="c", name="n", arguments={"a": 1})
    assert quick == usual
    assert repr(quick) == repr(usual)
    assert quick.model_dump_json(by_alias=True) == usual.model_dump_json(by_alias=True)
    assert quick.model_dump(exclude_unset=True) == usual.model_dump(exclude_unset=True)
    assert quick.model_copy(update={"name": "m"}) == usual.model_copy(update={"name": "m"})
    assert hash(unchecked(Message, text="a")) == hash(Message(text="a"))
    with pytest.raises(ValueError, match="frozen"):
        quick.name = "m"


def test_an_item_is_frozen() -> None:
    """Nobody changes what others read."""
    item = an_item(Message())
    with pytest.raises(AttributeError):
        item.id = "other"  # type: ignore[misc]
    assert replace(item, status="completed") != item
