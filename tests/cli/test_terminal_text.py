"""What a terminal would act on never passes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.cli.terminal_text import one_line, printable

ATTACKS = {
    "colour": "\x1b[31mred\x1b[0m",
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "title, ended by ST": "\x1b]2;owned\x1b\\",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "device": "\x1bP1$r0m\x1b\\",
    "C1 CSI": "\x9b31mred",
    "C1 OSC": "\x9d0;owned\x9c",
    "bell": "\a\a",
    "backspace": "safe\b\b\b\bevil",
    "cursor": "\x1b7\x1b8\x1bc",
    "unfinished": "\x1b]0;never ended",
    "bidi": "user\u202etxt.exe",
    "isolate": "\u2066x\u2069",
    "nul": "a\0b",
    "nested": "\x1b\x1b[31m[31mx",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_of_an_attack_is_left_that_acts(attack: str) -> None:
    """No escape, no control, no mark that changes the direction; the words may stay."""
    shown = printable(attack)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize("name", ["colour", "title", "clipboard", "C1 CSI", "C1 OSC"])
def test_a_whole_sequence_goes_with_its_parameters(name: str) -> None:
    """Nobody wants to read ``[31m``."""
    assert printable(ATTACKS[name]) in ("red", "")


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_written_anywhere(text: str) -> None:
    """The result holds no control but line breaks, and UTF-8 takes it."""
    shown = printable(text)
    shown.encode("utf-8")
    assert not [c for c in shown if unicodedata.category(c) == "Cc" and c != "\n"]
    assert printable(shown) == shown


@pytest.mark.parametrize("text", ["Grüße", "日本語", "👩‍💻", "a\nb", "x = [1, 2]  # [bold]"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """Letters, emoji made of several characters, and what looks like markup."""
    assert printable(text) == text


def test_every_line_break_is_one() -> None:
    """A carriage return must not let a line be overwritten."""
    assert printable("a\r\nb\rc\u2028d\u2029e\x85f") == "a\nb\nc\nd\ne\nf"


def test_a_huge_text_is_cut_before_it_is_looked_at() -> None:
    """One line of a result of megabytes."""
    assert one_line("word " * 1_000_000, 11) == "word word…"
