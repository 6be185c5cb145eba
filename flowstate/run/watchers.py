"""
Watchers: code of a block that listens to the rest of its request, the way a recorder does.

A watcher runs beside the chain and nobody waits for it until the plan is done: the main chain and
its side chains. Then it is told, by the end of its items, and may finish what it has to, within the
request's ``drain_timeout``. Like a side chain it stands below the place that began it: a cancelled
branch ends those begun beneath it, a failing chain doesn't, a cancelled request ends all. Its
failure is an item and reaches nobody else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Container
from typing import TYPE_CHECKING, TypeAlias, final

import anyio

from flowstate.context import Watched
from flowstate.item.content import ErrorReport
from flowstate.item.item import Item
from flowstate.item.visibility import Visibility
from flowstate.run.gate import Gate

if TYPE_CHECKING:
    from flowstate.run.services import BatchReader, Services

Listen: TypeAlias = Callable[[Watched], Awaitable[object]]


@final
class Watchers:
    """All watchers of one request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running: set[_Watcher] = set()
        self._told_at: int | None = None

    def __repr__(self) -> str:
        return f"<Watchers: {len(self._running)} running>"

    @property
    def running(self) -> int:
        """How many have not ended."""
        return len(self._running)

    def begin(
        self,
        path: str,
        block: str,
        gate: Gate,
        listen: Listen,
        types: Container[str] | None,
        visibility: Visibility,
    ) -> None:
        """Begin one, with the items that settle from now on; returns at once."""
        reader = self._services.owner.read_events(self._services.book.last)
        items = WatchedItems(reader, path, types, visibility)
        if self._told_at is not None:
            items.tell(self._told_at)
        watcher = _Watcher(path, block, Gate(gate), items)
        self._running.add(watcher)
        self._services.side_chains.start(self._run, watcher, listen)

    def tell(self, last: int) -> None:
        """The plan is done: what has happened up to this sequence is all they are given."""
        self._told_at = last
        for watcher in self._running:
            watcher.items.tell(last)

    async def drained(self) -> None:
        """Wait until none is running."""
        while self._running:
            await next(iter(self._running)).ended.wait()

    async def _run(self, watcher: _Watcher, listen: Listen) -> None:
        try:
            with watcher.scope:
                if not watcher.gate.closed:
                    await listen(watcher.items)
        except Exception as error:
            self._services.book.writer(watcher.path, watcher.block).add(
                ErrorReport.of(error),
                status="failed",
            )
            self._services.log.warning(
                "watcher_failed", path=watcher.path, error=type(error).__name__
            )
        finally:
            watcher.gate.leave()
            self._running.discard(watcher)
            watcher.ended.set()


@final
class _Watcher:
    """One watcher under way."""

    __slots__ = ("block", "ended", "gate", "items", "path", "scope")

    def __init__(self, path: str, block: str, gate: Gate, items: WatchedItems) -> None:
        self.path = path
        self.block = block
        self.gate = gate
        self.items = items
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        gate.on_close = self.scope.cancel
        if gate.closed:
            self.scope.cancel()


@final
class WatchedItems:
    """The items that a watcher is given; ``flowstate.context.Watched``."""

    __slots__ = ("_last", "_own", "_reader", "_ready", "_types", "_visibility", "_waiting")

    def __init__(
        self,
        reader: BatchReader,
        own: str,
        types: Container[str] | None,
        visibility: Visibility,
    ) -> None:
        self._reader = reader
        self._own = own
        self._types = types
        self._visibility = visibility
        self._ready: deque[Item] = deque()
        self._last: int | None = None
        self._waiting: anyio.CancelScope | None = None

    def __aiter__(self) -> WatchedItems:
        return self

    async def __anext__(self) -> Item:
        while not self._ready:
            if self._last is not None and self._reader.position >= self._last:
                raise StopAsyncIteration
            events = None
            # Told while it waits, it looks again whether there is anything left to wait for.
            with anyio.CancelScope() as self._waiting:
                events = await self._reader.take()
            self._waiting = None
            if events is None:
                continue
            if not events:
                raise StopAsyncIteration
            for event in events:
                if (
                    event.kind == "settled"
                    and event.item is not None
                    and (self._last is None or event.sequence <= self._last)
                    and self._wants(event.item)
                ):
                    self._ready.append(event.item)
        return self._ready.popleft()

    def tell(self, last: int) -> None:
        """Nothing behind this sequence is given any more."""
        self._last = last
        if self._waiting is not None:
            self._waiting.cancel()

    def _wants(self, item: Item) -> bool:
        # Its own items would keep it busy with itself.
        return (
            (self._types is None or item.content.type in self._types)
            and (self._visibility == "trace" or item.visibility == "client")
            and item.provenance.path != self._own
        )
