"""
A reader's place in a request's events, and its text form ``request_id:sequence``.

The text is what a client sends back to go on where it was, so it is data from outside: parsed
strictly, refused with a reason, and never part of a path or a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from flowstate.errors import InvalidValue

MAX_SEQUENCE: Final = 2**53 - 1
"""The largest sequence: what every JSON reader and every database holds exactly."""

_FORM: Final = "a cursor 'request_id:sequence'"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The last event that a reader has seen; sequence 0 is before the first."""

    request_id: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.request_id}:{self.sequence}"


def parse_cursor(text: str) -> Cursor:
    """
    The cursor written as this text. What follows the last colon is the sequence, since a request
    id may hold colons itself.

    Args:
        text: for example an SSE client's ``Last-Event-ID``.

    Raises:
        InvalidValue: it isn't a cursor; the message says which part is wrong.

    >>> parse_cursor("req:eu:7")
    Cursor(request_id='req:eu', sequence=7)
    >>> str(parse_cursor("req_1:0"))
    'req_1:0'
    """
    request_id, colon, digits = text.rpartition(":")
    if not colon:
        raise InvalidValue("cursor", _FORM, _shown(text), "there is no colon in it")
    if not request_id:
        raise InvalidValue("cursor", _FORM, _shown(text), "the request id is empty")
    # int() would take signs, spaces, underscores and the digits of every script; and it fails in
    # its own words beyond 4,300 digits.
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidValue("cursor", _FORM, _shown(text), "the sequence is not a decimal number")
    if len(digits) > 16 or int(digits) > MAX_SEQUENCE:
        raise InvalidValue("cursor", _FORM, _shown(text), f"the sequence is above {MAX_SEQUENCE}")
    return Cursor(request_id=request_id, sequence=int(digits))


def _shown(text: str) -> str:
    """The text as a message can hold it: quoted, and cut."""
    return repr(text) if len(text) <= 120 else repr(text[:119] + "…")
