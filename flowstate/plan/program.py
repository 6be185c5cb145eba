"""
The program: what a plan is compiled to, and the only thing the scheduler reads.

A program is a flat tuple of instructions for one coroutine. A straight run of steps is a segment:
nothing is scheduled between its instructions. Where a composition forks (parallel, race,
for_each) an instruction holds the programs of its branches, each a segment of its own, and
``flowstate.run.ready`` says which may start. Loops are jumps; their turns are counted in ints on
a stack, at depths known when the program is made.

An instruction is a plain tuple ``(code, fn, exact, check, argument)``: unpacking five locals is
the cheapest dispatch there is in Python. ``exact`` is the class that a result of a plain type must
have, the fast way to know that it is valid; ``check`` validates anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from flowstate.define.block import Block
from flowstate.plan.site import Site

# The nodes that a listener is told of come first, so that one comparison tells them apart.
CALL: Final = 0
"""value = await fn(value)"""
CALL_CTX: Final = 1
"""value = await fn(value, ctx)"""
MAP: Final = 2
"""value = fn(value)"""
MAP_CTX: Final = 3
"""value = fn(value, ctx)"""
THREAD: Final = 4
"""The same in a worker thread; ``argument``: (takes_context, abandon)."""
FORK: Final = 5
"""Run branches; ``argument`` is a ``Fork``."""
EACH: Final = 6
"""Run a program once an entry; ``argument`` is an ``Each``."""
GUARD: Final = 7
"""Run a program under limits; ``argument`` is a ``Guard``."""
ASK: Final = 8
"""Ask a person; fn(value) is the question, ``argument`` an ``Ask``."""
LAST_NODE: Final = ASK
"""What stands below is bookkeeping, of which no listener is told."""
JUMP: Final = 9
"""Go to ``argument``."""
JUMP_UNLESS: Final = 10
"""Go to ``argument`` unless fn(value)."""
NEXT_TURN: Final = 11
"""The end of a loop's body: fn(value) decides; ``argument`` is a ``Turn``."""
PUSH: Final = 12
"""Put the running value on the stack (a tap's)."""
POP: Final = 13
"""Take it back."""
ENTER_LOOP: Final = 14
"""Put the turn 0 on the stack."""
EXIT_IF: Final = 15
"""If fn(value): cut the stack to depth and go to target; ``argument`` is (target, depth)."""
THROW_IF: Final = 16
"""If fn(value): raise ``argument``, an exception or a function of the value."""
CHECK: Final = 17
"""value = check(value): an edge that the types didn't prove."""
ROUTE: Final = 18
"""Go where the router's choice lies; ``argument`` is a ``Route``."""
NO_BRANCH: Final = 19
"""Raise NoMatchingBranch."""
BREATHE: Final = 20
"""Let other tasks run if this one has held the loop for long."""
SIDE: Final = 21
"""Begin side chains; ``argument`` is a ``Side``."""
WAIT: Final = 22
"""Wait for the sequencer's own side chains; ``argument``: (its paths, timeout, raises)."""
WAIT_ITEMS: Final = 23
"""Wait until fn(items); ``argument``: (timeout, raises)."""

Instruction: TypeAlias = tuple[int, Any, type | None, Callable[[Any], Any] | None, Any]


@final
@dataclass(frozen=True, slots=True)
class Row:
    """
    One row of the exception table: an ``errors`` raised at ``start <= i < end`` goes to handler.

    Of the rows that fit, the first in the table wins, and rows stand in the order of their
    handlers; so an error in a handler finds the next rescue further down.
    """

    start: int
    end: int
    errors: tuple[type[BaseException], ...]
    handler: int
    depth: int
    """What the stack is cut to."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands: its site, and at which depths its loops count their turns."""

    site: Site
    turns: tuple[tuple[str, int], ...] = ()
    """For each enclosing loop of this program, outermost first: its path and its depth."""


@final
@dataclass(frozen=True, slots=True)
class Program:
    """Flat instructions, where each stands, and the exception table."""

    path: str
    """The path of the site it was made for."""
    instructions: tuple[Instruction, ...]
    places: tuple[Place, ...]
    """One for each instruction."""
    rows: tuple[Row, ...]
    has_side_chains: bool = False
    """Whether it, or a program inside it, begins any: then its branches need gates of their own."""
    reads_items: bool = False
    """Whether it, or a program inside it, waits for a condition over the request's items."""
    watches: bool = False
    """Whether it, or a program inside it, has a block that may watch: a transient one."""
    asks: bool = False
    """Whether it, or a program inside it, asks a person: then who can go on is counted."""
    solo: Callable[[Any], Any] | None = None
    """Set where the whole program is one ``CALL``: the function, called without a coroutine of
    ours around it."""
    solo_exact: type | None = None
    solo_check: Callable[[Any], Any] | None = None


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """How a loop goes on."""

    start: int
    depth: int
    until: bool
    limit: int | None
    keep: bool
    """At the limit: True goes on with the last value, False raises LoopExhausted."""


@final
@dataclass(frozen=True, slots=True)
class Fork:
    """Branches on one value."""

    mode: str
    """all, any (in order) or race."""
    names: tuple[str, ...]
    programs: tuple[Program, ...]
    limit: int | None
    collect: Callable[[list[Any]], Any]
    """Makes one value of the results, in declared order (mode all)."""
    asks: bool
    """Whether a branch asks a person."""


@final
@dataclass(frozen=True, slots=True)
class Each:
    """A program for every entry."""

    program: Program
    connector: Callable[[Any], Any] | None
    limit: int | None


@final
@dataclass(frozen=True, slots=True)
class Side:
    """A program beside the chain, once or for every entry."""

    program: Program
    connector: Callable[[Any], Any] | None
    each: bool


@final
@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a person."""

    name: str
    answer_type: object
    check: Callable[[Any], Any] | None
    """Validates an answer; None where anything is one."""


@final
@dataclass(frozen=True, slots=True)
class Guard:
    """A program under its block's limits."""

    program: Program
    block: Block[Any, Any] = field()


@final
@dataclass(frozen=True, slots=True)
class Route:
    """A router's ways: by the block chosen or by its name."""

    router: str
    by_name: dict[str, int]
    by_block: dict[Block[Any, Any], str]
