"""Items for tests that need one and don't care where it came from."""

from __future__ import annotations

from flowstate.item.content import Content
from flowstate.item.item import Item, Provenance


def an_item(content: Content) -> Item:
    """An item in progress that holds this."""
    return Item(
        id="item_1",
        request_id="req",
        status="in_progress",
        content=content,
        provenance=Provenance(path="turn/x", block="x"),
        visibility="client",
        created_at=1,
        updated_at=2,
    )
