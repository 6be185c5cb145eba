"""
Reading what a session holds: the stored items of its requests, one request after the other.

It reads what is stored, as it is at that moment, and waits for nothing: a request that is under
way is given as far as it has been stored. It keeps one request's rows at a time, holds no
transaction, and may be dropped at any point.
"""

from __future__ import annotations

from collections import deque
from typing import final

from flowstate.item.item import Item
from flowstate.item.visibility import Visibility
from flowstate.store.protocol import Store
from flowstate.store.record import ItemRecord
from flowstate.stream.row import item_of

PAGE = 500
"""How many rows are read from the store at a time."""


@final
class SessionItems:
    """
    An async iterator over a session's items: requests in the order of their acceptance, the items
    of each in the order in which they were made. Made by ``Runtime.session_items``.
    """

    __slots__ = ("_last", "_records", "_requests", "_session", "_store", "_tenant", "_visibility")

    def __init__(
        self,
        store: Store,
        *,
        session: str,
        tenant: str | None,
        visibility: Visibility,
        last: int | None,
    ) -> None:
        """
        Args:
            store: where they are.
            session: the session's id.
            tenant: whose session it is; None is a tenant of its own.
            visibility: ``client`` leaves out what clients don't see.
            last: only those of the last so many requests; None: of all.
        """
        self._store = store
        self._session = session
        self._tenant = tenant
        self._visibility = visibility
        self._last = last
        self._requests: deque[str] | None = None
        self._records: deque[ItemRecord] = deque()

    def __repr__(self) -> str:
        return f"<SessionItems of {self._session!r}>"

    def __aiter__(self) -> SessionItems:
        return self

    async def __anext__(self) -> Item:
        """
        The next item.

        Raises:
            CorruptRow: its row isn't an item's. The next call goes on behind it.
            StoreError: the store can't be read.
        """
        if self._requests is None:
            requests = await self._store.requests(tenant=self._tenant, session=self._session)
            chosen = requests if self._last is None else requests[-self._last :]
            self._requests = deque(request.id for request in chosen)
        while not self._records:
            if not self._requests:
                raise StopAsyncIteration
            records = await self._of(self._requests[0])
            # Only now: a caller who was cancelled while it was read may ask again.
            self._requests.popleft()
            self._records.extend(records)
        return item_of(self._records.popleft())

    async def _of(self, request_id: str) -> list[ItemRecord]:
        """The rows of one request, in the order in which its items were made."""
        found: dict[str, ItemRecord] = {}
        position = 0
        while True:
            page = await self._store.items(request_id, after=position, limit=PAGE)
            # An item that changes while it is read comes again, with a later change.
            found.update((record.item_id, record) for record in page)
            if len(page) < PAGE:
                break
            position = page[-1].last_sequence
        shown = [
            record
            for record in found.values()
            if self._visibility == "trace" or record.visibility == "client"
        ]
        return sorted(shown, key=lambda record: record.first_sequence)
