"""
The item book of a request: its open items, and the order of everything that happens to them.

It makes the items and hands each change to ``emit`` as an event. It doesn't store, show or wait,
and it doesn't know what becomes of an event. All calls return at once and may come from any
thread, since synchronous handlers run in worker threads.

Invariants:

* sequences are gapless and events are emitted in their order, whichever thread they come from:
  both happen under one lock;
* an item settles once; whatever is said about it afterwards is dropped;
* once the book is closed every item is settled and nothing is emitted any more;
* nothing that clients see names what they may not see: an item grouped under a hidden item is
  hidden itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast, final

from flowstate.errors import InvalidValue
from flowstate.ids import IdSource
from flowstate.item.content import Content
from flowstate.item.event import EventKind, ItemEvent
from flowstate.item.growing import GROWING, grown
from flowstate.item.item import Item, ItemStatus, Provenance, SettledStatus
from flowstate.item.keyed import KeyedItems
from flowstate.item.statusline import StatusSlot, StepStatus
from flowstate.item.visibility import Visibility, hidden_id, is_hidden, visibility_of

# What a NamedTuple's own constructor does, without its Python frame: three times as fast, and
# a delta is little else.
_event: Callable[[type[ItemEvent], tuple[int, EventKind, str, Item | None, str]], ItemEvent] = cast(
    "Any", tuple
).__new__


@final
class ItemBook:
    """All items of one request, while it runs."""

    __slots__ = (
        "_clock",
        "_closed",
        "_ids",
        "_lock",
        "_open",
        "_request_id",
        "_slot",
        "acquire",
        "emit",
        "keyed",
        "last",
        "release",
    )

    def __init__(
        self,
        request_id: str,
        *,
        clock: Callable[[], int],
        ids: IdSource,
        emit: Callable[[ItemEvent], None],
        after: int = 0,
    ) -> None:
        """
        Args:
            request_id: the request that the items belong to.
            clock: tells the time in epoch milliseconds.
            ids: makes item ids.
            emit: takes each event, in order, under the book's lock: it must be quick and must not
                wait. It may be called from any thread.
            after: the sequence to go on from, for a request that an earlier process began. Events
                that are stored nowhere used sequences too, so a resumed request goes on well
                beyond the last one stored.
        """
        self._request_id = request_id
        self._clock = clock
        self._ids = ids
        self.emit = emit
        self.last = after
        # Reentrant: a finaliser may run, and settle an item, wherever this thread happens to be.
        self._lock = lock = threading.RLock()
        self.acquire: Callable[[], object] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self._open: dict[str, LiveItem] = {}
        self._slot = StatusSlot(self._lock)
        self.keyed = KeyedItems(self._lock)
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self._open)} open"
        return f"<ItemBook {self._request_id!r} at {self.last}, {state}>"

    @property
    def sequence(self) -> int:
        """The sequence of the last event; ``after`` if there was none."""
        return self.last

    @property
    def closed(self) -> bool:
        """Whether ``close`` has been called."""
        return self._closed

    def writer(
        self,
        path: str | Callable[[], str],
        block: str,
        declared: Visibility | None = None,
        transient: bool = False,
        parent: str | None = None,
    ) -> StepItems:
        """
        The writer of one step; cheap, since most steps make no items.

        Args:
            path: the step's execution path, or what tells it; asked when the first item is made.
            block: the name of the step's block.
            declared: the visibility that the block declares, if any.
            transient: whether all items of the step are transient.
            parent: the id of the container item that groups the step's items, if any.
        """
        return StepItems(self, path, block, declared, transient, parent)

    def status(self, owner: StepItems) -> StepStatus:
        """The hold of this writer's step on the request's one status line."""
        return StepStatus(self._slot, owner)

    def settle_open(self, owner: StepItems, status: SettledStatus = "incomplete") -> None:
        """
        Settle all items that this writer's step left open, the innermost first, and clear its
        status if it is still shown. The writer can be used again, for the next attempt.
        """
        self._slot.clear(owner)
        if owner.open_count:
            with self._lock:
                for live in reversed([live for live in self._open.values() if live.owner is owner]):
                    live.settle(status=status)

    def shut(self, owner: StepItems, status: SettledStatus = "incomplete") -> None:
        """
        ``settle_open``, and ignore whatever this writer is told from now on: for a step that was
        given up while its thread still runs.
        """
        with self._lock:
            owner.shut = True
            self.settle_open(owner, status)

    def close(self, status: SettledStatus = "incomplete") -> None:
        """
        Settle all open items, the innermost first. Whatever is written afterwards is ignored: an
        item opened then counts as settled and is never shown. A second call does nothing.
        """
        with self._lock:
            self._slot.empty()
            for live in reversed(list(self._open.values())):
                live.settle(status=status)
            self._closed = True

    # --- for the writers and live items of this book ----------------------------------------------

    def begin(
        self,
        owner: StepItems,
        content: Content,
        parent: str | None,
        transient: bool,
        status: ItemStatus,
    ) -> LiveItem:
        """Make an item and tell of it: open if it is in progress, else settled at once."""
        provenance = owner.provenance(parent)
        declared = owner.declared
        if provenance.parent is not None and is_hidden(provenance.parent):
            declared = "trace"
        item_id = self._ids("item")
        now = self._clock()
        item = Item(
            id=hidden_id(item_id) if declared == "trace" else item_id,
            request_id=self._request_id,
            status=status,
            content=content,
            provenance=provenance,
            visibility=visibility_of(content.type, declared),
            transient=transient or owner.transient,
            created_at=now,
            updated_at=now,
        )
        settled = status != "in_progress"
        live = LiveItem(self, owner, item, settled)
        with self._lock:
            if self._closed or owner.shut:
                live.settled = True
                return live
            if not settled:
                self._open[item.id] = live
                owner.open_count += 1
            kind: EventKind = "settled" if settled else "added"
            self.last = sequence = self.last + 1
            self.emit(_event(ItemEvent, (sequence, kind, item.id, item, "")))
        return live

    def replace(self, live: LiveItem, content: Content | None, status: ItemStatus) -> None:
        """
        Tell of new content (None: what it has, all appended text included), or of the end, of a
        live item; nothing once it is settled.

        Raises:
            InvalidValue: the content is of another type than the item's.
        """
        # Who may see an item follows from its type, so the type is for life.
        if content is not None and content.type != live.item.content.type:
            raise InvalidValue(
                f"item {live.id!r}",
                f"content of type {live.item.content.type!r}",
                repr(content.type),
                "an item keeps its type; open another item",
            )
        with self._lock:
            if live.settled:
                return
            last, parts = live.item, live.parts
            if content is None:
                content = grown(last.content, "".join(parts)) if parts else last.content
            if parts:
                parts.clear()
            live.item = item = Item(
                id=last.id,
                request_id=last.request_id,
                status=status,
                content=content,
                provenance=last.provenance,
                visibility=last.visibility,
                transient=last.transient,
                created_at=last.created_at,
                updated_at=self._clock(),
            )
            kind: EventKind = "changed"
            if status != "in_progress":
                kind = "settled"
                live.settled = True
                live.owner.open_count -= 1
                del self._open[item.id]
            self.last = sequence = self.last + 1
            self.emit(_event(ItemEvent, (sequence, kind, item.id, item, "")))


@final
class StepItems:
    """One step's items: what ``ctx.items`` is, and the owner that they are settled by."""

    __slots__ = (
        "_block",
        "_book",
        "_path",
        "_provenance",
        "declared",
        "open_count",
        "parent",
        "shut",
        "transient",
    )

    def __init__(
        self,
        book: ItemBook,
        path: str | Callable[[], str],
        block: str,
        declared: Visibility | None,
        transient: bool,
        parent: str | None,
    ) -> None:
        self._book = book
        self._path = path
        self._block = block
        self._provenance: Provenance | None = None
        self.declared: Visibility | None = declared
        self.transient = transient
        self.parent = parent
        self.open_count = 0
        self.shut = False

    def __repr__(self) -> str:
        return f"<StepItems of {self._block!r}, {self.open_count} open>"

    def open(
        self, content: Content, *, parent: str | None = None, transient: bool = False
    ) -> LiveItem:
        """Show an item in progress; ``parent`` is the id of a container item."""
        return self._book.begin(self, content, parent, transient, "in_progress")

    def add(
        self,
        content: Content,
        *,
        parent: str | None = None,
        transient: bool = False,
        status: SettledStatus = "completed",
    ) -> str:
        """Show an item that is settled at once; returns its id."""
        return self._book.begin(self, content, parent, transient, status).id

    def upsert(
        self,
        key: str,
        content: Content,
        *,
        parent: str | None = None,
        transient: bool = False,
        status: ItemStatus = "in_progress",
    ) -> str:
        """Show, change or settle the request's item of this key; returns its id."""
        book = self._book
        return book.keyed.upsert(book.begin, self, key, content, parent, transient, status)

    def apart(self) -> StepItems:
        """A writer like this one whose items don't end with the step."""
        return StepItems(
            self._book, self._path, self._block, self.declared, self.transient, self.parent
        )

    def provenance(self, parent: str | None) -> Provenance:
        """Where an item of this step comes from; one value for all under the same parent."""
        own = self._provenance
        if own is None:
            path = self._path if isinstance(self._path, str) else self._path()
            own = Provenance(path=path, block=self._block, parent=self.parent)
            self._provenance = own
        if parent is None or parent == own.parent:
            return own
        return Provenance(path=own.path, block=own.block, parent=parent)


@final
class LiveItem:
    """The handle on one item; an ``OpenItem``."""

    __slots__ = ("_book", "id", "item", "owner", "parts", "settled")

    def __init__(self, book: ItemBook, owner: StepItems, item: Item, settled: bool) -> None:
        self._book = book
        self.item = item
        """The item as it was told of last, without what was appended since."""
        self.parts: list[str] | None = [] if item.content.type in GROWING else None
        """What was appended since; None if it isn't one that grows."""
        self.owner = owner
        self.id = item.id
        """The item's id."""
        self.settled = settled
        """Whether it takes no more changes: ``settle`` has been called, by anyone."""

    def __repr__(self) -> str:
        state = "settled" if self.settled else "open"
        return f"<LiveItem {self.id!r} {self.item.content.type}, {state}>"

    def append(self, text: str) -> None:
        """
        Append streamed text; ignored once settled.

        Raises:
            InvalidValue: the item is neither a message nor a reasoning.
        """
        parts = self.parts
        if parts is None:
            raise InvalidValue(
                f"item {self.id!r}",
                "a message or reasoning to append to",
                self.item.content.type,
                "only their text grows; use change(...)",
            )
        if not text:
            return
        # This is the hot path: no call but these, and no `with`, which costs as much as they do.
        book = self._book
        book.acquire()
        try:
            if not self.settled:
                parts.append(text)
                book.last = sequence = book.last + 1
                book.emit(_event(ItemEvent, (sequence, "delta", self.id, None, text)))
        finally:
            book.release()

    def change(self, content: Content) -> None:
        """
        Replace the content; ignored once settled.

        Raises:
            InvalidValue: the content is of another type than the item's.
        """
        self._book.replace(self, content, "in_progress")

    def settle(
        self, content: Content | None = None, *, status: SettledStatus = "completed"
    ) -> None:
        """
        Settle it, with its last content if given. A second call does nothing.

        Raises:
            InvalidValue: the content is of another type than the item's.
        """
        self._book.replace(self, content, status)
