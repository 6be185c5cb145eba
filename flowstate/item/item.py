"""
The item: what a run says, does and goes through, as a reader sees it.

An item is frozen; a change makes a new value under the same id. It is in progress until it
settles, once, as completed, incomplete or failed; the book (``flowstate.item.book``) holds it to
that. Only the book and the stores make items, of parts that were validated before, so they are
plain dataclasses: ``flowstate.item.wire`` writes and reads their JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, final

from pydantic import ConfigDict

from flowstate.item.content import WIRE, Content
from flowstate.item.visibility import Visibility

ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]

SettledStatus: TypeAlias = Literal["completed", "incomplete", "failed"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an item came from."""

    __pydantic_config__: ClassVar[ConfigDict] = WIRE
    path: str
    """The execution path of the step, for example ``turn/refine/iter[2]``."""
    block: str
    """The name of the block that made it."""
    parent: str | None = None
    """The id of the container item that groups it, if any."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of a request, as of now."""

    __pydantic_config__: ClassVar[ConfigDict] = WIRE
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
