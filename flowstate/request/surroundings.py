"""What a Runtime gives every request: one value, made when it is entered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import anyio

from flowstate.ids import IdSource
from flowstate.lease.protocol import LeaseBackend
from flowstate.request.kept import Kept
from flowstate.store.protocol import Store


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a Runtime gives every request."""

    store: Store
    lease: LeaseBackend
    clock: Callable[[], int]
    ids: IdSource
    slots: anyio.Semaphore | None
    kept: Kept
    drain_timeout: float | None
    trace: bool
