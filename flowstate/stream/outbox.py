"""
The outbox of a request: takes every event, stores what is to be stored, then shows it.

``put`` never waits. One pump takes what has come in, writes the latest state of each changed item
in one transaction, and only then publishes the events. A batch is what came in while the last one
was being written. Only after a piece of a streaming text the pump rests a little, so that what
comes right behind it is one batch. A delta has no row of its own; its text is in its item's row.
A delta never overtakes its item, since all of it is one queue.

A step that makes thousands of items without letting others run fills the queue, which has no
bound. The pump works it off in pieces, so that it doesn't hold up the loop as well.

The outbox knows nothing of steps and readers. It refuses to show what could not be stored: when
the store fails, the request's owner is told once, and everything after that is dropped.

Invariants:

* events are published in the order they were put, each after the transaction that holds it;
* a row is never ahead of its ``last_sequence``: it holds exactly the events up to it;
* when the pump has ended, for whatever reason, the ring is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, final

import anyio.lowlevel

from flowstate.bell import Bell, runs_a_task
from flowstate.errors import StoreError
from flowstate.item.event import ItemEvent
from flowstate.store.record import Fence, ItemRecord, PutItems, Write
from flowstate.stream.ring import Chunk, Ring
from flowstate.stream.row import Row

REST_SECONDS = 0.01
"""How long the pump rests between two batches while a text streams: less than a screen shows."""

MOST_EVENTS = 8192
"""How many events are stored by one transaction at most: some 10 ms, if they are text."""

MOST_ROWS = 256
"""After how many changed items a transaction takes no further chunk: some 10 ms, too."""


class ItemSink(Protocol):
    """The part of a ``Store`` that an outbox needs."""

    async def commit(self, writes: Sequence[Write], *, fence: Fence | None = None) -> None:
        """Do all writes in one transaction, or none."""
        ...


@final
class Outbox:
    """One request's way out: from the book to the store and the ring."""

    __slots__ = (
        "_asleep",
        "_bell",
        "_chunk",
        "_closing",
        "_failure",
        "_in_words",
        "_live",
        "_loop",
        "_on_failure",
        "_queue",
        "_request_id",
        "_started",
        "_store",
        "_taken",
        "_thread",
        "_wake_soon",
        "fence",
        "ring",
    )

    def __init__(
        self,
        request_id: str,
        store: ItemSink,
        *,
        on_failure: Callable[[Exception], None],
        fence: Fence | None = None,
        capacity: int = 4096,
        after: int = 0,
    ) -> None:
        """
        Args:
            request_id: the request whose events come in.
            store: where its items go.
            on_failure: called once, on the event loop, when events could not be stored; it must
                end the run. The error is a StoreError of the store, or an InvalidValue for a
                content that is no JSON.
            fence: proof that the run still owns its key, checked with every write.
            capacity: how many events the ring holds for readers.
            after: the sequence before the first event; the book's ``after``.
        """
        self._request_id = request_id
        self._store = store
        self._on_failure = on_failure
        self.fence = fence
        """Proof that the run still owns its key; set once it does."""
        self.ring = Ring(capacity=capacity, after=after)
        """What readers read from."""
        self._chunk = max(1, min(256, capacity // 8))
        """How many events a chunk holds at most."""
        self._queue: deque[ItemEvent] = deque()
        self._live: dict[str, Row] = {}
        self._taken = after
        self._bell = Bell()
        self._asleep = False
        """Whether the pump sleeps, or is about to, and nobody has woken it."""
        self._thread = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_soon: Callable[..., object] | None = None
        self._started = False
        self._in_words = False
        """Whether what was shown last was a piece of text, and more of it may be coming."""
        self._closing = False
        self._failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<Outbox {self._request_id!r}, {len(self._queue)} waiting, {self.ring!r}>"

    def put(self, event: ItemEvent) -> None:
        """
        Take an event. Callable from any thread, by one caller at a time (the book's lock sees to
        it); dropped once the pump has ended.
        """
        self._queue.append(event)
        if self._asleep:
            self._wake()

    async def pump(self) -> None:
        """
        Store and show events until ``close``; run once, in a task of the request that outlives
        the run; a second one returns at once. Cancelled, it leaves what it had not stored.
        """
        if self._started:
            return
        self._started = True
        self._thread = threading.get_ident()
        # anyio's own way into a loop from a thread blocks that thread until the loop has answered;
        # a worker's put must not wait.
        native = cast("Any", anyio.lowlevel.current_token().native_token)
        self._loop = native if isinstance(native, asyncio.AbstractEventLoop) else None
        self._wake_soon = getattr(native, "run_sync_soon", None) or native.call_soon_threadsafe
        try:
            while await self._more():
                await self._move()
        except Exception as error:  # whatever it was, its owner is told
            self._failure = error
            self._drop()
            self._on_failure(error)
        finally:
            self._drop()
            self.ring.end()

    async def flushed(self) -> None:
        """
        Return once all that has been put so far is stored and shown.

        Raises:
            StoreError: some of it can't be any more; what kept it from being stored is the cause.
        """
        target = self._queue[-1].sequence if self._queue else self._taken
        ring = self.ring
        if ring.head < target:
            self._bell.ring()  # no rest now
        while ring.head < target and not ring.over:
            await ring.wait(ring.head)
        if ring.head < target:
            raise StoreError(
                f"request {self._request_id!r}: items after {ring.head} were not stored"
            ) from self._failure

    async def close(self) -> None:
        """
        Put nothing more; return once the pump has stored and shown what there is, and has ended.
        A failure is not raised again: ``on_failure`` has been told.
        """
        self._closing = True
        self._wake()
        await self.pump()  # does nothing, unless its own task hasn't got to run yet
        ring = self.ring
        while not ring.over:
            await ring.wait(ring.head)

    # --- the pump's parts -------------------------------------------------------------------------

    async def _more(self) -> bool:
        """Wait for events; False when there are none and there will be none."""
        queue = self._queue
        if self._in_words and not self._closing:
            # An agent's words come one a turn of the loop; storing and showing costs the same for
            # one as for twenty. Whoever can't wait rings.
            self._in_words = False
            await self._bell.wait(REST_SECONDS)
        elif queue:
            # There was more than a batch takes, and the store need not have let others run.
            await anyio.lowlevel.checkpoint()
        while not queue and not self._closing:
            self._asleep = True
            # A put between the look at the queue and the falling asleep woke nobody. And whoever
            # is held up between seeing it asleep and waking it wakes it for nothing, later on.
            if not queue:
                await self._bell.wait()
            self._asleep = False
        return bool(queue)

    async def _move(self) -> None:
        """Store and show what is in the queue now, or as much of it as a step of the loop bears."""
        take = self._queue.popleft
        ring, size = self.ring, self._chunk
        self._in_words = self._queue[-1][3] is None
        chunks: list[Chunk] = []
        changed: dict[str, Row] = {}
        left = min(len(self._queue), MOST_EVENTS)
        while left > 0 and len(changed) < MOST_ROWS:
            events = [take() for _ in range(min(left, size))]
            self._taken = events[-1][0]
            left -= size
            chunks.append(self._take_in(events, changed))
        if self._queue:
            self._in_words = False  # there is more already
        records: list[ItemRecord] = []
        for key, row in changed.items():
            if not row.transient:
                records.append(row.record())
            if row.settled:
                del self._live[key]
        if records:
            await self._store.commit([PutItems(records=tuple(records))], fence=self.fence)
        # A batch may be longer than the ring. Half a ring at a time, readers that keep up lose
        # nothing by it; those that don't are not waited for.
        step = max(1, ring.capacity // 2 // size)
        for start in range(0, len(chunks), step):
            if start:
                await anyio.lowlevel.checkpoint()
            ring.publish(chunks[start : start + step])

    def _take_in(self, events: list[ItemEvent], changed: dict[str, Row]) -> Chunk:
        """Bring the rows up to date with these events, and make them a chunk."""
        live = self._live
        hidden = passing = False
        row: Row | None = None
        row_id = ""
        for event in events:
            item = event[3]
            if item is None:
                if row is not None and event[2] == row_id:
                    # A run of deltas of one item: most of what there is.
                    row.parts.append(event[4])
                    row.last = event
                    continue
                row_id = event[2]
                row = live[row_id]
                row.parts.append(event[4])
                row.last = event
            else:
                row_id = event[2]
                row = live.get(row_id)
                if row is None:
                    row = live[row_id] = Row(event, item)
                else:
                    row.replace(event, item)
            changed[row_id] = row
            hidden |= row.hidden
            passing |= row.transient
        return Chunk(
            events,
            [event for event in events if not live[event.item_id].hidden] if hidden else events,
            [event for event in events if live[event.item_id].transient] if passing else [],
        )

    def _wake(self) -> None:
        self._asleep = False
        if threading.get_ident() == self._thread and runs_a_task(self._loop):
            self._bell.ring()
        elif self._wake_soon is not None:
            # Without its loop the pump is gone too; a thread was left behind.
            with contextlib.suppress(RuntimeError):
                self._wake_soon(self._bell.ring)

    def _drop(self) -> None:
        """From now on, take nothing and keep nothing."""
        if self._queue:
            self._taken = self._queue[-1].sequence
        self._queue = deque(maxlen=0)
        self._live.clear()
