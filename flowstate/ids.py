"""
Identifiers: their types, how new ones are made, and how a caller's id becomes a path segment.

A caller-chosen id is data. It is never a path, a key or a piece of one until it has passed
through an encoding in this file. No I/O here, and no clock: makers of ids are handed in.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NewType, TypeAlias, final
from urllib.parse import quote_from_bytes, unquote_to_bytes

RequestId = NewType("RequestId", str)
SessionId = NewType("SessionId", str)

IdSource: TypeAlias = Callable[[str], str]
"""Makes a fresh id with the given prefix, for example ``ids("req") == "req_6f2c…"``."""


_BATCH: Final = 64

_fresh: list[str] = []
"""Random bits for the next ids: asking the system for them one by one costs ten times as much."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh.clear)  # or parent and child would make the same ids


def random_id(prefix: str) -> str:
    """A fresh random id (128 random bits) with a readable prefix. Callable from any thread."""
    while True:
        try:
            return f"{prefix}_{_fresh.pop()}"
        except IndexError:
            bits = os.urandom(16 * _BATCH).hex()
            _fresh.extend([bits[i : i + 32] for i in range(0, len(bits), 32)])


def segment(value: str | None) -> str:
    r"""
    One path segment for a caller's value: ``"0"`` if it is missing, else ``"1"`` and a digest.

    The digest is SHA-256 over the value's UTF-16 code units, little-endian and without a byte
    order mark, so that a lone surrogate has an encoding of its own. The result holds nothing that
    any file system treats specially and is 65 characters long for every present value.

    >>> segment(None)
    '0'
    >>> segment("")[:9]
    '1e3b0c442'
    >>> segment("\ud800") == segment("\ud801")
    False
    """
    if value is None:
        return "0"
    return "1" + hashlib.sha256(value.encode("utf-16-le", "surrogatepass")).hexdigest()


# What `encodeURIComponent` leaves as it is, but for the tilde, which marks an end below.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.!*'()-]*")


def escaped(value: str) -> str:
    r"""
    The segment of a key that stands for a caller's text, printable ASCII without ``/``.

    It reads back by ``unescaped``, so different texts have different segments. It is never empty
    and never ``.`` or ``..``: a text of no characters or of dots alone has a tilde behind it,
    which is escaped everywhere else. For the rest it is what ``encodeURIComponent`` makes.

    >>> escaped("src/checkout.ts"), escaped("50%"), escaped("\0\ud800")
    ('src%2Fcheckout.ts', '50%25', '%00%ED%A0%80')
    >>> escaped(""), escaped(".."), escaped("~")
    ('~', '..~', '%7E')
    """
    return escaped_start(value) + ("" if value.strip(".") else "~")


def escaped_start(value: str) -> str:
    """
    What the segment of every text that begins with ``value`` begins with, and no other's.

    >>> [escaped(text).startswith(escaped_start(".")) for text in (".", "..", ".git", "git", "")]
    [True, True, True, False, False]
    """
    if _PLAIN.fullmatch(value):
        return value
    # `quote_from_bytes` leaves the tilde alone, whatever it is told.
    form = quote_from_bytes(value.encode("utf-8", "surrogatepass"), safe="!*'()")
    return form.replace("~", "%7E")


def unescaped(form: str) -> str:
    r"""
    The text that ``escaped`` was given.

    >>> unescaped("src%2Fcheckout.ts"), unescaped("~")
    ('src/checkout.ts', '')

    Raises:
        ValueError: ``escaped`` makes no such segment.
    """
    text = unquote_to_bytes(form.removesuffix("~")).decode("utf-8", "surrogatepass")
    if escaped(text) != form:
        raise ValueError(f"{form!r} is no escaped text")
    return text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    Who a run is for. The server fills it in from what it authenticated, never from a request body.
    """

    session_id: SessionId
    """The id the caller gave the session; two tenants may hold the same one."""
    tenant_id: str | None = None
    user_id: str | None = None
    org_id: str | None = None
