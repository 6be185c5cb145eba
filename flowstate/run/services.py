"""
What a run is given by whoever started it: its request, its items, its state, its listener.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

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

CellOpener: TypeAlias = Callable[[StateDeclaration, "str | None"], Cell[Any]]
"""Opens a declared cell; the text is the path of the block that a block's state belongs to."""


# Seeding one a run from the system would cost as much as fifty steps.
_JITTER = random.Random()
_MAKING = threading.Lock()


class BatchReader(Protocol):
    """Reads a request's item events from the first on."""

    async def take(self) -> list[ItemEvent]:
        """The next events, waiting for at least one; empty at the end."""
        ...


@final
class Services:
    """One a run. All its nodes share it."""

    __slots__ = (
        "_book",
        "_log",
        "_make_book",
        "action",
        "cancel_reason",
        "declared",
        "flow",
        "identity",
        "listener",
        "open_cell",
        "random",
        "read_events",
        "request_id",
        "side_chains",
    )

    def __init__(
        self,
        *,
        request_id: RequestId,
        identity: Identity,
        flow: str,
        action: str,
        make_book: Callable[[], ItemBook],
        side_chains: SideChains,
        declared: Declared,
        open_cell: CellOpener,
        read_events: Callable[[], BatchReader],
        listener: Listener | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.request_id = request_id
        self.identity = identity
        self.flow = flow
        self.action = action
        self._make_book = make_book
        self._book: ItemBook | None = None
        self.side_chains = side_chains
        self.declared = declared
        self.open_cell = open_cell
        self.listener = listener
        self.read_events = read_events
        self.random = rng or _JITTER
        self.cancel_reason: str | None = None
        self._log: FilteringBoundLogger | None = None

    @property
    def book(self) -> ItemBook:
        """The request's items; made when the first is. Most runs of small plans make none."""
        if self._book is None:
            # Two worker threads may ask for it first at the same moment.
            with _MAKING:
                if self._book is None:
                    self._book = self._make_book()
        return self._book

    @property
    def log(self) -> FilteringBoundLogger:
        """A logger bound to the request; made when first asked for."""
        if self._log is None:
            import structlog  # with what it brings, a third of what importing flowstate costs

            self._log = structlog.get_logger("flowstate").bind(
                request=self.request_id,
                session=self.identity.session_id,
                flow=self.flow,
                action=self.action,
            )
        return self._log
