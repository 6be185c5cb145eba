"""
The sequencer: steps in a row, each method giving a new, longer sequencer.

``Sequencer[I, O, X]`` is a ``Block[I, O | X]``: I goes in, O is the running value so far, X is
what its exits leave with. Both type checkers follow the running value through a chain; the plan
checks the same again from the annotations, where a checker had nothing to see.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Never, TypeAlias, TypeVar, Union, final, overload

from typing_extensions import Unpack

from flowstate.define.block import (
    Block,
    BlockSettings,
    Failure,
    I_contra,
    O_co,
    normalised,
)
from flowstate.define.handler import make_handler
from flowstate.define.step import (
    AnyBlock,
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
    described,
)
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import DefinitionError
from flowstate.item.item import Item

X_co = TypeVar("X_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
T = TypeVar("T")
E1 = TypeVar("E1", bound=BaseException)
E2 = TypeVar("E2", bound=BaseException)
E3 = TypeVar("E3", bound=BaseException)
E4 = TypeVar("E4", bound=BaseException)


Chain: TypeAlias = "tuple[Chain | None, Step]"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sequencer(Block[I_contra, Union[O_co, X_co]], Generic[I_contra, O_co, X_co]):  # noqa: UP007
    """Steps in a row. Made by ``sequencer`` and its own methods."""

    chain: Chain | None = None
    """The last step and what stands before it. Linked, so that n steps cost n and not n²."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in order."""
        steps: list[Step] = []
        chain = self.chain
        while chain is not None:
            chain, step = chain
            steps.append(step)
        return tuple(reversed(steps))

    def __repr__(self) -> str:
        return f"<sequencer {self.name!r}{''.join(f' .{described(step)}' for step in self.steps)}>"

    def _then(self, step: Step) -> Sequencer[Any, Any, Any]:
        return dataclasses.replace(self, chain=(self.chain, step))

    # --- one block after another ----------------------------------------------------------------

    @overload
    def step(self, block: Block[O_co, A], /) -> Sequencer[I_contra, A, X_co]: ...
    @overload
    def step(
        self, connector: Callable[[O_co], T], block: Block[T, A], /
    ) -> Sequencer[I_contra, A, X_co]: ...
    def step(self, first: Any, second: Any = None, /) -> Any:
        """
        Run a block; its output becomes the running value.

        Args:
            connector: pure; makes the block's input from the running value.
            block: the block.
        """
        connector, block = self._block("step", first, second)
        return self._then(RunStep(block=block, connector=connector))

    @overload
    def step_if(
        self, condition: Callable[[O_co], bool], block: Block[O_co, A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    @overload
    def step_if(
        self, condition: Callable[[O_co], bool], connector: Callable[[O_co], T], block: Block[T, A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    def step_if(self, condition: Any, first: Any, second: Any = None, /) -> Any:
        """Run a block if the condition holds; otherwise the running value stays as it is."""
        connector, block = self._block("step_if", first, second)
        self._function("step_if", condition)
        return self._then(RunStep(block=block, connector=connector, condition=condition))

    def map(self, fn: Callable[[O_co], A], /) -> Sequencer[I_contra, A, X_co]:
        """Reshape the running value with a pure, synchronous function; no block, no items."""
        self._function("map", fn)
        return self._then(MapStep(fn=fn))

    @overload
    def tap(self, block: Block[O_co, object], /) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def tap(self, fn: Callable[[O_co], object], /) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def tap(
        self, connector: Callable[[O_co], T], block: Block[T, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    def tap(self, first: Any, second: Any = None, /) -> Any:
        """
        Run a block or function and wait for it; the running value stays untouched.

        A failure aborts the chain like that of a step.
        """
        connector, block = self._tapped("tap", first, second)
        return self._then(TapStep(block=block, connector=connector))

    @overload
    def tap_if(
        self, condition: Callable[[O_co], bool], block: Block[O_co, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def tap_if(
        self, condition: Callable[[O_co], bool], fn: Callable[[O_co], object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def tap_if(
        self,
        condition: Callable[[O_co], bool],
        connector: Callable[[O_co], T],
        block: Block[T, object],
        /,
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    def tap_if(self, condition: Any, first: Any, second: Any = None, /) -> Any:
        """``tap``, if the condition holds."""
        self._function("tap_if", condition)
        connector, block = self._tapped("tap_if", first, second)
        return self._then(TapStep(block=block, connector=connector, condition=condition))

    # --- several blocks on one value ------------------------------------------------------------

    @overload
    def parallel(
        self,
        into: Callable[..., A],
        /,
        *,
        max_concurrency: int | None = None,
        **branches: Block[O_co, object],
    ) -> Sequencer[I_contra, A, X_co]: ...
    @overload
    def parallel(
        self, /, *, max_concurrency: int | None = None, **branches: Block[O_co, A]
    ) -> Sequencer[I_contra, dict[str, A], X_co]: ...
    def parallel(
        self,
        into: Callable[..., Any] | None = None,
        /,
        *,
        max_concurrency: int | None = None,
        **branches: Any,
    ) -> Any:
        """
        Hand the running value to every branch at once; go on when all are done.

        The first branch to fail cancels the others; when they have ended, its bare error is
        raised.

        Args:
            into: a constructor, called with the results as keywords; without it the running value
                becomes a dict in the order of the branches.
            max_concurrency: at most so many branches at once; None: all.
            branches: the blocks, by name.
        """
        named = tuple(
            (name, self._block("parallel", block, None)[1]) for name, block in branches.items()
        )
        return self._fan_out("parallel", named, into, max_concurrency, as_tuple=False)

    @overload
    def step_all(
        self, a: Block[O_co, A], b: Block[O_co, B], /, *, max_concurrency: int | None = None
    ) -> Sequencer[I_contra, tuple[A, B], X_co]: ...
    @overload
    def step_all(
        self,
        a: Block[O_co, A],
        b: Block[O_co, B],
        c: Block[O_co, C],
        /,
        *,
        max_concurrency: int | None = None,
    ) -> Sequencer[I_contra, tuple[A, B, C], X_co]: ...
    @overload
    def step_all(
        self,
        a: Block[O_co, A],
        b: Block[O_co, B],
        c: Block[O_co, C],
        d: Block[O_co, D],
        /,
        *,
        max_concurrency: int | None = None,
    ) -> Sequencer[I_contra, tuple[A, B, C, D], X_co]: ...
    @overload
    def step_all(
        self, *blocks: Block[O_co, A], max_concurrency: int | None = None
    ) -> Sequencer[I_contra, tuple[A, ...], X_co]: ...
    def step_all(self, *blocks: Any, max_concurrency: int | None = None) -> Any:
        """``parallel`` with the results as a tuple, in the order the blocks are given."""
        named = _numbered([self._block("step_all", block, None)[1] for block in blocks])
        return self._fan_out("step_all", named, None, max_concurrency, as_tuple=True)

    @overload
    def step_any(
        self, a: Block[O_co, A], b: Block[O_co, B], /
    ) -> Sequencer[I_contra, A | B, X_co]: ...
    @overload
    def step_any(
        self, a: Block[O_co, A], b: Block[O_co, B], c: Block[O_co, C], /
    ) -> Sequencer[I_contra, A | B | C, X_co]: ...
    @overload
    def step_any(self, *blocks: Block[O_co, A]) -> Sequencer[I_contra, A, X_co]: ...
    def step_any(self, *blocks: Any) -> Any:
        """
        Try the blocks one after the other; the first success is the running value.

        Raises, when it runs:
            ExceptionGroup: every block failed; their errors in the order of the blocks.
        """
        return self._first("step_any", blocks, concurrent=False)

    @overload
    def race(
        self, a: Block[O_co, A], b: Block[O_co, B], /
    ) -> Sequencer[I_contra, A | B, X_co]: ...
    @overload
    def race(
        self, a: Block[O_co, A], b: Block[O_co, B], c: Block[O_co, C], /
    ) -> Sequencer[I_contra, A | B | C, X_co]: ...
    @overload
    def race(self, *blocks: Block[O_co, A]) -> Sequencer[I_contra, A, X_co]: ...
    def race(self, *blocks: Any) -> Any:
        """
        Run the blocks at once; the first success is the running value, and the others are
        cancelled and finished before the next step.

        Raises, when it runs:
            ExceptionGroup: every block failed; their errors in the order of the blocks.
        """
        return self._first("race", blocks, concurrent=True)

    # --- repeating ------------------------------------------------------------------------------

    @overload
    def for_each(
        self: Sequencer[I_contra, Iterable[E], X_co],
        block: Block[E, A],
        /,
        *,
        max_concurrency: int | None = None,
    ) -> Sequencer[I_contra, list[A], X_co]: ...
    @overload
    def for_each(
        self,
        connector: Callable[[O_co], Iterable[E]],
        block: Block[E, A],
        /,
        *,
        max_concurrency: int | None = None,
    ) -> Sequencer[I_contra, list[A], X_co]: ...
    def for_each(
        self: Any, first: Any, second: Any = None, /, *, max_concurrency: int | None = None
    ) -> Any:
        """
        Run a block on every entry of the running value; the results are a list in input order.

        Args:
            connector: pure; gives the entries.
            block: run once an entry.
            max_concurrency: at most so many at once; None: all.
        """
        connector, block = self._block("for_each", first, second)
        self._bound("for_each", "max_concurrency", max_concurrency)
        return self._then(
            ForEachStep(block=block, connector=connector, max_concurrency=max_concurrency)
        )

    def do_until(
        self: Sequencer[I_contra, A, X_co],
        condition: Callable[[A], bool],
        block: Block[A, A],
        /,
        *,
        max_iterations: int | None,
        on_exhausted: Literal["raise", "keep"] = "raise",
    ) -> Sequencer[I_contra, A, X_co]:
        """
        Run the block, again and again, until the condition holds for its output.

        Args:
            condition: pure; asked after each run.
            block: takes the running value, then its own output.
            max_iterations: at most so many runs; None, said aloud, for no bound.
            on_exhausted: ``"raise"`` LoopExhausted at the bound, or ``"keep"`` the last output.
        """
        return self._loop("do_until", condition, block, True, max_iterations, on_exhausted)

    def do_while(
        self: Sequencer[I_contra, A, X_co],
        condition: Callable[[A], bool],
        block: Block[A, A],
        /,
        *,
        max_iterations: int | None,
        on_exhausted: Literal["raise", "keep"] = "raise",
    ) -> Sequencer[I_contra, A, X_co]:
        """``do_until`` with the condition turned round: again while it holds."""
        return self._loop("do_while", condition, block, False, max_iterations, on_exhausted)

    def loop_back(
        self,
        step: str,
        when: Callable[[O_co], bool],
        /,
        *,
        max_iterations: int | None,
        on_exhausted: Literal["raise", "keep"] = "raise",
    ) -> Sequencer[I_contra, O_co, X_co]:
        """
        Go back to an earlier step of this sequencer while the condition holds: a do-while over
        the steps from there to here.

        Slices may nest; ones that overlap, and a rescue whose reach crosses a slice, are refused
        when the plan is built.

        Args:
            step: the name of the step to go back to.
            when: pure; asked each time this point is reached.
            max_iterations: at most so many runs of the slice; None, said aloud, for no bound.
            on_exhausted: ``"raise"`` LoopExhausted at the bound, or ``"keep"`` the last value.
        """
        self._function("loop_back", when)
        self._bound("loop_back", "max_iterations", max_iterations)
        return self._then(
            LoopBackStep(
                step=step, when=when, max_iterations=max_iterations, on_exhausted=on_exhausted
            )
        )

    # --- beside the chain -----------------------------------------------------------------------

    @overload
    def side_chain(self, block: Block[O_co, object], /) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def side_chain(
        self, connector: Callable[[O_co], T], block: Block[T, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    def side_chain(self, first: Any, second: Any = None, /) -> Any:
        """
        Begin a block beside the chain; the running value goes on at once.

        It belongs to the request, which ends only when it has. Its failure is an item, never the
        chain's. If the branch that it was begun in is cancelled, it is too.
        """
        connector, block = self._block("side_chain", first, second)
        return self._then(SideChainStep(block=block, connector=connector))

    @overload
    def side_chain_if(
        self, condition: Callable[[O_co], bool], block: Block[O_co, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def side_chain_if(
        self,
        condition: Callable[[O_co], bool],
        connector: Callable[[O_co], T],
        block: Block[T, object],
        /,
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    def side_chain_if(self, condition: Any, first: Any, second: Any = None, /) -> Any:
        """``side_chain``, if the condition holds."""
        self._function("side_chain_if", condition)
        connector, block = self._block("side_chain_if", first, second)
        return self._then(SideChainStep(block=block, connector=connector, condition=condition))

    @overload
    def for_each_side_chain(
        self: Sequencer[I_contra, Iterable[E], X_co], block: Block[E, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    @overload
    def for_each_side_chain(
        self, connector: Callable[[O_co], Iterable[E]], block: Block[E, object], /
    ) -> Sequencer[I_contra, O_co, X_co]: ...
    def for_each_side_chain(self: Any, first: Any, second: Any = None, /) -> Any:
        """Begin a side chain for every entry of the running value."""
        connector, block = self._block("for_each_side_chain", first, second)
        return self._then(SideChainStep(block=block, connector=connector, each=True))

    def wait_for_side_chains(
        self, *, timeout: float | None = None, on_timeout: Literal["raise", "go_on"] = "raise"
    ) -> Sequencer[I_contra, O_co, X_co]:
        """
        Wait until the side chains that this sequencer began have ended, well or not.

        Args:
            timeout: seconds; None waits as long as it takes.
            on_timeout: ``"raise"`` TimedOut, or ``"go_on"`` while they run.
        """
        if timeout is not None and not timeout > 0:
            raise self._wrong(
                "wait_for_side_chains", f"timeout={timeout!r}", "Give seconds, more than 0."
            )
        return self._then(WaitStep(timeout=timeout, on_timeout=on_timeout))

    def wait_for_condition(
        self,
        condition: Callable[[Sequence[Item]], bool],
        /,
        *,
        timeout: float | None = None,
        on_timeout: Literal["raise", "go_on"] = "raise",
    ) -> Sequencer[I_contra, O_co, X_co]:
        """
        Wait until the items that the request has made so far meet a condition.

        Met, it goes on; out of time, it raises TimedOut or goes on, as you say; cancelled, it is
        the cancellation that goes on.

        Args:
            condition: pure; given the items in the order they were made, each as it is now. Asked
                whenever something has happened to one.
            timeout: seconds; None waits as long as it takes.
            on_timeout: ``"raise"`` TimedOut, or ``"go_on"``.
        """
        self._function("wait_for_condition", condition)
        if timeout is not None and not timeout > 0:
            raise self._wrong(
                "wait_for_condition", f"timeout={timeout!r}", "Give seconds, more than 0."
            )
        return self._then(
            WaitConditionStep(condition=condition, timeout=timeout, on_timeout=on_timeout)
        )

    # --- choosing and leaving -------------------------------------------------------------------

    @overload
    def branch(
        self, *arms: tuple[Callable[[O_co], bool], Block[O_co, A]]
    ) -> Sequencer[I_contra, A, X_co]: ...
    @overload
    def branch(
        self,
        *arms: tuple[Callable[[O_co], bool], Block[O_co, A]],
        otherwise: Block[O_co, B],
    ) -> Sequencer[I_contra, A | B, X_co]: ...
    def branch(self, *arms: Any, otherwise: Any = None) -> Any:
        """
        Run the block of the first arm whose condition holds.

        Args:
            arms: pairs of condition and block, asked in order.
            otherwise: run when none holds; without it NoMatchingBranch is raised.
        """
        if not arms:
            raise self._wrong("branch", "no arms", "Give branch((condition, block), ...).")
        pairs = []
        for arm in arms:
            if not (isinstance(arm, tuple) and len(arm) == 2):
                raise self._wrong("branch", f"{arm!r} is no arm", "An arm is (condition, block).")
            self._function("branch", arm[0])
            pairs.append((arm[0], self._block("branch", arm[1], None)[1]))
        last = None if otherwise is None else self._block("branch", otherwise, None)[1]
        return self._then(BranchStep(arms=tuple(pairs), otherwise=last))

    def exit_if(self, condition: Callable[[O_co], bool], /) -> Sequencer[I_contra, O_co, X_co | O_co]:
        """
        Leave this sequencer, with the running value as its output, if the condition holds.

        In a loop's body this goes on with the next iteration; in a branch it ends that branch.
        """
        self._function("exit_if", condition)
        return self._then(ExitIfStep(condition=condition))

    def throw_if(
        self,
        condition: Callable[[O_co], bool],
        error: BaseException | Callable[[O_co], BaseException],
        /,
    ) -> Sequencer[I_contra, O_co, X_co]:
        """Raise ``error`` (an exception, or a function of the value) if the condition holds."""
        self._function("throw_if", condition)
        if not isinstance(error, Exception) and not callable(error):
            raise self._wrong("throw_if", f"{error!r} is no error", "Give an exception or a function.")
        return self._then(ThrowIfStep(condition=condition, error=error))

    @overload
    def rescue(
        self, error: type[E1] | tuple[type[E1]], handler: Block[Failure[E1], A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    @overload
    def rescue(
        self, errors: tuple[type[E1], type[E2]], handler: Block[Failure[E1 | E2], A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    @overload
    def rescue(
        self, errors: tuple[type[E1], type[E2], type[E3]], handler: Block[Failure[E1 | E2 | E3], A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    @overload
    def rescue(
        self,
        errors: tuple[type[E1], type[E2], type[E3], type[E4]],
        handler: Block[Failure[E1 | E2 | E3 | E4], A],
        /,
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    @overload
    def rescue(
        self, errors: tuple[type[E1], ...], handler: Block[Failure[E1], A], /
    ) -> Sequencer[I_contra, O_co | A, X_co]: ...
    def rescue(self, errors: Any, handler: Any, /) -> Any:
        """
        Catch these errors of every step before this one, earlier rescues included.

        The handler is given a ``Failure``; its output becomes the running value and the chain
        goes on after this point. An error it doesn't name, or one that the handler raises, goes
        to the next rescue further down, else out. A cancellation can't be named.
        """
        named = errors if isinstance(errors, tuple) else (errors,)
        for error in named:
            # Both backends' cancellations are BaseExceptions outside Exception.
            if not (isinstance(error, type) and issubclass(error, Exception)):
                raise self._wrong(
                    "rescue", f"{error!r} can't be rescued", "Name subclasses of Exception."
                )
        if not named:
            raise self._wrong("rescue", "no errors named", "Give rescue(ValueError, block).")
        if self.chain is None:
            raise self._wrong("rescue", "there is no step before it", "Put it after what it covers.")
        return self._then(RescueStep(errors=named, block=self._block("rescue", handler, None)[1]))

    # --- checks shared by the methods -----------------------------------------------------------

    def _wrong(self, method: str, problem: str, way_out: str) -> DefinitionError:
        return DefinitionError(f"{self.name}.{method}", problem, way_out)

    def _block(self, method: str, first: Any, second: Any) -> tuple[Any, AnyBlock]:
        connector, block = (None, first) if second is None else (first, second)
        if not isinstance(block, Block):
            hint = "Decorate the function with @handler." if callable(block) else "Give a block."
            raise self._wrong(method, f"{block!r} is no block", hint)
        if connector is not None:
            self._function(method, connector)
        return connector, block

    def _tapped(self, method: str, first: Any, second: Any) -> tuple[Any, AnyBlock]:
        if second is None and callable(first) and not isinstance(first, Block):
            return None, make_handler(first, inline=not _returns_awaitable(first))
        return self._block(method, first, second)

    def _function(self, method: str, fn: Any) -> None:
        if isinstance(fn, Block) or not callable(fn):
            raise self._wrong(method, f"{fn!r} is no function", "Give a function of the value.")
        if _returns_awaitable(fn):
            raise self._wrong(
                method, f"{fn!r} is asynchronous", "Conditions and connectors are plain functions."
            )

    def _bound(self, method: str, label: str, bound: int | None) -> None:
        if bound is not None and (not isinstance(bound, int) or bound < 1):
            raise self._wrong(method, f"{label}={bound!r}", f"Give {label} as 1 or more, or None.")

    def _fan_out(
        self,
        method: str,
        named: tuple[tuple[str, AnyBlock], ...],
        into: Callable[..., Any] | None,
        max_concurrency: int | None,
        *,
        as_tuple: bool,
    ) -> Sequencer[Any, Any, Any]:
        if not named:
            raise self._wrong(method, "no branches", f"Give {method} at least one block.")
        if into is not None and not callable(into):
            raise self._wrong(method, f"{into!r} can't be called", "Give a constructor.")
        self._bound(method, "max_concurrency", max_concurrency)
        return self._then(
            ParallelStep(
                branches=named, into=into, as_tuple=as_tuple, max_concurrency=max_concurrency
            )
        )

    def _first(
        self, method: str, blocks: tuple[Any, ...], *, concurrent: bool
    ) -> Sequencer[Any, Any, Any]:
        if not blocks:
            raise self._wrong(method, "no blocks", f"Give {method} at least one block.")
        named = _numbered([self._block(method, block, None)[1] for block in blocks])
        return self._then(FirstStep(branches=named, concurrent=concurrent))

    def _loop(
        self,
        method: str,
        condition: Any,
        block: Any,
        until: bool,
        max_iterations: int | None,
        on_exhausted: Any,
    ) -> Sequencer[Any, Any, Any]:
        self._function(method, condition)
        self._bound(method, "max_iterations", max_iterations)
        if on_exhausted not in ("raise", "keep"):
            raise self._wrong(method, f"on_exhausted={on_exhausted!r}", "Use 'raise' or 'keep'.")
        return self._then(
            LoopStep(
                block=self._block(method, block, None)[1],
                condition=condition,
                until=until,
                max_iterations=max_iterations,
                on_exhausted=on_exhausted,
            )
        )


def _numbered(blocks: list[AnyBlock]) -> tuple[tuple[str, AnyBlock], ...]:
    """Branches without names of their own are called by their blocks' names."""
    return tuple((block.name, block) for block in blocks)


def _returns_awaitable(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn)


def of_steps(name: str, steps: Iterable[Step]) -> Sequencer[Any, Any, Any]:
    """A sequencer of these steps; what goes in is what the first takes."""
    chain: Chain | None = None
    for step in steps:
        chain = (chain, step)
    return Sequencer(name=name, input_type=UNKNOWN_TYPE, output_type=UNKNOWN_TYPE, chain=chain)


@overload
def sequencer(
    name: str, input_type: type[A], /, **options: Unpack[BlockSettings]
) -> Sequencer[A, A, Never]: ...
@overload
def sequencer(
    name: str, input_type: object = ..., /, **options: Unpack[BlockSettings]
) -> Sequencer[Any, Any, Never]: ...
def sequencer(
    name: str, input_type: object = UNKNOWN_TYPE, /, **options: Unpack[BlockSettings]
) -> Sequencer[Any, Any, Any]:
    """
    An empty sequencer; its methods add the steps.

    Args:
        name: the node's name.
        input_type: the type that goes in. Without it the first step's input decides, and the
            edge is checked when it runs.
        options: as of every block.
    """
    fields = normalised(options)
    fields["name"] = name
    return Sequencer(input_type=input_type, output_type=UNKNOWN_TYPE, **fields)
