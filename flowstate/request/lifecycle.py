"""
The life of a request: one table and its one interpreter.

Everything that changes a request's status goes through ``after``. A refused request never enters
the table: it leaves no trace. Suspending gives the place back; resuming is a fresh admission.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from flowstate.errors import FlowError
from flowstate.store.record import RequestStatus

RequestEvent: TypeAlias = Literal[
    "wait", "start", "complete", "fail", "cancel", "interrupt", "suspend", "resume"
]

TABLE: dict[RequestStatus, dict[RequestEvent, RequestStatus]] = {
    "accepted": {
        "wait": "waiting",
        "start": "running",
        "fail": "failed",
        "cancel": "cancelled",
        "interrupt": "interrupted",
    },
    "waiting": {
        "start": "running",
        "fail": "failed",
        "cancel": "cancelled",
        "interrupt": "interrupted",
    },
    "running": {
        "complete": "completed",
        "fail": "failed",
        "cancel": "cancelled",
        "interrupt": "interrupted",
        "suspend": "suspended",
    },
    "suspended": {
        "resume": "accepted",
        "fail": "failed",
        "cancel": "cancelled",
        "interrupt": "interrupted",
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
    "interrupted": {"resume": "accepted"},
}
"""Status, event, next status. What is not here can't happen."""

ENDED: frozenset[RequestStatus] = frozenset({"completed", "failed", "cancelled", "interrupted"})
"""The statuses in which nothing runs and nothing waits."""


def after(status: RequestStatus, event: RequestEvent) -> RequestStatus:
    """
    The status after an event.

    Raises:
        FlowError: the table has no such move; a fault of flowstate itself.

    >>> after("waiting", "start")
    'running'
    """
    try:
        return TABLE[status][event]
    except KeyError:
        raise FlowError(f"a request that is {status} can't {event}") from None
