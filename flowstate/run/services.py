"""
What a run is given by whoever started it: its request, its items, its state, its listener.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

from flowstate.collection import Collection, K
from flowstate.context import Cell, M
from flowstate.define.resource import Resource
from flowstate.define.uses import StateDeclaration
from flowstate.ids import Identity, RequestId
from flowstate.item.book import ItemBook
from flowstate.item.content import ResourceChange, StateChange
from flowstate.item.event import ItemEvent
from flowstate.plan.declared import Declared
from flowstate.run.frame import Listener
from flowstate.run.questions import Questions
from flowstate.run.side_chains import SideChains
from flowstate.run.watchers import Watchers

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")

# Seeding one a run from the system would cost as much as fifty steps.
_JITTER = random.Random()
_MAKING = threading.Lock()


class BatchReader(Protocol):
    """Reads a request's item events, in order."""

    @property
    def position(self) -> int:
        """The sequence up to which everything has been given."""
        ...

    async def take(self) -> list[ItemEvent]:
        """The next events, waiting for at least one; empty at the end. Cancelled, it loses none."""
        ...


class Owner(Protocol):
    """Whoever started a run, and makes what the run needs when it needs it."""

    @property
    def request_id(self) -> RequestId: ...
    @property
    def identity(self) -> Identity: ...
    @property
    def flow_kind(self) -> str: ...
    @property
    def action_name(self) -> str: ...

    def make_book(self) -> ItemBook:
        """The request's items."""
        ...

    def open_cell(
        self,
        declaration: StateDeclaration,
        path: str | None,
        tell: Callable[[StateChange], object] | None,
    ) -> Cell[Any]:
        """
        A declared cell; ``path`` is that of the block that a block's state belongs to, and ``tell``
        is told of what is written through it.
        """
        ...

    def open_collection(
        self, resource: Resource[M, K], tell: Callable[[ResourceChange], object] | None
    ) -> Collection[M, K]:
        """A declared collection; ``tell`` is told of what is changed through it."""
        ...

    async def keep(self, name: str, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the session keeps open under this name."""
        ...

    async def let_go(self, name: str) -> None:
        """Close it."""
        ...

    def read_events(self, after: int = 0) -> BatchReader:
        """A reader of the request's item events behind this sequence."""
        ...


@final
class Services:
    """One a run. All its nodes share it; most of it is made when somebody asks."""

    __slots__ = (
        "_book",
        "_log",
        "_questions",
        "_reason",
        "_side_chains",
        "_watchers",
        "around",
        "declared",
        "listener",
        "owner",
        "random",
    )

    def __init__(
        self,
        owner: Owner,
        declared: Declared,
        *,
        listener: Listener | None = None,
        rng: random.Random | None = None,
        questions: Questions | None = None,
    ) -> None:
        self.owner = owner
        self.declared = declared
        self.listener = listener
        self.random = rng or _JITTER
        self.around: Services | None = None
        """The services of the node that called the block that these are for; None for a run's."""
        self._reason: str | None = None
        self._book: ItemBook | None = None
        self._side_chains: SideChains | None = None
        self._questions = questions
        self._watchers: Watchers | None = None
        self._log: FilteringBoundLogger | None = None

    def lent(self, declared: Declared) -> Services:
        """
        The same run's services for a block that a node calls, with what then is declared. Side
        chains and watchers are the call's own: it ends when they have.
        """
        lent = Services(
            self.owner, declared, listener=self.listener, rng=self.random, questions=self.questions
        )
        lent.around = self
        lent._book = self.book
        lent._log = self._log
        return lent

    @property
    def cancel_reason(self) -> str | None:
        """Why the run is being cancelled; None while it isn't."""
        return self._reason if self.around is None else self.around.cancel_reason

    @cancel_reason.setter
    def cancel_reason(self, reason: str | None) -> None:
        self._reason = reason

    @property
    def side_chains(self) -> SideChains:
        """The request's side chains."""
        if self._side_chains is None:
            self._side_chains = SideChains()
        return self._side_chains

    @property
    def watchers(self) -> Watchers:
        """The request's watchers."""
        if self._watchers is None:
            self._watchers = Watchers(self)
        return self._watchers

    @property
    def questions(self) -> Questions:
        """The run's questions to people."""
        if self._questions is None:
            self._questions = Questions()
        return self._questions

    @property
    def book(self) -> ItemBook:
        """The request's items; made when the first is. Most runs of small plans make none."""
        if self._book is None:
            # Two worker threads may ask for it first at the same moment.
            with _MAKING:
                if self._book is None:
                    self._book = self.owner.make_book()
        return self._book

    @property
    def log(self) -> FilteringBoundLogger:
        """A logger bound to the request; made when first asked for."""
        if self._log is None:
            import structlog  # with what it brings, a third of what importing flowstate costs

            owner = self.owner
            log: FilteringBoundLogger = structlog.get_logger("flowstate").bind(
                request=owner.request_id,
                session=owner.identity.session_id,
                flow=owner.flow_kind,
                action=owner.action_name,
            )
            self._log = log
        return self._log
