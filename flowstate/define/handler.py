"""
The handler: a plain function as a block, its types read from its annotations.

A handler takes ``(input)`` or ``(input, ctx)`` and is asynchronous or not. A synchronous one runs
in a worker thread with the context variables copied, unless it is cheap and says ``inline=True``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final, overload

from typing_extensions import Unpack

from flowstate.context import Context
from flowstate.define.annotations import annotations_of
from flowstate.define.block import Block, BlockOptions, I_contra, O_co, normalised
from flowstate.errors import DefinitionError

A = TypeVar("A")
B = TypeVar("B")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Handler(Block[I_contra, O_co], Generic[I_contra, O_co]):
    """A function as a block. Made by ``@handler``."""

    fn: Callable[..., Any]
    """The author's function."""
    is_async: bool
    takes_context: bool
    inline: bool = False
    """True: a synchronous function that is called on the event loop."""
    abandon: bool = False
    """True: a timeout leaves the worker thread running and closes its context."""

    def __post_init__(self) -> None:
        # Spelled out: `super()` has no cell in a class that `slots=True` made anew.
        super(Handler, self).__post_init__()
        if self.is_async and (self.inline or self.abandon):
            raise DefinitionError(
                self.name,
                "inline and abandon are for synchronous functions",
                "Drop them: an async function runs on the event loop and can be cancelled.",
            )
        limited = self.timeout is not None or self.deadline is not None
        if limited and not self.is_async and not self.abandon:
            raise DefinitionError(
                self.name,
                "a thread can't be stopped, so a timeout on a synchronous handler can't hold",
                "Make it async, or say abandon=True to leave the thread running.",
            )


class HandlerDecorator(Protocol):
    """``@handler(...)`` with options, waiting for its function."""

    @overload
    def __call__(self, fn: Callable[[A], Awaitable[B]], /) -> Handler[A, B]: ...
    @overload
    def __call__(self, fn: Callable[[A, Context], Awaitable[B]], /) -> Handler[A, B]: ...
    @overload
    def __call__(self, fn: Callable[[A], B], /) -> Handler[A, B]: ...
    @overload
    def __call__(self, fn: Callable[[A, Context], B], /) -> Handler[A, B]: ...


@overload
def handler(fn: Callable[[A], Awaitable[B]], /) -> Handler[A, B]: ...
@overload
def handler(fn: Callable[[A, Context], Awaitable[B]], /) -> Handler[A, B]: ...
@overload
def handler(fn: Callable[[A], B], /) -> Handler[A, B]: ...
@overload
def handler(fn: Callable[[A, Context], B], /) -> Handler[A, B]: ...
@overload
def handler(
    *, inline: bool = False, abandon: bool = False, **options: Unpack[BlockOptions]
) -> HandlerDecorator: ...
def handler(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    inline: bool = False,
    abandon: bool = False,
    **options: Unpack[BlockOptions],
) -> Any:
    """
    Make a block of a function; its input and output types are its annotations.

    Args:
        fn: ``(input)`` or ``(input, ctx)``, async or not.
        inline: call a synchronous function on the event loop, not in a thread.
        abandon: let a timeout leave a synchronous function's thread behind.
        options: name (default: the function's), uses, retry, timeout, deadline, status,
            visibility, transient, pure.

    Raises:
        DefinitionError: the function takes neither one nor two positional arguments, or an
            option can't hold.
    """

    def decorate(function: Callable[..., Any]) -> Handler[Any, Any]:
        return make_handler(function, inline=inline, abandon=abandon, **options)

    return decorate if fn is None else decorate(fn)


def make_handler(
    fn: Callable[..., Any],
    *,
    inline: bool = False,
    abandon: bool = False,
    input_type: object = None,
    output_type: object = None,
    **options: Unpack[BlockOptions],
) -> Handler[Any, Any]:
    """``handler`` without a decorator; types given here win over the annotations."""
    fields = normalised(options)
    name = fields.pop("name", None) or getattr(fn, "__name__", type(fn).__name__)
    if name == "<lambda>":
        name = "lambda"
    count = _positional(fn, name)
    hinted_in, hinted_out = annotations_of(fn)
    return Handler(
        name=name,
        input_type=hinted_in if input_type is None else input_type,
        output_type=hinted_out if output_type is None else output_type,
        fn=fn,
        is_async=_is_async(fn),
        takes_context=count == 2,
        inline=inline,
        abandon=abandon,
        **fields,
    )


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(type(fn), "__call__", None)  # noqa: B004  (an instance with an async __call__)
    )


def _positional(fn: Callable[..., Any], name: str) -> int:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in parameters if p.kind in kinds]
    required = [p for p in positional if p.default is inspect.Parameter.empty]
    named = [
        p.name
        for p in parameters
        if p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is inspect.Parameter.empty
    ]
    if not positional or len(required) > 2 or named:
        raise DefinitionError(
            name,
            f"takes {inspect.signature(fn)}",
            "A block's function takes (input) or (input, ctx).",
        )
    # A second argument with a default is the author's own, not a context.
    return 2 if len(required) == 2 else 1
