"""
From a tree of sites to a program: flat instructions and an exception table.

Nested sequencers are laid in line, so that a composition of any depth without forks is one
segment. A rescue's handler stands in line too, jumped over in the ordinary run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from flowstate.define.handler import Handler
from flowstate.define.router import Router
from flowstate.define.step import (
    AskStep,
    BranchStep,
    FirstStep,
    ForEachStep,
    LoopStep,
    MapStep,
    ParallelStep,
    RescueStep,
    SideChainStep,
    ThrowIfStep,
    WaitConditionStep,
    WaitStep,
)
from flowstate.plan.program import (
    ASK,
    BREATHE,
    CALL,
    CALL_CTX,
    CHECK,
    EACH,
    ENTER_LOOP,
    EXIT_IF,
    FORK,
    GUARD,
    JUMP,
    JUMP_UNLESS,
    MAP,
    MAP_CTX,
    NEXT_TURN,
    NO_BRANCH,
    POP,
    PUSH,
    ROUTE,
    SIDE,
    THREAD,
    THROW_IF,
    WAIT,
    WAIT_ITEMS,
    Ask,
    Each,
    Fork,
    Guard,
    Instruction,
    Place,
    Program,
    Route,
    Row,
    Side,
    Turn,
)
from flowstate.plan.site import Edge, Site
from flowstate.plan.validator import checker, checks_nothing, exact_class

BREATHE_EVERY = 64
"""Calls in a row between two looks at the clock: a step costs 0.3 µs, a look 0.06."""

_TRAITS = {SIDE: "has_side_chains", WAIT_ITEMS: "reads_items", ASK: "asks"}
"""What an instruction makes hold of its program, and of every one around that."""
_TRAIT_NAMES = (*_TRAITS.values(), "watches")


def emit(site: Site) -> Program:
    """The program of a tree of sites."""
    return _Emitter(site).program()


@final
class _Emitter:
    """One program in the making. Jumps are lists, patched when their target is known."""

    def __init__(self, root: Site) -> None:
        self._root = root
        self._code: list[list[Any]] = []
        self._places: list[Place] = []
        self._rows: list[Row] = []
        self._depth = 0
        self._turns: tuple[tuple[str, int], ...] = ()
        self._owned: frozenset[str] = frozenset()
        """The paths of the sequencer being laid, as its author wrote it."""
        self._calls = 0
        self._traits: set[str] = set()
        """Names of the program's traits that hold."""

    def program(self, *, body_only: bool = False) -> Program:
        """
        The program of the root; ``body_only`` without its edge, condition, tap and limits, which
        are its caller's.
        """
        if body_only:
            self._body(self._root)
        else:
            self._site(self._root)
        instructions: tuple[Instruction, ...] = tuple(
            (code, fn, exact, check, argument) for code, fn, exact, check, argument in self._code
        )
        solo = instructions[0] if len(instructions) == 1 and instructions[0][0] == CALL else None
        return Program(
            path=self._root.path,
            instructions=instructions,
            places=tuple(self._places),
            rows=tuple(self._rows),
            has_side_chains="has_side_chains" in self._traits,
            reads_items="reads_items" in self._traits,
            watches="watches" in self._traits,
            asks="asks" in self._traits,
            solo=solo[1] if solo else None,
            solo_exact=solo[2] if solo else None,
            solo_check=solo[3] if solo else None,
        )

    def _add(
        self,
        code: int,
        site: Site,
        *,
        fn: Any = None,
        output: object = None,
        argument: Any = None,
    ) -> list[Any]:
        """Append one instruction; ``output`` is the annotation its result must fit."""
        exact, check = None, None
        if output is not None and not checks_nothing(output):
            exact = exact_class(output)
            check = checker(output, site.path)
        row = [code, fn, exact, check, argument]
        self._code.append(row)
        self._places.append(Place(site, self._turns))
        if code in _TRAITS:
            self._traits.add(_TRAITS[code])
        if code in (CALL, CALL_CTX, MAP, MAP_CTX):
            self._calls += 1
            if self._calls % BREATHE_EVERY == 0:
                self._code.append([BREATHE, None, None, None, None])
                self._places.append(Place(site, self._turns))
        return row

    @property
    def _here(self) -> int:
        return len(self._code)

    # --- one site -------------------------------------------------------------------------------

    def _site(self, site: Site) -> None:
        skip: list[Any] | None = None
        if site.condition is not None and site.kind not in ("exit_if", "throw_if"):
            skip = self._add(JUMP_UNLESS, site, fn=site.condition)
        if site.tap:
            self._add(PUSH, site)
            self._depth += 1
        self._edge(site.edge, site)
        if site.block is not None and _limited(site):
            bare = self._within(_Emitter(site).program(body_only=True))
            self._add(GUARD, site, argument=Guard(bare, site.block))
        else:
            self._body(site)
        if site.tap:
            self._add(POP, site)
            self._depth -= 1
        if skip is not None:
            skip[4] = self._here

    def _edge(self, edge: Edge, site: Site) -> None:
        if edge.connector is not None:
            self._check(edge.enters, site)
            self._add(MAP, site, fn=edge.connector)
        self._check(edge.check, site)

    def _check(self, annotation: object, site: Site) -> None:
        check = None if annotation is None else checker(annotation, site.path)
        if check is not None:
            self._code.append([CHECK, None, exact_class(annotation), check, None])
            self._places.append(Place(site, self._turns))

    def _body(self, site: Site) -> None:
        match site.kind:
            case "handler":
                self._handler(site)
            case "router":
                self._router(site)
            case "sequencer":
                self._sequencer(site)
            case "map":
                assert isinstance(site.step, MapStep)
                self._add(MAP, site, fn=site.step.fn, output=site.output_type)
            case "parallel":
                self._parallel(site)
            case "step_any" | "race":
                assert isinstance(site.step, FirstStep)
                mode = "race" if site.step.concurrent else "any"
                self._add(FORK, site, argument=self._fork(site, mode, None, _as_list))
            case "for_each":
                assert isinstance(site.step, ForEachStep)
                self._add(
                    EACH,
                    site,
                    argument=Each(
                        self._within(emit(site.children[0])),
                        site.step.connector,
                        site.step.max_concurrency,
                    ),
                )
            case "loop":
                self._loop(site)
            case "branch":
                self._branch(site)
            case "side_chain":
                assert isinstance(site.step, SideChainStep)
                connector = site.step.connector if site.step.each else None
                self._add(
                    SIDE,
                    site,
                    argument=Side(self._within(emit(site.children[0])), connector, site.step.each),
                )
            case "ask":
                assert isinstance(site.step, AskStep)
                self._add(
                    ASK,
                    site,
                    fn=site.step.question,
                    argument=Ask(
                        site.step.name, site.output_type, checker(site.output_type, site.path)
                    ),
                )
            case "exit_if" | "throw_if" | "rescue" | "wait":
                raise AssertionError(f"{site.kind} stands only in a sequencer")

    def _handler(self, site: Site) -> None:
        block = site.block
        assert isinstance(block, Handler)
        output = site.output_type
        if block.transient:
            self._traits.add("watches")
        if block.is_async:
            code = CALL_CTX if block.takes_context else CALL
            self._add(code, site, fn=block.fn, output=output)
        elif block.inline:
            code = MAP_CTX if block.takes_context else MAP
            self._add(code, site, fn=block.fn, output=output)
        else:
            self._add(
                THREAD,
                site,
                fn=block.fn,
                output=output,
                argument=(block.takes_context, block.abandon),
            )

    def _router(self, site: Site) -> None:
        block = site.block
        assert isinstance(block, Router)
        by_name: dict[str, int] = {}
        names = {
            route: child.name for route, child in zip(block.routes, site.children, strict=True)
        }
        self._add(ROUTE, site, fn=block.select, argument=Route(site.name, by_name, names))
        ends: list[list[Any]] = []
        for child in site.children:
            by_name[child.name] = self._here
            self._site(child)
            ends.append(self._add(JUMP, child))
        for end in ends:
            end[4] = self._here

    def _sequencer(self, site: Site) -> None:
        start, depth = self._here, self._depth
        exits: list[list[Any]] = []
        around = self._owned
        if site.path not in around:
            self._owned = _paths_of(site)
        for child in site.children:
            match child.kind:
                case "exit_if":
                    exits.append(self._add(EXIT_IF, child, fn=child.condition))
                case "throw_if":
                    assert isinstance(child.step, ThrowIfStep)
                    self._add(THROW_IF, child, fn=child.condition, argument=child.step.error)
                case "rescue":
                    assert isinstance(child.step, RescueStep)
                    over = self._add(JUMP, child)
                    handler = self._here
                    self._rows.append(Row(start, handler - 1, child.step.errors, handler, depth))
                    self._site(child.children[0])
                    over[4] = self._here
                case "wait" if isinstance(child.step, WaitConditionStep):
                    self._add(
                        WAIT_ITEMS,
                        child,
                        fn=child.step.condition,
                        argument=(child.step.timeout, child.step.on_timeout == "raise"),
                    )
                case "wait":
                    assert isinstance(child.step, WaitStep)
                    self._add(
                        WAIT,
                        child,
                        argument=(
                            self._owned,
                            child.step.timeout,
                            child.step.on_timeout == "raise",
                        ),
                    )
                case _:
                    self._site(child)
        self._owned = around
        for jump in exits:
            jump[4] = (self._here, depth)

    def _parallel(self, site: Site) -> None:
        step = site.step
        assert isinstance(step, ParallelStep)
        names = tuple(child.name for child in site.children)
        output = site.output_type if step.into is not None else None
        fork = self._fork(site, "all", step.max_concurrency, _collector(step, names))
        self._add(FORK, site, output=output, argument=fork)

    def _fork(
        self, site: Site, mode: str, limit: int | None, collect: Callable[[list[Any]], Any]
    ) -> Fork:
        """The branches of a site, each a program of its own."""
        programs = tuple(self._within(emit(child)) for child in site.children)
        return Fork(
            mode=mode,
            names=tuple(child.name for child in site.children),
            programs=programs,
            limit=limit,
            collect=collect,
            asks=any(program.asks for program in programs),
        )

    def _within(self, program: Program) -> Program:
        """A program that this one runs, whose traits are its own too."""
        self._traits.update(trait for trait in _TRAIT_NAMES if getattr(program, trait))
        return program

    def _loop(self, site: Site) -> None:
        step = site.step
        assert isinstance(step, LoopStep)
        self._add(ENTER_LOOP, site)
        outer = self._turns
        self._turns = (*outer, (site.path, self._depth))
        depth = self._depth
        self._depth += 1
        start = self._here
        self._site(site.children[0])
        self._add(
            NEXT_TURN,
            site,
            fn=step.condition,
            argument=Turn(
                start, depth, step.until, step.max_iterations, step.on_exhausted == "keep"
            ),
        )
        self._depth -= 1
        self._turns = outer

    def _branch(self, site: Site) -> None:
        step = site.step
        assert isinstance(step, BranchStep)
        ends: list[list[Any]] = []
        for (condition, _), child in zip(step.arms, site.children, strict=False):
            past = self._add(JUMP_UNLESS, child, fn=condition)
            self._site(child)
            ends.append(self._add(JUMP, child))
            past[4] = self._here
        if step.otherwise is None:
            self._add(NO_BRANCH, site)
        else:
            self._site(site.children[-1])
        for end in ends:
            end[4] = self._here


def _paths_of(site: Site) -> frozenset[str]:
    """The paths of a sequencer and of its slices, which are its own steps to its author."""
    slices = [
        child.children[0]
        for child in site.children
        if isinstance(child.step, LoopStep) and child.step.is_slice
    ]
    return frozenset({site.path}).union(*map(_paths_of, slices))


def _limited(site: Site) -> bool:
    block = site.block
    return block is not None and (
        block.retry is not None
        or block.timeout is not None
        or block.deadline is not None
        or block.status is not None
        or block.container is not None
    )


def _as_list(results: list[Any]) -> Any:
    return results


def _collector(step: ParallelStep, names: tuple[str, ...]) -> Callable[[list[Any]], Any]:
    if step.into is not None:
        into = step.into
        return lambda results: into(**dict(zip(names, results, strict=True)))
    if step.as_tuple:
        return tuple
    return lambda results: dict(zip(names, results, strict=True))
