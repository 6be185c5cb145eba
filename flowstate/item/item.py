"""
The item: what a run says, does and goes through, as a reader sees it.

An item is frozen; a change makes a new value under the same id. It is in progress until it
settles, once, as completed, incomplete or failed; the book (``flowstate.item.book``) holds it to
that.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel

from flowstate.item.content import WIRE, Content
from flowstate.item.visibility import Visibility

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]

SettledStatus: TypeAlias = Literal["completed", "incomplete", "failed"]


class Provenance(BaseModel):
    """Where an item came from."""

    model_config = WIRE
    path: str
    """The execution path of the step, for example ``turn/refine/iter[2]``."""
    block: str
    """The name of the block that made it."""
    parent: str | None = None
    """The id of the container item that groups it, if any."""


class Item(BaseModel):
    """One item of a request, as of now."""

    model_config = WIRE
    id: str
    request_id: str
    status: ItemStatus
    content: Content
    provenance: Provenance
    visibility: Visibility
    transient: bool = False
    """True when it is shown as it happens and kept nowhere."""
    created_at: int
    """Epoch milliseconds."""
    updated_at: int
    """Epoch milliseconds."""

    @property
    def settled(self) -> bool:
        """Whether it will change no more."""
        return self.status != "in_progress"
