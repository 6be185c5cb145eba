"""The plan as a graph: acyclic, connected, and true to the definition."""

from __future__ import annotations

from typing import Any

import networkx
from hypothesis import given, settings

from flowstate import Failure, build_plan, handler, router, sequencer
from flowstate.testing.compositions import sequencers


@handler
async def add(value: int) -> int:
    return value + 1


@handler
async def text(value: int) -> str:
    return str(value)


@handler
async def mend(failure: Failure[Exception]) -> int:
    return 0


START: Any = sequencer("turn", int)


def graph(built: Any) -> Any:
    """The plan's graph."""
    return build_plan(built).graph


def edges(built: Any) -> list[tuple[str, str]]:
    """Its edges, without the flow's name in front."""
    return [(_short(a), _short(b)) for a, b in graph(built).edges]


def _short(node: str) -> str:
    return node.removeprefix("turn/").removeprefix("turn")


@settings(max_examples=120)
@given(block=sequencers(max_depth=3))
def test_every_graph_is_acyclic_and_everything_is_on_a_way_from_the_input(block: Any) -> None:
    """Whatever is composed: no cycles, and no node that nothing leads to."""
    built = graph(block)
    assert networkx.is_directed_acyclic_graph(built)
    start, end = f"{block.name}[in]", f"{block.name}[out]"
    assert networkx.descendants(built, start) | {start} == set(built.nodes)
    assert end in built.nodes
    assert built.out_degree(end) == 0
    assert all(data["label"] for _, data in built.nodes(data=True))


def test_a_chain_is_a_line() -> None:
    """Steps in order, nested sequencers laid in line, between the input and the output."""
    built = START.step(add).step(sequencer("inner", int).step(add)).map(str)
    assert edges(built) == [
        ("[in]", "add"),
        ("add", "inner/add"),
        ("inner/add", "str"),
        ("str", "[out]"),
    ]
    nodes = graph(built).nodes
    assert nodes["turn/str"]["shape"] == "function"
    assert nodes["turn[in]"]["label"] == "int"
    assert nodes["turn[out]"]["label"] == "str"


def test_a_condition_is_a_choice_with_a_way_round() -> None:
    """Yes leads through the step, no past it."""
    built = graph(START.step_if(bool, add).step(add))
    assert built.edges["turn/add[if]", "turn/add"]["label"] == "yes"
    assert built.edges["turn/add[if]", "turn/add#2"]["label"] == "no"


def test_branches_come_together_in_a_join() -> None:
    """Every branch starts from what stands before the fork."""
    assert edges(START.step_all(add, text)) == [
        ("[in]", "step_all/add"),
        ("[in]", "step_all/text"),
        ("step_all/add", "step_all"),
        ("step_all/text", "step_all"),
        ("step_all", "[out]"),
    ]


def test_a_loop_isn_t_drawn_back() -> None:
    """It has a start and an end, with its body between."""
    assert edges(START.do_until(bool, add, max_iterations=3)) == [
        ("[in]", "add[start]"),
        ("add[start]", "add"),
        ("add", "add[end]"),
        ("add[end]", "[out]"),
    ]


def test_a_router_and_a_branch_have_an_edge_for_each_way() -> None:
    """Labelled by the route, by the arm, and by otherwise."""
    way = router("way", routes=[add, add.configure(name="b")], select=lambda _: "b")
    built = graph(START.step(way))
    assert built.edges["turn/way", "turn/way/b"]["label"] == "b"
    built = graph(START.branch((bool, add), otherwise=text))
    assert built.edges["turn/branch", "turn/branch/text"]["label"] == "otherwise"


def test_a_rescue_is_reached_by_errors() -> None:
    """From the last step it covers; its handler's end joins the chain."""
    built = graph(START.step(add).rescue((ValueError, OSError), mend).step(text))
    assert built.edges["turn/add", "turn/mend"] == {
        "label": "ValueError | OSError",
        "checked": False,
        "failure": True,
    }
    assert built.has_edge("turn/mend", "turn/text")
    assert built.has_edge("turn/add", "turn/text")


def test_a_rescue_over_and_of_nothing_drawn() -> None:
    """Empty sequencers draw no node; the ways round them are still there."""
    empty: Any = sequencer("empty")
    over = graph(START.step(empty).rescue(ValueError, mend))
    assert over.edges["turn[in]", "turn/mend"]["failure"]
    of_nothing = graph(START.step(add).rescue(ValueError, empty).map(str))
    assert of_nothing.has_edge("turn/add", "turn/str")


def test_a_side_chain_leads_nowhere_back() -> None:
    """The chain goes on past it, and its failure is no way to a rescue."""
    built = graph(START.side_chain(text).step(add).side_chain(text).rescue(ValueError, mend))
    assert list(built.successors("turn/text")) == []
    assert list(built.successors("turn/text#2")) == []
    assert built.has_edge("turn[in]", "turn/text")
    assert built.has_edge("turn[in]", "turn/add")
    assert built.edges["turn/add", "turn/mend"]["failure"]


def test_edges_that_are_checked_when_they_run_say_so() -> None:
    """Into steps, sequencers, loops and side chains alike."""

    def takes(value: int) -> list[int]:
        return []

    unknown = START.map(lambda value: value)
    inner = sequencer("inner", int).step(add)
    for built, edge in (
        (unknown.step(add), ("turn/map", "turn/add")),
        (unknown.step(inner), ("turn/map", "turn/inner/add")),
        (unknown.step_all(add), ("turn/map", "turn/step_all/add")),
        (unknown.for_each(takes, add), ("turn/map", "turn/add[start]")),
        (unknown.for_each(add), ("turn/add[start]", "turn/add")),
        (unknown.side_chain(add), ("turn/map", "turn/add")),
        (unknown.for_each_side_chain(takes, add), ("turn/map", "turn/add")),
    ):
        assert graph(built).edges[edge]["checked"], edge
    assert not any(
        data["checked"] for _, _, data in graph(START.step(add).step(inner)).edges.data()
    )


def test_odd_names_don_t_meet() -> None:
    """A mark on a path is made of what no name can hold."""
    odd = add.configure(name="add:if")
    built = graph(START.step_if(bool, add).step(odd).step(add.configure(name="in")))
    assert networkx.is_directed_acyclic_graph(built)
    assert len(built.nodes) == 6


def test_the_graph_is_made_once() -> None:
    """Asking again gives the same object."""
    plan = build_plan(START.step(add))
    assert plan.graph is plan.graph
