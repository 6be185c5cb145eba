"""A router's decision: asked once, checked, and told before the chosen route starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstate.errors import WrongRoute
from flowstate.item.content import RouterDecision
from flowstate.plan.program import Place, Route
from flowstate.run.frame import Frame


def choose(
    frame: Frame,
    place: Place,
    turns: tuple[int, ...],
    select: Callable[[Any], Any],
    route: Route,
    value: Any,
) -> int:
    """Where to go on; the decision is an item by then."""
    chosen = select(value)
    try:
        name = chosen if isinstance(chosen, str) else route.by_block[chosen]
        target = route.by_name[name]
    except (KeyError, TypeError):
        raise WrongRoute(frame.path(place, turns), chosen, sorted(route.by_name)) from None
    services = frame.services
    services.book.writer(lambda: frame.path(place, turns), route.router, None).add(
        RouterDecision(router=route.router, route=name)
    )
    return target
