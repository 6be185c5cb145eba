"""Every status text of a Claude Code run, word for word."""

from __future__ import annotations

import math

import pytest

from flowstate.blocks.claude_code import wording


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (0.49, "less than a second"),
        (0.49999999999999994, "less than a second"),
        (0.5, "1 second"),
        (1, "1 second"),
        (1.49, "1 second"),
        (1.5, "2 seconds"),
        (2.5, "3 seconds"),
        (59, "59 seconds"),
        (59.49, "59 seconds"),
        (59.5, "1 min"),
        (60, "1 min"),
        (60.6, "1 min, 1 second"),
        (61, "1 min, 1 second"),
        (62, "1 min, 2 seconds"),
        (119.5, "2 mins"),
        (120, "2 mins"),
        (121, "2 mins, 1 second"),
        (324, "5 mins, 24 seconds"),
        (3599, "59 mins, 59 seconds"),
        (3599.5, "1 hr"),
        (3600, "1 hr"),
        (3659, "1 hr"),
        (3660, "1 hr, 1 min"),
        (3780, "1 hr, 3 mins"),
        (3839.9, "1 hr, 4 mins"),
        (7200, "2 hrs"),
        (7260, "2 hrs, 1 min"),
        (86399, "23 hrs, 59 mins"),
        (360000, "100 hrs"),
        (-1, "less than a second"),
        (-0.2, "less than a second"),
        (math.nan, "less than a second"),
        (math.inf, "less than a second"),
    ],
)
def test_a_duration_is_rounded_to_seconds_before_its_units_are_chosen(
    seconds: float, words: str
) -> None:
    """59.5 s is a minute and 3599.5 s an hour; from an hour on, seconds are left out."""
    assert wording.duration(seconds) == words
    assert wording.completed(seconds) == f"Claude Code agent run completed in {words}."


@pytest.mark.parametrize(
    ("attempt", "attempts", "delay_ms", "text"),
    [
        (2, 5, 5000, "(attempt 2 of 5, in 5 s)…"),
        (2, 5, 4001, "(attempt 2 of 5, in 5 s)…"),
        (1, 10, 1, "(attempt 1 of 10, in 1 s)…"),
        (1, 10, 561, "(attempt 1 of 10, in 1 s)…"),
        (1, 10, 1000, "(attempt 1 of 10, in 1 s)…"),
        (1, 10, 1000.5, "(attempt 1 of 10, in 2 s)…"),
        (3, 10, 64_000, "(attempt 3 of 10, in 64 s)…"),
        (1, 10, None, "(attempt 1 of 10)…"),
        (1, 10, 0, "(attempt 1 of 10)…"),
        (1, 10, math.nan, "(attempt 1 of 10)…"),
        (4, None, None, "(attempt 4)…"),
        (None, None, 700, "(in 1 s)…"),
    ],
)
def test_a_retry_names_its_attempt_and_its_delay_in_whole_seconds(
    attempt: int | None, attempts: int | None, delay_ms: float | None, text: str
) -> None:
    """The delay is rounded up, and left out where none is reported."""
    whole = f"Claude Code is retrying a failed API call {text}"
    assert wording.retrying(attempt, attempts, delay_ms) == whole


def test_a_retry_that_says_nothing_of_itself_still_has_a_text() -> None:
    """No attempt, no limit, no delay: no empty brackets either."""
    text = "Claude Code is retrying a failed API call…"
    assert wording.retrying(None, None, None) == text
    assert wording.retrying(None, 5, None) == text


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("Bash", {"command": "ls", "description": "List files"}, "List files"),
        ("Bash", {"command": "ls", "description": "  List files\n"}, "List files"),
        ("Bash", {"command": "ls"}, "Using Bash…"),
        ("Bash", {"command": "ls", "description": ""}, "Using Bash…"),
        ("Bash", {"command": "ls", "description": " \n"}, "Using Bash…"),
        ("Bash", {"command": "ls", "description": 7}, "Using Bash…"),
        ("Bash", None, "Using Bash…"),
        ("Bash", ["description"], "Using Bash…"),
        ("Read", {"file_path": "a", "description": "not shown"}, "Using Read…"),
        ("mcp__tracker__look", {}, "Using mcp__tracker__look…"),
    ],
)
def test_a_tool_shows_bashs_description_or_its_name(
    name: str, arguments: object, text: str
) -> None:
    """Only Bash describes its calls; a blank description is none."""
    assert wording.using(name, arguments) == text


LONG = "x" * 200


@pytest.mark.parametrize(
    ("summary", "description", "last_tool", "text"),
    [
        ("Half of it done", "Refactor imports", "Edit", "Half of it done"),
        (None, "Refactor imports", "Edit", "Refactor imports (Edit)"),
        ("", "Refactor imports", "Edit", "Refactor imports (Edit)"),
        (" ", "Refactor imports", None, "Refactor imports"),
        (None, "Refactor imports", "", "Refactor imports"),
        (None, None, "Edit", None),
        (None, "", "Edit", None),
        ("", " \n", None, None),
        (LONG, None, None, "x" * 120),
        ("x" * 120, None, None, "x" * 120),
        (None, "x" * 119, "Edit", "x" * 119 + " "),
        (None, LONG, "Edit", "x" * 120),
    ],
)
def test_a_sub_agent_shows_its_summary_or_its_description_and_last_tool(
    summary: str | None, description: str | None, last_tool: str | None, text: str | None
) -> None:
    """Cut to 120 characters; with neither a summary nor a description there is no status."""
    assert wording.sub_agent(summary, description, last_tool) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("error_max_turns", "Claude Code agent run errored (error_max_turns)."),
        ("It broke.", "Claude Code agent run errored (It broke)."),
        ("a\n  b\tc", "Claude Code agent run errored (a b c)."),
        ("", "Claude Code agent run errored (no reason given)."),
        (LONG, f"Claude Code agent run errored ({'x' * 120})."),
    ],
)
def test_a_failed_run_says_why_on_one_line(reason: str, text: str) -> None:
    """The whole reason is in the error item; the status has what fits on a line."""
    assert wording.errored(reason) == text


def test_the_fixed_texts() -> None:
    """The texts of a start and of a compaction, with their punctuation."""
    assert wording.STARTING == "Starting Claude Code…"
    assert wording.COMPACTED == "Claude Code agent compacted its context."
