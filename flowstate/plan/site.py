"""
The site: one place in a composition where a block or step stands, with its types worked out.

``expand`` makes a tree of sites from a definition; what is emitted to run, drawn and described is
read off that tree. A block that stands in two places has two sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

from flowstate.define.block import Block
from flowstate.define.step import Step

SiteKind: TypeAlias = Literal[
    "handler",
    "router",
    "sequencer",
    "map",
    "parallel",
    "step_any",
    "race",
    "for_each",
    "loop",
    "branch",
    "rescue",
    "exit_if",
    "throw_if",
    "side_chain",
    "wait",
    "ask",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """How a value comes in: reshaped by a connector if there is one, checked where unproven."""

    connector: Callable[[Any], Any] | None = None
    enters: object = None
    """The type to validate what the connector is handed against, or None where that is proven."""
    check: object = None
    """The type to validate what arrives against, or None where the types prove it fits."""

    @property
    def unproven(self) -> bool:
        """Whether something on it is checked when it runs."""
        return self.check is not None or self.enters is not None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place in a composition."""

    kind: SiteKind
    name: str
    path: str
    """Unique within the plan, for example ``turn/refine#2``; loops add their turns when it runs."""
    input_type: object
    output_type: object
    """What the running value is after it, exits included for a sequencer."""
    block: Block[Any, Any] | None = None
    step: Step | None = None
    edge: Edge = Edge()
    condition: Callable[[Any], bool] | None = None
    """Skipped unless this holds."""
    tap: bool = False
    """Its output is dropped."""
    children: tuple[Site, ...] = ()


def sites(root: Site) -> Iterator[Site]:
    """Every site of a tree, parents first, in the order of the steps."""
    stack = [root]
    while stack:
        site = stack.pop()
        yield site
        stack.extend(reversed(site.children))
