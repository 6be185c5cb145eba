"""The strategies around compositions: what they draw is valid, varied, and usable as documented."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from flowstate import Flow, Router, Run, Runtime, action, build_plan, handler, run_block, sequencer
from flowstate.define.handler import make_handler
from flowstate.define.policy import Policy
from flowstate.errors import DefinitionError, RequestRefused
from flowstate.plan.assignable import Verdict, assignable
from flowstate.plan.site import sites
from flowstate.testing import outcomes, scripted_block, simulate
from flowstate.testing.laws import assert_laws
from flowstate.testing.oracle import outcome_of
from flowstate.testing.strategies import (
    Schedule,
    Typed,
    failures,
    failures_in,
    flows,
    inputs,
    policies,
    routers,
    schedules,
    types,
)

BACKENDS = ["asyncio", "trio"]
QUIET = settings(database=None, max_examples=3000)


class Order(BaseModel):
    """What is ordered."""

    item: str = Field(min_length=1)
    count: int = Field(ge=1, le=9)


@handler
async def total(order: Order) -> int:
    return order.count * len(order.item)


@handler
async def double(number: int) -> int:
    return number * 2


# --- types ---------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(types(), st.data())
def test_a_value_goes_through_a_flow_of_its_type(typed: Typed, data: st.DataObject) -> None:
    """Into a block and out of it again, checked on both sides, and it is still itself."""
    annotation, values = typed
    value = data.draw(values)

    async def give_back(given: Any) -> Any:
        return given

    block = make_handler(give_back, input_type=annotation, output_type=annotation)
    chain = sequencer("chain", annotation).step(block).step_all(block, block)
    assert anyio.run(run_block, chain, value) == (value, value)


@settings(max_examples=50)
@given(types(hashable=True), st.data())
def test_hashable_types_have_hashable_values(typed: Typed, data: st.DataObject) -> None:
    """Any of them may be an entry of a set or a key."""
    hash(data.draw(typed.values))


@settings(max_examples=50)
@given(types())
def test_a_type_fits_itself(typed: Typed) -> None:
    """The judge of edges understands every type that is drawn."""
    assert assignable(typed.annotation, typed.annotation) is Verdict.YES


def test_types_are_of_many_kinds() -> None:
    """Containers in containers are found, and unions, and models."""
    for wanted in ("list[list", "dict[", "Note", "Book", " | ", "(max_length", "tuple["):
        assert wanted in repr(find(types(), _named(wanted), settings=QUIET))


def _named(wanted: str) -> Callable[[Typed], bool]:
    return lambda typed: wanted in repr(typed)


# --- inputs --------------------------------------------------------------------------------------


@given(inputs(total), inputs(action("a", total)), inputs(build_plan(total)))
def test_inputs_are_those_of_the_declared_type(one: Order, two: Order, three: Order) -> None:
    """Of a block, an action and a plan; within the model's own bounds."""
    for order in (one, two, three):
        assert order.item
        assert 1 <= order.count <= 9


@given(inputs(sequencer("chain", int).step(double)))
def test_inputs_of_a_sequencer_are_its_own(value: int) -> None:
    """The type that goes in, not that of any step."""
    assert isinstance(value, int)


def test_an_input_that_says_nothing_is_an_error() -> None:
    """The error names the block and the way out; a sequencer has to say its type itself."""
    vague = make_handler(lambda value: value, name="vague", inline=True)
    for block in (vague, sequencer("vague").step(total)):
        with pytest.raises(DefinitionError, match=r"inputs\('vague'\): no values of .*annotation"):
            inputs(block)


@settings(max_examples=20)
@given(inputs(sequencer("turn", Order).step(total).step(double)))
def test_the_laws_of_a_flow_in_five_lines(order: Order) -> None:
    """What the documents show: draw the input from the flow, and assert the laws."""
    assert_laws(sequencer("turn", Order).step(total).step(double), order, seeds=range(2))


# --- routers and flows ---------------------------------------------------------------------------


@settings(max_examples=100)
@given(routers(), st.integers(0, 9))
def test_a_router_ends_as_the_oracle_allows(drawn: Router[int, int], value: int) -> None:
    """It is a block like any other."""
    run = simulate(drawn, value)
    assert run.faults == ()
    assert [run.outcome] == anyio.run(outcomes, drawn, value)


@settings(max_examples=30)
@given(routers(routers(max_routes=2), max_routes=2), st.integers(0, 9))
def test_routers_nest(drawn: Router[int, int], value: int) -> None:
    """A route may be a router; names that meet are told apart."""
    assert [simulate(drawn, value).outcome] == anyio.run(outcomes, drawn, value)


async def _dispatched(flow: Flow, values: list[int]) -> None:
    async with Runtime(flow) as runtime:
        for each, value in zip(flow.actions, values, strict=False):
            allowed = await outcomes(each.block, value)
            run = await runtime.dispatch(each, value, session="s1", user="u1")
            try:
                seen: Any = ("value", await run.output())
            except Exception as error:
                seen = outcome_of(error)
            assert seen in allowed
            await run.finished()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=40)
@given(flow=flows(), values=st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_actions_of_a_flow_end_as_the_oracle_allows(
    backend: str, flow: Flow, values: list[int]
) -> None:
    """Whatever its policies: one request after the other is never refused and never waits."""
    anyio.run(_dispatched, flow, values, backend=backend)


async def _at_once(flow: Flow) -> None:
    async with Runtime(flow) as runtime:
        runs: list[Run[Any]] = []
        for number in range(4):
            act = flow.actions[number % len(flow.actions)]
            try:
                runs.append(await runtime.dispatch(act, number, session="s1", user="u1"))
            except RequestRefused:
                assert flow.policy_of(act.name).name == "reject"
        assert runs
        with anyio.fail_after(20):
            assert {await run.finished() for run in runs} <= {"completed", "failed"}


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=30)
@given(flow=flows())
def test_requests_at_once_all_end(backend: str, flow: Flow) -> None:
    """Under any mix of policies every request that is accepted ends; only reject refuses."""
    anyio.run(_at_once, flow, backend=backend)


def test_flows_differ() -> None:
    """One to three actions, every policy, and actions without one of their own."""
    assert len(find(flows(), lambda flow: len(flow.actions) == 3, settings=QUIET).actions) == 3
    own = find(flows(), lambda flow: flow.actions[0].concurrency is not None, settings=QUIET)
    assert own.policy_of("action0") is own.actions[0].concurrency
    seen: set[str] = set()

    @settings(max_examples=60, database=None)
    @given(policies())
    def law(policy: Policy) -> None:
        seen.add(policy.name)

    law()
    assert seen == {"allow", "queue", "reject"}


# --- disturbances --------------------------------------------------------------------------------


@given(failures())
def test_any_failure_has_an_outcome(error: Exception) -> None:
    """The oracle has a word for it, which two of a kind share."""
    kind, _ = outcome_of(error)
    assert kind == ("group" if isinstance(error, ExceptionGroup) else "error")
    assert outcome_of(error) == outcome_of(error)


CHAIN = (
    sequencer("chain", int)
    .step(double)
    .step_all(
        scripted_block("slow", lambda n: n + 1, waits=3), scripted_block("quick", lambda n: n)
    )
)


@settings(max_examples=60)
@given(failures_in(CHAIN), schedules())
def test_a_run_may_be_disturbed_as_drawn(fail: Mapping[str, Exception], schedule: Schedule) -> None:
    """Both are arguments of ``simulate``; no disturbance leaves anything behind."""
    run = simulate(CHAIN, 1, fail=fail, **schedule)
    assert run.faults == ()
    ended = {"value", "error", "group"} if schedule["cancel_at"] is None else None
    assert ended is None or run.outcome[0] in ended
    if not fail and schedule["cancel_at"] is None:
        assert run.outcome == ("value", (3, 2))


def test_every_block_may_be_the_one_that_fails() -> None:
    """Paths are those of the plan's handlers; a plan without any fails nowhere."""
    paths = [site.path for site in sites(build_plan(CHAIN).root) if site.kind == "handler"]
    assert len(paths) == 3
    for path in paths:
        found = find(failures_in(CHAIN), _holds(path), settings=QUIET)
        assert simulate(CHAIN, 1, fail=found).outcome[0] in ("error", "group")
    empty = sequencer("empty", int).map(lambda n: n)
    assert find(failures_in(empty), lambda _: True, settings=QUIET) == {}


def _holds(path: str) -> Callable[[Any], bool]:
    return lambda fail: path in fail


def test_schedules_without_cancels() -> None:
    """For laws of runs that go on to their end."""

    @settings(max_examples=30, database=None)
    @given(schedules(cancels=False))
    def law(schedule: Schedule) -> None:
        assert schedule["cancel_at"] is None

    law()
    assert (
        find(schedules(), lambda s: (s["cancel_at"] or 0) > 10, settings=QUIET)["cancel_at"] == 11
    )


def test_the_testing_door_needs_no_hypothesis() -> None:
    """``import flowstate.testing`` loads none of it; the strategies do, by their own name."""
    code = (
        "import sys, flowstate.testing as t; t.RecordingSink(); "
        "assert 'hypothesis' not in sys.modules; "
        "import flowstate.testing.strategies; assert 'hypothesis' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
