"""
A run on the screen, as it happens.

On a terminal the lines of what has happened scroll by, and below them a few lines show what is
going on: the text being written, the status and the time. Anywhere else (a pipe, a file, a dumb
terminal) there are only lines, without a control code. What to show is decided in
``flowstate.cli.narration``; here it is given marks, colours and widths.

Any number of runs may be followed at once; each line of one that has a label begins with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TextIO, final

import anyio
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.style import Style
from rich.text import Text

from flowstate.cli.narration import Line, LineKind, Narration, duration
from flowstate.cli.show import OutputClosed
from flowstate.item.event import ItemEvent
from flowstate.request.run import Run

_LOOK: dict[LineKind, tuple[str, Style]] = {
    "begin": ("▸", Style(bold=True)),
    "done": ("✓", Style(color="green")),
    "stopped": ("■", Style(color="yellow")),
    "failed": ("✗", Style(color="red", bold=True)),
    "message": ("●", Style()),
    "reasoning": ("∴", Style(dim=True, italic=True)),
    "call": ("→", Style(color="cyan", bold=True)),
    "result": ("└", Style(dim=True)),
    "bad_result": ("└", Style(color="red")),
    "status": ("·", Style(color="bright_black")),
    "fleeting": ("…", Style(color="bright_black")),
    "group": ("┬", Style(color="magenta")),
    "note": ("·", Style(color="bright_black")),
    "error": ("✗", Style(color="red")),
}
_MARKED_ONLY: frozenset[LineKind] = frozenset({"done"})
"""Kinds whose colour is the mark's alone."""
_BELONGS_ABOVE: frozenset[LineKind] = frozenset({"result", "bad_result"})
"""Kinds that stand under the line above, a step deeper."""

_ONE_LINE: frozenset[LineKind] = frozenset({"call", "result", "bad_result", "fleeting"})
"""Kinds whose lines are cut at the edge, for they are summaries already."""

_DIM = Style(dim=True)
LABELS = tuple(Style(color=name, bold=True) for name in ("blue", "magenta", "yellow", "green"))

INDENT = 2
QUIET = 0.1
"""Seconds without news after which the screen is drawn again, so that the time goes on."""
HELD_BACK = 0.4
"""Seconds without news after which a step is told to have begun."""
STREAM_LINES = 4
"""Lines of a text in progress."""


def open_console(stream: TextIO) -> Console:
    """A console on this stream that reads no markup, and writes control codes to terminals only."""
    terminal = stream.isatty()
    console = Console(
        file=stream,
        force_terminal=terminal,
        force_interactive=terminal,
        markup=False,
        emoji=False,
        highlight=False,
        color_system="auto" if terminal else None,
    )
    return console


@final
@dataclass(slots=True, eq=False)
class _Followed:
    """One run under way."""

    label: str
    narration: Narration
    began: float
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))


@final
class LiveView:
    """Shows runs on one console. For one task a run; all on one event loop."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            console: where to; see ``open_console``.
            clock: seconds, for the elapsed time.
        """
        self.console = console
        self._clock = clock
        self._animated = console.is_terminal and not console.is_dumb_terminal
        self._followed: list[_Followed] = []
        self._styles: dict[str, Style] = {}
        self._live: Live | None = None

    async def follow(self, run: Run[object], label: str = "") -> None:
        """
        Show a run until all of it is shown.

        Args:
            run: the run; it goes on if this is cancelled.
            label: begins each of its lines, to tell it from another.

        Raises:
            OutputClosed: nobody reads what is shown any more.
        """
        followed = _Followed(label, Narration(), self._clock())
        self._begin(followed)
        try:
            events = run.events(visibility="trace")
            quiet = 0.0
            while True:
                heard: list[ItemEvent] | None = None
                # A read that is cancelled loses nothing.
                with anyio.move_on_after(QUIET):
                    heard = await events.take()
                if heard:
                    quiet = 0.0
                    for event in heard:
                        self._show(followed, followed.narration.take(event))
                elif heard is None:
                    quiet += QUIET
                    if quiet >= HELD_BACK:
                        self._show(followed, followed.narration.flush())
                else:
                    self._show(followed, followed.narration.flush())
                    return
                self._refresh()
        finally:
            self._end(followed)

    def say(
        self, text: str | Text = "", *, label: str = "", heading: str = "", whole: bool = False
    ) -> None:
        """
        A line between those of the runs.

        Args:
            text: shown as it is: it is our own, or has passed through ``printable``.
            label: that of the run it belongs to.
            heading: stands before the text, less visible; what wraps goes beside it.
            whole: never broken by us, so that a path can be copied.
        """
        line = Text(text) if isinstance(text, str) else text
        before = Text.assemble(self._gutter(label), (heading, _DIM))
        self._print(before, line, "whole" if whole else "wrap")

    # --- drawing ----------------------------------------------------------------------------------

    def _show(self, followed: _Followed, lines: list[Line]) -> None:
        for line in lines:
            if line.kind == "fleeting" and self._animated:
                continue
            before, body = self._drawn(followed, line)
            self._print(before, body, "cut" if line.kind in _ONE_LINE else "wrap")

    def _drawn(self, followed: _Followed, line: Line) -> tuple[Text, Text]:
        """A line as what stands before it and the text that may wrap."""
        mark, style = _LOOK[line.kind]
        depth = line.depth + (line.kind in _BELONGS_ABOVE)
        at = "" if line.at is None or line.kind in _BELONGS_ABOVE else _clock_text(line.at)
        before = Text.assemble(
            self._gutter(followed.label),
            (f"{at:>7} ", _DIM),
            " " * (INDENT * depth),
            (f"{mark} ", style),
        )
        body = Text()
        body.append(line.text, style=Style() if line.kind in _MARKED_ONLY else style)
        if line.aside:
            body.append("  " if line.text else "")
            body.append(line.aside, style=Style() if line.kind == "call" else _DIM)
        return before, body

    def _gutter(self, label: str) -> Text:
        if not label:
            return Text()
        # A label keeps its colour, also before and after its run is followed.
        style = self._styles.setdefault(label, LABELS[len(self._styles) % len(LABELS)])
        return Text(f"{label} │ ", style=style)

    def _print(self, before: Text, body: Text, fit: Literal["wrap", "cut", "whole"]) -> None:
        """A text with its continuation lines under its beginning."""
        rest = self._continued(before)
        try:
            for number, line in enumerate(self._fitted(before, body, fit)):
                line.rstrip()
                shown = Text.assemble(before if number == 0 else rest, line)
                shown.rstrip()
                self.console.print(shown, soft_wrap=True)
        except (BrokenPipeError, SystemExit) as error:
            # rich turns the former into the latter.
            raise OutputClosed from error

    def _fitted(self, before: Text, body: Text, fit: Literal["wrap", "cut", "whole"]) -> list[Text]:
        if fit == "wrap" and self.console.is_terminal:
            width = max(20, self.console.width - before.cell_len)
            return list(body.wrap(self.console, width, overflow="fold")) or [Text()]
        # Without a terminal there is no width to go by: a line of text is a line of output.
        lines = list(body.split("\n", allow_blank=True)) or [Text()]
        if fit == "cut" and self.console.is_terminal:
            for line in lines:
                line.truncate(max(20, self.console.width - before.cell_len), overflow="ellipsis")
        return lines

    def _continued(self, before: Text) -> Text:
        """As wide as what stands before the first line; the label stays."""
        label, bar, _ = before.plain.partition("│ ")
        if not bar:
            return Text(" " * before.cell_len)
        kept = before[: len(label) + len(bar)]
        return Text.assemble(kept, " " * (before.cell_len - kept.cell_len))

    # --- the region that changes ------------------------------------------------------------------

    def _begin(self, followed: _Followed) -> None:
        self._followed.append(followed)
        if self._animated and self._live is None:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._refresh()

    def _end(self, followed: _Followed) -> None:
        self._followed.remove(followed)
        live = self._live
        if live is None:
            return
        try:
            if self._followed:
                self._refresh()
            else:
                self._live = None
                live.update(Text(), refresh=False)
                live.stop()
        except (BrokenPipeError, SystemExit) as error:
            raise OutputClosed from error

    def _refresh(self) -> None:
        if self._live is None:
            return
        try:
            self._live.update(self._region(), refresh=True)
        except (BrokenPipeError, SystemExit) as error:
            raise OutputClosed from error

    def _region(self) -> Text:
        region = Text(no_wrap=True, overflow="ellipsis")
        width = self.console.width
        for followed in self._followed:
            gutter = self._gutter(followed.label)
            narration = followed.narration
            if writing := narration.streaming.strip():
                room = max(20, width - gutter.cell_len - 10)
                wrapped = Text(writing).wrap(self.console, room, overflow="fold")
                for line in wrapped[-STREAM_LINES:]:
                    line.stylize(_DIM)
                    region.append_text(gutter)
                    region.append(" " * 10)
                    region.append_text(line)
                    region.append("\n")
            now = self._clock()
            region.append_text(gutter)
            region.append(f"{_clock_text(now - followed.began):>7} ", style=_DIM)
            frame = followed.spinner.render(now)
            region.append_text(frame if isinstance(frame, Text) else Text("… "))
            region.append(" ")
            region.append(narration.status or narration.step or "Starting…", style="cyan")
            if narration.status and narration.step:
                region.append(f"  {narration.step}", style=_DIM)
            region.append("\n")
        region.rstrip()
        return region


def _clock_text(seconds: float) -> str:
    """Elapsed time, as narrow as it can be read."""
    return f"{seconds:.1f}s" if seconds < 99.95 else duration(seconds).replace(" ", "")
