"""
What a run is given by whoever started it: its request, its items, its state, its listener.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, final

import structlog
from structlog.typing import FilteringBoundLogger

from flowstate.context import Cell
from flowstate.define.uses import StateDeclaration
from flowstate.ids import Identity, RequestId
from flowstate.item.book import ItemBook
from flowstate.item.event import ItemEvent
from flowstate.plan.declared import Declared
from flowstate.run.frame import Listener
from flowstate.run.side_chains import SideChains

CellOpener: TypeAlias = Callable[[StateDeclaration, "str | None"], Cell[Any]]
"""Opens a declared cell; the text is the path of the block that a block's state belongs to."""


class BatchReader(Protocol):
    """Reads a request's item events from the first on."""

    async def take(self) -> list[ItemEvent]:
        """The next events, waiting for at least one; empty at the end."""
        ...


@final
class Services:
    """One a run. All its nodes share it."""

    __slots__ = (
        "_log",
        "action",
        "book",
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
        book: ItemBook,
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
        self.book = book
        self.side_chains = side_chains
        self.declared = declared
        self.open_cell = open_cell
        self.listener = listener
        self.read_events = read_events
        self.random = rng or random.Random()
        self.cancel_reason: str | None = None
        self._log: FilteringBoundLogger | None = None

    @property
    def log(self) -> FilteringBoundLogger:
        """A logger bound to the request; made when first asked for."""
        if self._log is None:
            self._log = structlog.get_logger("flowstate").bind(
                request=self.request_id,
                session=self.identity.session_id,
                flow=self.flow,
                action=self.action,
            )
        return self._log
