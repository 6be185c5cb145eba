"""
What sessions keep open between requests: a connection to an agent that the next run goes on using.

Each thing is an async context manager, entered and left in a task of the Runtime's own, so that it
outlives the run that opened it and never the Runtime. One name of one session of one tenant is one
thing; who asks for it while it is being opened waits for the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, final

import anyio
from anyio.abc import TaskGroup

from flowstate.errors import RuntimeClosed
from flowstate.ids import Identity

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")
Key: TypeAlias = tuple[str | None, str, str]
"""Tenant, session, name: a tuple, so that no two of them meet whatever they hold."""

CLOSE_TIME = 30.0
"""Seconds that leaving one may take, when it is let go or the Runtime is left."""


@final
class Kept:
    """All that a Runtime keeps open."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._things: dict[Key, _Thing] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<Kept: {len(self._things)} open>"

    async def keep(
        self, identity: Identity, name: str, make: Callable[[], AbstractAsyncContextManager[T]]
    ) -> T:
        """
        The session's thing of this name; opened first if it isn't.

        Raises:
            RuntimeClosed: the Runtime is being left.
            Exception: it could not be opened; bare, and the next who asks tries again.
        """
        key = _key(identity, name)
        while True:
            thing = self._things.get(key)
            if thing is None:
                if self._closed:
                    raise RuntimeClosed(f"keeping {name!r} open")
                thing = self._things[key] = _Thing(make)
                self._group.start_soon(self._own, key, thing, name=f"flowstate keeps {name!r}")
            if not thing.closing.is_set():
                await thing.opened.wait()
            if thing.error is not None:
                raise thing.error
            if not thing.closing.is_set():
                value: T = thing.value
                return value
            # It was let go meanwhile: the next one is opened when this one is closed.
            await thing.closed.wait()

    async def let_go(self, identity: Identity, name: str) -> None:
        """Close the session's thing of this name and wait until it is; none: nothing to do."""
        thing = self._things.get(_key(identity, name))
        if thing is not None:
            thing.close()
            await thing.closed.wait()

    async def close(self) -> None:
        """Close everything; nothing is opened any more."""
        self._closed = True
        things = tuple(self._things.values())
        for thing in things:
            thing.close(at_once=True)
        for thing in things:
            await thing.closed.wait()

    async def _own(self, key: Key, thing: _Thing) -> None:
        """The task that dies with the Runtime: it has the thing closed then, too."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._hold, key, thing)
            try:
                await thing.closed.wait()
            finally:
                thing.close(at_once=True)

    async def _hold(self, key: Key, thing: _Thing) -> None:
        """Open it, keep it, close it. Sheltered: only ``thing`` says when to stop."""
        # Around all of it, since what is opened may hold scopes of its own, to be left in turn.
        with thing.shelter:
            try:
                async with thing.make() as value:
                    thing.value = value
                    thing.opened.set()
                    await thing.closing.wait()
                    thing.shelter.deadline = anyio.current_time() + CLOSE_TIME
            except Exception as error:
                if thing.opened.is_set():
                    _log(key).error("not_closed", error=str(error) or repr(error))
                else:
                    thing.error = error
        if thing.shelter.cancelled_caught and thing.opened.is_set():
            _log(key).error("not_closed", after=CLOSE_TIME)
        thing.closing.set()
        del self._things[key]
        thing.opened.set()
        thing.closed.set()


@final
class _Thing:
    """One thing that is kept, being opened, or being closed."""

    __slots__ = ("closed", "closing", "error", "make", "opened", "shelter", "value")

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self.make = make
        self.value: Any = None
        self.error: Exception | None = None
        """Why it could not be opened."""
        self.opened = anyio.Event()
        self.closing = anyio.Event()
        self.closed = anyio.Event()
        self.shelter = anyio.CancelScope(shield=True)

    def close(self, *, at_once: bool = False) -> None:
        """Have it closed. ``at_once``: give up opening it, if it isn't open yet."""
        if at_once and not self.opened.is_set():
            self.shelter.cancel()
        self.closing.set()


def _log(key: Key) -> FilteringBoundLogger:
    import structlog  # with what it brings, a third of what importing flowstate costs

    log: FilteringBoundLogger = structlog.get_logger("flowstate").bind(session=key[1], kept=key[2])
    return log


def _key(identity: Identity, name: str) -> Key:
    return (identity.tenant_id, identity.session_id, name)
