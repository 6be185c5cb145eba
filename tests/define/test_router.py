"""Routers as values: what they may choose from."""

from __future__ import annotations

import pytest

from flowstate import handler, route_by, router
from flowstate.errors import DefinitionError


@handler
async def left(value: int) -> int:
    return -value


@handler
async def right(value: int) -> str:
    return str(value)


def test_a_router_takes_what_its_routes_take_and_gives_what_any_gives() -> None:
    """The output is the union over the routes."""
    way = router("way", routes=[left, right], select=lambda value: "left")
    assert (way.input_type, way.output_type) == (int, int | str)


def test_a_router_needs_routes_with_names_of_their_own() -> None:
    """A route is chosen by its block or its name, so names must differ."""
    with pytest.raises(DefinitionError, match="a router without routes"):
        router("way", routes=[], select=lambda value: "left")
    with pytest.raises(DefinitionError, match="two routes are called 'left'"):
        router("way", routes=[left, left.configure()], select=lambda value: "left")


def test_route_by_holds_a_block_once_however_many_keys_lead_to_it() -> None:
    """Two keys may name the same block; it is one route."""
    way = route_by("way", lambda value: value % 3, {0: left, 1: left, 2: left.configure(name="l")})
    assert [route.name for route in way.routes] == ["left", "l"]
