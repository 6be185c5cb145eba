"""
Compiling a definition into a plan: a list of passes, each a pure function.

    expand    names and types; every fault at once
    ask       questions to people stand where they can wait
    declare   the state that its blocks use; two things under one name is a fault
    emit      the program
    (asked for) graph, mermaid, describe
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from flowstate.define.block import Block
from flowstate.errors import PlanError
from flowstate.plan.asking import misplaced_questions
from flowstate.plan.declared import Declared, collect
from flowstate.plan.emit import emit
from flowstate.plan.expand import Expansion
from flowstate.plan.program import Program
from flowstate.plan.recorded import NodeRecord
from flowstate.plan.site import Site, sites
from flowstate.plan.typename import type_name
from flowstate.plan.validator import checker

if TYPE_CHECKING:
    import networkx

A = TypeVar("A")
B = TypeVar("B")
I_contra = TypeVar("I_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)


@final
@dataclass(frozen=True)
class Plan(Generic[I_contra, O_co]):
    """A composition, checked and compiled. Immutable; one plan serves any number of runs."""

    name: str
    root: Site
    program: Program
    declared: Declared
    """The state and the capabilities that something in it uses."""

    @property
    def input_type(self) -> object:
        """The annotation of what goes in."""
        return self.root.input_type

    @property
    def output_type(self) -> object:
        """The annotation of what comes out, worked out from its steps."""
        return self.root.output_type

    @cached_property
    def _input_check(self) -> Callable[[Any], Any] | None:
        return checker(self.input_type, f"{self.name} (input)")

    def checked_input(self, value: I_contra) -> I_contra:  # type: ignore[misc]
        """
        The value, if it fits the plan's input.

        Raises:
            InvalidValue: it doesn't.
        """
        check = self._input_check
        if check is None:
            return value
        checked: I_contra = check(value)
        return checked

    @cached_property
    def graph(self) -> networkx.DiGraph[str]:
        """The plan as a directed acyclic graph of node ids; networkx is imported here."""
        from flowstate.plan.graph import digraph

        return digraph(self.root)

    def mermaid(self) -> str:
        """The plan as Mermaid text. Edges that are checked when they run are dashed."""
        from flowstate.plan.mermaid import mermaid

        return mermaid(self.root)

    def svg(self, recording: Mapping[str, NodeRecord] | None = None) -> str:
        """
        The plan as an SVG drawing.

        Args:
            recording: what a run did, ``Recording.nodes``: nodes then show how often they ran, how
                long and what failed.
        """
        from flowstate.plan.svg import svg

        return svg(self.root, recording)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of its nodes and types; equal for two builds of the same definition."""
        rows = [
            (site.path, site.kind, type_name(site.input_type), type_name(site.output_type))
            for site in sites(self.root)
        ]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """
        The plan as JSON: nodes, edges, groups and types. Equal for two builds of one definition.
        """
        from flowstate.plan.graph import describe

        return {"name": self.name, "fingerprint": self.fingerprint, **describe(self.root)}

    def __repr__(self) -> str:
        return f"<plan {self.name!r}: {sum(1 for _ in sites(self.root))} nodes>"


def build_plan(block: Block[A, B], *, strict: bool = False, path: str | None = None) -> Plan[A, B]:
    """
    Check a composition and compile it.

    Args:
        block: any block; most often a sequencer.
        strict: refuse edges that the annotations can't prove, instead of checking them when they
            run.
        path: the static path of the whole; by default the block's name. A block that a node calls
            stands beneath that node.

    Raises:
        PlanError: something doesn't fit; it carries all faults at once.
    """
    expansion = Expansion(strict=strict)
    root = expansion.root(block, path)
    declared, clashes = collect(root)
    faults = [*expansion.judge.faults, *clashes]
    if expansion.asks:
        faults += misplaced_questions(root)
    if faults:
        raise PlanError(block.name, faults)
    return Plan(block.name, root, emit(root), declared)
