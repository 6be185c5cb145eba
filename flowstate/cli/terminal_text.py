"""
Text from elsewhere as a terminal may show it.

What an agent, a tool or a model says is data. Sent to a terminal as it is, it could move the
cursor, rename the window, write the clipboard or hide what it did, so every text passes through
here first. Pure; it knows nothing of colours and widths.
"""

from __future__ import annotations

import re
import traceback

_SEQUENCES = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                              # CSI: colours, cursor
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}  # OSC, DCS, SOS, PM, APC:
      (?:\x07|\x1b\\|\x9c)                                          #   title, clipboard, links
    | \x1b[ -/]*[0-~]                                               # two-character ones
    """,
    re.VERBOSE,
)
"""Whole sequences, so that their parameters don't stay behind as litter."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 and C1 controls
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # direction, zero width
    "\U000e0000-\U000e007f]"  # tags
)
_BREAKS = re.compile("\r\n|[\r\u2028\u2029\x85]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""
    The text without anything that a terminal would act on; only line breaks are left.

    Control sequences and invisible marks go, a tab becomes spaces, every kind of line break
    becomes one, and a lone surrogate, which no output encoding takes, becomes U+FFFD.

    >>> printable("\x1b[31mred\x1b[0m\a \x1b]0;title\x07a\tb\r\nc")
    'red a    b\nc'
    """
    text = _SEQUENCES.sub("", text)
    text = _BREAKS.sub("\n", text)
    text = _UNSEEN.sub("", text).replace("\t", "    ")
    return _SURROGATES.sub("\ufffd", text)


def one_line(text: str, limit: int) -> str:
    r"""
    The text on one line of at most ``limit`` characters; white space runs become one space.

    >>> one_line("a\n  b", 10), one_line("abcdef", 4)
    ('a b', 'abc…')
    """
    # What is far beyond the limit is cut off first: a tool's result may be megabytes.
    flat = " ".join(printable(text[: limit * 8 + 200]).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def traceback_of(error: BaseException) -> str:
    """An exception's traceback, notes and causes included, as a terminal may show it."""
    return printable("".join(traceback.format_exception(error)))
