"""
What a composition declares: the state cells, resource collections and capabilities that its blocks
use, collected.

A capability brings what it uses itself. The same reference counts once, however often it is met;
two different things under one name is a fault that names both places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, final

from pydantic import BaseModel

from flowstate.define.block import Block
from flowstate.define.capability import Capability
from flowstate.define.resource import Resource
from flowstate.define.uses import StateDeclaration, Use
from flowstate.errors import Fault
from flowstate.plan.site import Site, sites

StateKey: TypeAlias = tuple[str, type[BaseModel]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Everything that a plan declares."""

    state: Mapping[StateKey, StateDeclaration]
    """By scope and model."""
    resources: Mapping[str, Resource[Any, Any]]
    """By name."""
    capabilities: Mapping[str, Capability[Any]]
    """By name."""
    owners: Mapping[StateKey, tuple[str, ...]]
    """For state of a block: the paths of the sites that declare it."""


def collect(root: Site) -> tuple[Declared, list[Fault]]:
    """What is declared anywhere in the tree, and the clashes."""
    collector = _Collector()
    for site in sites(root):
        if site.block is not None:
            collector.block(site.block, site.path)
    return (
        Declared(
            state=MappingProxyType(collector.state),
            resources=MappingProxyType(collector.resources),
            capabilities=MappingProxyType(collector.capabilities),
            owners=MappingProxyType({key: tuple(paths) for key, paths in collector.owners.items()}),
        ),
        collector.faults,
    )


def joined(around: Declared, within: Declared, path: str) -> tuple[Declared, list[Fault]]:
    """
    What holds for a block that a node calls: what the node's plan declares and what the block does.

    Args:
        around: declared by the plan of the calling node.
        within: declared by the called block.
        path: the called block's; the faults name it.
    """
    if not (within.state or within.resources or within.capabilities):
        return around, []
    faults: list[Fault] = []
    for name, capability in within.capabilities.items():
        if around.capabilities.get(name, capability) is not capability:
            faults.append(
                Fault(
                    where=path,
                    problem=f"another capability of the plan that calls it is called {name!r}",
                    way_out="Give one of them another name, or use the same one in both.",
                )
            )
    cells = {(state.scope, state.name): state.model for state in around.state.values()}
    for state in within.state.values():
        known = cells.get((state.scope, state.name), state.model)
        if known is not state.model:
            faults.append(
                Fault(
                    where=path,
                    problem=f"{state.scope} state {state.name!r} is {state.model.__qualname__} "
                    f"here and {known.__qualname__} in the plan that calls it",
                    way_out=f"Give one of them another name: {state.scope}_state("
                    f"{state.model.__name__}, name=...).",
                )
            )
    for name, resource in within.resources.items():
        clash = around.resources.get(name, resource)
        if clash != resource:
            faults.append(_two_resources(resource, clash, path, "the plan that calls it"))
    owners = {key: (*around.owners.get(key, ()), *paths) for key, paths in within.owners.items()}
    return (
        Declared(
            state=MappingProxyType({**within.state, **around.state}),
            resources=MappingProxyType({**within.resources, **around.resources}),
            capabilities=MappingProxyType({**within.capabilities, **around.capabilities}),
            owners=MappingProxyType({**around.owners, **owners}),
        ),
        faults,
    )


@final
class _Collector:
    def __init__(self) -> None:
        self.state: dict[StateKey, StateDeclaration] = {}
        self.resources: dict[str, Resource[Any, Any]] = {}
        self.capabilities: dict[str, Capability[Any]] = {}
        self.owners: dict[StateKey, list[str]] = {}
        self.faults: list[Fault] = []
        self._cells: dict[tuple[str, str], tuple[StateDeclaration, str]] = {}
        self._where: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._seen: set[Block[Any, Any]] = set()

    def block(self, block: Block[Any, Any], path: str) -> None:
        for use in block.uses:
            if isinstance(use, StateDeclaration) and use.scope == "block":
                self.owners.setdefault(("block", use.model), []).append(path)
        if block in self._seen:
            return
        self._seen.add(block)
        for use in block.uses:
            self._use(use, path)

    def _use(self, use: Use, path: str) -> None:
        match use:
            case StateDeclaration():
                self._cell(use, path)
            case Resource():
                self._resource(use, path)
            case Capability():
                known = self.capabilities.get(use.name)
                if known is use:
                    return
                if known is not None:
                    self.faults.append(
                        Fault(
                            where=path,
                            problem=f"another capability is called {use.name!r}: the one of "
                            f"{self._where[use.name]}",
                            way_out="Give one of them another name, or use the same one in both.",
                        )
                    )
                    return
                self.capabilities[use.name] = use
                self._where[use.name] = path
                for inner in use.uses:
                    self._use(inner, f"{path} (through {use.name!r})")
            case _:
                return  # A function: asked when the block runs.

    def _cell(self, use: StateDeclaration, path: str) -> None:
        known = self._cells.get((use.scope, use.name))
        if known is not None and known[0].model is not use.model:
            self.faults.append(
                Fault(
                    where=path,
                    problem=f"{use.scope} state {use.name!r} is {use.model.__qualname__} here "
                    f"and {known[0].model.__qualname__} in {known[1]}",
                    way_out=f"Give one of them another name: {use.scope}_state("
                    f"{use.model.__name__}, name=...).",
                )
            )
            return
        self._cells.setdefault((use.scope, use.name), (use, path))
        self.state.setdefault((use.scope, use.model), use)

    def _resource(self, use: Resource[Any, Any], path: str) -> None:
        known = self.resources.setdefault(use.name, use)
        home = self._homes.setdefault(use.name, path)
        if known != use:
            self.faults.append(_two_resources(use, known, path, home))


def _two_resources(
    here: Resource[Any, Any], other: Resource[Any, Any], path: str, home: str
) -> Fault:
    """Two collections under one name: what tells them apart, of all that may."""
    differ = [
        (f"{label}={_shown(of_here)}", f"{label}={_shown(of_other)}")
        for label in ("pattern", "model", "scope", "ids", "client", "live")
        if (of_here := getattr(here, label)) != (of_other := getattr(other, label))
    ]
    return Fault(
        where=path,
        problem=f"resource {here.name!r} has {', '.join(one for one, _ in differ)} here "
        f"and {', '.join(one for _, one in differ)} in {home}",
        way_out=f"Use the same resource in both, or give one of them another name: "
        f"resource({here.pattern!r}, ..., name=...).",
    )


def _shown(value: object) -> str:
    return value.__qualname__ if isinstance(value, type) else repr(value)
