"""
The plan as a picture: nodes, groups and edges, read off the sites. Always acyclic.

A loop and a for_each are a start and an end with their body between, so that a turn is not drawn
back. Analyses and drawings stand on this; the scheduler never looks at it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final

from flowstate.define.step import BranchStep, LoopStep, RescueStep
from flowstate.plan.site import Site
from flowstate.plan.typename import type_name

if TYPE_CHECKING:
    import networkx

Shape: TypeAlias = Literal["step", "tap", "function", "choice", "join", "start", "end"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node: its id is its path, with a mark where a path has two."""

    id: str
    label: str
    shape: Shape
    group: str | None
    """The path of the sequencer, loop or for_each around it."""
    output: str
    """The type that leaves it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """One way a value goes."""

    source: str
    target: str
    label: str = ""
    checked: bool = False
    """True: the types don't prove it, it is checked when it runs."""
    failure: bool = False
    """True: taken by an error, to a rescue."""


@final
@dataclass(slots=True)
class GraphView:
    """The whole picture, in the order of the definition."""

    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    edges: list[GraphEdge] = field(default_factory=list[GraphEdge])
    groups: list[tuple[str, str, str | None]] = field(
        default_factory=list[tuple[str, str, str | None]]
    )
    """Path, label and surrounding group."""


_Ends: TypeAlias = list[tuple[str, str]]
"""Nodes whose value comes next, each with the label of the edge."""


def view(root: Site) -> GraphView:
    """The picture of a tree of sites."""
    picture = GraphView()
    start = f"{root.path}[in]"
    _node(
        picture, root, start, type_name(root.input_type), "start", None, type_name(root.input_type)
    )
    ends = _lay(picture, root, [(start, "")], None)
    finish = f"{root.path}[out]"
    _node(picture, root, finish, type_name(root.output_type), "end", None, "")
    _link(picture, ends, finish)
    return picture


def digraph(root: Site) -> networkx.DiGraph[str]:
    """The picture as a frozen networkx graph; node and edge attributes are the fields above."""
    import networkx

    picture = view(root)
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for node in picture.nodes:
        graph.add_node(
            node.id, label=node.label, shape=node.shape, group=node.group, output=node.output
        )
    for edge in picture.edges:
        graph.add_edge(
            edge.source, edge.target, label=edge.label, checked=edge.checked, failure=edge.failure
        )
    # The stubs leave open what it gives: the graph itself, no longer to be changed.
    frozen: networkx.DiGraph[str] = cast("Any", networkx).freeze(graph)
    return frozen


def _node(
    picture: GraphView,
    site: Site,
    node_id: str,
    label: str,
    shape: Shape,
    group: str | None,
    output: str | None = None,
) -> None:
    picture.nodes.append(
        GraphNode(
            id=node_id,
            label=label,
            shape=shape,
            group=group,
            output=type_name(site.output_type) if output is None else output,
        )
    )


def _link(picture: GraphView, ends: _Ends, target: str, *, checked: bool = False) -> None:
    for source, label in ends:
        picture.edges.append(GraphEdge(source=source, target=target, label=label, checked=checked))


def _lay(picture: GraphView, site: Site, ends: _Ends, group: str | None) -> _Ends:
    """Lay a site after these ends; gives the new ones."""
    skipped: _Ends = []
    if site.condition is not None and site.kind not in ("exit_if", "throw_if"):
        asked = f"{site.path}[if]"
        _node(picture, site, asked, f"{site.name}?", "choice", group, "")
        _link(picture, ends, asked)
        ends, skipped = [(asked, "yes")], [(asked, "no")]
    return [*_body(picture, site, ends, group), *skipped]


def _body(picture: GraphView, site: Site, ends: _Ends, group: str | None) -> _Ends:
    checked = site.edge.unproven
    match site.kind:
        case "handler" | "map":
            shape: Shape = "tap" if site.tap else "step" if site.kind == "handler" else "function"
            _node(picture, site, site.path, site.name, shape, group)
            _link(picture, ends, site.path, checked=checked)
            return [(site.path, "")]
        case "sequencer":
            picture.groups.append((site.path, site.name, group))
            first_edge = len(picture.edges)
            ending = _sequence(picture, site, ends)
            if checked:
                _dash(picture, ends, first_edge)
            return ending
        case "parallel" | "race" | "step_any":
            joined: _Ends = []
            for child in site.children:
                joined += _lay(picture, child, ends, group)
            _node(picture, site, site.path, site.name, "join", group)
            _link(picture, joined, site.path)
            return [(site.path, "")]
        case "router" | "branch":
            _node(picture, site, site.path, site.name, "choice", group)
            _link(picture, ends, site.path, checked=checked)
            out: _Ends = []
            arms = len(site.step.arms) if isinstance(site.step, BranchStep) else len(site.children)
            for number, child in enumerate(site.children):
                label = child.name if number < arms else "otherwise"
                out += _lay(picture, child, [(site.path, label)], group)
            return out
        case "loop" | "for_each":
            picture.groups.append((f"{site.path}[body]", _turns(site), group))
            inside = f"{site.path}[body]"
            first, last = f"{site.path}[start]", f"{site.path}[end]"
            _node(
                picture,
                site,
                first,
                "each" if site.kind == "for_each" else "again",
                "start",
                inside,
                "",
            )
            _link(picture, ends, first, checked=checked)
            body = _lay(picture, site.children[0], [(first, "")], inside)
            _node(picture, site, last, "all" if site.kind == "for_each" else "done", "join", inside)
            _link(picture, body, last)
            return [(last, "")]
        case "side_chain":
            inside = f"{site.path}[side]"
            picture.groups.append((inside, f"{site.name}: side chain", group))
            first_edge = len(picture.edges)
            _lay(picture, site.children[0], ends, inside)
            if checked:
                _dash(picture, ends, first_edge)
            return ends
        case "wait":
            _node(picture, site, site.path, site.name, "join", group)
            _link(picture, ends, site.path)
            return [(site.path, "")]
        case "ask":
            _node(picture, site, site.path, f"{site.name}?", "step", group)
            _link(picture, ends, site.path)
            return [(site.path, "")]
        case "exit_if" | "throw_if" | "rescue":
            raise AssertionError(f"{site.kind} stands only in a sequencer")


def _dash(picture: GraphView, ends: _Ends, since: int) -> None:
    """Mark the edges drawn since then that lead out of these ends as checked."""
    for number, edge in enumerate(picture.edges[since:], since):
        if (edge.source, edge.label) in ends:
            picture.edges[number] = replace(edge, checked=True)


def _sequence(picture: GraphView, site: Site, ends: _Ends) -> _Ends:
    group = site.path
    exits: _Ends = []
    covered: list[str] = []
    for child in site.children:
        before = len(picture.nodes)
        match child.kind:
            case "exit_if" | "throw_if":
                _node(picture, child, child.path, child.name, "choice", group)
                _link(picture, ends, child.path)
                ends = [(child.path, "no")]
                if child.kind == "exit_if":
                    exits.append((child.path, "exit"))
            case "rescue":
                handler = child.children[0]
                assert isinstance(child.step, RescueStep)
                names = " | ".join(error.__name__ for error in child.step.errors)
                rescued = _lay(picture, handler, [], group)
                # From the last step it covers; from what came in, if those drew nothing.
                sources = covered[-1:] or [source for source, _ in ends]
                if len(picture.nodes) == before:
                    rescued = [(source, names) for source in sources]
                else:
                    entry = picture.nodes[before].id
                    picture.edges += [
                        GraphEdge(source=source, target=entry, label=names, failure=True)
                        for source in sources
                    ]
                ends = [*ends, *rescued]
            case _:
                ends = _lay(picture, child, ends, group)
        if child.kind != "side_chain":  # its failure is never the chain's
            covered += [node.id for node in picture.nodes[before:]]
    return [*ends, *exits]


def _turns(site: Site) -> str:
    if isinstance(site.step, LoopStep):
        word = "until" if site.step.until else "while"
        bound = "no bound" if site.step.max_iterations is None else f"≤ {site.step.max_iterations}"
        return f"{site.name}: do {word}, {bound}"
    return f"{site.name}: for each"


def describe(root: Site) -> dict[str, Any]:
    """The picture as JSON: lists, dicts, texts and truth values only."""
    picture = view(root)
    return {
        "nodes": [asdict(node) for node in picture.nodes],
        "edges": [asdict(edge) for edge in picture.edges],
        "groups": [
            {"path": path, "label": label, "group": around}
            for path, label, around in picture.groups
        ],
    }
