"""
The one status line of a request: the latest text wins, whoever showed it.

What is shown is an item of type status, transient, in progress while it is on the line and settled
when it is replaced or cleared. A kept text is an item of its own, stored and settled at once, and
leaves the line empty. A step can clear only what it showed itself, so that a late clear never
wipes out somebody else's news.

This file knows items only by the protocols that make them; the book lends it the lock under which
a replacement is one change.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import final

from flowstate.item.content import Status, unchecked
from flowstate.item.writer import ItemWriter, OpenItem


@final
class StatusSlot:
    """What the line shows now and whose it is; one a request."""

    __slots__ = ("_lock", "_owner", "_shown")

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock = lock
        self._shown: OpenItem | None = None
        self._owner: ItemWriter | None = None

    def __repr__(self) -> str:
        return f"<StatusSlot {'empty' if self._shown is None else self._shown.id}>"

    def show(self, owner: ItemWriter, text: str) -> None:
        """Show this owner's text instead of whatever is shown."""
        content = _status(text)
        with self._lock:
            self.empty()
            self._shown = owner.open(content, transient=True)
            self._owner = owner

    def keep(self, owner: ItemWriter, text: str) -> None:
        """Empty the line and put this owner's text into the session's history."""
        content = Status(text=text, kept=True)
        with self._lock:
            self.empty()
            owner.add(content)

    def clear(self, owner: ItemWriter) -> None:
        """Empty the line if what it shows is this owner's."""
        if self._owner is owner:  # looked at again under the lock; most steps show nothing
            with self._lock:
                if self._owner is owner:
                    self.empty()

    def empty(self) -> None:
        """Settle what is shown, whoever's it is. The caller holds the lock."""
        shown, self._shown, self._owner = self._shown, None, None
        if shown is not None:
            shown.settle()


@final
class StepStatus:
    """One step's hold on the slot: what ``ctx.status`` is."""

    __slots__ = ("_owner", "_slot")

    def __init__(self, slot: StatusSlot, owner: ItemWriter) -> None:
        self._slot = slot
        self._owner = owner

    def show(self, text: str) -> None:
        """Show this text; whatever was shown before, by anyone, is replaced."""
        self._slot.show(self._owner, text)

    def keep(self, text: str) -> None:
        """Put this text into the session's history; the line itself is empty afterwards."""
        self._slot.keep(self._owner, text)

    def clear(self) -> None:
        """Empty the line, if it still shows a text of this step."""
        self._slot.clear(self._owner)


def _status(text: str) -> Status:
    # One is shown for each tool that an agent uses. What isn't a text is the model's to refuse.
    return unchecked(Status, text=text) if type(text) is str else Status(text=text)
