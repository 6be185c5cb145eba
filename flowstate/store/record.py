"""
What is stored, and what is written, as values.

A transaction here is a value too: the list of its writes, handed to ``Store.commit`` whole. So
nothing holds a database transaction open across an await, and every backend has one entry for
"all of this or nothing".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from flowstate.ids import Identity

RequestStatus: TypeAlias = Literal[
    "accepted",
    "waiting",
    "running",
    "suspended",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """Where a state cell lives. Each part is data: two keys are the same only if all parts are."""

    scope: str
    """request, session, user or org."""
    tenant: str | None
    owner: str
    """The id of the request, session, user or organisation."""
    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """A stored cell: JSON text that is plain ASCII, and its version, from 1."""

    key: CellKey
    version: int
    data: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request as of now."""

    id: str
    identity: Identity
    flow: str
    action: str
    status: RequestStatus
    input: str
    """JSON, plain ASCII."""
    output: str | None = None
    """JSON, plain ASCII; set when it completed."""
    error: str | None = None
    """What went wrong, for people; set when it failed, was cancelled or interrupted."""
    created_at: int
    """Epoch milliseconds; the order of acceptance within a session."""
    updated_at: int
    """Epoch milliseconds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecord:
    """
    An item in its latest state. ``last_sequence`` is that of the last event that changed it, so
    that a reader with a cursor finds all that changed since.
    """

    request_id: str
    item_id: str
    first_sequence: int
    last_sequence: int
    visibility: str
    data: str
    """The item's JSON, plain ASCII."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Proof that a run still owns its key: the token its grant was given."""

    key: str
    token: int


# --- writes -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutRequest:
    """Insert the request, or replace it; ``expected`` is the status it must have now, if given."""

    record: RequestRecord
    expected: tuple[RequestStatus, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutCell:
    """Write a cell if its version is still ``expected`` (0: it doesn't exist)."""

    key: CellKey
    expected: int
    data: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutItems:
    """Insert or replace items."""

    records: tuple[ItemRecord, ...]


Write: TypeAlias = PutRequest | PutCell | PutItems
