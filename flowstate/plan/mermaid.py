"""The plan as Mermaid text, for READMEs, pull requests and terminals."""

from __future__ import annotations

from flowstate.plan.graph import GraphNode, Shape, view
from flowstate.plan.site import Site

_SHAPES: dict[Shape, tuple[str, str]] = {
    "step": ("[", "]"),
    "tap": ("[/", "/]"),
    "function": ("([", "])"),
    "choice": ("{", "}"),
    "join": ("[[", "]]"),
    "start": ("((", "))"),
    "end": ("((", "))"),
}

_ENTITIES = {
    "#": "#35;",
    "&": "#amp;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "\\": "#92;",
}
"""A backtick opens Markdown, an ampersand an entity of HTML's, a backslash an escape."""


def mermaid(root: Site) -> str:
    """
    A ``flowchart`` of the plan. Dotted edges are checked when they run; thick ones are taken by
    errors.
    """
    picture = view(root)
    ids = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    children: dict[str | None, list[str]] = {}
    labels = {path: label for path, label, _ in picture.groups}
    for path, _, around in picture.groups:
        children.setdefault(around, []).append(path)
    members: dict[str | None, list[GraphNode]] = {}
    for node in picture.nodes:
        members.setdefault(node.group, []).append(node)
    lines = ["flowchart TD"]
    numbers = {path: f"g{number}" for number, (path, _, _) in enumerate(picture.groups)}

    def write(group: str | None, indent: str) -> None:
        for node in members.get(group, []):
            left, right = _SHAPES[node.shape]
            lines.append(f'{indent}{ids[node.id]}{left}"{_quoted(node.label)}"{right}')
        for path in children.get(group, []):
            lines.append(f'{indent}subgraph {numbers[path]} ["{_quoted(labels[path])}"]')
            write(path, indent + "  ")
            lines.append(f"{indent}end")

    write(None, "  ")
    for edge in picture.edges:
        arrow = "==>" if edge.failure else "-.->" if edge.checked else "-->"
        label = f'|"{_quoted(edge.label)}"|' if edge.label else ""
        lines.append(f"  {ids[edge.source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Text inside Mermaid's double quotes: entities for what would end or open something."""
    return "".join(_ENTITIES.get(mark, mark) for mark in " ".join(text.splitlines()))
