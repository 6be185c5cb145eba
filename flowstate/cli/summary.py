"""
A tool call's arguments and result in a few lines.

Works from the shape of the values alone and knows no agent's tools. Nothing here is cut out of
the item: the whole of it is in the store and in ``--json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from flowstate.cli.terminal_text import one_line, printable

CALL_LIMIT = 110
"""Characters of a call's summary."""

RESULT_LINE = 100
"""Characters of one line of a result."""

HEAD, TAIL = 2, 4
"""Lines of a result: a command tells what it is about first, and how it went last."""

_TELLING = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "subject",
    "description",
    "prompt",
    "name",
)
"""Arguments that say by themselves what a call does, the most telling first."""

_SAID = frozenset({"description"})
"""What stands beside a command and is its status line already."""

_DIGEST = re.compile(r"\b(1[0-9a-f]{6})[0-9a-f]{58}\b")


def call_summary(arguments: object) -> str:
    """
    What a call is about, on one line; empty where there is nothing to tell.

    >>> call_summary({"file_path": "a.py", "content": "x = 1\\ny = 2\\n"})
    'a.py · content: 2 lines'
    >>> call_summary({"limit": 3, "query": "cats"})
    'cats · limit: 3'
    """
    if not isinstance(arguments, Mapping):
        return "" if arguments is None else one_line(shortened(_as_text(arguments)), CALL_LIMIT)
    given = cast("Mapping[str, object]", arguments)
    first = _headline(given)
    parts = [] if first is None else [str(given[first])]
    parts.extend(
        f"{name}: {_measure(value)}"
        for name, value in given.items()
        # An option that is off, and what a command's status line says already, tell nothing.
        if name != first
        and value not in (None, False)
        and not (first == "command" and name in _SAID)
    )
    return one_line(shortened(" · ".join(parts)), CALL_LIMIT)


def call_headline(name: str, arguments: object) -> str:
    """
    A call's name and its most telling argument, to name it by.

    >>> call_headline("Edit", {"file_path": "a.py", "old_string": "x"})
    'Edit a.py'
    """
    if not isinstance(arguments, Mapping):
        return name
    given = cast("Mapping[str, object]", arguments)
    first = _headline(given)
    return name if first is None else f"{name} {one_line(shortened(str(given[first])), 40)}"


def _headline(arguments: Mapping[str, object]) -> str | None:
    return next((name for name in _TELLING if isinstance(arguments.get(name), str)), None)


def result_lines(output: object) -> list[str]:
    """
    A result's first and last lines; one that was left out is counted.

    >>> result_lines("1\\n2\\n3\\n4\\n5\\n6\\n7\\n8")
    ['1', '2', '… 2 more lines', '5', '6', '7', '8']
    """
    text = shortened(printable(_as_text(output)))
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    left_out = len(lines) - HEAD - TAIL
    if left_out > 1:
        lines = [*lines[:HEAD], f"… {left_out} more lines", *lines[-TAIL:]]
    return [cut(line) for line in lines]


def cut(line: str) -> str:
    """A line of at most RESULT_LINE characters, its indentation kept."""
    return line if len(line) <= RESULT_LINE else line[: RESULT_LINE - 1] + "…"


def shortened(text: str) -> str:
    """
    The text with the digests that name checkouts cut to their beginning: two of them fill a line.

    >>> shortened("/root/0/1" + "ab" * 32 + "/a.py")
    '/root/0/1ababab…/a.py'
    """
    return _DIGEST.sub(r"\1…", text)


def _measure(value: object) -> str:
    """A further argument: itself if it is short, else its size."""
    if isinstance(value, str):
        lines = value.count("\n") + (not value.endswith("\n"))
        if lines > 1 or value.endswith("\n"):
            return f"{lines} line" if lines == 1 else f"{lines} lines"
        return one_line(value, 40)
    if isinstance(value, list | tuple):
        size = len(cast("list[object]", value))
        return f"{size} entry" if size == 1 else f"{size} entries"
    return one_line(_as_text(value), 40)


def _as_text(value: object) -> str:
    """Text as it is, a list of text blocks joined, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        blocks = cast("list[object]", value)
        texts = [_block_text(block) for block in blocks]
        if blocks and all(text is not None for text in texts):
            return "\n".join(text for text in texts if text is not None)
    return json.dumps(value, ensure_ascii=False, default=repr)


def _block_text(block: object) -> str | None:
    if not isinstance(block, Mapping):
        return None
    fields = cast("Mapping[str, object]", block)
    text, kind = fields.get("text"), fields.get("type")
    if kind == "text" and isinstance(text, str):
        return text
    return f"({kind})" if isinstance(kind, str) else None
