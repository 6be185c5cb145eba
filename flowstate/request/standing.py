"""
A request's standing: its place on its key, its slot among those that run, and the fence that both
give it. Taken when it arrives, given up when it is suspended or over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import final

import anyio

from flowstate.admission.admit import take_place, wait_for_turn
from flowstate.admission.key import admission_key
from flowstate.define.policy import Policy
from flowstate.ids import Identity, RequestId
from flowstate.lease.protocol import LeaseBackend, Place
from flowstate.store.record import Fence

GIVE_BACK_TIME = 30.0
"""Seconds that giving a place back may take."""


@final
class Standing:
    """One a request."""

    __slots__ = (
        "_action",
        "_has_slot",
        "_identity",
        "_lease",
        "_policy",
        "_request_id",
        "_slots",
        "behind",
        "fence",
        "place",
    )

    def __init__(
        self,
        place: Place | None,
        *,
        lease: LeaseBackend,
        policy: Policy,
        slots: anyio.Semaphore | None,
        request_id: RequestId,
        action: str,
        identity: Identity,
    ) -> None:
        """
        Args:
            place: the one it was accepted with; None where nothing is arbitrated.
            lease: where its place is.
            policy: of its action.
            slots: one for each request that may run at once; None: no bound.
            request_id: its id.
            action: its action's name.
            identity: who it is for.
        """
        self.place = place
        self.fence: Fence | None = None
        """Set while it runs: before its turn a write would fence off the one that runs."""
        self.behind: str | None = None
        """The request just ahead, while it waits."""
        self._lease = lease
        self._policy = policy
        self._slots = slots
        self._has_slot = False
        self._request_id = request_id
        self._action = action
        self._identity = identity

    async def await_turn(self, on_wait: Callable[[str], Awaitable[object]]) -> None:
        """
        Return when it may run.

        Args:
            on_wait: told of the request just ahead, each time that changes.

        Raises:
            QueueTimeout: the policy's wait is over.
            LeaseLost: the place is gone.
        """

        async def waits(behind: str) -> None:
            self.behind = behind
            await on_wait(behind)

        place = self.place
        if place is not None:
            await wait_for_turn(self._lease, self._policy, place, self._request_id, waits)
        if self._slots is not None:
            await self._slots.acquire()
            self._has_slot = True
        self.behind = None
        if place is not None:
            self.fence = Fence(key=place.key, token=place.ticket)

    async def take_again(self) -> None:
        """
        Take a place as a request that arrives does; for one that is suspended.

        Raises:
            RequestRefused: the policy is ``reject`` and another request is in flight.
        """
        key = admission_key(self._policy.key, self._identity)
        self.place = await take_place(
            self._lease, self._policy, key, self._request_id, self._action
        )

    def leave_slot(self) -> None:
        """It doesn't run any more; twice does nothing."""
        if self._has_slot and self._slots is not None:
            self._has_slot = False
            self._slots.release()

    async def leave(self) -> None:
        """Give up everything; a cancellation is felt afterwards."""
        self.leave_slot()
        self.fence = None
        place, self.place = self.place, None
        if place is not None:
            deadline = anyio.current_time() + GIVE_BACK_TIME
            with anyio.CancelScope(shield=True, deadline=deadline):
                await self._lease.give_back(place)
