"""
One request's life in this process, from its place to its last stored row.

The task below owns everything the request has: its scope, its outbox's pump, its place. However
it ends, items are settled and stored, the status is recorded and the place is given back, in this
order, shielded and bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar, final

import anyio
import anyio.lowlevel

from flowstate.collection import K
from flowstate.context import M
from flowstate.define.flow import Action
from flowstate.define.policy import Policy
from flowstate.define.resource import Resource
from flowstate.define.uses import StateDeclaration
from flowstate.errors import StoreError
from flowstate.ids import Identity, RequestId
from flowstate.item.book import ItemBook
from flowstate.item.content import ErrorReport, ResourceChange, StateChange
from flowstate.item.told import mark_told, was_told
from flowstate.lease.protocol import Place
from flowstate.plan.build import Plan
from flowstate.request.lifecycle import ENDED, RequestEvent, after
from flowstate.request.pauses import Pauses
from flowstate.request.standing import Standing
from flowstate.request.stored_value import stored_output
from flowstate.request.surroundings import Surroundings
from flowstate.request.tracing import Tracer
from flowstate.run.attribution import path_of
from flowstate.run.frame import Frame
from flowstate.run.gate import Gate
from flowstate.run.scheduler import execute
from flowstate.run.services import Services
from flowstate.run.side_chains import SideChains
from flowstate.state.cell import StateCell, cell_key
from flowstate.state.collection import ResourceCollection, collection_key
from flowstate.store.record import Fence, PutRequest, RequestRecord, RequestStatus
from flowstate.stream.cursor import Cursor
from flowstate.stream.outbox import Outbox
from flowstate.stream.reader import EventReader, EventSource, read_events

T = TypeVar("T")

SETTLE_TIME = 30.0
"""Seconds that storing the last rows of a request may take."""

Outcome: TypeAlias = (
    tuple[Literal["completed"], Any]
    | tuple[Literal["failed"], Exception]
    | tuple[Literal["cancelled"], str]
    | tuple[Literal["interrupted"], str]
)

_EVENTS: Mapping[str, RequestEvent] = {
    "completed": "complete",
    "failed": "fail",
    "cancelled": "cancel",
    "interrupted": "interrupt",
}


@final
class Execution:
    """One request. Its ``Run`` is what callers hold."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        flow: str,
        action: Action[Any, Any],
        plan: Plan[Any, Any],
        policy: Policy,
        place: Place | None,
        record: RequestRecord,
        value: Any,
    ) -> None:
        self.action = action
        self.action_name = action.name
        self.flow_kind = flow
        self.identity: Identity = record.identity
        self.request_id = RequestId(record.id)
        self.store = surroundings.store
        self.outcome: Outcome | None = None
        self.ran = False
        self.refusal: Exception | None = None
        """Why it could not be recorded."""
        self.recorded = anyio.Event()
        """Set when it is recorded, or can't be."""
        self.begun = anyio.Event()
        """Set when it runs, or has ended before it could."""
        self.decided = anyio.Event()
        """Set when the main chain has ended."""
        self.over = anyio.Event()
        """Set when everything is stored and the place given back."""
        self._around = surroundings
        self._plan = plan
        self.standing = Standing(
            place,
            lease=surroundings.lease,
            policy=policy,
            slots=surroundings.slots,
            request_id=self.request_id,
            action=action.name,
            identity=record.identity,
        )
        self._record = record
        self._value = value
        self._scope = anyio.CancelScope()
        self._pumping = anyio.CancelScope(shield=True)
        self._gate = Gate()
        self.outbox = Outbox(record.id, surroundings.store, on_failure=self._store_failed)
        self._book = ItemBook(
            record.id, clock=surroundings.clock, ids=surroundings.ids, emit=self.outbox.put
        )
        self._own = self._book.writer(plan.name, plan.name)
        self._services = Services(
            self,
            plan.declared,
            listener=Tracer(self._book) if surroundings.trace else None,
        )
        self.pauses = Pauses(self, self._services) if plan.program.asks else None
        """What suspends it; None for a plan that asks nobody."""

    @property
    def status(self) -> RequestStatus:
        """Where it is in its life."""
        return self._record.status

    @property
    def side_chains(self) -> SideChains:
        """The side chains that it has begun."""
        return self._services.side_chains

    def cancel(self, reason: str) -> None:
        """Ask it to stop."""
        if self.over.is_set() or self._services.cancel_reason is not None:
            return
        if self.pauses is not None:
            self.pauses.end()
        self._services.cancel_reason = reason
        self._gate.close()
        self._scope.cancel()

    def source(self) -> EventSource:
        """Where its events are read."""
        return EventSource(request_id=self.request_id, store=self.store, ring=self.outbox.ring)

    async def live(self) -> None:
        """The task of the request: record it, wait for the turn, run, settle."""
        if not await self._record_first():
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._pump)
            if self.pauses is not None:
                group.start_soon(self.pauses.watch)
            try:
                with self._scope:
                    self.outcome = await self._reach()
            except BaseException:
                # The Runtime itself is being cancelled; the request can be sent again. An output
                # that has been answered stands: then only side chains are cut off.
                if self.outcome is None:
                    self.outcome = ("interrupted", "the Runtime was stopped")
                raise
            finally:
                if self.outcome is None:
                    self.outcome = ("cancelled", self._services.cancel_reason or "cancelled")
                await self._settle()

    # --- the parts of a life --------------------------------------------------------------------

    async def _record_first(self) -> bool:
        """Record it as accepted; if that fails it leaves no trace, and False."""
        # Recorded or not, nothing between: whoever sent it is told which.
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + SETTLE_TIME) as scope:
            try:
                await self.store.commit([PutRequest(record=self._record, expected=())])
            except Exception as error:
                self.refusal = error
        if scope.cancelled_caught:
            self.refusal = StoreError(
                f"request {self.request_id!r}: the store did not answer in {SETTLE_TIME:g} s"
            )
        if self.refusal is None:
            self.recorded.set()
            return True
        self.outcome = ("interrupted", "it could not be recorded")
        try:
            await self.standing.leave()
        finally:
            self._let_go()
        return False

    async def _reach(self) -> Outcome:
        """Run it when its turn has come; gives how it ended, unless it was cancelled."""
        try:
            await self.start()
            return await self._run()
        except Exception as error:
            await anyio.lowlevel.checkpoint_if_cancelled()
            return ("failed", error)
        finally:
            self.standing.leave_slot()

    async def start(self) -> None:
        """Wait for its turn, and have it running."""
        await self.standing.await_turn(self._waits)
        self._book.settle_open(self._own)
        self.outbox.fence = self.standing.fence
        await self._move("start")

    async def suspend(self) -> None:
        """Have it suspended: it holds nothing that another request could use."""
        await self._move("suspend")
        self.outbox.fence = None
        await self.standing.leave()

    async def readmit(self) -> None:
        """
        Admit it anew while it is suspended: a place as for one that arrives, and recorded.

        Raises:
            RequestRefused: the policy is ``reject`` and another request is in flight.
            StoreError: it could not be recorded; the place is given back.
        """
        await self.standing.take_again()
        try:
            await self._move("resume")
        except BaseException:
            await self.standing.leave()
            raise

    async def _run(self) -> Outcome:
        self.ran = True
        self.begun.set()
        frame = Frame(self._plan.program, self._services, self._gate)
        if not (self._plan.program.has_side_chains or self._plan.program.watches):
            return await self._main_chain(frame)
        # The main chain's end is the output's; side chains may go on, and the place is held.
        async with self._services.side_chains:
            try:
                outcome = await self._main_chain(frame)
                # A run whose items can't be stored has failed.
                await self.outbox.flushed()
                # Cancelled in the very moment the flush was over: it ends cancelled.
                await anyio.lowlevel.checkpoint_if_cancelled()
            except BaseException:
                self._gate.close()
                raise
            self.outcome = outcome
            self.decided.set()
            with anyio.move_on_after(self._around.drain_timeout) as patience:
                await self._services.side_chains.drained()
                if outcome[0] == "failed":
                    self._tell(outcome[1])
                self._services.watchers.tell(self._book.last)
                await self._services.watchers.drained()
            if patience.cancelled_caught:
                self._services.log.warning(
                    "side_chains_cut_off",
                    running=self._services.side_chains.running,
                    watchers=self._services.watchers.running,
                    after=self._around.drain_timeout,
                )
                self._gate.close()
        return outcome

    async def _main_chain(self, frame: Frame) -> Outcome:
        """Run the main chain; gives how it ended, unless it was cancelled."""
        outcome: Outcome
        try:
            outcome = ("completed", await execute(frame, self._value))
        except Exception as error:
            outcome = ("failed", error)
        # What comes of code that swallowed a cancellation, or that failed while it was being
        # stopped, is discarded; an error is told first.
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            if outcome[0] == "failed":
                self._tell(outcome[1])
            raise
        return outcome

    async def _waits(self, behind: str) -> None:
        self._book.status(self._own).show(f"Waiting behind request {behind}…")
        if self._record.status == "accepted":
            await self._move("wait")

    async def _settle(self) -> None:
        """Store the last rows, give the place back. Bounded, since it can't be cancelled."""
        assert self.outcome is not None
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + SETTLE_TIME):
            try:
                if self.pauses is not None:
                    await self.pauses.ended()
                if self.outcome[0] == "failed":
                    self._tell(self.outcome[1])
                self._book.close()
                # The last items first: a run whose items can't be stored has failed.
                await self.outbox.close()
                self.begun.set()
                self.decided.set()
                await self._move(_EVENTS[self.outcome[0]])
            except Exception as error:
                self._services.log.error("request_not_recorded", error=str(error))
            finally:
                try:
                    await self.standing.leave()
                finally:
                    self._let_go()

    def _let_go(self) -> None:
        """It is over: let go whoever waits for it, and the pump if the store holds it up."""
        if self.outcome is not None and self._record.status not in ENDED:
            # Not stored, but this is how it ended.
            status = after(self._record.status, _EVENTS[self.outcome[0]])
            self._record = replace(self._record, status=status)
        self._pumping.cancel()
        self.recorded.set()
        self.begun.set()
        self.decided.set()
        self.over.set()

    def _tell(self, error: Exception) -> None:
        """An error as an item, at the step that it came from, unless that has told it itself."""
        if was_told(error):
            return
        where = path_of(error) or self._plan.name
        self._book.writer(where, where.rsplit("/", 1)[-1]).add(
            ErrorReport.of(error),
            status="failed",
        )
        mark_told(error)

    async def _move(self, event: RequestEvent) -> None:
        """Record the next status, with the outcome if it is the last."""
        status = after(self._record.status, event)
        record = replace(self._record, status=status, updated_at=self._around.clock())
        match self.outcome:
            case ("completed", value) if status in ENDED:
                output = stored_output(self._plan.output_type, value, self._services.log)
                record = replace(record, output=output)
            case ("failed" | "cancelled" | "interrupted", why) if status in ENDED:
                record = replace(record, error=str(why) or repr(why))
            case _:
                pass  # It goes on: there is no outcome yet, or its last row is still to come.
        await self.store.commit([PutRequest(record=record)], fence=self.standing.fence)
        self._record = record

    async def _pump(self) -> None:
        # Ended by `outbox.close`, also while the Runtime is being cancelled.
        with self._pumping:
            await self.outbox.pump()

    def _store_failed(self, error: Exception) -> None:
        self._services.log.error("items_not_stored", error=str(error))
        failure = error if isinstance(error, StoreError) else StoreError(str(error))
        self.break_off(("failed", failure))

    def break_off(self, outcome: Outcome) -> None:
        """Stop it with this outcome, unless it has an output that was answered already."""
        if not self.decided.is_set() and (self.outcome is None or self.outcome[0] == "completed"):
            self.outcome = outcome
            self._gate.close()
            self._scope.cancel()

    def _fence(self) -> Fence | None:
        return self.standing.fence

    # --- what its run needs (``run.services.Owner``) ----------------------------------------------

    def make_book(self) -> ItemBook:
        """The request's items."""
        return self._book

    async def keep(self, name: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What its session keeps open under this name."""
        return await self._around.kept.keep(self.identity, name, make)

    async def let_go(self, name: str) -> None:
        """Close it."""
        await self._around.kept.let_go(self.identity, name)

    def read_events(self, after: int = 0) -> EventReader:
        """A reader of everything behind this sequence."""
        cursor = Cursor(request_id=self.request_id, sequence=after) if after else None
        return read_events(self.source(), cursor, "trace")

    def open_cell(
        self,
        declaration: StateDeclaration,
        path: str | None,
        tell: Callable[[StateChange], object] | None,
    ) -> StateCell[Any]:
        return StateCell(
            self.store,
            cell_key(declaration, self.identity, self.request_id, path),
            declaration.model,
            fence=self._fence,
            tell=tell,
        )

    def open_collection(
        self, resource: Resource[M, K], tell: Callable[[ResourceChange], object] | None
    ) -> ResourceCollection[M, K]:
        key = collection_key(resource, self.identity, self.request_id)
        return ResourceCollection(self.store, key, resource, fence=self._fence, tell=tell)
