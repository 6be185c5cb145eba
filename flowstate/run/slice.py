"""How long a run that never waits may hold the event loop, and the giving way once it has."""

from __future__ import annotations

import time

import anyio.lowlevel

SLICE = 0.005
"""Seconds that a run which never waits may hold the event loop."""


async def breathe(held_since: float) -> float:
    """Let others run if the loop has been held for a slice; gives when the slice began."""
    now = time.perf_counter()
    if held_since == 0.0:
        return now
    if now - held_since < SLICE:
        return held_since
    await anyio.lowlevel.checkpoint()
    return time.perf_counter()
