"""
Block traces: one item for every execution of a block, made only where a host asked for them.
"""

from __future__ import annotations

import time
from typing import final

from flowstate.item.book import ItemBook, LiveItem
from flowstate.item.content import BlockTrace
from flowstate.plan.program import GUARD
from flowstate.run.frame import Frame, NodeEvent

_Key = tuple[int, int, tuple[int, ...]]


@final
class Tracer:
    """A listener that turns what happens to nodes into transient block_trace items."""

    __slots__ = ("_book", "_open")

    def __init__(self, book: ItemBook) -> None:
        self._book = book
        self._open: dict[_Key, tuple[LiveItem, BlockTrace, float, Frame]] = {}

    def __call__(self, event: NodeEvent) -> None:
        what, frame, pc, turns, detail = event
        code, fn, _, _, _ = frame.program.instructions[pc]
        site = frame.program.places[pc].site
        # A guard's block is told of by its attempts; a connector is part of its step.
        if code == GUARD or (fn is not None and fn is site.edge.connector):
            return
        key = (id(frame), pc, turns)
        if what == "start":
            place = frame.program.places[pc]
            trace = BlockTrace(
                block=site.name,
                kind=site.kind,
                attempt=frame.attempt,
                input_type=type(detail).__qualname__,
                input=detail,
            )
            item = self._book.writer(
                frame.path(place, turns), site.name, None, transient=True
            ).open(trace)
            self._open[key] = (item, trace, time.perf_counter(), frame)
            return
        known = self._open.pop(key, None)
        if known is None:
            return
        item, trace, began, _ = known
        update: dict[str, object] = {"duration": time.perf_counter() - began}
        if what == "error":
            update["error"] = type(detail).__name__
        else:
            update |= {"output_type": type(detail).__qualname__, "output": detail}
        item.settle(
            trace.model_copy(update=update), status="failed" if what == "error" else "completed"
        )
