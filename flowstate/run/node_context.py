"""
The context that a handler is given: ``flowstate.context.Context``, implemented over a frame.

It is made for every call that takes one, so making it costs a few attribute writes; the rest is
worked out when it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Container
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar, final

import anyio.from_thread
from pydantic import BaseModel

from flowstate.context import Cell, Watched
from flowstate.define.handler import Handler
from flowstate.define.uses import ScopeKind
from flowstate.errors import DefinitionError, UndeclaredState
from flowstate.ids import Identity, RequestId
from flowstate.item.book import StepItems
from flowstate.item.content import StateChange
from flowstate.item.visibility import Visibility
from flowstate.item.writer import ItemWriter, StatusLine
from flowstate.plan.program import Place
from flowstate.run.capabilities import NodeCapabilities
from flowstate.run.frame import Frame
from flowstate.run.resources import NodeResources
from flowstate.run.services import Services

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from flowstate.define.block import Block

A = TypeVar("A")
B = TypeVar("B")
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@final
class NodeContext:
    """One a node and run. Weak-referenceable, compares by identity."""

    __slots__ = ("__weakref__", "_calls", "_cap", "_frame", "_place", "_turns", "step")

    def __init__(self, frame: Frame, place: Place, turns: tuple[int, ...]) -> None:
        self._frame = frame
        self._place = place
        self._turns = turns
        self._calls = 0
        self._cap: NodeCapabilities | None = None
        self.step: StepItems | None = None
        """The step's items; made when it first makes one or shows a status."""

    def __repr__(self) -> str:
        return f"<context of {self.path}>"

    @property
    def path(self) -> str:
        return self._frame.path(self._place, self._turns)

    @property
    def attempt(self) -> int:
        return self._frame.attempt

    @property
    def request(self) -> NodeRequest:
        return NodeRequest(self, "request", self._frame.services.owner.request_id)

    @property
    def session(self) -> NodeScope:
        return NodeScope(self, "session", self._frame.services.owner.identity.session_id)

    @property
    def user(self) -> NodeScope:
        return NodeScope(self, "user", self._frame.services.owner.identity.user_id or "")

    @property
    def org(self) -> NodeScope:
        return NodeScope(self, "org", self._frame.services.owner.identity.org_id or "")

    @property
    def block(self) -> NodeScope:
        return NodeScope(self, "block", self._frame.services.owner.request_id)

    @property
    def resources(self) -> NodeResources:
        return NodeResources(self)

    @property
    def cap(self) -> NodeCapabilities:
        if self._cap is None:
            self._cap = NodeCapabilities(self, self._frame.services, self._place.site.block)
        return self._cap

    def owner_of(self, model: type[BaseModel]) -> str:
        """The execution path of the innermost block around this node that declares this state."""
        paths = self._frame.services.declared.owners.get(("block", model), ())
        here = self._place.site.path
        around = [path for path in paths if here == path or here.startswith(f"{path}/")]
        if not around:
            raise UndeclaredState(self.path, "block", model.__name__)
        return self._frame.path_of(max(around, key=len), self._place, self._turns)

    async def call(self, block: Block[A, B], value: A, *, container: str | None = None) -> B:
        from flowstate.run.call import call  # it knows the scheduler, which knows this file

        self._calls += 1
        number = self._calls
        result: B = await call(
            self._frame, self._place, self._turns, block, value, number, container
        )
        return result

    @property
    def items(self) -> ItemWriter:
        return self._step_items()

    @property
    def status(self) -> StatusLine:
        return self._frame.services.book.status(self._step_items())

    def hidden_items(self) -> StepItems:
        """A writer of items of this step that clients never see; not part of the protocol."""
        own = self._step_items()
        hidden = own.apart()
        hidden.declared, hidden.shut = "trace", own.shut
        return hidden

    def _step_items(self) -> StepItems:
        if self.step is None:
            block = self._place.site.block
            self.step = self._frame.services.book.writer(
                lambda: self.path,
                self._place.site.name,
                None if block is None else block.visibility,
                False if block is None else block.transient,
                self._frame.container,
            )
        return self.step

    async def keep(self, name: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        return await self._frame.services.owner.keep(name, make)

    async def let_go(self, name: str) -> None:
        await self._frame.services.owner.let_go(name)

    def watch(
        self,
        listen: Callable[[Watched], Awaitable[object]],
        *,
        types: Container[str] | None = None,
        visibility: Visibility = "client",
    ) -> None:
        frame, site = self._frame, self._place.site
        if site.block is None or not site.block.transient:
            raise DefinitionError(
                self.path,
                "a block that watches must be transient, so that it runs again when it is resumed",
                "Write @handler(transient=True).",
            )
        if isinstance(site.block, Handler) and not (site.block.is_async or site.block.inline):
            raise DefinitionError(
                self.path, "it watches from a worker thread", "Make the handler asynchronous."
            )
        frame.services.watchers.begin(self.path, site.name, frame.gate, listen, types, visibility)

    @property
    def log(self) -> FilteringBoundLogger:
        return self._frame.services.log.bind(path=self.path)

    @property
    def cancelled(self) -> str | None:
        if not self._frame.gate.closed:
            return None
        return self._frame.services.cancel_reason or "cancelled"

    def check_cancelled(self) -> None:
        if threading.current_thread() is not threading.main_thread() or self._frame.gate.closed:
            try:
                anyio.from_thread.check_cancelled()
            except (anyio.NoEventLoopError, RuntimeError):
                # Called on the event loop, where the next await raises the cancellation.
                return

    def tell_state(self, change: StateChange) -> None:
        """A transient item of a written cell; not part of the protocol."""
        path, name = self.path, self._place.site.name
        self._frame.services.book.writer(path, name, transient=True).add(change)

    @property
    def services(self) -> Services:
        """The run's services; not part of the protocol."""
        return self._frame.services

    def finish(self, *, abandoned: bool = False) -> None:
        """
        The node has ended: settle what it left open and take back its status.

        ``abandoned``: its thread was left running, so whatever it still says is ignored.
        """
        if self.step is not None:
            if abandoned:
                self._frame.services.book.shut(self.step)
            else:
                self._frame.services.book.settle_open(self.step)


class NodeScope:
    """A scope that state lives in."""

    __slots__ = ("_context", "_kind", "id")

    def __init__(self, context: NodeContext, kind: ScopeKind, scope_id: str) -> None:
        self._context = context
        self._kind = kind
        self.id = scope_id

    @property
    def identity(self) -> Identity:
        return self._context.services.owner.identity

    def __getitem__(self, model: type[M]) -> Cell[M]:
        services = self._context.services
        declaration = services.declared.state.get((self._kind, model))
        if declaration is None:
            raise UndeclaredState(self._context.path, self._kind, model.__name__)
        if not self.id:
            raise UndeclaredState(
                f"{self._context.path} (the request names no {self._kind})",
                self._kind,
                model.__name__,
            )
        owner = self._context.owner_of(model) if self._kind == "block" else None
        # Where nodes are listened to, so are their writes.
        tell = None if services.listener is None else self._context.tell_state
        cell: Cell[Any] = services.owner.open_cell(declaration, owner, tell)
        return cell


@final
class NodeRequest(NodeScope):
    """The request, which is a scope of its own."""

    __slots__ = ()

    @property
    def request_id(self) -> RequestId:
        return self._context.services.owner.request_id

    @property
    def action(self) -> str:
        return self._context.services.owner.action_name

    @property
    def flow(self) -> str:
        return self._context.services.owner.flow_kind
