"""The codec: what is written reads back the same, or is refused by name."""

from __future__ import annotations

import datetime
import json
import math
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    TypeAdapter,
    computed_field,
    field_serializer,
    field_validator,
)

from flowstate.errors import CorruptRow, InvalidValue
from flowstate.store.codec import (
    dump_json,
    dump_model,
    dump_value,
    load_json,
    load_model,
    load_value,
    read_back,
)

# A high surrogate followed by a low one is the same JSON as the character they spell.
TEXTS = st.text(st.characters(codec=None, categories=None)).map(
    lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


A, B, C, D = "\ud800", "\ud801", "\ud802", "\ud803"
"""Texts that pydantic takes for one and the same, as keys of a mapping."""


class Free(BaseModel):
    """Takes anything, where pydantic infers how to write it."""

    value: Any = None
    by_name: dict[str, Any] = {}


@given(VALUES)
@example({A: 1, B: 2})
@example("\0\ud800")
def test_json_reads_back_the_same(value: object) -> None:
    """Any JSON value comes back as it was, and its text is plain ASCII."""
    text = dump_json(value, "here")
    assert text.isascii()
    assert load_json(text, "here") == value


@given(VALUES, st.dictionaries(TEXTS, VALUES, max_size=4))
@example(None, {A: {B: None, C: [{A: 1}]}, D: 2})
@example(None, {"\ufffd": 1, A: None})
def test_a_model_reads_back_the_same(value: object, by_name: dict[str, Any]) -> None:
    """Any JSON value in a model comes back, keys that hold lone surrogates included."""
    model = Free(value=value, by_name=by_name)
    text = dump_model(model, "here")
    assert text.isascii()
    assert load_model(Free, text, "here") == model


def test_two_surrogates_that_spell_a_character_read_back_as_it() -> None:
    """JSON has one spelling for both; it is the one thing that changes."""
    assert load_json(dump_json("\ud83d\ude00", "here"), "here") == "\U0001f600"


def test_a_deep_value_reads_back() -> None:
    """Nesting that pydantic's own reader refuses is read all the same."""
    deep: Any = None
    for _ in range(220):
        deep = [deep]
    text = dump_model(Free(value=deep), "here")
    assert load_model(Free, text, "here").value == deep


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", ["declared", "free", "in a list", "under an odd key"])
def test_a_number_that_json_has_no_spelling_for_is_refused(number: float, place: str) -> None:
    """NaN and the infinities raise InvalidValue; pydantic would write null in silence."""

    class Score(BaseModel):
        points: float = 0.0

    values: dict[str, BaseModel] = {
        "declared": Score(points=number),
        "free": Free(value=number),
        "in a list": Free(value=[1, {"a": (number,)}]),
        "under an odd key": Free(by_name={A: number, B: 1}),
    }
    with pytest.raises(InvalidValue, match="not JSON compliant"):
        dump_model(values[place], "here")
    with pytest.raises(InvalidValue, match="not JSON compliant"):
        dump_json(number, "here")


def test_a_model_may_spell_such_numbers() -> None:
    """The way out: a serialiser of the field's own makes strings, which read back as numbers."""

    class Score(BaseModel):
        points: float = 0.0
        none: None = None

        @field_serializer("points", when_used="json")
        def _spelled(self, points: float) -> float | str:
            return points if math.isfinite(points) else str(points)

    text = dump_model(Score(points=math.inf), "here")
    assert load_model(Score, text, "here").points == math.inf


def test_none_beside_odd_keys_stays_none() -> None:
    """Looking for lost values loses none."""
    model = Free(value=None, by_name={"a": None, "b": [None, {"c": None}]})
    assert load_model(Free, dump_model(model, "here"), "here") == model


def test_what_pydantic_writes_for_json_is_kept() -> None:
    """Restoring keys leaves dates, enumerations and other keys as pydantic writes them."""

    class Colour(StrEnum):
        RED = "red"

    class Log(BaseModel):
        by_colour: dict[Colour, int] = {}
        by_day: dict[datetime.date, str] = {}
        by_number: dict[int, None] = {}
        names: dict[str, datetime.datetime | Colour] = {}
        tags: frozenset[str] = frozenset()

    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    log = Log(
        by_colour={Colour.RED: 1},
        by_day={datetime.date(2026, 1, 2): "\ufffd"},
        by_number={7: None},
        names={A: moment, B: Colour.RED},
        tags=frozenset({"x", A}),
    )
    assert load_model(Log, dump_model(log, "here"), "here") == log


def test_names_are_those_of_the_fields() -> None:
    """Aliases, of one kind or two, and computed fields change nothing about a stored row."""

    class Part(BaseModel):
        model_config = ConfigDict(extra="forbid")
        made_at: int = Field(1, alias="madeAt")
        count: int = Field(1, validation_alias="in", serialization_alias="out")

        @computed_field  # type: ignore[prop-decorator]
        @property
        def twice(self) -> int:
            return 2 * self.count

    class Whole(BaseModel):
        parts: list[Part] = []

    whole = Whole(parts=[Part.model_validate({"madeAt": 5, "in": 7})])
    text = dump_model(whole, "here")
    assert json.loads(text) == {"parts": [{"made_at": 5, "count": 7}]}
    assert load_model(Whole, text, "here") == whole


def test_a_strict_model_reads_back() -> None:
    """Strictness allows what JSON spells as text, beside a lone surrogate too."""

    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        at: datetime.datetime
        pair: tuple[int, str]

    for word in ("plain", "\ud800"):
        value = Strict(at=datetime.datetime(2026, 1, 2), pair=(1, word))
        assert load_model(Strict, dump_model(value, "here"), "here") == value


def test_a_root_model_reads_back() -> None:
    """A model that is a bare list is stored as a list."""
    names = RootModel[list[str]](["\ud800"])
    text = dump_model(names, "here")
    assert text == '["\\ud800"]'
    assert load_model(RootModel[list[str]], text, "here") == names


@pytest.mark.parametrize(
    "value", [object(), b"\xff", lambda: None], ids=["object", "bytes", "function"]
)
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    """Whatever can't be written raises InvalidValue that names the place."""
    with pytest.raises(InvalidValue, match=r"^here: "):
        dump_model(Free(value=value), "here")
    with pytest.raises(InvalidValue, match=r"^here: "):
        dump_json(value, "here")


def test_a_field_that_breaks_its_own_type_is_refused_without_its_value() -> None:
    """Written, it would be a row that nobody can read; the message doesn't quote it."""

    class Token(BaseModel):
        number: int = 0

    broken = Token.model_construct(number="hunter2")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="Expected `int`") as caught:
        dump_model(broken, "here")
    assert "hunter2" not in str(caught.value)


def test_a_row_that_does_not_fit_is_named_and_not_quoted() -> None:
    """CorruptRow tells the key, the model and the rule, never the stored value."""

    class Count(BaseModel):
        number: int

    with pytest.raises(CorruptRow, match=r"cell 7.*Count.*number: Input should be") as caught:
        load_model(Count, '{"number": "hunter2"}', "cell 7")
    assert caught.value.key == "cell 7"
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", ["", "{", "nul", '{"value": NaN}', "[1]", "null", "\0"])
def test_text_that_is_no_such_json_is_a_corrupt_row(text: str) -> None:
    """Broken JSON and JSON of another shape are told apart from nothing: both raise."""

    class Count(BaseModel):
        value: int = 0

    with pytest.raises(CorruptRow, match="cell 7"):
        load_model(Count, text, "cell 7")


@pytest.mark.parametrize("text", ["", "{", "NaN", "-Infinity", "[1,]"])
def test_load_json_refuses_what_is_no_json(text: str) -> None:
    """Python's own extensions of JSON are no JSON."""
    with pytest.raises(CorruptRow, match="cell 7"):
        load_json(text, "cell 7")


def test_a_model_that_cannot_read_itself_is_found_before_it_is_stored() -> None:
    """``read_back`` raises InvalidValue: here a validator refuses what a serialiser hides."""

    class Vault(BaseModel):
        word: SecretStr = SecretStr("x")

        @field_validator("word")
        @classmethod
        def _not_hidden(cls, word: SecretStr) -> SecretStr:
            assert "*" not in word.get_secret_value(), "it was hidden"
            return word

    text = dump_model(Vault(word=SecretStr("hunter2")), "here")
    with pytest.raises(InvalidValue, match="it was hidden"):
        read_back(Vault, text, "here")


@given(st.lists(st.tuples(st.integers(), TEXTS), max_size=4))
def test_a_value_of_any_type_reads_back(value: list[tuple[int, str]]) -> None:
    """``dump_value`` and ``load_value`` do the same for what is no model."""
    adapter = TypeAdapter(list[tuple[int, str]])
    text = dump_value(adapter, value, "here")
    assert text.isascii()
    assert load_value(adapter, text, "here") == value


def test_a_value_that_does_not_fit_its_type_is_a_corrupt_row() -> None:
    """The key is in the message."""
    with pytest.raises(CorruptRow, match="output of 'r1'"):
        load_value(TypeAdapter(int), '"x"', "output of 'r1'")
