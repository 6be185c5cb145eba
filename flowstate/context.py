"""
What a block sees of the run it is in: protocols only, implemented in ``flowstate.run``.

One context object a node and run. It is weak-referenceable, so that two resolvers of one run can
share a value through a ``WeakKeyDictionary``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, final

from pydantic import BaseModel

from flowstate.ids import Identity, RequestId

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from flowstate.collection import Resources
    from flowstate.define.block import Block
    from flowstate.define.capability import Capability
    from flowstate.define.tool import Tool
    from flowstate.item.item import Item
    from flowstate.item.visibility import Visibility
    from flowstate.item.writer import ItemWriter, StatusLine

A = TypeVar("A")
B = TypeVar("B")
H = TypeVar("H")
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
M_co = TypeVar("M_co", bound=BaseModel, covariant=True)


@final
@dataclass(frozen=True, slots=True)
class Written(Generic[M_co]):
    """A write took: the new value and its version."""

    value: M_co
    version: int


@final
@dataclass(frozen=True, slots=True)
class Unchanged(Generic[M_co]):
    """The write would have changed nothing, so nothing was written and nobody is woken."""

    value: M_co
    version: int


class Cell(Protocol[M]):
    """
    One typed piece of state in one scope. Reading gives a frozen value; writes are versioned.

    The update functions are called again when another writer was faster, so they must be pure.
    """

    async def get(self) -> M:
        """
        The value now; the model's defaults if nothing was written yet.

        Raises:
            CorruptRow: the stored row doesn't fit the model. It is never replaced.
        """
        ...

    async def set(self, value: M) -> Written[M] | Unchanged[M]:
        """Replace the value."""
        ...

    async def update(self, change: Callable[[M], M]) -> Written[M] | Unchanged[M]:
        """Replace the value by ``change(value)``, based on the newest version."""
        ...

    async def patch(self, **fields: object) -> Written[M] | Unchanged[M]:
        """Replace some fields, validated."""
        ...

    async def increment(self, field: str, by: int | float = 1) -> Written[M] | Unchanged[M]:
        """Add to a number field."""
        ...

    async def append(self, field: str, *entries: object) -> Written[M] | Unchanged[M]:
        """Append to a list or tuple field."""
        ...


class Scope(Protocol):
    """One of the scopes that state lives in: request, session, user, org or block."""

    @property
    def id(self) -> str:
        """The id of the thing that the scope belongs to, as its caller gave it."""
        ...

    @property
    def identity(self) -> Identity:
        """Who the run is for."""
        ...

    def __getitem__(self, model: type[M]) -> Cell[M]:
        """
        The cell that holds this model here.

        Raises:
            UndeclaredState: no block, capability or flow in the plan declares it.
        """
        ...


class RequestScope(Scope, Protocol):
    """The request that the run belongs to, which is a scope of its own."""

    @property
    def request_id(self) -> RequestId:
        """The id of the request."""
        ...

    @property
    def action(self) -> str:
        """The name of the action."""
        ...

    @property
    def flow(self) -> str:
        """The kind of the flow."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the capabilities that a block uses bring for a model or an agent."""

    context: tuple[str, ...]
    tools: tuple[Tool, ...]
    control_tools: tuple[Tool, ...]


class Capabilities(Protocol):
    """The way from a capability to its handle."""

    def __getitem__(self, capability: Capability[H]) -> H:
        """
        The handle, made for this node when first asked for.

        Raises:
            UndeclaredCapability: nothing in the plan uses it.
        """
        ...

    def entries(self) -> Entries:
        """What the capabilities of this block, named or found by its functions, bring."""
        ...


class Watched(Protocol):
    """The items of a request as they settle, for one watcher: an async iterator."""

    def __aiter__(self) -> Watched: ...

    async def __anext__(self) -> Item:
        """The next item; the iteration ends when the plan is done."""
        ...


class Context(Protocol):
    """What a block sees of its run."""

    @property
    def path(self) -> str:
        """The execution path of this node, for example ``turn/refine/iter[2]``."""
        ...

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        ...

    @property
    def request(self) -> RequestScope:
        """The request, and state that lives as long as it."""
        ...

    @property
    def session(self) -> Scope:
        """State of the session."""
        ...

    @property
    def user(self) -> Scope:
        """State of the user, across sessions."""
        ...

    @property
    def org(self) -> Scope:
        """State of the organisation."""
        ...

    @property
    def block(self) -> Scope:
        """State of the execution of the innermost block around this one that declares it."""
        ...

    @property
    def resources(self) -> Resources:
        """The resource collections that blocks of this plan declare."""
        ...

    @property
    def cap(self) -> Capabilities:
        """The capabilities that blocks of this plan use."""
        ...

    async def call(self, block: Block[A, B], value: A, *, container: str | None = None) -> B:
        """
        Run another block as a part of this one, now: what a model's tool call does.

        It is no step of the plan: it runs beneath this node, under its limits, with its own
        settings, state and capabilities, and its path goes on from this one's,
        ``turn/ask/lookup/call[2]``. The call ends when the side chains and watchers that it began
        have.

        Args:
            block: any block that asks no person. Several may be called at once.
            value: validated against its input type.
            container: the id of a container item that groups its items.

        Raises:
            PlanError: the block doesn't fit together, or beside what this plan declares.
            DefinitionError: the block asks a person.
            InvalidValue: the value doesn't fit.
            Exception: whatever the block raised, bare.
        """
        ...

    @property
    def items(self) -> ItemWriter:
        """Makes items."""
        ...

    @property
    def status(self) -> StatusLine:
        """The request's one status line."""
        ...

    async def keep(self, name: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """
        What the session keeps open under this name from one request to the next, such as a
        connection: opened first if it isn't, and closed by ``let_go`` or when the Runtime is left.

        It is entered and left in a task of the Runtime's own, so it outlives this run. Who asks
        for it while it is being opened waits for the same.

        Args:
            name: of the thing, within the session.
            make: gives the async context manager to enter.

        Raises:
            RuntimeClosed: there is no Runtime to keep it.
            Exception: it could not be opened; bare, and the next who asks tries again.
        """
        ...

    async def let_go(self, name: str) -> None:
        """Close what the session keeps open under this name, and wait until it is closed."""
        ...

    def watch(
        self,
        listen: Callable[[Watched], Awaitable[object]],
        *,
        types: Container[str] | None = None,
        visibility: Visibility = "client",
    ) -> None:
        """
        Listen to the rest of the request, beside it: ``listen`` is called with the items that
        settle from now on, its own excepted, in a task that the request owns. Returns at once.

        The items end when the plan is done, side chains included; whatever ``listen`` does after
        that is waited for, within the Runtime's ``drain_timeout``. Nothing else waits for it, and
        its failure is an error item.

        Args:
            listen: asynchronous; typically ``async for item in items: ...``.
            types: only items of these types, for example ``{"message", "tool_output"}``.
            visibility: ``trace`` gives hidden items, too.

        Raises:
            DefinitionError: the block isn't ``transient``. One that is resumed begins its watching
                anew, and only a transient block runs again. Or it is synchronous, in a thread.
        """
        ...

    @property
    def log(self) -> FilteringBoundLogger:
        """A structlog logger that carries request, session and path."""
        ...

    @property
    def cancelled(self) -> str | None:
        """The reason, once the run is being cancelled; None before."""
        ...

    def check_cancelled(self) -> None:
        """
        Let a synchronous handler stop: raises this runtime's cancellation when the run is
        being cancelled. Call it now and then in long work that runs in a worker thread.
        """
        ...
