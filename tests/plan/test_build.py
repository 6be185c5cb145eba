"""A plan: immutable, the same for the same definition, and complete about what it declares."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import BaseModel

from flowstate import (
    build_plan,
    define_capability,
    handler,
    org_state,
    run_block,
    sequencer,
    session_state,
)
from flowstate.errors import PlanError
from flowstate.plan.site import sites
from flowstate.testing.compositions import sequencers


class Notes(BaseModel):
    count: int = 0


@handler
async def count(value: int) -> int:
    return value


def built() -> Any:
    return (
        sequencer("turn", int)
        .step(count)
        .for_each(lambda value: [value], count)
        .map(len)
        .do_until(bool, count, max_iterations=3)
    )


def test_a_plan_can_t_be_changed() -> None:
    """Neither its fields, nor its sites and programs, nor what it declares, nor its graph."""
    plan: Any = build_plan(sequencer("turn", int).step(count.configure(uses=[org_state(Notes)])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.name = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.root.name = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.program.path = "other"
    with pytest.raises(TypeError):
        plan.declared.state[("org", Notes)] = None
    with pytest.raises(TypeError):
        plan.declared.capabilities["x"] = None
    with pytest.raises(Exception, match=r"[Ff]rozen"):
        plan.graph.add_node("other")
    assert isinstance(plan.program.instructions, tuple)
    assert isinstance(plan.root.children, tuple)


def test_building_again_gives_the_same_plan() -> None:
    """Fingerprint, description and drawing are of the definition alone."""
    first, second = build_plan(built()), build_plan(built())
    assert first.fingerprint == second.fingerprint
    assert first.describe() == second.describe()
    assert first.mermaid() == second.mermaid()
    assert first is not second


def test_the_fingerprint_changes_with_nodes_and_types() -> None:
    """Another name, another type, another order: another plan."""

    @handler
    async def text(value: int) -> str:
        return str(value)

    start = sequencer("turn", int)
    plans = [
        start,
        start.step(count),
        start.step(count).step(count),
        start.step(count.configure(name="other")),
        start.step(text),
        start.tap(count).step(text),
        start.step(text.configure(name="count")),
        sequencer("other", int),
    ]
    prints = {build_plan(each).fingerprint for each in plans}
    assert len(prints) == len(plans)


def test_the_description_survives_a_round_trip_as_json() -> None:
    """Texts, lists, dicts and truth values only."""
    described = build_plan(built()).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["name"] == "turn"
    assert described["fingerprint"] == build_plan(built()).fingerprint
    assert {node["id"] for node in described["nodes"]} >= {"turn/count", "turn[in]", "turn[out]"}


@settings(max_examples=30)
@given(block=sequencers())
def test_any_composition_is_built_the_same_way_twice(block: Any) -> None:
    """Building is deterministic, whatever is composed."""
    first, second = build_plan(block), build_plan(block)
    assert first.describe() == second.describe()
    assert json.loads(json.dumps(first.describe())) == first.describe()
    codes = [[row[0] for row in plan.program.instructions] for plan in (first, second)]
    assert codes[0] == codes[1]


@pytest.mark.anyio
async def test_one_plan_serves_any_number_of_runs() -> None:
    """Runs share nothing but the plan."""
    plan = build_plan(sequencer("turn", int).do_until(lambda v: v > 3, _add, max_iterations=9))
    assert [await run_block(plan, value) for value in (0, 1, 0)] == [4, 4, 4]


@handler
async def _add(value: int) -> int:
    return value + 1


def test_what_blocks_declare_is_collected_from_any_depth() -> None:
    """Once each, however many blocks declare it."""
    memory = define_capability("memory", object, lambda ctx: 1, uses=[org_state(Notes)])
    uses = count.configure(uses=[session_state(Notes), memory])
    deep = sequencer("deep", int).step_all(uses, uses).map(len)
    plan = build_plan(sequencer("turn", int, uses=[session_state(Notes)]).side_chain(deep))
    assert set(plan.declared.state) == {("session", Notes), ("org", Notes)}
    assert dict(plan.declared.capabilities) == {"memory": memory}


class Other:
    class Notes(BaseModel):
        lines: list[str] = []


def test_two_models_under_one_name_are_a_fault_that_names_both() -> None:
    """In one scope; a name of its own, or another scope, is the way out."""
    one = count.configure(name="one", uses=[session_state(Notes)])
    two = count.configure(name="two", uses=[session_state(Other.Notes)])
    with pytest.raises(
        PlanError,
        match=r"turn/two: session state 'notes' is Other\.Notes here and Notes in turn/one\n"
        r".*session_state\(Notes, name=",
    ):
        build_plan(sequencer("turn", int).step(one).step(two))
    named = two.configure(uses=[session_state(Other.Notes, name="others")])
    scoped = two.configure(uses=[org_state(Other.Notes)])
    for way_out in (named, scoped):
        assert len(build_plan(sequencer("turn", int).step(one).step(way_out)).declared.state) == 2


def test_two_capabilities_under_one_name_are_a_fault_that_names_both() -> None:
    """Those that capabilities bring count too."""
    memory = define_capability("memory", object, lambda ctx: 1)
    other = define_capability("memory", object, lambda ctx: 2)
    brings = define_capability("brings", object, lambda ctx: 3, uses=[other])
    one = count.configure(name="one", uses=[memory])
    two = count.configure(name="two", uses=[brings])
    with pytest.raises(
        PlanError, match=r"another capability is called 'memory': the one of turn/o"
    ):
        build_plan(sequencer("turn", int).step(one).step(two))
    build_plan(sequencer("turn", int).step(one).step(two.configure(uses=[memory])))


def test_a_block_alone_is_a_plan() -> None:
    """A handler needs no sequencer around it."""
    plan = build_plan(count)
    assert (plan.name, plan.input_type, plan.output_type) == ("count", int, int)
    assert [site.path for site in sites(plan.root)] == ["count"]
    assert repr(plan) == "<plan 'count': 1 nodes>"


def test_something_that_is_no_block_is_refused() -> None:
    """A function without its decorator isn't one."""
    wrong: Any = len
    with pytest.raises((TypeError, AttributeError)):
        build_plan(wrong)
