"""Running one block by itself: no flow, no store, no admission. For tests, scripts and benches."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast, final

import anyio
import anyio.lowlevel

from flowstate.bell import runs_a_task
from flowstate.collection import K
from flowstate.context import M
from flowstate.define.block import Block
from flowstate.define.resource import Resource
from flowstate.define.uses import StateDeclaration
from flowstate.errors import RuntimeClosed
from flowstate.ids import Identity, IdSource, RequestId, SessionId, random_id
from flowstate.item.book import ItemBook
from flowstate.item.content import ResourceChange, StateChange
from flowstate.item.event import ItemEvent
from flowstate.plan.build import Plan, build_plan
from flowstate.run.drive import drive
from flowstate.run.frame import Frame, Listener
from flowstate.run.gate import Gate
from flowstate.run.questions import Answerer, Questions
from flowstate.run.services import Services
from flowstate.state.cell import StateCell, cell_key
from flowstate.state.collection import ResourceCollection, collection_key
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


async def run_block(
    block: Block[A, B] | Plan[A, B],
    value: A,
    *,
    identity: Identity | None = None,
    listener: Listener | None = None,
    emit: Callable[[ItemEvent], None] | None = None,
    answers: Answerer | None = None,
) -> B:
    """
    Run a block, or a plan made before, on a value and return its output.

    Args:
        block: built anew each time if it is no plan.
        value: validated against the block's input type.
        identity: who it is for; by default a session of its own.
        listener: told of every node.
        emit: told of every item event.
        answers: gives the answers to what steps ask people, at once.

    Raises:
        PlanError: the composition doesn't fit together.
        InvalidValue: the value doesn't fit.
        Exception: whatever a block raised, bare.
    """
    plan = block if isinstance(block, Plan) else build_plan(block)
    services = lone_services(plan, identity=identity, listener=listener, emit=emit, answers=answers)
    result: B = await drive(Frame(plan.program, services, Gate()), plan.checked_input(value))
    return result


def lone_services(
    plan: Plan[Any, Any],
    *,
    identity: Identity | None = None,
    listener: Listener | None = None,
    emit: Callable[[ItemEvent], None] | None = None,
    store: Store | None = None,
    clock: Callable[[], int] | None = None,
    ids: IdSource = random_id,
    rng: random.Random | None = None,
    answers: Answerer | None = None,
) -> Services:
    """The services of a run outside a Runtime: a request of its own, state in memory."""
    owner = _Lone(plan, identity or _SOMEBODY, emit, store, clock, ids)
    questions = None if answers is None else Questions(answers)
    return Services(owner, plan.declared, listener=listener, rng=rng, questions=questions)


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000


_SOMEBODY = Identity(session_id=SessionId("session"))
_REQUEST = RequestId("request")


@final
class _Lone:
    """The owner of a run without a Runtime; ``run.services.Owner``."""

    __slots__ = (
        "_clock",
        "_emit",
        "_events",
        "_ids",
        "_keeps",
        "_more",
        "_skipped",
        "_store",
        "action_name",
        "identity",
    )

    flow_kind = "once"
    request_id = _REQUEST

    def __init__(
        self,
        plan: Plan[Any, Any],
        identity: Identity,
        emit: Callable[[ItemEvent], None] | None,
        store: Store | None,
        clock: Callable[[], int] | None,
        ids: IdSource,
    ) -> None:
        self.action_name = plan.name
        # Kept only where a step may ask for them: a long run makes very many. A block that a node
        # calls is in no plan: its first reader makes them be kept from then on.
        self._keeps = plan.program.reads_items or plan.program.watches
        self.identity = identity
        self._emit = emit
        self._store = store
        self._clock = clock or _epoch_ms
        self._ids = ids
        self._events: list[ItemEvent] = []
        self._skipped = 0
        """How many were not kept: sequences have no gaps."""
        self._more: _Bell | None = None

    def make_book(self) -> ItemBook:
        return ItemBook(self.request_id, clock=self._clock, ids=self._ids, emit=self._put)

    def open_cell(
        self,
        declaration: StateDeclaration,
        path: str | None,
        tell: Callable[[StateChange], object] | None,
    ) -> StateCell[Any]:
        key = cell_key(declaration, self.identity, self.request_id, path)
        return StateCell(self._kept_in(), key, declaration.model, tell=tell)

    def open_collection(
        self, resource: Resource[M, K], tell: Callable[[ResourceChange], object] | None
    ) -> ResourceCollection[M, K]:
        key = collection_key(resource, self.identity, self.request_id)
        return ResourceCollection(self._kept_in(), key, resource, tell=tell)

    def _kept_in(self) -> Store:
        if self._store is None:
            self._store = MemoryStore()
        return self._store

    async def keep(self, name: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        raise RuntimeClosed(f"keeping {name!r} open")

    async def let_go(self, name: str) -> None:
        """Nothing is ever kept."""

    def read_events(self, after: int = 0) -> _EventsReader:
        self._keeps = True
        return _EventsReader(self, after)

    async def after(self, position: int) -> list[ItemEvent]:
        """The events after this sequence, waiting for one."""
        while self._skipped + len(self._events) <= position:
            more = self._more
            if more is None:
                more = self._more = _Bell()
            # A put between the look at the events and the hanging up of the bell rang another.
            if self._skipped + len(self._events) <= position:
                await more.event.wait()
        return self._events[max(position - self._skipped, 0) :]

    def _put(self, event: ItemEvent) -> None:
        if self._keeps:
            self._events.append(event)
        else:
            self._skipped += 1
        if self._emit is not None:
            self._emit(event)
        more, self._more = self._more, None
        if more is not None:
            more.ring()


@final
class _Bell:
    """An event that any thread may set: items are made in worker threads too."""

    __slots__ = ("_loop", "_soon", "_thread", "event")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self._thread = threading.get_ident()
        native = cast("Any", anyio.lowlevel.current_token().native_token)
        self._loop = native if isinstance(native, asyncio.AbstractEventLoop) else None
        self._soon: Callable[..., object] = (
            getattr(native, "run_sync_soon", None) or native.call_soon_threadsafe
        )

    def ring(self) -> None:
        """Set the event."""
        if threading.get_ident() == self._thread and runs_a_task(self._loop):
            self.event.set()
        else:
            # Without its loop nobody waits any more; the thread was left behind.
            with contextlib.suppress(RuntimeError):
                self._soon(self.event.set)


@final
class _EventsReader:
    def __init__(self, owner: _Lone, after: int) -> None:
        self._owner = owner
        self.position = after

    async def take(self) -> list[ItemEvent]:
        events = await self._owner.after(self.position)
        self.position = events[-1].sequence
        return events
