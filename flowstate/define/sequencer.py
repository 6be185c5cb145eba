"""
The sequencer: steps in a row, each method giving a new, longer sequencer.

``Sequencer[I, O, X]`` is a ``Block[I, O | X]``: I goes in, O is the running value so far, X is
what its exits leave with. Both type checkers follow the running value through a chain; the plan
checks the same again from the annotations, where a checker had nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Never, TypeVar, final, overload

from typing_extensions import Unpack

from flowstate.define.block import (
    Block,
    BlockSettings,
    I_contra,
    O_co,
    check_name,
    normalised,
)
from flowstate.define.chaining import Chain, Chaining, X_co
from flowstate.define.router import router
from flowstate.define.step import (
    AnyBlock,
    FirstStep,
    ForEachStep,
    LoopBackStep,
    LoopStep,
    ParallelStep,
    SideChainStep,
    Step,
    WaitStep,
)
from flowstate.define.unknown import UNKNOWN_TYPE

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Sequencer(Chaining[I_contra, O_co, X_co], Generic[I_contra, O_co, X_co]):
    """Steps in a row. Made by ``sequencer`` and its own methods."""

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
    def race(self, a: Block[O_co, A], b: Block[O_co, B], /) -> Sequencer[I_contra, A | B, X_co]: ...
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
    @overload
    def for_each(
        self: Sequencer[I_contra, Iterable[E], X_co],
        factory: Callable[[E], Block[E, A] | str],
        /,
        *,
        blocks: Sequence[Block[E, A]],
        max_concurrency: int | None = None,
    ) -> Sequencer[I_contra, list[A], X_co]: ...
    def for_each(
        self: Any,
        first: Any,
        second: Any = None,
        /,
        *,
        blocks: Sequence[AnyBlock] | None = None,
        max_concurrency: int | None = None,
    ) -> Any:
        """
        Run a block on every entry of the running value; the results are a list in input order.

        Args:
            connector: pure; gives the entries.
            block: run once an entry.
            factory: pure; says for each entry which of ``blocks`` to run, or its name.
            blocks: all that the factory may choose, so that the plan knows them.
            max_concurrency: at most so many at once; None: all.
        """
        if blocks is not None:
            self._function("for_each", first)
            first = router("any_of", routes=blocks, select=first)
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
        self._patience("wait_for_side_chains", timeout)
        return self._then(WaitStep(timeout=timeout, on_timeout=on_timeout))

    # --- making the steps ----------------------------------------------------------------------

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
        for name, _ in named:
            check_name(name, f"{self.name}.{method}: branch")
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
