"""
From a definition to a tree of sites: names made unique, types followed, every fault collected.

Pure. A type is an annotation; whether one fits another is ``flowstate.plan.assignable``'s answer:
yes, no (a fault), or unknown (a checked edge; a fault under ``strict``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast, final

from flowstate.define.annotations import annotations_of
from flowstate.define.block import Block, Failure
from flowstate.define.handler import Handler
from flowstate.define.router import Router
from flowstate.define.sequencer import Sequencer
from flowstate.define.step import (
    AskStep,
    BranchStep,
    ExitIfStep,
    FirstStep,
    ForEachStep,
    LoopBackStep,
    LoopStep,
    MapStep,
    ParallelStep,
    RescueStep,
    RunStep,
    SideChainStep,
    Step,
    TapStep,
    ThrowIfStep,
    WaitConditionStep,
    WaitStep,
    step_name,
)
from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.plan.judge import RESHAPE, Judge
from flowstate.plan.site import Edge, Site, SiteKind
from flowstate.plan.slices import without_loop_backs


@final
class Expansion:
    """One pass over one definition. Faults are in the order of the steps."""

    def __init__(self, *, strict: bool) -> None:
        self.judge = Judge(strict=strict)
        self.asks = False
        """Whether a step asks a person."""

    def root(self, block: Block[Any, Any], path: str | None = None) -> Site:
        """The tree of the whole definition; ``path`` is by default the block's name."""
        declared = block.input_type
        return self._block(block, path or block.name, declared, source="the input")

    # --- blocks ---------------------------------------------------------------------------------

    def _block(
        self,
        block: Block[Any, Any],
        path: str,
        arriving: object,
        source: str,
        *,
        name: str | None = None,
        edge: Edge | None = None,
        way_out: str = RESHAPE,
        **place: Any,
    ) -> Site:
        """The site of a block that is handed a value of type ``arriving``."""
        wanted = block.input_type
        label = name or block.name
        if edge is None and wanted is UNKNOWN_TYPE and isinstance(block, Sequencer):
            edge = Edge()  # It hands on what arrives: its first step is judged by that.
        elif edge is None:
            edge = self.judge.edge(arriving, wanted, path, source, repr(label), way_out=way_out)
        entering = arriving if wanted is UNKNOWN_TYPE else wanted
        match block:
            case Handler():
                return Site(
                    kind="handler",
                    name=label,
                    path=path,
                    input_type=wanted,
                    output_type=block.output_type,
                    block=block,
                    edge=edge,
                    **place,
                )
            case Router():
                routes = self._each_named(
                    [(route.name, route) for route in block.routes], path, entering, source
                )
                return Site(
                    kind="router",
                    name=label,
                    path=path,
                    input_type=wanted,
                    output_type=union_type([site.output_type for site in routes]),
                    block=block,
                    edge=edge,
                    children=routes,
                    **place,
                )
            case Sequencer():
                chain = cast("Sequencer[Any, Any, object]", block)
                children, ending = self._steps(chain, path, entering, source)
                return Site(
                    kind="sequencer",
                    name=label,
                    path=path,
                    input_type=wanted,
                    output_type=ending,
                    block=chain,
                    edge=edge,
                    children=children,
                    **place,
                )
            case _:
                raise TypeError(f"{block!r} is no kind of block that a plan knows")

    def _each_named(
        self, named: Iterable[tuple[str, Block[Any, Any]]], path: str, arriving: object, source: str
    ) -> tuple[Site, ...]:
        names = _Names(path)
        sites: list[Site] = []
        for name, block in named:
            unique = names.take(name)
            site = self._block(
                block,
                f"{path}/{unique}",
                arriving,
                source,
                name=unique,
                way_out="Give the block a connector: block.connect_input(lambda value: ...).",
            )
            sites.append(site)
        return tuple(sites)

    # --- the steps of a sequencer ---------------------------------------------------------------

    def _steps(
        self, block: Sequencer[Any, Any, Any], path: str, arriving: object, source: str
    ) -> tuple[tuple[Site, ...], object]:
        """The sites of its steps and the type it gives, exits included."""
        names = _Names(path)
        running = arriving
        exits: list[object] = []
        sites: list[Site] = []
        steps, faults = without_loop_backs(block.name, path, block.steps)
        for step in steps:
            site, running = self._step(step, names, running, source)
            if isinstance(step, ExitIfStep):
                exits.append(running)
            if not site.tap and site.kind not in _PASSING:
                source = repr(site.name)
            sites.append(site)
        self.judge.faults += faults
        return tuple(sites), union_type([running, *exits])

    def _step(self, step: Step, names: _Names, running: object, source: str) -> tuple[Site, object]:
        """One step's site and the running type after it."""
        name = names.take(step_name(step))
        path = names.path(name)

        def placed(
            kind: SiteKind, gives: object, *, takes: object = running, **more: Any
        ) -> tuple[Site, object]:
            site = Site(
                kind=kind,
                name=name,
                path=path,
                input_type=takes,
                output_type=gives,
                step=step,
                **more,
            )
            return site, gives

        match step:
            case RunStep(block=block) | TapStep(block=block):
                self.judge.condition(step.condition, running, path, source)
                edge = self.judge.connected(step.connector, running, block, path, source)
                tap = isinstance(step, TapStep)
                site = self._block(
                    block,
                    path,
                    running if step.connector is None else block.input_type,
                    source,
                    name=name,
                    edge=edge,
                    step=step,
                    condition=step.condition,
                    tap=tap,
                )
                if tap:
                    return site, running
                if step.condition is not None:
                    return site, union_type([running, site.output_type])
                return site, site.output_type
            case MapStep(fn=fn):
                takes, gives = annotations_of(fn)
                edge = self.judge.edge(running, takes, path, source, f"the function {name!r}")
                return placed("map", gives, takes=takes, edge=edge)
            case ParallelStep():
                branches = self._each_named(step.branches, path, running, source)
                gives = self.judge.joined(step, branches, path)
                return placed("parallel", gives, children=branches)
            case FirstStep():
                branches = self._each_named(step.branches, path, running, source)
                gives = union_type([branch.output_type for branch in branches])
                return placed("race" if step.concurrent else "step_any", gives, children=branches)
            case ForEachStep(block=block):
                entries, edge = running, Edge()
                if step.connector is not None:
                    takes, entries = annotations_of(step.connector)
                    edge = self.judge.edge(running, takes, path, source, "the connector")
                entry = self.judge.entry(entries, path, source)
                body = self._block(block, path, entry, f"an entry of {source}", name=name)
                given: object = UNKNOWN_TYPE
                if body.output_type is not UNKNOWN_TYPE:
                    given = list[body.output_type]  # type: ignore[name-defined]
                return placed("for_each", given, edge=edge, children=(body,))
            case LoopStep(block=block):
                known = len(self.judge.faults)
                body = self._block(block, path, running, source, name=name)
                if block.input_type is UNKNOWN_TYPE and body.output_type != running:
                    # A slice: its first step meets the running value, then its last output.
                    both = union_type([running, body.output_type])
                    del self.judge.faults[known:]
                    body = self._block(block, path, both, source, name=name)
                elif block.input_type is not UNKNOWN_TYPE:
                    again = self.judge.edge(
                        body.output_type,
                        block.input_type,
                        path,
                        repr(name),
                        f"{name!r} again",
                        way_out="Let the body end with what it takes, for example by .map(...).",
                    )
                    if again.check is not None and body.edge.check is None:
                        body = replace(body, edge=again)
                self.judge.condition(step.condition, body.output_type, path, repr(name))
                return placed("loop", body.output_type, children=(body,))
            case BranchStep():
                for condition, _ in step.arms:
                    self.judge.condition(condition, running, path, source)
                arms = [(block.name, block) for _, block in step.arms]
                if step.otherwise is not None:
                    arms.append((step.otherwise.name, step.otherwise))
                children = self._each_named(arms, path, running, source)
                gives = union_type([child.output_type for child in children])
                return placed("branch", gives, children=children)
            case RescueStep(block=block):
                failure: object = Failure[union_type(step.errors)]  # type: ignore[misc]
                edge = self.judge.edge(
                    failure,
                    block.input_type,
                    path,
                    "the rescue",
                    repr(name),
                    way_out="Let the handler take that, or name other errors in the rescue.",
                )
                handler = self._block(block, path, failure, "the rescue", name=name, edge=edge)
                gives = union_type([running, handler.output_type])
                return placed("rescue", gives, takes=failure, children=(handler,))
            case ExitIfStep() | ThrowIfStep():
                self.judge.condition(step.condition, running, path, source)
                return placed(
                    "exit_if" if isinstance(step, ExitIfStep) else "throw_if",
                    running,
                    condition=step.condition,
                )

            case SideChainStep(block=block):
                self.judge.condition(step.condition, running, path, source)
                begins = Edge()
                if step.each:
                    entries = running
                    if step.connector is not None:
                        takes, entries = annotations_of(step.connector)
                        begins = self.judge.edge(running, takes, path, source, "the connector")
                    entry = self.judge.entry(entries, path, source)
                    body = self._block(block, path, entry, f"an entry of {source}", name=name)
                else:
                    into = self.judge.connected(step.connector, running, block, path, source)
                    entering = running if step.connector is None else block.input_type
                    body = self._block(block, path, entering, source, name=name, edge=into)
                return placed(
                    "side_chain", running, edge=begins, condition=step.condition, children=(body,)
                )
            case WaitStep() | WaitConditionStep():
                return placed("wait", running)
            case AskStep(question=question):
                self.asks = True
                self.judge.function(question, running, path, source, "the question")
                return placed("ask", step.answer_type)
            case LoopBackStep():
                raise AssertionError("loop_back was taken apart before")


_PASSING = frozenset({"exit_if", "throw_if", "side_chain", "wait"})
"""What hands the running value on as it is, like a tap: the value is still its maker's."""


@final
class _Names:
    """Makes the names within one path unique: the author's own, ``#n`` only for duplicates."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count: dict[str, int] = {}
        self._taken: set[str] = set()

    def take(self, name: str) -> str:
        count = self._count.get(name, 0) + 1
        unique = name if count == 1 else f"{name}#{count}"
        while unique in self._taken:
            count += 1
            unique = f"{name}#{count}"
        self._count[name] = count
        self._taken.add(unique)
        return unique

    def path(self, name: str) -> str:
        return f"{self._prefix}/{name}"
