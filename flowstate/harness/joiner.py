"""
Carries effects out on a context: the one place where a translator's keys meet real items.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from flowstate.context import Context
from flowstate.harness.effect import (
    AppendText,
    ChangeItem,
    ClearStatus,
    Effect,
    KeepStatus,
    OpenItem,
    SettleItem,
    ShowStatus,
)
from flowstate.item.writer import OpenItem as OpenHandle


@final
class Joiner:
    """
    The open items of one run, by key. Total: an effect on a key that isn't open does nothing,
    since agents repeat, drop and reorder what they say.
    """

    def __init__(self, ctx: Context) -> None:
        self._items = ctx.items
        self._status = ctx.status
        self._open: dict[str, OpenHandle] = {}
        self._ids: dict[str, str] = {}

    def join(self, effects: Iterable[Effect]) -> list[Effect]:
        """Carry out the effects that concern items and the status line; gives the others."""
        others: list[Effect] = []
        for effect in effects:
            if type(effect) is AppendText:  # most of them
                if (handle_ := self._open.get(effect.key)) is not None:
                    handle_.append(effect.text)
                continue
            match effect:
                case OpenItem(key, content, parent):
                    if key not in self._ids:
                        handle = self._items.open(
                            content, parent=self._ids.get(parent) if parent else None
                        )
                        self._open[key] = handle
                        self._ids[key] = handle.id
                case ChangeItem(key, content):
                    if (handle_ := self._open.get(key)) is not None:
                        handle_.change(content)
                case SettleItem(key, content, status):
                    if (handle_ := self._open.pop(key, None)) is not None:
                        handle_.settle(content, status=status)
                case ShowStatus(text):
                    self._status.show(text)
                case KeepStatus(text):
                    self._status.keep(text)
                case ClearStatus():
                    self._status.clear()
                case _:
                    others.append(effect)
        return others

    def close(self) -> None:
        """Settle what is still open as incomplete."""
        for handle in self._open.values():
            handle.settle(status="incomplete")
        self._open.clear()
