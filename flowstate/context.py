"""
What a block sees of the run it is in: protocols only, implemented in ``flowstate.run``.

One context object a node and run. It is weak-referenceable, so that two resolvers of one run can
share a value through a ``WeakKeyDictionary``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, final

from pydantic import BaseModel

from flowstate.ids import Identity, RequestId
from flowstate.item.writer import ItemWriter, StatusLine

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from flowstate.define.capability import Capability
    from flowstate.define.tool import Tool

H = TypeVar("H")
M = TypeVar("M", bound=BaseModel)
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
    def cap(self) -> Capabilities:
        """The capabilities that blocks of this plan use."""
        ...

    @property
    def items(self) -> ItemWriter:
        """Makes items."""
        ...

    @property
    def status(self) -> StatusLine:
        """The request's one status line."""
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
