"""Waiting until a request's items meet a condition, by reading them as any reader would."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from flowstate.item.fold import fold
from flowstate.item.item import Item
from flowstate.run.services import Services


async def wait_for_items(
    services: Services, condition: Callable[[Sequence[Item]], bool], seconds: float | None
) -> bool:
    """Return True once the condition holds for the items made so far; False if time ran out."""
    with anyio.move_on_after(seconds):
        reader = services.owner.read_events()
        items: dict[str, Item] = {}
        if condition(()):
            return True
        while events := await reader.take():
            for event in events:
                fold(items, event)
            if condition(tuple(items.values())):
                return True
        # The request's items are over, and it never held: only time can end this wait.
        await anyio.sleep_forever()
    return False
