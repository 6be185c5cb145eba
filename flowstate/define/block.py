"""
The block: a frozen, typed value that says what runs, from what to what, and under which limits.

A block knows nothing of the flow it stands in and of how it is executed. Nothing registers
itself: a block is used by being handed to something. Blocks compare and hash by identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeAlias, TypedDict, TypeVar, final

from typing_extensions import Unpack

from flowstate.define.annotations import annotations_of
from flowstate.define.retry import Retry
from flowstate.define.tool import Tool
from flowstate.define.uses import Use
from flowstate.errors import DefinitionError
from flowstate.item.visibility import Visibility

# Explicit variance: a frozen dataclass breaks inferred variance on 3.13 (`__replace__`).
I_contra = TypeVar("I_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=BaseException)
E_co = TypeVar("E_co", bound=BaseException, covariant=True)

StatusText: TypeAlias = "str | Callable[[Any], str]"
"""A status shown while the block runs: a text, or a function of the input."""


class BlockSettings(TypedDict, total=False):
    """The settings that every kind of block takes."""

    uses: Sequence[Use]
    retry: Retry | None
    timeout: float | None
    deadline: float | None
    status: StatusText | None
    visibility: Visibility | None
    transient: bool
    pure: bool
    container: str | None


class BlockOptions(BlockSettings, total=False):
    """The settings, and the name where it has a default."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False, weakref_slot=True)
class Block(Generic[I_contra, O_co]):
    """
    What all kinds of block share. Order of the limits: deadline(retry(timeout(attempt))).
    """

    name: str
    """Names the node in paths, drawings and items; never empty, no ``/``."""
    input_type: object
    """The annotation of the input, or ``UNKNOWN_TYPE``."""
    output_type: object
    """The annotation of the output, or ``UNKNOWN_TYPE``."""
    uses: tuple[Use, ...] = ()
    """State, resources and capabilities that it declares."""
    retry: Retry | None = None
    timeout: float | None = None
    """Seconds for one attempt."""
    deadline: float | None = None
    """Seconds for all attempts together."""
    status: StatusText | None = None
    """Shown while it runs."""
    visibility: Visibility | None = None
    """Who may see its items; None: by their type."""
    transient: bool = False
    """True: its items are shown as they happen and not stored."""
    pure: bool = False
    """True: same input, same output, no effect; it may be run again freely."""
    container: str | None = None
    """Groups the items made inside it under a container item with this label."""

    def __post_init__(self) -> None:
        check_name(self.name, type(self).__name__.lower())
        for label in ("timeout", "deadline"):
            seconds = getattr(self, label)
            if seconds is not None and not seconds > 0:
                raise DefinitionError(
                    self.name, f"{label}={seconds!r}", f"Give {label} in seconds, more than 0."
                )

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name!r}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Without it a pretty printer (IPython, hypothesis) spells out every field, to the bottom.
        printer.text(repr(self))

    def configure(self, **options: Unpack[BlockOptions]) -> Self:
        """The same block with other settings."""
        return dataclasses.replace(self, **normalised(options))

    def connect_input(self, connector: Callable[[A], I_contra], /) -> Block[A, O_co]:
        """This block behind a pure function that makes its input."""
        from flowstate.define.sequencer import sequencer  # a sequencer is itself a block

        takes, _ = annotations_of(connector)
        return sequencer(self.name, takes).step(connector, self)

    def rescued(
        self, errors: type[E] | tuple[type[E], ...], handler: Block[Failure[E], B], /
    ) -> Block[I_contra, O_co | B]:
        """This block with a rescue around it: rescue(deadline(retry(timeout(attempt))))."""
        from flowstate.define.sequencer import sequencer

        guarded = sequencer(self.name, self.input_type).step(self)
        rescued: Block[I_contra, O_co | B] = guarded.rescue(errors, handler)
        return rescued

    def as_tool(self, description: str, *, name: str | None = None) -> Tool:
        """This block as a tool that a model may call; ``name`` is by default the block's."""
        return Tool(name=name or self.name, description=description, block=self)


def normalised(options: BlockSettings) -> dict[str, Any]:
    """Options as the fields of a block: sequences become tuples."""
    fields: dict[str, Any] = dict(options)
    if "uses" in fields:
        fields["uses"] = tuple(fields["uses"])
    return fields


def check_name(name: object, what: str) -> None:
    """
    Refuse a name that can't stand in an execution path.

    Raises:
        DefinitionError: it isn't a text, is empty, or holds ``/``, ``[`` or ``]``.
    """
    if not isinstance(name, str) or not name or any(mark in name for mark in "/[]"):
        raise DefinitionError(
            f"{what} {name!r}",
            "not a usable name",
            "Use a text that is not empty and holds no '/', '[' or ']'.",
        )


@final
@dataclass(frozen=True, slots=True)
class Failure(Generic[E_co]):
    """What a rescue's handler is given."""

    error: E_co
    """The exception, bare."""
    value: object
    """The input of the step that raised."""
    step: str
    """The execution path of that step."""
