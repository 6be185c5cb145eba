"""
The router: a pure choice of one among its routes. The decision becomes an item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from typing_extensions import Unpack

from flowstate.define.block import Block, BlockSettings, I_contra, O_co, normalised
from flowstate.define.union import union_type
from flowstate.errors import DefinitionError

A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K", bound=Hashable)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Router(Block[I_contra, O_co], Generic[I_contra, O_co]):
    """Chooses one of its routes and runs it. Made by ``router``."""

    routes: tuple[Block[Any, Any], ...]
    select: Callable[[Any], Block[Any, Any] | str]


def router(
    name: str,
    *,
    routes: Sequence[Block[A, B]],
    select: Callable[[A], Block[A, B] | str],
    **options: Unpack[BlockSettings],
) -> Router[A, B]:
    """
    A block that hands its input to one of ``routes``.

    Args:
        name: the node's name.
        routes: the blocks it may choose, with names that differ.
        select: pure and synchronous; gives one of the routes, or its name. Anything else raises
            WrongRoute when it runs.
        options: as of every block.

    Raises:
        DefinitionError: no routes, or two of one name.
    """
    names = [route.name for route in routes]
    if not routes:
        raise DefinitionError(name, "a router without routes", "Give routes=[block, ...].")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DefinitionError(
            name,
            f"two routes are called {twice[0]!r}",
            "Give one another name: block.configure(name=...).",
        )
    fields = normalised(options)
    fields["name"] = name
    return Router(
        input_type=routes[0].input_type,
        output_type=union_type([route.output_type for route in routes]),
        routes=tuple(routes),
        select=select,
        **fields,
    )


def route_by(
    name: str,
    key: Callable[[A], K],
    routes: Mapping[K, Block[A, B]],
    /,
    **options: Unpack[BlockSettings],
) -> Router[A, B]:
    """
    A router by a key of its input: ``route_by("kind", lambda ask: ask.kind, {"fix": fix, ...})``.

    A key that is not in ``routes`` raises WrongRoute when it runs.

    Args:
        name: the node's name.
        key: pure and synchronous.
        routes: the block for each key.
        options: as of every block.
    """

    def select(value: A) -> Block[A, B] | str:
        chosen = key(value)
        block = routes.get(chosen)
        return repr(chosen) if block is None else block

    return router(name, routes=list(dict.fromkeys(routes.values())), select=select, **options)
