"""
What a run is given by whoever started it: its request, its items, its state, its listener.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any, Protocol, final

from flowstate.context import Cell
from flowstate.define.uses import StateDeclaration
from flowstate.ids import Identity, RequestId
from flowstate.item.book import ItemBook
from flowstate.item.event import ItemEvent
from flowstate.plan.declared import Declared
from flowstate.run.frame import Listener
from flowstate.run.side_chains import SideChains

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

# Seeding one a run from the system would cost as much as fifty steps.
_JITTER = random.Random()
_MAKING = threading.Lock()


class BatchReader(Protocol):
    """Reads a request's item events from the first on."""

    async def take(self) -> list[ItemEvent]:
        """The next events, waiting for at least one; empty at the end."""
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

    def open_cell(self, declaration: StateDeclaration, path: str | None) -> Cell[Any]:
        """A declared cell; ``path`` is that of the block that a block's state belongs to."""
        ...

    def read_events(self) -> BatchReader:
        """A reader of the request's item events from the first on."""
        ...


@final
class Services:
    """One a run. All its nodes share it; most of it is made when somebody asks."""

    __slots__ = (
        "_book",
        "_log",
        "_side_chains",
        "cancel_reason",
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
    ) -> None:
        self.owner = owner
        self.declared = declared
        self.listener = listener
        self.random = rng or _JITTER
        self.cancel_reason: str | None = None
        self._book: ItemBook | None = None
        self._side_chains: SideChains | None = None
        self._log: FilteringBoundLogger | None = None

    @property
    def side_chains(self) -> SideChains:
        """The request's side chains."""
        if self._side_chains is None:
            self._side_chains = SideChains()
        return self._side_chains

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
