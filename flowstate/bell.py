"""
A bell: whoever waits for it is woken when it is rung.

A ring that finds nobody waiting is kept for whoever waits next, so one alone misses nothing between
seeing that there is nothing to do and lying down. Several must not be interrupted in between. One
that is woken looks again at what it waits for: it may have been woken for nothing.

It is for sleeping and being woken thousands of times. An ``anyio.Event`` is good for one sleep, and
to make it, wait for it and set it takes some twenty calls; here a sleep on asyncio is one future
of the loop. Elsewhere it is an event after all.
"""

from __future__ import annotations

import asyncio
import math
from typing import final

import anyio
import anyio.lowlevel


@final
class Bell:
    """Belongs to the event loop of whoever waits first, and is rung there alone."""

    __slots__ = ("_loop", "_placed", "_rung", "_sleepers")

    def __init__(self) -> None:
        self._placed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop, once something has waited; None where it isn't one of asyncio's."""
        self._sleepers: set[asyncio.Future[None] | anyio.Event] = set()
        self._rung = False
        """Whether it was rung and nobody heard it."""

    def __repr__(self) -> str:
        return f"<Bell, {len(self._sleepers)} waiting>"

    async def wait(self, seconds: float = math.inf) -> None:
        """Sleep until it is rung, so many seconds at most."""
        if not self._placed:
            self._placed = True
            loop = anyio.lowlevel.current_token().native_token
            self._loop = loop if isinstance(loop, asyncio.AbstractEventLoop) else None
        if self._loop is None:
            await self._wait_for_event(seconds)
            return
        woken: asyncio.Future[None] = self._loop.create_future()
        # First lie down, then see whether it was rung: a finaliser may ring it anywhere.
        self._sleepers.add(woken)
        timer = self._loop.call_later(seconds, _settle, woken) if seconds < math.inf else None
        try:
            if self._rung:
                self._rung = False
                return
            await woken
        finally:
            self._sleepers.discard(woken)
            if timer is not None:
                timer.cancel()

    def ring(self) -> None:
        """Wake all who wait now, or else the next who does."""
        if not self._sleepers:
            self._rung = True
            return
        for sleeper in self._sleepers:
            if isinstance(sleeper, asyncio.Future):
                _settle(sleeper)
            else:
                sleeper.set()

    async def _wait_for_event(self, seconds: float) -> None:
        event = anyio.Event()
        self._sleepers.add(event)
        try:
            if self._rung:
                self._rung = False
                return
            with anyio.move_on_after(seconds):
                await event.wait()
        finally:
            self._sleepers.discard(event)


def runs_a_task(loop: asyncio.AbstractEventLoop | None) -> bool:
    """
    Whether a task runs in this thread, of this loop or, if None, of one that isn't asyncio's.

    If none does, we may be in a finaliser while the loop is about to sleep, and what is woken by
    anything but the loop's way for other threads would sleep on.
    """
    if loop is not None:
        return asyncio.current_task(loop) is not None
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
