"""
Where everything in a drawing lies: boxes, worked out from the sites.

A composition is series-parallel, so its drawing needs no search: steps stand below each other,
branches beside each other, and whatever has an inside is a frame around it. A box knows its size
and draws itself relative to its upper left corner; a value comes in at the top of its axis and
goes out at the bottom of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from flowstate.define.step import BranchStep, ForEachStep, LoopStep, RescueStep
from flowstate.plan.marks import Border, Box, Kind, Line, Mark, Node, Style, moved
from flowstate.plan.recorded import NodeRecord
from flowstate.plan.site import Site
from flowstate.plan.typename import type_name

NODE_HEIGHT = 40.0
GAP = 34.0
"""Between steps; room for the type on the edge."""
BESIDE = 28.0
"""Between branches."""
PADDING = 22.0
TITLE = 24.0
CHARACTER = 7.3
"""The width of a character of the drawing's font."""


def laid_out(root: Site, recording: Mapping[str, NodeRecord] | None = None) -> Box:
    """The drawing of a tree of sites, with what a recording says of each node."""
    layout = _Layout(recording)
    body = layout.site(root)
    first = layout.pill(type_name(root.input_type))
    last = layout.pill(type_name(root.output_type))
    return layout.stack([(first, ""), (body, ""), (last, "")], labels=False)


@final
class _Layout:
    def __init__(self, recording: Mapping[str, NodeRecord] | None) -> None:
        self._recording = recording

    # --- sites ----------------------------------------------------------------------------------

    def site(self, site: Site) -> Box:
        """One site, with its condition around it."""
        box = self._bare(site)
        if site.condition is not None and site.kind not in ("exit_if", "throw_if"):
            return self._conditional(site, box)
        return box

    def _bare(self, site: Site) -> Box:
        match site.kind:
            case "handler":
                return self._node(site, "tap" if site.tap else "step")
            case "map":
                return self._node(site, "function")
            case "wait":
                return self._node(site, "wait")
            case "ask":
                return self._node(site, "ask")
            case "sequencer":
                return self._framed(self._steps(site), site.name)
            case "parallel":
                return self._fan(site, [child.name for child in site.children], "")
            case "race" | "step_any":
                word = "first of these" if site.kind == "race" else "one after the other"
                return self._fan(site, [child.name for child in site.children], word)
            case "router" | "branch":
                return self._choice(site)
            case "loop" | "for_each":
                return self._framed(self.site(site.children[0]), _turns(site))
            case "side_chain":
                return self._side(site)
            case "exit_if" | "throw_if":
                return self._diamond(site.name)
            case "rescue":
                return self.site(site.children[0])

    def _steps(self, site: Site) -> Box:
        """The steps of a sequencer below each other; exits and rescues to the right."""
        rows: list[tuple[Box, str]] = []
        exits: list[int] = []
        rescues: list[tuple[int, Site]] = []
        for child in site.children:
            if child.kind == "rescue":
                rescues.append((len(rows), child))
                continue
            if child.kind == "exit_if":
                exits.append(len(rows))
            given = type_name(child.input_type)
            label = given if rows and given != "?" else ""
            if child.edge.check is not None:
                label = f"{label} (checked)"
            rows.append((self.site(child), label))
        if not rows:
            return self._node_box("function", "nothing", "", None)
        tops: list[float] = []
        box = self.stack(rows, labels=True, tops=tops)
        right = box.width
        for at, rescue in rescues:
            handler = self.site(rescue)
            assert isinstance(rescue.step, RescueStep)
            names = " | ".join(error.__name__ for error in rescue.step.errors)
            last = rows[at - 1][0]
            top = tops[at - 1] + last.height / 2 - NODE_HEIGHT / 2
            left = right + max(BESIDE, len(names) * CHARACTER + 24)
            box.marks += moved(handler.marks, left, top)
            from_x = box.axis - last.axis + last.width
            middle = top + NODE_HEIGHT / 2
            box.marks.append(
                Line(points=((from_x, middle), (left, middle)), style="failure", label=names)
            )
            bottom = max(top + handler.height, tops[at - 1] + last.height) + GAP / 2
            box.marks.append(
                Line(
                    points=(
                        (left + handler.axis, top + handler.height),
                        (left + handler.axis, bottom),
                        (box.axis, bottom),
                    ),
                    style="failure",
                    arrow=False,
                )
            )
            right = left + handler.width
            box.height = max(box.height, bottom)
        for row in exits:
            diamond = rows[row][0]
            y = tops[row] + diamond.height / 2
            lane = right + 26
            box.marks.append(
                Line(
                    points=(
                        (box.axis + diamond.width / 2, y),
                        (lane, y),
                        (lane, box.height + GAP / 2),
                        (box.axis, box.height + GAP / 2),
                    ),
                    style="quiet",
                    label="exit",
                    arrow=False,
                )
            )
            right = lane
        if exits:
            box.marks.append(
                Line(points=((box.axis, box.height), (box.axis, box.height + GAP / 2)), arrow=False)
            )
            box.height += GAP / 2
        box.width = max(box.width, right)
        return box

    # --- shapes ---------------------------------------------------------------------------------

    def pill(self, label: str) -> Box:
        """Where a value comes from or goes to."""
        width = max(64.0, len(label) * CHARACTER + 28)
        node = Node(x=0, y=0, width=width, height=28, kind="end", label=label)
        return Box(width, 28, width / 2, [node])

    def stack(
        self, rows: Sequence[tuple[Box, str]], *, labels: bool, tops: list[float] | None = None
    ) -> Box:
        """Boxes below each other on one axis, joined by arrows."""
        axis = max(box.axis for box, _ in rows)
        width = axis + max(box.width - box.axis for box, _ in rows)
        marks: list[Mark] = []
        y = 0.0
        for number, (box, label) in enumerate(rows):
            if number:
                style: Style = "checked" if label.endswith("(checked)") else "plain"
                text = label.removesuffix(" (checked)") if labels else ""
                marks.append(Line(points=((axis, y - GAP), (axis, y)), style=style, label=text))
            if tops is not None:
                tops.append(y)
            marks += moved(box.marks, axis - box.axis, y)
            y += box.height + GAP
        return Box(width, y - GAP, axis, marks)

    def _node(self, site: Site, kind: Kind) -> Box:
        detail = "" if kind == "function" else type_name(site.output_type)
        label = f"{site.name}?" if kind == "ask" else site.name
        return self._node_box(kind, label, "" if site.tap else detail, site.path)

    def _node_box(self, kind: Kind, label: str, detail: str, path: str | None) -> Box:
        record = None if self._recording is None or path is None else self._recording.get(path)
        texts = [label, f"→ {detail}" if detail else "", str(record) if record else ""]
        width = max(88.0, max(len(text) for text in texts) * CHARACTER + 28)
        height = NODE_HEIGHT + (16 if record else 0)
        node = Node(
            x=0,
            y=0,
            width=width,
            height=height,
            kind=kind,
            label=label,
            detail=f"→ {detail}" if detail else "",
            record=record,
            recorded=self._recording is not None,
        )
        return Box(width, height, width / 2, [node])

    def _diamond(self, label: str) -> Box:
        width = max(96.0, len(label) * CHARACTER + 52)
        node = Node(x=0, y=0, width=width, height=44, kind="choice", label=label)
        return Box(width, 44, width / 2, [node])

    def _framed(self, box: Box, title: str) -> Box:
        # The title stands beside the axis, not under the line that comes in along it.
        left = max(PADDING, len(title) * CHARACTER + 26 - box.axis)
        width = left + box.width + PADDING
        top = TITLE + PADDING / 2
        height = box.height + top + PADDING / 2
        axis = left + box.axis
        marks: list[Mark] = [Border(x=0, y=0, width=width, height=height, title=title)]
        marks.append(Line(points=((axis, 0), (axis, top)), arrow=False))
        marks += moved(box.marks, left, top)
        marks.append(Line(points=((axis, top + box.height), (axis, height)), arrow=False))
        return Box(width, height, axis, marks)

    def _fan(self, site: Site, names: Sequence[str], word: str) -> Box:
        """Branches beside each other between two bars."""
        record = None if self._recording is None else self._recording.get(site.path)
        boxes = [self.site(child) for child in site.children]
        row, heads = _row(boxes)
        width = max(row.width, 120.0)
        shift = (width - row.width) / 2
        tallest = row.height
        top = GAP
        marks: list[Mark] = []
        bar = Node(x=0, y=0, width=width, height=6, kind="join", label="", detail="")
        marks.append(bar)
        label = word or site.name
        join = Node(
            x=0,
            y=top + tallest + GAP,
            width=width,
            height=22,
            kind="join",
            label=f"{label} → {type_name(site.output_type)}",
            record=record,
            recorded=self._recording is not None,
        )
        for name, head, box in zip(names, heads, boxes, strict=True):
            x = shift + head
            text = name if box.marks and not _named(box, name) else ""
            marks.append(Line(points=((x, 6), (x, top)), label=text))
            marks.append(Line(points=((x, top + box.height), (x, top + tallest + GAP))))
        marks += moved(row.marks, shift, top)
        marks.append(join)
        needed = len(join.label) * CHARACTER + 20
        box = Box(width, top + tallest + GAP + 22, width / 2, marks)
        return _widened(box, needed)

    def _choice(self, site: Site) -> Box:
        """A diamond, its arms beside each other, and a bar that they meet at."""
        arms = len(site.step.arms) if isinstance(site.step, BranchStep) else len(site.children)
        boxes = [self.site(child) for child in site.children]
        row, heads = _row(boxes)
        diamond = self._diamond(site.name)
        width = max(row.width, diamond.width)
        shift = (width - row.width) / 2
        top = diamond.height + GAP
        axis = width / 2
        marks = moved(diamond.marks, axis - diamond.axis, 0)
        bottom = top + row.height + GAP / 2
        for number, (head, box) in enumerate(zip(heads, boxes, strict=True)):
            x = shift + head
            label = "" if number < arms else "otherwise"
            turn = diamond.height + GAP / 2
            marks.append(
                Line(
                    points=((axis, diamond.height), (axis, turn), (x, turn), (x, top)), label=label
                )
            )
            marks.append(
                Line(points=((x, top + box.height), (x, bottom), (axis, bottom)), arrow=False)
            )
        marks += moved(row.marks, shift, top)
        return Box(width, bottom, axis, marks)

    def _conditional(self, site: Site, box: Box) -> Box:
        """A diamond before a box, and a way past it on the left."""
        diamond = self._diamond(f"{site.name}?")
        stacked = self.stack([(diamond, ""), (box, "yes")], labels=True)
        lane = 26.0
        marks = moved(stacked.marks, lane, 0)
        axis = stacked.axis + lane
        y = diamond.height / 2
        bottom = stacked.height + GAP / 2
        marks.append(
            Line(
                points=(
                    (axis - diamond.width / 2, y),
                    (lane / 2, y),
                    (lane / 2, bottom),
                    (axis, bottom),
                ),
                style="quiet",
                label="no",
                arrow=False,
            )
        )
        marks.append(Line(points=((axis, stacked.height), (axis, bottom)), arrow=False))
        return Box(stacked.width + lane, bottom, axis, marks)

    def _side(self, site: Site) -> Box:
        """A side chain: to the right, the value goes on at once."""
        inner = self.site(site.children[0])
        title = f"side chain: {site.name}"
        framed_width = max(inner.width + 2 * PADDING, len(title) * CHARACTER + 2 * PADDING)
        height = inner.height + TITLE + PADDING
        left = 54.0
        border = Border(x=left, y=0, width=framed_width, height=height, title=title, style="side")
        middle = height / 2
        marks: list[Mark] = [
            border,
            Line(points=((12, 0), (12, height)), arrow=False),
            Line(points=((12, middle), (left, middle)), style="side"),
        ]
        marks += moved(inner.marks, left + (framed_width - inner.width) / 2, TITLE + PADDING / 2)
        return Box(left + framed_width, height, 12, marks)


def _turns(site: Site) -> str:
    match site.step:
        case LoopStep(until=until, max_iterations=bound):
            limit = "no bound" if bound is None else f"at most {bound}"
            return f"↻ {site.name}: {'until' if until else 'while'} …, {limit}"
        case ForEachStep(max_concurrency=bound):
            limit = "" if bound is None else f", {bound} at once"
            return f"⋮ {site.name}: for each{limit}"
        case _:
            return site.name


def _row(boxes: Sequence[Box]) -> tuple[Box, list[float]]:
    """Boxes beside each other, their tops in line; and where the axis of each lies."""
    marks: list[Mark] = []
    heads: list[float] = []
    x = 0.0
    for box in boxes:
        marks += moved(box.marks, x, 0)
        heads.append(x + box.axis)
        x += box.width + BESIDE
    width = max(0.0, x - BESIDE)
    return Box(width, max(box.height for box in boxes), width / 2, marks), heads


def _named(box: Box, name: str) -> bool:
    """Whether the box shows this name by itself."""
    first = box.marks[0]
    return (isinstance(first, Node) and first.label == name) or (
        isinstance(first, Border) and first.title == name
    )


def _widened(box: Box, width: float) -> Box:
    if box.width >= width:
        return box
    shift = (width - box.width) / 2
    return Box(width, box.height, box.axis + shift, moved(box.marks, shift, 0))
