"""
The items of a request that are known by a key: one card that several steps bring up to date.

A key is data, any text, and stands for one item a request, whichever steps use it. Such an item
belongs to the request and not to a step: it stays open until somebody settles it, or the request
ends. Once it is settled the key is used up, and whatever is said under it is ignored, as it is of
any settled item.

A block that hides its items, or doesn't have them stored, says so of all it makes. So what is
hidden, what is transient and what is neither never share an item, whatever their keys.

This file makes no items: the book lends it what does, and the lock under which looking a key up
and what follows are one change.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias, final

from flowstate.item.content import Content
from flowstate.item.item import ItemStatus
from flowstate.item.visibility import is_hidden
from flowstate.item.writer import OpenItem

if TYPE_CHECKING:
    from flowstate.item.book import StepItems as Step

Begin: TypeAlias = "Callable[[Step, Content, str | None, bool, ItemStatus], OpenItem]"


@final
class KeyedItems:
    """Which item each key stands for; one a request."""

    __slots__ = ("_items", "_lock")

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        """
        Args:
            lock: held while an item is looked up and changed.
        """
        self._lock = lock
        self._items: dict[tuple[str, bool, bool], OpenItem] = {}

    def __repr__(self) -> str:
        return f"<KeyedItems: {len(self._items)} keys>"

    def upsert(
        self,
        begin: Begin,
        step: Step,
        key: str,
        content: Content,
        parent: str | None,
        transient: bool,
        status: ItemStatus,
    ) -> str:
        """
        Open, change or settle the item of this key; gives its id.

        Args:
            begin: makes the item, if this is the first that is heard of it.
            step: the writer of the step that says so.
            key: any text.
            content: what the item holds from now on; always of the same type.
            parent: the item that it would lie under; None: what the step's items lie under.
            transient: whether it is kept nowhere.
            status: ``in_progress``, or how it ends.

        Raises:
            InvalidValue: the content is of another type than the item's.
        """
        hidden = step.declared == "trace"
        with self._lock:
            if step.shut:
                return begin(step, content, parent, transient, status).id
            hidden |= is_hidden(parent or step.parent)
            place = (key, hidden, transient or step.transient)
            item = self._items.get(place)
            if item is None:
                item = begin(step.apart(), content, parent, transient, status)
                self._items[place] = item
            elif status == "in_progress":
                item.change(content)
            else:
                item.settle(content, status=status)
            return item.id
