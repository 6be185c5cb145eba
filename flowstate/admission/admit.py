"""
Carries a policy's decisions out: takes places, waits for turns, gives places back.

Whatever way a wait ends, the caller still holds the place and gives it back; nothing here keeps
one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from flowstate.admission.decide import Expire, Lost, Start, TakePlace, Wait, on_arrival, on_turn
from flowstate.define.policy import Policy
from flowstate.errors import LeaseLost, QueueTimeout, RequestRefused
from flowstate.ids import RequestId
from flowstate.lease.protocol import Busy, LeaseBackend, Place


async def take_place(
    backend: LeaseBackend, policy: Policy, key: str | None, request_id: RequestId, action: str
) -> Place | None:
    """
    The place of a request that arrives; None where nothing is arbitrated.

    Raises:
        RequestRefused: the policy admits one at a time and another is in flight.
    """
    arrival = on_arrival(policy, key)
    if not isinstance(arrival, TakePlace) or key is None:
        return None
    answer = await backend.take(key, request_id, only_if_empty=arrival.only_if_empty)
    if isinstance(answer, Busy):
        raise RequestRefused(request_id, action, f"this {_kind(policy)}", answer.request_id)
    return answer


async def wait_for_turn(
    backend: LeaseBackend,
    policy: Policy,
    place: Place,
    request_id: RequestId,
    on_wait: Callable[[str], Awaitable[object]],
) -> None:
    """
    Return when the place has the turn.

    Args:
        backend: where the place is.
        policy: whose patience counts.
        place: the request's own.
        request_id: for errors.
        on_wait: told of the request just ahead, each time that changes.

    Raises:
        QueueTimeout: the policy's wait is over.
        LeaseLost: the place is gone.
    """
    since = anyio.current_time()
    last: str | None = None
    while True:
        turn = await backend.is_my_turn(place)
        match on_turn(policy, turn, anyio.current_time() - since):
            case Start():
                return
            case Lost(reason=reason):
                raise LeaseLost(place.key, reason)
            case Expire(behind=behind):
                raise QueueTimeout(request_id, policy.wait or 0.0, behind)
            case Wait(seconds=seconds, behind=behind):
                if behind != last:
                    last = behind
                    await on_wait(behind)
                with anyio.move_on_after(seconds):
                    await backend.changed(place)


def _kind(policy: Policy) -> str:
    return policy.key if isinstance(policy.key, str) else "key"
