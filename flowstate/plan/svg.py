"""The plan as an SVG drawing, in pure Python; with a recording, what ran and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from flowstate.plan.boxes import laid_out
from flowstate.plan.marks import Border, Line, Node, Style
from flowstate.plan.recorded import NodeRecord
from flowstate.plan.site import Site

MARGIN = 28.0

_INK = "#1f2733"
_MUTED = "#6b7684"
_PAPER = "#fbfbfa"
_LINES: dict[Style, tuple[str, str]] = {
    "plain": (_MUTED, ""),
    "checked": ("#b7791f", "5 4"),
    "failure": ("#c2413a", "2 4"),
    "side": ("#5a67a8", "6 5"),
    "quiet": ("#9aa4b1", "4 4"),
}
_FILLS = {
    "step": ("#eaf1fb", "#3b6fb6"),
    "tap": ("#f1eef9", "#7a63b5"),
    "function": ("#f4f4f2", "#9a9f97"),
    "choice": ("#fdf4e3", "#c98a1b"),
    "join": ("#e3ede8", "#4f8a6f"),
    "end": ("#2d3746", "#2d3746"),
    "wait": ("#eef6f7", "#4b919b"),
    "ask": ("#fdeef3", "#b8527a"),
}


_RADIUS = {"step": 7.0, "tap": 7.0, "wait": 7.0, "ask": 7.0, "join": 3.0}
"""How round the corners of a node are; all others are pills."""


def svg(root: Site, recording: Mapping[str, NodeRecord] | None = None) -> str:
    """
    A drawing of the plan.

    Args:
        root: the tree of sites.
        recording: what a run did, by static path; nodes that did not run are pale, failed ones red.
    """
    box = laid_out(root, recording)
    width, height = box.width + 2 * MARGIN, box.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" '
        'font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif" font-size="13">',
        f"<title>{escape(root.name)}</title>",
        "<defs>",
        *(_arrow_head(style, colour) for style, (colour, _) in _LINES.items()),
        "</defs>",
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>',
        f'<g transform="translate({MARGIN:.0f} {MARGIN:.0f})">',
    ]
    # Frames first, then lines, then nodes, so that nothing hides what stands on it.
    for mark in box.marks:
        if isinstance(mark, Border):
            parts.append(_border(mark))
    for mark in box.marks:
        if isinstance(mark, Line):
            parts.append(_line(mark))
    for mark in box.marks:
        if isinstance(mark, Node):
            parts.append(_node(mark))
    parts += ["</g>", "</svg>", ""]
    return "\n".join(parts)


def _arrow_head(style: Style, colour: str) -> str:
    return (
        f'<marker id="to-{style}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0.6 L7.4 4 L0 7.4 Z" fill="{colour}"/>'
        "</marker>"
    )


def _border(mark: Border) -> str:
    dash = ' stroke-dasharray="6 5"' if mark.style == "side" else ""
    colour = _LINES["side"][0] if mark.style == "side" else "#c9cfd8"
    return (
        f'<rect x="{mark.x:.1f}" y="{mark.y:.1f}" width="{mark.width:.1f}" '
        f'height="{mark.height:.1f}" rx="10" fill="#5b6b84" fill-opacity="0.045" '
        f'stroke="{colour}"{dash}/>'
        f'<text x="{mark.x + 12:.1f}" y="{mark.y + 17:.1f}" fill="{_MUTED}" '
        f'font-size="12">{escape(mark.title)}</text>'
    )


def _line(mark: Line) -> str:
    colour, dash = _LINES[mark.style]
    path = _rounded(mark.points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    head = f' marker-end="url(#to-{mark.style})"' if mark.arrow else ""
    line = f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}{head}/>'
    if not mark.label:
        return line
    (x, y), (to_x, to_y) = mark.points[0], mark.points[1]
    if x == to_x:
        # Beside its last piece: where several part, that is what tells them apart.
        (x, y), (_, to_y) = mark.points[-2], mark.points[-1]
        at = f'x="{x + 7:.1f}" y="{(y + to_y) / 2 + 4:.1f}"'
    elif to_x < x:
        at = f'x="{x - 6:.1f}" y="{y - 6:.1f}" text-anchor="end"'
    else:
        at = f'x="{x + 6:.1f}" y="{y - 6:.1f}"'
    text_colour = colour if mark.style != "plain" else _MUTED
    return f'{line}<text {at} fill="{text_colour}" font-size="11">{escape(mark.label)}</text>'


def _rounded(points: tuple[tuple[float, float], ...]) -> str:
    """A path through the points with its corners rounded."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        into = _towards(corner, before)
        out = _towards(corner, after)
        path += (
            f" L{into[0]:.1f} {into[1]:.1f} Q{corner[0]:.1f} {corner[1]:.1f} "
            f"{out[0]:.1f} {out[1]:.1f}"
        )
    return f"{path} L{points[-1][0]:.1f} {points[-1][1]:.1f}"


def _towards(
    corner: tuple[float, float], point: tuple[float, float], radius: float = 7.0
) -> tuple[float, float]:
    dx, dy = point[0] - corner[0], point[1] - corner[1]
    length = max(abs(dx), abs(dy))
    if length == 0:
        return corner
    step = min(radius, length / 2) / length
    return corner[0] + dx * step, corner[1] + dy * step


_RUN = frozenset({"step", "tap", "function", "ask"})
"""What is drawn pale if it didn't run in what was recorded."""


def _node(mark: Node) -> str:
    fill, stroke = _FILLS[mark.kind]
    ink = "#ffffff" if mark.kind == "end" else _INK
    opacity = ""
    if mark.record is not None and mark.record.failures:
        fill, stroke = "#fbe4e2", "#c2413a"
    elif mark.recorded and mark.record is None and mark.kind in _RUN:
        opacity = ' opacity="0.45"'
    x, y, w, h = mark.x, mark.y, mark.width, mark.height
    if mark.kind == "choice":
        cx, cy = x + w / 2, y + h / 2
        shape = (
            f'<path d="M{cx:.1f} {y:.1f} L{x + w:.1f} {cy:.1f} L{cx:.1f} {y + h:.1f} '
            f'L{x:.1f} {cy:.1f} Z" fill="{fill}" stroke="{stroke}" stroke-linejoin="round"/>'
        )
    else:
        radius = _RADIUS.get(mark.kind, h / 2)
        dash = ' stroke-dasharray="5 3"' if mark.kind == "tap" else ""
        shape = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}" '
            f'fill="{fill}" stroke="{stroke}"{dash}/>'
        )
    texts = [(mark.label, ink, 13, "600" if mark.kind in ("step", "tap", "ask") else "400")]
    if mark.detail:
        texts.append((mark.detail, _MUTED, 11, "400"))
    if mark.record is not None and mark.kind != "join":
        colour = "#c2413a" if mark.record.failures else "#3f7d5f"
        texts.append((str(mark.record), colour, 11, "400"))
    lines: list[str] = []
    total = sum(size + 3 for _, _, size, _ in texts) - 3
    at = y + (h - total) / 2
    for text, colour, size, weight in texts:
        at += size
        if text:
            lines.append(
                f'<text x="{x + w / 2:.1f}" y="{at - 1.5:.1f}" text-anchor="middle" '
                f'fill="{colour}" font-size="{size}" font-weight="{weight}">{escape(text)}</text>'
            )
        at += 3
    return f"<g{opacity}>{shape}{''.join(lines)}</g>"
