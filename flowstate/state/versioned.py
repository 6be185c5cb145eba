"""
The versioned write that cells and collections share: read, decide, commit, and again if another
process was faster.

Invariants:

- No write is lost: each is committed on the condition that what it was decided on is still there.
- Writers of one event loop take turns on a row, so only another process can make one start over.
- What is stored can be read: a text is read back before it is committed, and that is the value
  which is answered.

Nothing here knows what a cell or an entry is.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
from pydantic import BaseModel

from flowstate.errors import InvalidValue, VersionConflict
from flowstate.store.codec import dump_model, read_back
from flowstate.store.protocol import Store
from flowstate.store.record import CellKey, Fence, ResourceKey, Write

A = TypeVar("A")
M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")

TRIES: Final = 100
"""How often a write is tried, each time because another process was faster, before it gives up."""

Fencing: TypeAlias = Callable[[], Fence | None]
"""Tells the fence that a write has to pass as it is committed: a run may get another meanwhile."""

Decision: TypeAlias = tuple[A, Write | None]
"""What a write is answered with, once it is committed; None: there is nothing to write."""

# Whose turn it is, by store and row; an entry lives as long as somebody waits for it.
_TURNS: WeakKeyDictionary[Store, WeakValueDictionary[CellKey | ResourceKey, anyio.Lock]] = (
    WeakKeyDictionary()
)


def unfenced() -> None:
    """No fence: for writes that nobody arbitrates."""


async def write_versioned(
    store: Store,
    key: CellKey | ResourceKey,
    read: Callable[[], Awaitable[R]],
    decide: Callable[[R], Decision[A]],
    fence: Fencing,
) -> A:
    """
    Do one write.

    Args:
        store: where to.
        key: the row whose turn is taken.
        read: reads the row.
        decide: what to write over it, and what to answer then. Called again when another process
            was faster. It may raise, to write nothing.
        fence: tells the fence.

    Raises:
        VersionConflict: another process was faster, TRIES times.
        StaleFence: the fence is an older one.
    """
    async with _turn(store, key):
        tries = 0
        while True:
            tries += 1
            answer, write = decide(await read())
            if write is None:
                return answer
            try:
                await store.commit([write], fence=fence())
            except VersionConflict:
                if tries == TRIES:
                    raise
            else:
                return answer


def stored_form(model: type[M], value: object, where: str) -> tuple[str, M]:
    """
    The text of a value that is to be stored, and what it will be read as.

    Raises:
        InvalidValue: it is none of the model, or couldn't be read back.
    """
    if not isinstance(value, model):
        if inspect.iscoroutine(value):
            value.close()  # It was never to run; unclosed it would say so, later, elsewhere.
        raise InvalidValue(
            where, model.__name__, type(value).__name__, "return the new value, synchronously"
        )
    text = dump_model(value, where)
    return text, read_back(model, text, where)


def _turn(store: Store, key: CellKey | ResourceKey) -> anyio.Lock:
    turns = _TURNS.get(store)
    if turns is None:
        turns = _TURNS[store] = WeakValueDictionary()
    turn = turns.get(key)
    if turn is None:
        # Fast: whoever finds it free goes on at once. The store lets other tasks run anyway.
        turn = turns[key] = anyio.Lock(fast_acquire=True)
    return turn
