"""
How a block makes items: the protocols that ``ctx.items`` and ``ctx.status`` fulfil.

All calls return at once; what they say is ordered, stored and shown by the request's outbox.
"""

from __future__ import annotations

from typing import Protocol

from flowstate.item.content import Content
from flowstate.item.item import ItemStatus, SettledStatus


class OpenItem(Protocol):
    """An item in progress. Whatever is still open when its step ends is settled as incomplete."""

    @property
    def id(self) -> str:
        """The item's id."""
        ...

    @property
    def settled(self) -> bool:
        """Whether ``settle`` has been called, by anyone."""
        ...

    def append(self, text: str) -> None:
        """Append streamed text to a message or reasoning; ignored once settled."""
        ...

    def change(self, content: Content) -> None:
        """Replace the content of an item in progress; ignored once settled."""
        ...

    def settle(
        self, content: Content | None = None, *, status: SettledStatus = "completed"
    ) -> None:
        """Settle it, with its last content if given. A second call does nothing."""
        ...


class ItemWriter(Protocol):
    """Makes the items of one step."""

    def open(
        self, content: Content, *, parent: str | None = None, transient: bool = False
    ) -> OpenItem:
        """Show an item in progress; ``parent`` is the id of a container item."""
        ...

    def add(
        self,
        content: Content,
        *,
        parent: str | None = None,
        transient: bool = False,
        status: SettledStatus = "completed",
    ) -> str:
        """Show an item that is settled at once; returns its id."""
        ...

    def upsert(
        self,
        key: str,
        content: Content,
        *,
        parent: str | None = None,
        transient: bool = False,
        status: ItemStatus = "in_progress",
    ) -> str:
        """
        Show, change or settle the one item that ``key`` stands for in this request; returns its id.

        The first call makes the item, later ones replace its content, whichever step they come
        from. It belongs to the request: unlike an opened one it outlives the step, until a call
        with a settled ``status`` ends it or the request does (as incomplete). Once it is settled,
        calls with its key are ignored.

        Items of hidden blocks, transient ones and the others have keys of their own.

        Args:
            key: any text; the same in another request is another item.
            content: what it holds from now on; always of the same type.
            parent: the id of a container item; only the first call's counts.
            transient: whether it is kept nowhere.
            status: ``completed``, ``incomplete`` or ``failed`` to settle it.

        Raises:
            InvalidValue: the content is of another type than the item's.
        """
        ...


class StatusLine(Protocol):
    """One step's hold on the request's single status line."""

    def show(self, text: str) -> None:
        """Show this text; whatever was shown before, by anyone, is replaced."""
        ...

    def keep(self, text: str) -> None:
        """Put this text into the session's history; the line itself is empty afterwards."""
        ...

    def clear(self) -> None:
        """Empty the line, if it still shows a text of this step."""
        ...
