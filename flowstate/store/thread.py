"""
One thread that works through what the tasks of an event loop ask of it, in groups.

A blocking resource that wants a single user (a database connection) lives on the thread. Whatever
was asked for while the thread was busy is handed to it as one group, so that the work can be
shared: many commits, one flush to the disk. Coming back costs one call into the event loop a
group. It doesn't know what the work is.

Invariants:

- Tickets are handed over in the order in which they were asked for.
- Every ticket asked for before ``stop`` is worked on; the thread has ended when ``stop`` returns.
- A task that is cancelled while it waits leaves at once and withdraws its ticket. The work may
  have begun by then, so withdrawing is a hint; nobody reads the outcome of a withdrawn ticket.
- The thread never waits for an event loop, so one that ended early can't hold it up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast, final

import anyio
from anyio.lowlevel import current_token

from flowstate.errors import StoreError

Job = TypeVar("Job")

GROUP: Final = 256
"""How many tickets are handed over at once, at most."""

_STOP: Final = object()

_Call: TypeAlias = Callable[..., object]


class _AsyncioLoop(Protocol):
    def call_soon_threadsafe(self, call: _Call, argument: object, /) -> object: ...


class _TrioToken(Protocol):
    def run_sync_soon(self, call: _Call, argument: object, /) -> object: ...


def _caller() -> _Call:
    """
    What calls a function in this event loop, from any thread, without waiting for it.

    ``anyio.from_thread.run_sync`` waits for the answer: a hop more for every group, and for ever
    if the loop ends at that moment.
    """
    token = current_token().native_token
    if hasattr(token, "run_sync_soon"):
        return cast(_TrioToken, token).run_sync_soon
    return cast(_AsyncioLoop, token).call_soon_threadsafe


@final
class Ticket(Generic[Job]):
    """A job, and what came of it: an ``error``, or else a ``result``."""

    __slots__ = ("caller", "done", "error", "job", "result", "withdrawn")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.result: Any = None
        self.error: Exception | None = None
        self.withdrawn = False
        self.done = anyio.Event()
        self.caller = _caller()


@final
class WorkThread(Generic[Job]):
    """The thread. ``start`` it, ``ask`` from any task, ``stop`` it."""

    def __init__(
        self,
        name: str,
        *,
        begin: Callable[[], None],
        work: Callable[[Sequence[Ticket[Job]]], None],
        end: Callable[[], None],
    ) -> None:
        """
        Args:
            name: for people: the thread's name, and what errors call it.
            begin: called on the thread first; if it raises, so does ``start``.
            work: called on the thread with each group; sets ``result`` or ``error`` of every
                ticket, withdrawn ones excepted.
            end: called on the thread last, also after a ``begin`` that raised.
        """
        self._name = name
        self._begin = begin
        self._work = work
        self._end = end
        self._queue: SimpleQueue[Ticket[Any]] = SimpleQueue()
        self._thread: Thread | None = None

    async def start(self) -> None:
        """Start the thread and wait until ``begin`` is through."""
        begun = Ticket("begin")
        # A daemon: a program that forgot to close must still be able to end.
        thread = Thread(target=self._run, args=(begun,), name=self._name, daemon=True)
        thread.start()
        try:
            await begun.done.wait()
        except BaseException:
            # Not waited for: `begin` may be slow. The thread ends by itself when it is through.
            self._queue.put(Ticket(_STOP))
            raise
        if begun.error is not None:
            await _is_gone(thread)
            raise begun.error
        self._thread = thread

    async def ask(self, job: Job) -> Any:
        """
        Have a job done and return its result.

        Raises:
            StoreError: the thread was stopped, or never started.
            Exception: the ticket's error.
        """
        if self._thread is None:
            raise StoreError(f"{self._name} is not open")
        ticket = Ticket(job)
        self._queue.put(ticket)
        try:
            await ticket.done.wait()
        except BaseException:
            ticket.withdrawn = True
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    async def stop(self, *, within: float) -> None:
        """
        Work through what was asked for, then end the thread. Shielded from cancellation.

        Args:
            within: for how long at most, in seconds.

        Raises:
            StoreError: that was not enough; the thread ends by itself when it is through.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        last = Ticket(_STOP)
        self._queue.put(last)
        with anyio.move_on_after(within, shield=True) as scope:
            await last.done.wait()
            await _is_gone(thread)
        if scope.cancelled_caught:
            raise StoreError(f"{self._name} is still busy after {within:g} s")

    # --- on the thread ----------------------------------------------------------------------

    def _run(self, begun: Ticket[str]) -> None:
        last: Ticket[Any] = begun
        try:
            self._begin()
        except Exception as error:
            begun.error = error
        else:
            _wake([begun])
            stop = None
            while stop is None:
                group, stop = self._next_group()
                if group:
                    self._do(group)
            last = stop
        try:
            self._end()
        finally:
            _wake([last])

    def _next_group(self) -> tuple[list[Ticket[Job]], Ticket[Any] | None]:
        """What is waiting, in order, and what tells to stop, if anything. Waits for the first."""
        group: list[Ticket[Job]] = []
        ticket = self._queue.get()
        while ticket.job is not _STOP:
            group.append(ticket)
            if len(group) == GROUP:
                return group, None
            try:
                ticket = self._queue.get_nowait()
            except Empty:
                return group, None
        return group, ticket

    def _do(self, group: list[Ticket[Job]]) -> None:
        try:
            self._work(group)
        except Exception as error:
            for ticket in group:
                ticket.error = StoreError(f"{self._name}: {type(error).__name__}")
                ticket.error.__cause__ = error
        _wake(group)


async def _is_gone(thread: Thread) -> None:
    """Wait for a thread that has said its last word: nothing but the interpreter ends it now."""
    while thread.is_alive():  # noqa: ASYNC110  (`join` would block the event loop)
        await anyio.sleep(0.0005)


def _wake(tickets: Sequence[Ticket[Any]]) -> None:
    """Wake whoever waits, by one call into each event loop."""
    events: dict[_Call, list[anyio.Event]] = {}
    for ticket in tickets:
        events.setdefault(ticket.caller, []).append(ticket.done)
    for caller, waiting in events.items():
        with suppress(RuntimeError):  # The event loop has ended, and with it whoever waited.
            caller(_set_all, waiting)


def _set_all(events: Sequence[anyio.Event]) -> None:
    for event in events:
        event.set()
