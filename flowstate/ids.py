"""
Identifiers: their types, how new ones are made, and how a caller's id becomes a path segment.

A caller-chosen id is data. It is never a path, a key or a piece of one until it has passed
through an encoding in this file. No I/O here, and no clock: makers of ids are handed in.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import NewType, TypeAlias, final

RequestId = NewType("RequestId", str)
SessionId = NewType("SessionId", str)

IdSource: TypeAlias = Callable[[str], str]
"""Makes a fresh id with the given prefix, for example ``ids("req") == "req_6f2c…"``."""


def random_id(prefix: str) -> str:
    """A fresh random id (122 random bits) with a readable prefix."""
    return f"{prefix}_{uuid.uuid4().hex}"


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
