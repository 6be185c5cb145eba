"""From a definition to sites: names, types through every method, and all faults at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from annotated_types import Gt
from pydantic import BaseModel

from flowstate import (
    Failure,
    build_plan,
    handler,
    router,
    sequencer,
    session_state,
)
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import PlanError
from flowstate.plan.site import Site, sites


class Ask(BaseModel):
    text: str


class Outline(BaseModel):
    steps: list[str]


class Review(BaseModel):
    plan: Outline
    risk: int


class Notes(BaseModel):
    lines: list[str] = []


class Other:
    class Notes(BaseModel):
        count: int = 0


@handler
async def plan(ask: Ask) -> Outline:
    return Outline(steps=[ask.text])


@handler
async def assess(outline: Outline) -> str:
    return "high"


@handler
async def rate(outline: Outline) -> int:
    return 1


@handler
async def count(value: int) -> int:
    return value


@handler
async def mend(failure: Failure[OSError]) -> Review:
    raise failure.error


@handler
async def publish(review: Review) -> str:
    return "done"


def is_long(text: str) -> bool:
    return len(text) > 3


def refused(built: Any, **options: Any) -> PlanError:
    """The error that building gives."""
    with pytest.raises(PlanError) as caught:
        build_plan(built, **options)
    return caught.value


GOLDEN_CHAIN = """\
'turn' can't be built, 4 faults:
  1. turn/plan#2: 'plan' gives Outline, but 'plan#2' takes Ask
      → Put .map(...) before it, or a connector in the step: .step(lambda value: ..., block).
  2. turn/count: 'plan#2' gives Outline, but the condition takes str
      → Let the condition take what is there, or put .map(...) before it.
  3. turn/count: 'plan#2' gives Outline, but 'count' takes int
      → Put .map(...) before it, or a connector in the step: .step(lambda value: ..., block).
  4. turn/mend: the rescue gives Failure[ValueError], but 'mend' takes Failure[OSError]
      → Let the handler take that, or name other errors in the rescue."""

GOLDEN_PARALLEL = """\
'review' can't be built, 4 faults:
  1. review/parallel/risc: the input gives Outline, but 'risc' takes int
      → Give the block a connector: block.connect_input(lambda value: ...).
  2. review/parallel/plan: 'plan' gives str, but Review(plan=...) takes Outline
      → Let the branch give that, or put .map(...) at its end: \
plan=sequencer(...).step(block).map(...).
  3. review/parallel/risc: Review takes no 'risc'
      → Name the branch as one of: plan, risk.
  4. review/parallel: Review needs 'risk', and no branch gives it
      → Add a branch: .parallel(Review, risk=block, ...)."""

GOLDEN_LOOPS = """\
'batch' can't be built, 7 faults:
  1. batch/count: the input gives int, which can't be gone through
      → Give it a list, or a connector: .for_each(lambda value: value.entries, block).
  2. batch/publish: 'publish' gives str, but 'publish' again takes Review
      → Let the body end with what it takes, for example by .map(...).
  3. batch/count#2: 'publish' gives str, but 'count#2' takes int
      → Put .map(...) before it, or a connector in the step: .step(lambda value: ..., block).
  4. batch/count#3: the rescue gives Failure[ValueError], but 'count#3' takes int
      → Let the handler take that, or name other errors in the rescue.
  5. batch/loop_back: a rescue inside the slice of loop_back('count#2') reaches back to steps \
before the slice
      → Put the slice and its rescue into a sequencer of their own: .do_while(condition, \
sequencer('count#2', ...)...rescue(...)).
  6. batch/loop_back: loop_back('nothing') names no step before it; there are: count, len, \
publish, count#2, count#3
      → Name the step to go back to as it stands in its path.
  7. batch/count#2: session state 'notes' is Other.Notes here and Notes in batch/count
      → Give one of them another name: session_state(Notes, name=...)."""


def test_faults_of_a_chain_read_well() -> None:
    """Every step that doesn't fit is named with both types and the way out."""
    start: Any = sequencer("turn", Ask)
    wrong = start.step(plan).step(plan).step_if(is_long, count).rescue(ValueError, mend)
    assert str(refused(wrong)) == GOLDEN_CHAIN


def test_faults_of_a_parallel_read_well() -> None:
    """Branches against the constructor that joins them: names, types and what is missing."""
    start: Any = sequencer("review", Outline)
    wrong = start.parallel(Review, plan=assess, risc=count).step(publish)
    assert str(refused(wrong)) == GOLDEN_PARALLEL


def test_faults_of_loops_and_state_read_well() -> None:
    """Loops, entries, slices, rescues, declarations: all at once, in the order of the steps."""
    start: Any = sequencer("batch", int)
    keeps = count.configure(name="count", uses=[session_state(Notes)])
    clashes = count.configure(name="count", uses=[session_state(Other.Notes)])
    wrong = (
        start.for_each(keeps)
        .map(len)
        .do_until(lambda value: value > 3, publish, max_iterations=2)
        .step(clashes)
        .rescue(ValueError, count)
        .loop_back("count#2", lambda value: True, max_iterations=2)
        .loop_back("nothing", lambda value: True, max_iterations=3)
    )
    error = refused(wrong)
    assert str(error) == GOLDEN_LOOPS
    assert len(error.faults) == 7


def test_one_fault_is_not_many() -> None:
    """The message counts right."""
    start: Any = sequencer("turn", str)
    assert str(refused(start.step(count))).startswith("'turn' can't be built, 1 fault:\n")


def test_a_fault_in_a_loops_body_is_told_once() -> None:
    """However often the body's types are followed through."""
    inner: Any = sequencer("inner").step(plan)
    outer: Any = sequencer("outer").do_until(lambda _: True, inner, max_iterations=2)
    start: Any = sequencer("turn", int)
    error = refused(start.do_until(lambda _: True, outer, max_iterations=2))
    assert [fault.where for fault in error.faults] == ["turn/outer/inner/plan"]


def test_deeply_nested_loops_are_followed_in_no_time() -> None:
    """Following types through a loop doesn't double with each level."""
    built: Any = sequencer("level0", int).step(count)
    for level in range(1, 40):
        built = sequencer(f"level{level}", int).do_until(lambda _: True, built, max_iterations=2)
    assert len(list(sites(build_plan(built).root))) == 41 + 39


def test_two_types_of_one_name_are_told_apart() -> None:
    """Where the short names would be the same, they are spelled out."""

    @handler
    async def other(notes: Other.Notes) -> int:
        return 1

    @handler
    async def makes(value: int) -> Notes:
        return Notes()

    start: Any = sequencer("turn", int)
    error = refused(start.step(makes).step(other))
    assert "Other.Notes" in str(error)


# --- names --------------------------------------------------------------------------------------


def paths(built: Any) -> list[str]:
    """The paths of all sites, parents first."""
    return [site.path for site in sites(build_plan(built).root)]


def test_a_path_is_the_authors_names_and_a_number_only_for_duplicates() -> None:
    """The second step of one name is ``#2``; names in different places don't meet."""
    inner = sequencer("inner", int).step(count)
    assert paths(sequencer("turn", int).step(count).step(count).step(inner).step(inner)) == [
        "turn",
        "turn/count",
        "turn/count#2",
        "turn/inner",
        "turn/inner/count",
        "turn/inner#2",
        "turn/inner#2/count",
    ]


def test_a_name_that_looks_like_a_number_is_still_unique() -> None:
    """A block may be called ``count#2`` by its author."""
    odd = count.configure(name="count#2")
    assert paths(sequencer("turn", int).step(odd).step(count).step(count))[1:] == [
        "turn/count#2",
        "turn/count",
        "turn/count#3",
    ]


def test_steps_without_a_block_are_called_by_their_method() -> None:
    """Maps by their function where it has a name."""

    def shorten(value: int) -> int:
        return value

    built = (
        sequencer("turn", int)
        .map(shorten)
        .map(lambda value: value)
        .exit_if(lambda value: value > 9)
        .throw_if(lambda value: value > 8, ValueError)
        .step_all(count, count)
        .map(sum)
        .step_any(count)
        .race(count)
        .branch((lambda _: True, count), otherwise=count)
        .wait_for_side_chains()
    )
    assert paths(built)[1:] == [
        "turn/shorten",
        "turn/map",
        "turn/exit_if",
        "turn/throw_if",
        "turn/step_all",
        "turn/step_all/count",
        "turn/step_all/count#2",
        "turn/sum",
        "turn/step_any",
        "turn/step_any/count",
        "turn/race",
        "turn/race/count",
        "turn/branch",
        "turn/branch/count",
        "turn/branch/count#2",
        "turn/wait_for_side_chains",
    ]


# --- types through the methods ------------------------------------------------------------------


class Pair(TypedDict):
    left: int
    right: str


@dataclass
class Joined:
    left: int
    right: str = ""


@handler
async def as_text(value: int) -> str:
    return str(value)


@handler
async def entries(value: int) -> list[str]:
    return []


@handler
async def length(text: str) -> int:
    return len(text)


def fits_any(value: int) -> bool:
    return True


def joined(left: int, right: str) -> Joined:
    return Joined(left, right)


@handler
async def zero(failure: Failure[Exception]) -> None:
    return None


START: Any = sequencer("turn", int)


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (START, int),
        (START.step(as_text), str),
        (START.step_if(fits_any, as_text), int | str),
        (START.map(str), str),
        (START.map(lambda value: value), UNKNOWN_TYPE),
        (START.tap(as_text), int),
        (START.tap_if(fits_any, as_text), int),
        (START.step(lambda value: "x", length), int),
        (START.parallel(left=count, right=as_text), dict[str, int | str]),
        (START.parallel(Joined, left=count, right=as_text), Joined),
        (START.parallel(joined, left=count, right=as_text), Joined),
        (START.parallel(Pair, left=count, right=as_text), Pair),
        (START.step_all(count, as_text), tuple[int, str]),
        (START.step_any(count, as_text), int | str),
        (START.race(as_text, as_text), str),
        (START.for_each(lambda _: [1], as_text), list[str]),
        (START.step(entries).for_each(length), list[int]),
        (START.do_until(fits_any, count, max_iterations=2), int),
        (START.branch((fits_any, as_text), (fits_any, entries)), str | list[str]),
        (START.branch((fits_any, as_text), otherwise=count), str | int),
        (START.step(as_text).rescue(ValueError, zero), str | None),
        (START.exit_if(fits_any).step(as_text), str | int),
        (START.throw_if(fits_any, ValueError).step(as_text), str),
        (START.side_chain(as_text), int),
        (START.step(count).loop_back("count", fits_any, max_iterations=2), int),
        (
            START.step(router("way", routes=[count, as_text], select=lambda _: "count")),
            int | str,
        ),
    ],
)
def test_the_running_type_is_followed_through_every_method(built: Any, expected: object) -> None:
    """The plan's output is what the last step gives, with all the ways to get there."""
    assert build_plan(built).output_type == expected


def test_a_slice_must_take_what_it_gives() -> None:
    """Its first step meets the running value first, and then the slice's own output."""
    error = refused(START.step(as_text).loop_back("as_text", bool, max_iterations=2))
    assert "the input gives int | str, but 'as_text' takes int" in str(error)


def test_a_union_fits_where_each_of_its_parts_does() -> None:
    """After a step_if either type may arrive."""

    @handler
    async def takes(value: int | str) -> int:
        return 1

    either = START.step_if(fits_any, as_text)
    assert build_plan(either.step(takes)).output_type is int
    error = refused(either.step(length))
    assert "gives int | str, but 'length' takes str" in str(error)


def test_a_constraint_is_checked_when_it_runs() -> None:
    """An int may or may not be positive: that can't be proven, and isn't taken for granted."""

    @handler
    async def positive(value: Annotated[int, Gt(0)]) -> int:
        return value

    (site,) = build_plan(START.step(positive)).root.children
    assert site.edge.check is not None


def checks(built: Any) -> list[str]:
    """The paths of the sites whose edges are checked when they run."""
    return [site.path for site in sites(build_plan(built).root) if site.edge.unproven]


def test_an_unknown_edge_is_checked_when_it_runs() -> None:
    """In front of a block, of a connector, of a function, of a for_each's entries."""

    def takes(value: int) -> str:
        return "x"

    def several(value: int) -> list[str]:
        return []

    unknown = START.map(lambda value: value)
    assert checks(unknown.step(count)) == ["turn/count"]
    assert checks(unknown.step(takes, length)) == ["turn/length"]
    assert checks(START.step(lambda value: value, count)) == ["turn/count"]
    assert checks(unknown.map(takes)) == ["turn/takes"]
    assert checks(unknown.for_each(several, length)) == ["turn/length"]
    assert checks(unknown.for_each(count)) == ["turn/count"]
    assert checks(unknown.side_chain(takes, length)) == ["turn/length"]
    assert checks(unknown.for_each_side_chain(several, length)) == ["turn/length"]
    assert checks(unknown.step_all(count, count)) == [
        "turn/step_all/count",
        "turn/step_all/count#2",
    ]
    assert checks(START.step(count).map(takes)) == []


def test_strict_refuses_what_can_t_be_proven() -> None:
    """An unannotated function in the way is a fault then, with what to do about it."""
    unknown: Any = START.map(lambda value: value).step(count)
    build_plan(unknown)
    error = refused(unknown, strict=True)
    assert [fault.where for fault in error.faults] == ["turn/map", "turn/count"]
    assert "strict: 'map' gives ?, 'count' takes int; it can't be proven to fit" in str(error)
    assert "Annotate the function" in error.faults[0].way_out


def test_strict_takes_whatever_is_annotated() -> None:
    """A nested sequencer hands on what arrives, and a slice what its steps take."""
    built = (
        START.step(sequencer("inner").step(count))
        .step(count)
        .loop_back("count", fits_any, max_iterations=3)
        .do_until(fits_any, sequencer("body").step(count), max_iterations=3)
        .step_all(count, sequencer("branch").step(as_text))
    )
    assert build_plan(built, strict=True).output_type == tuple[int, str]


def test_a_literal_and_a_model_fit_their_bases() -> None:
    """What is narrower fits what is wider."""

    class Sharp(Ask):
        edge: int = 1

    @handler
    async def makes(value: int) -> Sharp:
        return Sharp(text="x")

    @handler
    async def kind(value: int) -> Literal["a", "b"]:
        return "a"

    assert build_plan(START.step(makes).step(plan), strict=True).output_type is Outline
    assert build_plan(START.step(kind).step(length), strict=True).output_type is int


def test_a_block_has_a_site_for_each_place_it_stands_in() -> None:
    """One value may be used anywhere, any number of times."""
    found: list[Site] = list(sites(build_plan(START.step(count).step(count)).root))
    assert [site.block for site in found[1:]] == [count, count]
    assert found[1].path != found[2].path
