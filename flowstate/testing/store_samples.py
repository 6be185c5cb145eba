"""
Keys and records to try a store with: plain ones, and texts that stores get wrong.
"""

from __future__ import annotations

from typing import Final

from flowstate.ids import Identity, SessionId
from flowstate.store.record import (
    CellKey,
    CollectionKey,
    ItemRecord,
    RequestRecord,
    RequestStatus,
    ResourceKey,
)

ODD_TEXTS: Final = (
    "",
    " ",
    "a",
    "A",
    "a ",
    "0",
    "None",
    "null",
    "=",
    "%",
    "%00",
    "%25",
    "a/b",
    "a\0b",
    "\0",
    "'; DROP TABLE cells; --",
    '"',
    "\\",
    "\n",
    "é",
    "e\u0301",
    "\x7f",
    "\ufffd",
    "\ufeff",
    "\ud800",
    "\ud801",
    "\udc00\ud800",
    "\U0001f600",
    "\ud83d\ude00",
    "x" * 10_000,
)
"""Texts that stores are known to refuse, change or mistake for one another. All are different."""


def cell_key(
    name: str = "notes",
    *,
    owner: str | None = "s1",
    tenant: str | None = None,
    scope: str = "session",
) -> CellKey:
    """A key; what isn't said is the same in all of them."""
    return CellKey(scope=scope, tenant=tenant, owner=owner, name=name)


def collection_key(
    name: str = "notes",
    *,
    owner: str | None = "s1",
    tenant: str | None = None,
    scope: str = "session",
) -> CollectionKey:
    """A collection's key; what isn't said is the same in all of them."""
    return CollectionKey(scope=scope, tenant=tenant, owner=owner, name=name)


def resource_key(key: str = "notes/n1", collection: CollectionKey | None = None) -> ResourceKey:
    """An entry's key; what isn't said is the same in all of them."""
    return ResourceKey(collection=collection or collection_key(), key=key)


def request_record(
    id: str = "r1",
    *,
    status: RequestStatus = "accepted",
    session: str = "s1",
    tenant: str | None = None,
    created_at: int = 1_000,
    error: str | None = None,
) -> RequestRecord:
    """A request; what isn't said is the same in all of them."""
    return RequestRecord(
        id=id,
        identity=Identity(session_id=SessionId(session), tenant_id=tenant, user_id=id, org_id=None),
        flow="coding",
        action="implement",
        status=status,
        input='"\\ud800"',
        output=None,
        error=error,
        created_at=created_at,
        updated_at=created_at,
    )


def item_record(id: str, first: int, last: int, *, request: str = "r1") -> ItemRecord:
    """An item whose text tells which change it shows."""
    return ItemRecord(
        request_id=request,
        item_id=id,
        first_sequence=first,
        last_sequence=last,
        visibility="client",
        data=f'{{"change":{last}}}',
    )
