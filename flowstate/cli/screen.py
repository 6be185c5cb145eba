"""
One run told to a person: its heading, its live view, its end.
"""

from __future__ import annotations

import json
import sys
import time
from typing import final

from rich.console import Console
from rich.style import Style
from rich.text import Text

from flowstate.cli.live_view import LiveView
from flowstate.cli.narration import duration
from flowstate.cli.ndjson import jsonable
from flowstate.cli.show import OutputClosed
from flowstate.cli.terminal_text import one_line, printable, traceback_of
from flowstate.errors import FlowError
from flowstate.request.run import Run

_DIM = Style(dim=True)
_GOOD = Style(color="green", bold=True)
_BAD = Style(color="red", bold=True)


@final
class Screen:
    """A ``Show`` on a console."""

    def __init__(self, console: Console) -> None:
        self._view = LiveView(console)
        self._began = time.monotonic()

    async def follow(self, run: Run[object]) -> None:
        """The heading, and the run as it happens."""
        self._began = time.monotonic()
        session = one_line(run.identity.session_id, 60)
        self._view.say(
            Text.assemble(
                (one_line(run.action, 60), Style(bold=True)),
                (f"  session {session} · request {run.id}", _DIM),
            )
        )
        await self._view.follow(run)

    def completed(self, run: Run[object], output: object) -> None:
        """A line, and the output as JSON; a text as it is."""
        took = duration(time.monotonic() - self._began)
        self._view.say(Text.assemble(("✓ completed", _GOOD), (f" in {took}", _DIM)))
        if output is not None:
            self._view.say()
            for line in output_text(output).split("\n"):
                self._view.say(line)

    def ended(self, run: Run[object], error: Exception) -> None:
        """A line, and the traceback of an error that is the flow's own."""
        took = duration(time.monotonic() - self._began)
        self._view.say(Text.assemble((f"✗ {run.status}", _BAD), (f" after {took}", _DIM)))
        if not isinstance(error, FlowError):
            sys.stderr.write(traceback_of(error))
        elif run.status != "failed":
            self._view.say(printable(str(error)))

    def refused(self, error: Exception, details: str = "") -> None:
        """Goes to the standard error: there is no run to show."""
        if details:
            sys.stderr.write(printable(details) + "\n\n")
        sys.stderr.write(f"flowstate: {printable(str(error) or type(error).__name__)}\n")

    def say(self, text: str) -> None:
        """A line among those of the run."""
        try:
            self._view.say(Text(text, style=Style(color="yellow")))
        except OutputClosed:
            # The run's own lines meet the same and end the command.
            return


def output_text(output: object) -> str:
    """An output for people: a text as it is, anything else as indented JSON."""
    if isinstance(output, str):
        return printable(output)
    return printable(json.dumps(jsonable(output), indent=2, ensure_ascii=False))
