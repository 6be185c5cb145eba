"""
The methods of a sequencer that take one block or condition: one step after the other, choosing,
leaving, rescuing. ``Sequencer`` adds those that run several blocks, repeat, or run beside.

Not for use by itself: this is the first half of ``Sequencer``, apart because both together are
more than anybody wants to read at once.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    overload,
)

from flowstate.define.block import Block, Failure, I_contra, O_co, check_name
from flowstate.define.handler import make_handler
from flowstate.define.step import (
    AnyBlock,
    AskStep,
    BranchStep,
    Condition,
    ExitIfStep,
    MapStep,
    RescueStep,
    RunStep,
    Step,
    TapStep,
    ThrowIfStep,
    WaitConditionStep,
    described,
)
from flowstate.errors import DefinitionError

if TYPE_CHECKING:
    from flowstate.define.sequencer import Sequencer
    from flowstate.item.item import Item

X_co = TypeVar("X_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
E1 = TypeVar("E1", bound=BaseException)
E2 = TypeVar("E2", bound=BaseException)
E3 = TypeVar("E3", bound=BaseException)
E4 = TypeVar("E4", bound=BaseException)

Chain: TypeAlias = "tuple[Chain | None, Step]"
"""The last step, and what stands before it. Linked, so that n steps cost n and not n²."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Chaining(Block[I_contra, Union[O_co, X_co]], Generic[I_contra, O_co, X_co]):  # noqa: UP007
    """Steps in a row, so far."""

    chain: Chain | None = None

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
        # As dataclasses.replace does, in a quarter of the time, since everything else is known to
        # be valid: half of what a plan of thousands of steps costs is this.
        kind: Any = type(self)
        names, values = _fields_of(kind)
        longer = object.__new__(kind)
        for name, value in zip(names, values(self), strict=True):
            _set(longer, name, value)
        _set(longer, "chain", (self.chain, step))
        return cast("Sequencer[Any, Any, Any]", longer)

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
        self,
        condition: Callable[[O_co], bool],
        connector: Callable[[O_co], T],
        block: Block[T, A],
        /,
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
        pairs: list[tuple[Condition, AnyBlock]] = []
        for arm in arms:
            if not (_is_tuple(arm) and len(arm) == 2):
                raise self._wrong("branch", f"{arm!r} is no arm", "An arm is (condition, block).")
            self._function("branch", arm[0])
            pairs.append((arm[0], self._block("branch", arm[1], None)[1]))
        last = None if otherwise is None else self._block("branch", otherwise, None)[1]
        return self._then(BranchStep(arms=tuple(pairs), otherwise=last))

    def exit_if(
        self, condition: Callable[[O_co], bool], /
    ) -> Sequencer[I_contra, O_co, X_co | O_co]:
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
            raise self._wrong(
                "throw_if", f"{error!r} is no error", "Give an exception or a function."
            )
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
        self,
        errors: tuple[type[E1], type[E2], type[E3]],
        handler: Block[Failure[E1 | E2 | E3], A],
        /,
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
        named = errors if _is_tuple(errors) else (errors,)
        for error in named:
            # Both backends' cancellations are BaseExceptions outside Exception.
            if not (isinstance(error, type) and issubclass(error, Exception)):
                raise self._wrong(
                    "rescue", f"{error!r} can't be rescued", "Name subclasses of Exception."
                )
        if not named:
            raise self._wrong("rescue", "no errors named", "Give rescue(ValueError, block).")
        if self.chain is None:
            raise self._wrong(
                "rescue", "there is no step before it", "Put it after what it covers."
            )
        return self._then(RescueStep(errors=named, block=self._block("rescue", handler, None)[1]))

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
        self._patience("wait_for_condition", timeout)
        return self._then(
            WaitConditionStep(condition=condition, timeout=timeout, on_timeout=on_timeout)
        )

    @overload
    def ask(
        self,
        name: str,
        answer: type[A],
        /,
        *,
        question: Callable[[O_co], object] | None = None,
    ) -> Sequencer[I_contra, A, X_co]: ...
    @overload
    def ask(
        self, name: str, answer: Any, /, *, question: Callable[[O_co], object] | None = None
    ) -> Sequencer[I_contra, Any, X_co]: ...
    def ask(
        self, name: str, answer: Any, /, *, question: Callable[[O_co], object] | None = None
    ) -> Any:
        """
        Ask a person; the answer becomes the running value. To keep the value that is there, ask in
        a sequencer of its own and ``tap`` that.

        The branch parks, and others go on. Once nothing of the request can go on without an
        answer, it is *suspended*: its place on its key is given back, and the answer admits it
        anew. Nothing catches a suspension, and no limit counts a person's time: a ``timeout`` or
        ``deadline`` around it is refused when the plan is built.

        Args:
            name: of the step, and what the question is called by.
            answer: the type of the answer; what is answered is validated against it.
            question: pure; what the person is shown, made of the running value. By default the
                name says it all. It ends up in an item, so it must be JSON, and no secret.

        Raises:
            DefinitionError: the name can't be one.
        """
        check_name(name, "ask")
        if question is not None:
            self._function("ask", question)
        return self._then(AskStep(name=name, answer_type=answer, question=question))

    # --- checks shared by the methods -----------------------------------------------------------

    def _wrong(self, method: str, problem: str, way_out: str) -> DefinitionError:
        return DefinitionError(f"{self.name}.{method}", problem, way_out)

    def _block(self, method: str, first: Any, second: Any) -> tuple[Any, AnyBlock]:
        connector, block = (None, first) if second is None else (first, second)
        if not _is_block(block):
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

    def _patience(self, method: str, timeout: float | None) -> None:
        if timeout is not None and not timeout > 0:
            raise self._wrong(method, f"timeout={timeout!r}", "Give seconds, more than 0.")


_set = object.__setattr__
"""How a frozen value is made."""


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The names of a dataclass's fields, and what reads them all at once."""
    names = tuple(field.name for field in dataclasses.fields(kind))
    return names, operator.attrgetter(*names)


def _is_block(value: object) -> TypeGuard[AnyBlock]:
    return isinstance(value, Block)


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def _returns_awaitable(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn)
