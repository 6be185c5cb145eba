"""
The steps of a sequencer, as data: one frozen value a kind, nothing that runs.

``plan`` reads them, ``run`` never sees them. A step that may be left out carries its condition.
Steps compare by identity, as blocks do, and ``described`` shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from flowstate.define.block import Block

if TYPE_CHECKING:
    from flowstate.item.item import Item

AnyBlock: TypeAlias = Block[Any, Any]
Condition: TypeAlias = Callable[[Any], bool]
Connector: TypeAlias = Callable[[Any], Any]
ItemCondition: TypeAlias = "Callable[[Sequence[Item]], bool]"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RunStep:
    """``step`` and ``step_if``: the block's output becomes the running value."""

    block: AnyBlock
    connector: Connector | None = None
    condition: Condition | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MapStep:
    """``map``: a pure function of the running value."""

    fn: Connector


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TapStep:
    """``tap`` and ``tap_if``: awaited, the running value stays."""

    block: AnyBlock
    connector: Connector | None = None
    condition: Condition | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ParallelStep:
    """``parallel`` and ``step_all``: the same value to every branch, all results together."""

    branches: tuple[tuple[str, AnyBlock], ...]
    into: Callable[..., Any] | None
    """A constructor called with the results as keywords; None gives a dict or a tuple."""
    as_tuple: bool = False
    max_concurrency: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FirstStep:
    """``step_any`` (one after the other) and ``race`` (at once): the first success."""

    branches: tuple[tuple[str, AnyBlock], ...]
    concurrent: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ForEachStep:
    """``for_each``: the block on every entry of the running value, results in order."""

    block: AnyBlock
    connector: Connector | None = None
    max_concurrency: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LoopStep:
    """``do_until`` and ``do_while``: the body first, then the condition."""

    block: AnyBlock
    condition: Condition
    until: bool
    max_iterations: int | None
    on_exhausted: Literal["raise", "keep"]
    is_slice: bool = False
    """True: made of a ``loop_back``, so that its body is part of the sequencer around it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BranchStep:
    """``branch``: the first arm whose condition holds."""

    arms: tuple[tuple[Condition, AnyBlock], ...]
    otherwise: AnyBlock | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RescueStep:
    """``rescue``: covers every step before it."""

    errors: tuple[type[BaseException], ...]
    block: AnyBlock


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExitIfStep:
    """``exit_if``: leaves this sequencer with the running value."""

    condition: Condition


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ThrowIfStep:
    """``throw_if``: raises ``error(value)``, or ``error`` if it is an exception."""

    condition: Condition
    error: BaseException | Callable[[Any], BaseException]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SideChainStep:
    """``side_chain``, ``side_chain_if`` and ``for_each_side_chain``: begun, not waited for."""

    block: AnyBlock
    connector: Connector | None = None
    condition: Condition | None = None
    each: bool = False
    """True: one a entry of the running value."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WaitStep:
    """``wait_for_side_chains``: until those this sequencer began have ended."""

    timeout: float | None
    on_timeout: Literal["raise", "go_on"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WaitConditionStep:
    """``wait_for_condition``: until the request's items meet a condition."""

    condition: ItemCondition
    timeout: float | None
    on_timeout: Literal["raise", "go_on"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AskStep:
    """``ask``: a person's answer becomes the running value."""

    name: str
    answer_type: object
    question: Connector | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LoopBackStep:
    """``loop_back``: from here back to the step of that name, while the condition holds."""

    step: str
    when: Condition
    max_iterations: int | None
    on_exhausted: Literal["raise", "keep"]


Step: TypeAlias = (
    RunStep
    | MapStep
    | TapStep
    | ParallelStep
    | FirstStep
    | ForEachStep
    | LoopStep
    | BranchStep
    | RescueStep
    | ExitIfStep
    | ThrowIfStep
    | SideChainStep
    | WaitStep
    | WaitConditionStep
    | AskStep
    | LoopBackStep
)


def step_name(step: Step) -> str:
    """What a step is called in paths, before duplicates get their numbers."""
    match step:
        case (
            RunStep(block=block)
            | TapStep(block=block)
            | ForEachStep(block=block)
            | LoopStep(block=block)
            | RescueStep(block=block)
            | SideChainStep(block=block)
        ):
            return block.name
        case MapStep(fn=fn):
            name = getattr(fn, "__name__", "map")
            usable = isinstance(name, str) and not any(mark in name for mark in "<>/[]")
            return name if usable else "map"
        case ParallelStep(as_tuple=as_tuple):
            return "step_all" if as_tuple else "parallel"
        case FirstStep(concurrent=concurrent):
            return "race" if concurrent else "step_any"
        case BranchStep():
            return "branch"
        case ExitIfStep():
            return "exit_if"
        case ThrowIfStep():
            return "throw_if"
        case WaitStep():
            return "wait_for_side_chains"
        case WaitConditionStep():
            return "wait_for_condition"
        case AskStep(name=asked):
            return asked
        case LoopBackStep():
            return "loop_back"


def described(step: Step) -> str:
    """The step as its author wrote it, by the names of its blocks: for reprs and reports."""
    match step:
        case RunStep(block=block, condition=condition):
            return f"step({block!r})" if condition is None else f"step_if({block!r})"
        case TapStep(block=block, condition=condition):
            return f"tap({block!r})" if condition is None else f"tap_if({block!r})"
        case MapStep(fn=fn):
            return f"map({getattr(fn, '__name__', fn)})"
        case ParallelStep(branches=branches, as_tuple=as_tuple):
            inner = ", ".join(f"{name}={block!r}" for name, block in branches)
            return f"{'step_all' if as_tuple else 'parallel'}({inner})"
        case FirstStep(branches=branches, concurrent=concurrent):
            inner = ", ".join(repr(block) for _, block in branches)
            return f"{'race' if concurrent else 'step_any'}({inner})"
        case ForEachStep(block=block, max_concurrency=bound):
            return f"for_each({block!r}, max_concurrency={bound})"
        case LoopStep(block=block, until=until, max_iterations=bound):
            return f"{'do_until' if until else 'do_while'}({block!r}, max_iterations={bound})"
        case BranchStep(arms=arms, otherwise=otherwise):
            inner = ", ".join(repr(block) for _, block in arms)
            return f"branch({inner}, otherwise={otherwise!r})"
        case RescueStep(errors=errors, block=block):
            return f"rescue({', '.join(e.__name__ for e in errors)}: {block!r})"
        case ExitIfStep():
            return "exit_if(...)"
        case ThrowIfStep():
            return "throw_if(...)"
        case SideChainStep(block=block, each=each, condition=condition):
            name = "for_each_side_chain" if each else "side_chain"
            return f"{name if condition is None else 'side_chain_if'}({block!r})"
        case WaitStep(timeout=timeout):
            return f"wait_for_side_chains(timeout={timeout})"
        case WaitConditionStep(timeout=timeout):
            return f"wait_for_condition(timeout={timeout})"
        case AskStep(name=asked):
            return f"ask({asked!r})"
        case LoopBackStep(step=step_name, max_iterations=bound):
            return f"loop_back({step_name!r}, max_iterations={bound})"
