"""
The Runtime: flows, a store and leases put together; dispatches requests and owns their tasks.

Order of a dispatch: the value is checked, a known request id is answered with its run, a place is
taken, the request is recorded, its task starts. Refused at any of these, nothing is left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, final

import anyio
from anyio.abc import TaskGroup

from flowstate.admission.admit import take_place
from flowstate.admission.key import admission_key
from flowstate.define.flow import Action, Flow
from flowstate.define.policy import Policy
from flowstate.errors import (
    DefinitionError,
    InvalidValue,
    RequestError,
    RuntimeClosed,
    StatusConflict,
)
from flowstate.ids import Identity, IdSource, RequestId, SessionId, random_id
from flowstate.item.visibility import Visibility
from flowstate.lease.memory import MemoryLease
from flowstate.lease.protocol import LeaseBackend
from flowstate.plan.build import Plan, build_plan
from flowstate.request.execution import Execution
from flowstate.request.kept import Kept
from flowstate.request.run import Run
from flowstate.request.session_items import SessionItems
from flowstate.request.stored_value import stored_input
from flowstate.request.surroundings import Surroundings
from flowstate.store.opening import open_store
from flowstate.store.protocol import Store
from flowstate.store.record import RequestRecord

A = TypeVar("A")
B = TypeVar("B")


@final
class Runtime:
    """
    Runs the actions of flows. An async context manager: leaving it waits for the requests still
    under way, but not for people: what is suspended then is interrupted. Leaving it by an error or
    a cancellation cancels them all.
    """

    def __init__(
        self,
        *flows: Flow,
        store: Store | str = "memory:",
        lease: LeaseBackend | None = None,
        max_running: int | None = None,
        drain_timeout: float | None = 60.0,
        trace: bool = False,
        clock: Callable[[], int] | None = None,
        ids: IdSource = random_id,
        strict: bool = False,
    ) -> None:
        """
        Args:
            flows: what it offers; every plan is built here, so that a fault shows at start-up.
            store: a store, or ``"memory:"``, ``"sqlite:///file.db"``.
            lease: who has the turn on a key; by default within this process.
            max_running: at most so many requests run at once, the others wait; None: no bound.
            drain_timeout: seconds that side chains may go on after their request's main chain;
                then they are cancelled. None: as long as they take.
            trace: make a transient block_trace item for every execution of a block.
            clock: epoch milliseconds.
            ids: makes ids of requests and items.
            strict: as of ``build_plan``.

        Raises:
            PlanError: a flow doesn't fit together.
            DefinitionError: two flows of one kind, or a store of an unknown form.
        """
        if max_running is not None and max_running < 1:
            raise DefinitionError("Runtime", f"max_running={max_running!r}", "Give 1 or more.")
        kinds = [flow.kind for flow in flows]
        twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if twice:
            raise DefinitionError("Runtime", f"two flows are called {twice[0]!r}", "Rename one.")
        self._flows = flows
        self._plans: dict[Action[Any, Any], tuple[Flow, Plan[Any, Any], Policy]] = {}
        for flow in flows:
            for action in flow.actions:
                plan = build_plan(action.block, strict=strict)
                self._plans[action] = (flow, plan, flow.policy_of(action.name))
        self._store = open_store(store)
        self._lease = lease or MemoryLease()
        self._max_running = max_running
        self._drain_timeout = drain_timeout
        self._trace = trace
        self._clock = clock or _epoch_ms
        self._ids = ids
        self._group: TaskGroup | None = None
        self._around: Surroundings | None = None
        self._live: dict[str, Execution] = {}

    def __repr__(self) -> str:
        state = "closed" if self._around is None else f"{len(self._live)} requests under way"
        return f"<Runtime of {', '.join(flow.kind for flow in self._flows)}: {state}>"

    async def __aenter__(self) -> Runtime:
        await self._store.open()
        try:
            self._group = anyio.create_task_group()
            await self._group.__aenter__()
        except BaseException:
            await self._store.close()
            raise
        self._around = Surroundings(
            store=self._store,
            lease=self._lease,
            clock=self._clock,
            ids=self._ids,
            kept=Kept(self._group),
            slots=None if self._max_running is None else anyio.Semaphore(self._max_running),
            drain_timeout=self._drain_timeout,
            trace=self._trace,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        group, self._group = self._group, None
        around, self._around = self._around, None
        assert group is not None
        assert around is not None
        for execution in tuple(self._live.values()):
            if execution.pauses is not None:
                execution.pauses.leave()
        if kind is not None:
            for execution in tuple(self._live.values()):
                execution.cancel("the Runtime was left by an error")
        try:
            group.start_soon(self._close_kept, around.kept)
            if isinstance(error, anyio.get_cancelled_exc_class()):
                return await group.__aexit__(kind, error, traceback)
            # Not handed on: the group would wrap the host's own error into a group of one.
            await group.__aexit__(None, None, None)
            return None
        finally:
            with anyio.CancelScope(shield=True):
                await self._store.close()

    async def _close_kept(self, kept: Kept) -> None:
        """Close what sessions keep open, once no request can ask for it any more."""
        for execution in tuple(self._live.values()):
            await execution.over.wait()
        await kept.close()

    @property
    def store(self) -> Store:
        """Where requests, state and items are kept."""
        return self._store

    def plan(self, action: Action[A, B]) -> Plan[A, B]:
        """The plan of one of its actions."""
        plan: Plan[A, B] = self._known(action)[1]
        return plan

    def session_items(
        self,
        session: str,
        *,
        tenant: str | None = None,
        visibility: Visibility = "client",
        last: int | None = None,
    ) -> SessionItems:
        """
        The stored items of a session's requests, oldest first, of this process and earlier ones.

        ``flowstate.item.selection.history`` makes a model's history of them. A request under way
        is given as far as it is stored.

        Args:
            session: the session's id.
            tenant: the tenant it was used under; None is a tenant of its own.
            visibility: ``trace`` shows hidden items, too.
            last: only the items of the last so many requests; None: of all.

        Raises:
            RuntimeClosed: outside ``async with``.
            InvalidValue: ``last`` is less than 1.
        """
        if self._around is None:
            raise RuntimeClosed(f"session_items of {session!r}")
        if last is not None and last < 1:
            raise InvalidValue(
                "session_items", "last of 1 or more, or None", repr(last), "no items"
            )
        return SessionItems(
            self._store, session=session, tenant=tenant, visibility=visibility, last=last
        )

    async def dispatch(
        self,
        action: Action[A, B],
        value: A,
        *,
        session: str,
        user: str | None = None,
        tenant: str | None = None,
        org: str | None = None,
        request_id: str | None = None,
    ) -> Run[B]:
        """
        Send a request; returns as soon as it is accepted, with its id and its stream.

        Args:
            action: one of this Runtime's.
            value: the action's input, validated here.
            session: the session's id, any text.
            user: the authenticated user, if any.
            tenant: the authenticated tenant, if any.
            org: the organisation, if any.
            request_id: the caller's own id for the request: sending it again while the first is
                under way here gives the same run, so that nothing runs twice.

        Raises:
            RuntimeClosed: outside ``async with``.
            InvalidValue: the value doesn't fit the action's input.
            RequestRefused: the policy is ``reject`` and another request is in flight.
            RequestError: the id belongs to another request, or to one that has ended.
            StoreError: the request could not be recorded; it did not start.
        """
        flow, plan, policy = self._known(action)
        self._opened(action)
        where = f"{flow.kind}.{action.name} (input)"
        value = plan.checked_input(value)
        stored = stored_input(value, where)
        identity = Identity(
            session_id=SessionId(session), tenant_id=tenant, user_id=user, org_id=org
        )
        _check_ids(action.name, session, user=user, tenant=tenant, org=org, request_id=request_id)
        if request_id is not None and (known := self._under_way(request_id)) is not None:
            return self._again(known, action, identity)
        new_id = RequestId(self._ids("req") if request_id is None else request_id)
        if request_id is not None and await self._store.request(new_id) is not None:
            raise RequestError(new_id, f"request {new_id!r} has ended already: use another id")
        key = admission_key(policy.key, identity)
        now = self._clock()
        record = RequestRecord(
            id=new_id,
            identity=identity,
            flow=flow.kind,
            action=action.name,
            status="accepted",
            input=stored,
            created_at=now,
            updated_at=now,
        )
        place = await take_place(self._lease, policy, key, new_id, action.name)
        # From here to the start of its task nothing waits: nothing can come between.
        known = self._under_way(new_id)
        if known is not None or self._group is None:
            # Sent twice at the same moment, or the Runtime was left.
            if place is not None and (known is None or known.standing.place != place):
                await self._lease.give_back(place)
            if known is not None:
                return self._again(known, action, identity)
        around, group = self._opened(action)
        execution = Execution(
            around,
            flow=flow.kind,
            action=action,
            plan=plan,
            policy=policy,
            place=place,
            record=record,
            value=value,
        )
        self._live[new_id] = execution
        group.start_soon(self._live_through, execution, name=f"flowstate request {new_id}")
        # A caller that is cancelled meanwhile is given its run all the same: it has been sent.
        with anyio.CancelScope(shield=True):
            await execution.recorded.wait()
        match execution.refusal:
            case None:
                return Run(execution)
            case StatusConflict():
                raise RequestError(
                    new_id, f"request {new_id!r} is known to the store: use another id"
                ) from execution.refusal
            case error:
                raise error

    def under_way(self, request_id: str) -> Run[Any] | None:
        """
        The run of a request of this Runtime that is not over, to answer or cancel it, say; else
        None. Whoever asks on behalf of somebody compares ``run.identity`` first.
        """
        known = self._under_way(request_id)
        return None if known is None else Run(known)

    async def _live_through(self, execution: Execution) -> None:
        try:
            await execution.live()
        finally:
            if self._live.get(execution.request_id) is execution:
                del self._live[execution.request_id]

    def _under_way(self, request_id: str) -> Execution | None:
        """The request of this id that is not over; its task may need a moment more to end."""
        known = self._live.get(request_id)
        return None if known is None or known.over.is_set() else known

    def _again(self, known: Execution, action: Action[Any, Any], identity: Identity) -> Run[Any]:
        if known.action is not action or known.identity != identity:
            raise RequestError(
                known.request_id,
                f"request id {known.request_id!r} belongs to another request: use another id",
            )
        return Run(known)

    def _opened(self, action: Action[Any, Any]) -> tuple[Surroundings, TaskGroup]:
        if self._around is None or self._group is None:
            raise RuntimeClosed(f"dispatch of {action.name!r}")
        return self._around, self._group

    def _known(self, action: Action[Any, Any]) -> tuple[Flow, Plan[Any, Any], Policy]:
        try:
            return self._plans[action]
        except (KeyError, TypeError):
            raise DefinitionError(
                f"action {getattr(action, 'name', action)!r}",
                "no flow of this Runtime has it",
                "Hand its flow to Runtime(...).",
            ) from None


def _check_ids(action: str, session: object, **others: object) -> None:
    """Refuse an id that is no text: 5 and "5" would meet wherever one is made of the other."""
    for label, given in (("session", session), *others.items()):
        if not isinstance(given, str) and (given is not None or label == "session"):
            raise InvalidValue(
                f"dispatch of {action!r}, {label}", "str", type(given).__name__, "an id is a text"
            )


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000
