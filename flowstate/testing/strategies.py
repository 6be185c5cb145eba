"""
Hypothesis strategies around compositions: types with values, inputs, routers, flows, failures,
schedules. Those of blocks and sequencers stand in ``flowstate.testing.compositions``.

Needs hypothesis, so it is imported by its own name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, Union, cast

from annotated_types import Ge, MaxLen, MinLen
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict as CheckedDict

from flowstate.define.block import Block
from flowstate.define.flow import Action, Flow, action, define_flow
from flowstate.define.policy import Key, Policy, allow, queue, reject
from flowstate.define.router import Router, router
from flowstate.errors import InvalidValue
from flowstate.plan.annotation import applied
from flowstate.plan.build import Plan, build_plan
from flowstate.plan.site import sites
from flowstate.plan.typename import type_name
from flowstate.testing.compositions import METHODS, Recorder, blocks, sequencers
from flowstate.testing.values import values_of

A = TypeVar("A")

Subject: TypeAlias = "Block[A, Any] | Action[A, Any] | Plan[A, Any]"
"""What a strategy is asked about: a block, an action or a plan."""


# --- types and values -----------------------------------------------------------------------------


class Typed(NamedTuple):
    """A type, and a strategy of values that fit it: unpack it."""

    annotation: Any
    values: st.SearchStrategy[Any]

    def __repr__(self) -> str:
        return f"<{type_name(self.annotation)} and its values>"


class Colour(enum.Enum):
    """An enum to be found among ``types``."""

    RED = "red"
    BLUE = "blue"


class Note(BaseModel):
    """A model to be found among ``types``: with a constraint, a default and an alias."""

    text: str = Field(max_length=5)
    stars: int = Field(default=0, ge=0, alias="starCount")


@dataclass(frozen=True)
class Size:
    """A dataclass to be found among ``types``."""

    width: int
    height: int = 1


class Place(NamedTuple):
    """A named tuple to be found among ``types``."""

    x: int
    y: str


class Book(CheckedDict):
    """A typed dict to be found among ``types``."""

    title: str
    pages: int


_HASHABLE: tuple[Any, ...] = (
    int,
    bool,
    float,
    str,
    bytes,
    None,
    Colour,
    Size,
    Literal["a"],
    Literal["a", "b", 3],
    Annotated[int, Ge(0)],
    Annotated[str, MinLen(1), MaxLen(3)],
)
_OTHERS: tuple[Any, ...] = (Note, Place, Book)


def types(*, hashable: bool = False, max_leaves: int = 4) -> st.SearchStrategy[Typed]:
    """
    Types, each with a strategy of its values: scalars, literals, constraints, enums, models,
    dataclasses, typed dicts, named tuples, and containers and unions of them.

    Args:
        hashable: only types whose values a set can hold.
        max_leaves: about how many of the plain ones stand in one.
    """
    return _annotations(hashable, max_leaves).map(
        lambda annotation: Typed(annotation, values_of(annotation))
    )


def _annotations(hashable: bool, max_leaves: int) -> st.SearchStrategy[Any]:
    keys: st.SearchStrategy[Any] = st.sampled_from(_HASHABLE)
    if hashable:
        return st.recursive(
            keys,
            lambda inner: st.one_of(
                _made(tuple, inner, inner),
                _made(tuple, inner, st.just(...)),
                _made(frozenset, inner),
                _made(Union, inner, inner),
            ),
            max_leaves=max_leaves,
        )
    return st.recursive(
        st.sampled_from((*_HASHABLE, *_OTHERS)),
        lambda inner: st.one_of(
            _made(list, inner),
            _made(Sequence, inner),
            _made(Annotated, _made(list, inner), st.just(MaxLen(2))),
            _made(tuple, inner, inner),
            _made(Union, inner, inner),
            _made(Union, inner, st.none()),
            _made(dict, keys, inner),
            _made(set, keys),
        ),
        max_leaves=max_leaves,
    )


def _made(form: object, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A generic class or a special form, with arguments that only exist at run time."""
    return st.tuples(*args).map(lambda drawn: applied(cast("Any", form), *drawn))


def inputs(subject: Subject[A]) -> st.SearchStrategy[A]:
    """
    Valid inputs of a block, an action or a plan, drawn from its declared input type.

    Raises:
        DefinitionError: the type says too little, or nothing can make its values.
        PlanError: the composition doesn't fit together.
    """
    plan = _plan(subject)

    def valid(value: Any) -> bool:
        try:
            plan.checked_input(value)
        except InvalidValue:
            return False
        return True

    values: st.SearchStrategy[A] = values_of(plan.input_type, where=f"inputs({plan.name!r})")
    return values.filter(valid)


# --- compositions ---------------------------------------------------------------------------------


def routers(
    routes: st.SearchStrategy[Block[int, int]] | None = None, *, max_routes: int = 3
) -> st.SearchStrategy[Router[int, int]]:
    """
    Routers from int to int that choose by the remainder of their input.

    Args:
        routes: what they choose from; None: ``blocks()``.
        max_routes: how many at most.
    """

    chosen = blocks() if routes is None else routes

    @st.composite
    def draw_router(draw: st.DrawFn) -> Router[int, int]:
        drawn = draw(st.lists(chosen, min_size=1, max_size=max_routes))
        # One block may be drawn twice, and a router's routes have names that differ.
        named = [block.configure(name=f"route{number}") for number, block in enumerate(drawn)]
        return router("router", routes=named, select=_remainder(named))

    return draw_router()


def _remainder(routes: Sequence[Block[int, int]]) -> Callable[[int], Block[int, int]]:
    def select(value: int) -> Block[int, int]:
        return routes[value % len(routes)]

    return select


def policies() -> st.SearchStrategy[Policy]:
    """Concurrency policies, on the keys that there are."""
    keys: st.SearchStrategy[Key] = st.sampled_from(["session", "user", None])
    return st.one_of(
        st.builds(allow),
        keys.map(lambda key: queue(wait=60.0, key=key)),
        keys.map(lambda key: reject(key=key)),
    )


def flows(
    *,
    max_actions: int = 3,
    max_steps: int = 3,
    max_depth: int = 1,
    methods: Sequence[str] = METHODS,
    failing: bool = True,
    max_waits: int = 2,
    recorder: Recorder | None = None,
) -> st.SearchStrategy[Flow]:
    """
    Flows of one to ``max_actions`` actions, from int to int, with policies of their own or the
    flow's. All other arguments are those of ``compositions.sequencers``.
    """
    composition = sequencers(
        max_steps=max_steps,
        max_depth=max_depth,
        methods=methods,
        failing=failing,
        max_waits=max_waits,
        recorder=recorder,
    )

    @st.composite
    def draw_flow(draw: st.DrawFn) -> Flow:
        actions = [
            action(f"action{number}", draw(composition), concurrency=draw(st.none() | policies()))
            for number in range(draw(st.integers(1, max_actions)))
        ]
        return define_flow("flow", actions=actions, concurrency=draw(policies()))

    return draw_flow()


# --- disturbances ---------------------------------------------------------------------------------


def failures() -> st.SearchStrategy[Exception]:
    """Exceptions such as blocks raise, groups and ones without a text among them."""
    plain: st.SearchStrategy[Exception] = st.one_of(
        st.builds(ValueError, st.text(max_size=5)),
        st.builds(KeyError, st.text(max_size=5)),
        st.builds(OSError, st.integers(1, 40), st.text(max_size=5)),
        st.builds(RuntimeError),
        st.builds(TimeoutError),
    )
    groups = st.lists(plain, min_size=1, max_size=3)
    return plain | groups.map(lambda errors: ExceptionGroup("several", errors))


def failures_in(
    subject: Subject[Any], *, max_size: int = 2
) -> st.SearchStrategy[Mapping[str, Exception]]:
    """
    Which blocks fail with what: the argument ``fail`` of ``simulate``.

    Args:
        subject: the composition.
        max_size: how many of its blocks may fail.
    """
    paths = [site.path for site in sites(_plan(subject).root) if site.kind == "handler"]
    if not paths:
        return st.just({})
    return st.dictionaries(st.sampled_from(paths), failures(), max_size=max_size)


class Schedule(TypedDict):
    """One way for a run to go: arguments of ``simulate``."""

    seed: int
    cancel_at: int | None


def schedules(*, cancels: bool = True, max_turns: int = 50) -> st.SearchStrategy[Schedule]:
    """
    Schedules: ``simulate(block, value, **schedule)``.

    Args:
        cancels: whether some cancel the run.
        max_turns: the last scheduling point at which. A cancel behind a run's end does nothing.
    """
    points: st.SearchStrategy[int | None] = st.none()
    if cancels:
        points |= st.integers(1, max_turns)
    return st.tuples(st.integers(0, 2**16), points).map(
        lambda drawn: Schedule(seed=drawn[0], cancel_at=drawn[1])
    )


def _plan(subject: Subject[A]) -> Plan[A, Any]:
    block = subject.block if isinstance(subject, Action) else subject
    return block if isinstance(block, Plan) else build_plan(block)
