"""
Every status text of a Claude Code run, word for word.

Pure, and the only place where these texts are written. It knows nothing of when a status is shown
or cleared (``flowstate.blocks.claude_code.translator``).
"""

from __future__ import annotations

import math
from typing import Final

from flowstate.blocks.claude_code.json_value import mapping_of, text_of

STARTING: Final = "Starting Claude Code…"
"""Shown from the moment a run starts."""

COMPACTED: Final = "Claude Code agent compacted its context."
"""Shown when Claude Code has summarized a long conversation to free up space."""

LONGEST: Final = 120
"""How many characters a sub-agent's status, and a reason in a run's last status, may have."""


def retrying(attempt: int | None, attempts: int | None, delay_ms: float | None) -> str:
    """
    Claude Code tries a failed API call again; the delay is rounded up to whole seconds.

    >>> retrying(2, 5, 4200)
    'Claude Code is retrying a failed API call (attempt 2 of 5, in 5 s)…'
    >>> retrying(2, 5, None)
    'Claude Code is retrying a failed API call (attempt 2 of 5)…'
    """
    details: list[str] = []
    if attempt is not None:
        details.append(
            f"attempt {attempt}" if attempts is None else f"attempt {attempt} of {attempts}"
        )
    if delay_ms is not None and math.isfinite(delay_ms) and delay_ms > 0:
        details.append(f"in {math.ceil(delay_ms / 1000)} s")
    what = "Claude Code is retrying a failed API call"
    return f"{what} ({', '.join(details)})…" if details else f"{what}…"


def using(name: str, arguments: object) -> str:
    """
    A tool call runs: Bash's own description of it, else the tool's name.

    >>> using("Bash", {"command": "ls", "description": "List files"})
    'List files'
    >>> using("Read", {"file_path": "a.txt"})
    'Using Read…'
    """
    description = text_of(mapping_of(arguments).get("description")) if name == "Bash" else None
    if description is not None and (text := description.strip()):
        return text
    return f"Using {name}…"


def sub_agent(summary: str | None, description: str | None, last_tool: str | None) -> str | None:
    """
    A sub-agent works: its summary, else its description and the last tool it used.

    Returns:
        At most 120 characters; None when the sub-agent has neither, and shows no status.

    >>> sub_agent(None, "Refactor imports", "Edit")
    'Refactor imports (Edit)'
    """
    if summary and (text := summary.strip()):
        return text[:LONGEST]
    if description and (text := description.strip()):
        return (f"{text} ({last_tool})" if last_tool else text)[:LONGEST]
    return None


def completed(seconds: float) -> str:
    """
    A run has ended, and how long it took.

    >>> completed(323.6)
    'Claude Code agent run completed in 5 mins, 24 seconds.'
    """
    return f"Claude Code agent run completed in {duration(seconds)}."


def errored(reason: str) -> str:
    """
    A run has failed, and why: on one line, and at most 120 characters of it.

    >>> errored("Reached maximum number of turns (2)")
    'Claude Code agent run errored (Reached maximum number of turns (2)).'
    """
    why = " ".join(reason.split())[:LONGEST].rstrip(". ")
    return f"Claude Code agent run errored ({why or 'no reason given'})."


def duration(seconds: float) -> str:
    """
    A duration in words: rounded to the nearest second first, then put into units.

    From an hour on, hours and minutes only; under half a second, ``less than a second``.

    >>> [duration(s) for s in (0.4, 1, 60, 61, 3600, 3780)]
    ['less than a second', '1 second', '1 min', '1 min, 1 second', '1 hr', '1 hr, 3 mins']
    """
    # By hand, since round() takes halves to the even neighbour. A clock that went back, or isn't
    # one, counts as no time at all.
    whole = math.floor(seconds) if math.isfinite(seconds) else 0
    whole += 1 if math.isfinite(seconds) and seconds - whole >= 0.5 else 0
    if whole < 1:
        return "less than a second"
    minutes, rest = divmod(whole, 60)
    if minutes == 0:
        return _count(rest, "second")
    if minutes < 60:
        return _joined(_count(minutes, "min"), _count(rest, "second") if rest else "")
    hours, minutes = divmod(minutes, 60)
    return _joined(_count(hours, "hr"), _count(minutes, "min") if minutes else "")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _joined(first: str, second: str) -> str:
    return f"{first}, {second}" if second else first
