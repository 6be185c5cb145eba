"""
What to show of a run: its events in, lines out.

Pure: no terminal, width, colour or clock; times come from the items. One narration belongs to one
run, and the same events always give the same lines. Texts of the lines have passed through
``flowstate.cli.terminal_text``.

Invariants:

* a step that did nothing to tell of takes one line, any other a line at its begin and at its end;
* a streamed text becomes a line when it is whole; until then it is in ``streaming``;
* a line stands deeper than the step or container that it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never, final

from flowstate.cli.summary import call_headline, call_summary, result_lines
from flowstate.cli.terminal_text import one_line, printable
from flowstate.item.content import (
    BlockTrace,
    Component,
    Container,
    ErrorReport,
    Message,
    Reasoning,
    ResourceChange,
    RetryNote,
    RouterDecision,
    Source,
    StateChange,
    Status,
    Suspension,
    ToolOutput,
)
from flowstate.item.event import ItemEvent
from flowstate.item.item import Item

LineKind: TypeAlias = Literal[
    "begin", "done", "stopped", "failed", "message", "reasoning", "call", "result", "bad_result",
    "status", "fleeting", "group", "note", "error",
]  # fmt: skip
"""What a line is, for whoever picks marks and colours; ``fleeting`` is a status that will go."""

NAME_LIMIT = 60
STATUS_LIMIT = 160
DEEPEST = 8
"""Levels of indentation; what lies deeper is shown here."""

_TAIL = 2_000
"""Characters of a text in progress that ``streaming`` holds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing to show; its text may have line breaks."""

    kind: LineKind
    text: str
    aside: str = ""
    """Goes behind the text, less visible."""
    depth: int = 0
    at: float | None = None
    """Seconds since the first event; None where the time is the line's above."""


@final
class Narration:
    """The telling of one run."""

    def __init__(self) -> None:
        self.status: str | None = None
        """The request's status line as of now."""
        self._began: int | None = None
        self._now = 0
        self._statuses: dict[str, str] = {}
        self._depths: dict[str, int] = {}
        self._streams: dict[str, str] = {}
        self._steps: dict[str, str] = {}
        self._waiting: dict[str, Line] = {}
        self._called: set[str] = set()
        self._last_call: str | None = None

    @property
    def streaming(self) -> str:
        """The end of the text that is being written; empty when none is."""
        return printable(next(reversed(self._streams.values()), ""))

    @property
    def step(self) -> str | None:
        """The step that runs; the latest, if several do."""
        return next(reversed(self._steps.values()), None)

    def take(self, event: ItemEvent) -> list[Line]:
        """What is to be shown now that this has happened."""
        item = event.item
        if item is None:
            if (text := self._streams.get(event.item_id)) is not None:
                self._streams[event.item_id] = (text + event.text)[-_TAIL:]
            return []
        if self._began is None:
            self._began = item.created_at
        self._now = item.updated_at
        lines = self._of(item)
        if not lines:
            return []
        if any(line.kind == "call" for line in lines):
            self._last_call = item.id
        elif any(line.kind != "fleeting" for line in lines):
            self._last_call = None
        return [*self.flush(), *lines]

    def flush(self) -> list[Line]:
        """The beginnings of steps that were held back, for when nothing happens for a while."""
        lines = list(self._waiting.values())
        self._waiting.clear()
        return lines

    # --- one method a matter ----------------------------------------------------------------------

    def _of(self, item: Item) -> list[Line]:
        content = item.content
        match content:
            case BlockTrace():
                return self._trace(item, content)
            case Message() | Reasoning():
                return self._speech(item, content)
            case ToolOutput():
                return self._tool(item, content)
            case Status():
                return self._status(item, content)
            case Container():
                return self._group(item, content)
            case ErrorReport():
                text = f"{one_line(content.code, NAME_LIMIT)}: {printable(content.message)}"
                return self._once(item, self._line(item, "error", text))
            case _:
                return self._once(item, self._line(item, "note", _note(content)))

    def _trace(self, item: Item, trace: BlockTrace) -> list[Line]:
        name = one_line(trace.block, NAME_LIMIT)
        again = f"attempt {trace.attempt}" if trace.attempt > 1 else ""
        if not item.settled:
            self._steps[item.id] = name
            self._waiting[item.id] = self._line(item, "begin", name, again, step=True)
            return []
        self._steps.pop(item.id, None)
        self._waiting.pop(item.id, None)
        match item.status:
            case "failed":
                return [self._line(item, "failed", name, trace.error or "failed", step=True)]
            case "incomplete":
                return [self._line(item, "stopped", name, "stopped", step=True)]
            case _:
                took = "" if trace.duration is None else duration(trace.duration)
                aside = " · ".join(part for part in (again, took) if part)
                return [self._line(item, "done", name, aside, step=True)]

    def _speech(self, item: Item, content: Message | Reasoning) -> list[Line]:
        if not item.settled:
            self._streams[item.id] = content.text[-_TAIL:]
            return []
        self._streams.pop(item.id, None)
        text = printable(content.text).strip()
        if not text:
            return []
        if isinstance(content, Reasoning):
            return [self._line(item, "reasoning", text)]
        aside = "" if content.role == "assistant" else f"({content.role})"
        aside = aside if item.status == "completed" else f"{aside} (cut off)".strip()
        return [self._line(item, "message", text, aside)]

    def _tool(self, item: Item, call: ToolOutput) -> list[Line]:
        lines: list[Line] = []
        name = one_line(call.name, NAME_LIMIT)
        if item.id not in self._called and (item.settled or call.arguments is not None):
            self._called.add(item.id)
            lines.append(self._line(item, "call", name, call_summary(call.arguments)))
        elif not item.settled:
            return lines
        if item.settled:
            near = bool(lines) or self._last_call == item.id
            lines += self._answer(item, call, "" if near else call_headline(name, call.arguments))
            self._called.discard(item.id)
        return lines

    def _answer(self, item: Item, call: ToolOutput, of: str) -> list[Line]:
        """A call's result; ``of`` names the call where its line isn't the one above."""
        bad = call.is_error or item.status == "failed"
        lines = result_lines(call.output)
        if not lines and item.status == "incomplete":
            lines = ["no result"]
        if not lines:
            lines = ["failed"] if bad else []
        if of:
            lines = [f"{of}: {lines[0]}", *lines[1:]] if lines else [f"{of}: done"]
        if not lines:
            return []
        return [self._line(item, "bad_result" if bad else "result", "\n".join(lines))]

    def _status(self, item: Item, content: Status) -> list[Line]:
        text = one_line(content.text, STATUS_LIMIT)
        if content.kept:
            return self._once(item, self._line(item, "status", text))
        known = self._statuses.pop(item.id, None) is not None
        if not item.settled:
            self._statuses[item.id] = text
        self.status = next(reversed(self._statuses.values()), None)
        return [] if item.settled or known else [self._line(item, "fleeting", text)]

    def _group(self, item: Item, content: Container) -> list[Line]:
        if item.settled:
            if self._depths.pop(item.id, None) is not None:
                return []
            # It was never open here: an empty group, or the reader came late.
            return [self._line(item, "group", one_line(content.label, NAME_LIMIT))]
        if item.id in self._depths:
            return []
        line = self._line(item, "group", one_line(content.label, NAME_LIMIT))
        self._depths[item.id] = line.depth
        return [line]

    def _once(self, item: Item, line: Line) -> list[Line]:
        return [line] if item.settled else []

    def _line(
        self, item: Item, kind: LineKind, text: str, aside: str = "", *, step: bool = False
    ) -> Line:
        origin = item.provenance
        parent = None if origin.parent is None else self._depths.get(origin.parent)
        # The composition as a whole has no line, so the steps right below it stand at the edge.
        depth = max(0, origin.path.count("/") - 1 if step else origin.path.count("/"))
        if parent is not None:
            depth = parent + 1
        return Line(
            kind=kind,
            text=text,
            aside=aside,
            depth=min(depth, DEEPEST),
            at=(self._now - (self._began or 0)) / 1000,
        )


def duration(seconds: float) -> str:
    """
    A duration as it fits on a line.

    >>> [duration(s) for s in (0.0004, 0.25, 3.21, 75.4, 3700)]
    ['0 ms', '250 ms', '3.2 s', '1 min 15 s', '1 h 1 min']
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _note(
    content: Component
    | Source
    | StateChange
    | ResourceChange
    | Suspension
    | RetryNote
    | RouterDecision,
) -> str:
    match content:
        case Component():
            text = f"component {content.name}"
        case Source():
            text = f"source: {content.title}" + (f" ({content.url})" if content.url else "")
        case StateChange():
            text = f"{content.scope} state {content.cell} is at version {content.version}"
        case ResourceChange():
            done = "deleted" if content.deleted else f"is at version {content.version}"
            text = f"{content.collection} {content.key} {done}"
        case Suspension():
            text = f"waits for an answer: {content.name}"
        case RetryNote():
            text = f"attempt {content.attempt} of {content.of} after {content.error}"
        case RouterDecision():
            text = f"{content.router} takes {content.route}"
        case _:
            assert_never(content)
    return one_line(text, STATUS_LIMIT)
