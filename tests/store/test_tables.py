"""How a caller's text becomes a column."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from flowstate.store.tables import Owner, Words, decode, encode

TEXTS = st.text(st.characters(codec=None, categories=None))
DIALECT = sqlite.dialect()


@given(TEXTS)
@example("%ED%A0%80")
@example("\ud800")
@example("\ud83d\ude00")
@example("\0")
def test_every_text_has_a_printable_form_that_reads_back(text: str) -> None:
    """The form is printable ASCII, so no database refuses or changes it."""
    form = encode(text)
    assert form.isascii()
    assert form == "" or form.isprintable()
    assert decode(form) == text


@given(TEXTS, TEXTS)
@example("\ud83d\ude00", "\U0001f600")
@example("%00", "\0")
def test_different_texts_have_different_forms(one: str, other: str) -> None:
    """Two keys never meet in a column."""
    assert (encode(one) == encode(other)) == (one == other)


@given(st.text("abcxyzABCXYZ019-_.:@/ ="))
def test_a_plain_id_is_its_own_form(text: str) -> None:
    """Someone who looks into the file finds the ids that the caller chose."""
    assert encode(text) == text


@given(st.none() | TEXTS, st.none() | TEXTS)
@example(None, "")
@example(None, "None")
@example("=", "")
def test_a_missing_owner_is_unlike_every_text(one: str | None, other: str | None) -> None:
    """Missing has a form of its own, so that it can be part of a key."""
    forms = [Owner().process_bind_param(value, DIALECT) for value in (one, other)]
    assert (forms[0] == forms[1]) == (one == other)
    assert Owner().process_result_value(forms[0], DIALECT) == one


@given(st.none() | TEXTS)
def test_other_columns_keep_missing_as_null(text: str | None) -> None:
    """A text that may be missing reads back, missing or not."""
    form = Words().process_bind_param(text, DIALECT)
    assert (form is None) == (text is None)
    assert Words().process_result_value(form, DIALECT) == text
