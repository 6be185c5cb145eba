"""
A run as newline-delimited JSON: a line an event, for programs.

Lines are ASCII, so that any text survives any pipe, and each is flushed when it is written. Names
are the wire's camelCase. The lines by ``type``:

* ``event``: ``requestId``, ``sequence``, ``kind``, ``itemId``, and the ``item`` or, for a delta,
  the ``text``; ``requestId:sequence`` is the event's cursor;
* ``error``: ``code``, ``message``; and the ``requestId`` where there is one;
* ``end``: ``requestId``, ``status``, and the ``output`` if it completed. The last line of a run.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, TextIO, cast, final

from pydantic_core import to_jsonable_python

from flowstate.cli.show import OutputClosed
from flowstate.cli.terminal_text import printable, traceback_of
from flowstate.errors import FlowError
from flowstate.item.event import ItemEvent
from flowstate.item.wire import item_json
from flowstate.request.run import Run

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


@final
class JsonLines:
    """Writes the lines to one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    async def follow(self, run: Run[object]) -> None:
        """
        Write every event of a run, traces included.

        Raises:
            OutputClosed: nobody reads any more.
        """
        events = run.events(visibility="trace")
        while heard := await events.take():
            for event in heard:
                self._put(event_line(run.id, event))

    def completed(self, run: Run[object], output: object) -> None:
        """Write the end of a run, with its output."""
        self._write(
            {"type": "end", "requestId": run.id, "status": run.status, "output": jsonable(output)}
        )

    def ended(self, run: Run[object], error: Exception) -> None:
        """Write the error and the end of a run; the traceback goes to the standard error."""
        if not isinstance(error, FlowError):
            sys.stderr.write(traceback_of(error))
        self._write({**_error_line(error), "requestId": run.id})
        self._write({"type": "end", "requestId": run.id, "status": run.status})

    def refused(self, error: Exception, details: str = "") -> None:
        """Write why nothing was run; the details go to the standard error."""
        if details:
            sys.stderr.write(printable(details) + "\n")
        self._write(_error_line(error))

    def say(self, text: str) -> None:
        """Goes to the standard error."""
        sys.stderr.write(text + "\n")

    def _write(self, line: dict[str, Any]) -> None:
        self._put(_encode(line))

    def _put(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error


def _error_line(error: Exception) -> dict[str, Any]:
    return {
        "type": "error",
        "code": type(error).__name__,
        "message": str(error) or type(error).__name__,
    }


def event_line(request_id: str, event: ItemEvent) -> str:
    """An event as the line that is written of it, without its end."""
    line = _encode(
        {
            "type": "event",
            "requestId": request_id,
            "sequence": event.sequence,
            "kind": event.kind,
            "itemId": event.item_id,
        }
    )
    if event.item is None:
        return f'{line[:-1]},"text":{_encode(event.text)}}}'
    return f'{line[:-1]},"item":{item_json(event.item, fallback=repr)}}}'


def jsonable(value: object) -> Any:
    """
    Any value as JSON: models by their aliases, what JSON has no word for as text.

    >>> jsonable({"share": float("nan"), "ids": (1, 2)})
    {'share': 'nan', 'ids': [1, 2]}
    """
    return _finite(to_jsonable_python(value, by_alias=True, fallback=repr))


def _finite(value: Any) -> Any:
    """Infinities and NaN as text: Python would write them as words that are no JSON."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: _finite(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_finite(each) for each in cast("list[object]", value)]
        case _:
            return value
