"""What shows on the status line of a Claude Code run, and when it is cleared."""

from __future__ import annotations

import pytest

from flowstate.blocks.claude_code.translator import Translator
from flowstate.harness.effect import ShowStatus
from tests.blocks.claude_code import agent_recordings as agents
from tests.blocks.claude_code import recordings, wire
from tests.blocks.claude_code.stage import Clock, after, play
from tests.blocks.claude_code.wire import Wire

COMPLETED = "Claude Code agent run completed in 5 seconds."


def test_the_start_shows_until_the_first_output() -> None:
    """From the moment the run starts; no repeated init or request clears it."""
    translator = Translator(now=Clock())
    assert translator.started() == [ShowStatus("Starting Claude Code…")]
    _, stage = after(wire.init(), wire.requesting(), wire.state("running"), wire.start("m"))
    assert stage.lines == ["Starting Claude Code…"]


NOTICES = [
    pytest.param([], "Starting Claude Code…", id="start"),
    pytest.param(
        [wire.retry(2, 5, 4600, 529, "overloaded")],
        "Claude Code is retrying a failed API call (attempt 2 of 5, in 5 s)…",
        id="retry",
    ),
    pytest.param(
        [wire.system("compact_boundary")],
        "Claude Code agent compacted its context.",
        id="compaction",
    ),
]


@pytest.mark.parametrize(("notice", "text"), NOTICES)
@pytest.mark.parametrize(
    "output",
    [
        wire.said("m", wire.text("Hello")),
        wire.said("m", wire.thinking()),
        wire.said("m", wire.text("Hello"), parent="call"),
        wire.piece(0, "H"),
        wire.thought(0, "H"),
        wire.argument(0, "{"),
        wire.answer("call", "x"),
        wire.result("x", 1, 1, 0.0),
    ],
    ids=["message", "withheld", "sub-agent", "text", "thinking", "arguments", "tool", "result"],
)
def test_output_clears_the_notices(notice: list[Wire], text: str, output: Wire) -> None:
    """An assistant message, a streamed token, a tool result or the result."""
    _, stage = after(notice)
    assert stage.line == text
    _, stage = after(notice, output)
    assert stage.line is None


@pytest.mark.parametrize(("notice", "text"), NOTICES)
@pytest.mark.parametrize(
    "silence",
    [
        wire.init(),
        wire.requesting(),
        wire.state("running"),
        wire.state("requires_action"),
        wire.system("status", status=None, compact_result="success"),
        wire.note("This session is being continued […]"),
        wire.note([wire.text("[Request interrupted by user]")]),
        wire.synthetic("m", "API Error", "server_error"),
        wire.said("m", wire.text("No response requested."), model="<synthetic>"),
        wire.start("m"),
        wire.opened(0, wire.text()),
        wire.signed(0),
        wire.counted(5, "end_turn"),
        wire.done(),
        wire.limit(status="allowed", rateLimitType="five_hour"),
        wire.tasks(),
        wire.task_started("t", "other", "A command", task_type="local_bash"),
    ],
    ids=lambda written: written.get("subtype") or written["type"],
)
def test_nothing_else_clears_the_notices(notice: list[Wire], text: str, silence: Wire) -> None:
    """Not a repeated init, not the binary's own words, not a message that only begins."""
    _, stage = after(notice, silence)
    assert stage.line == text


def test_another_status_replaces_a_notice_at_once() -> None:
    """A tool's, without an empty line between; or another notice."""
    _, stage = after(wire.said("m", wire.tool("call", "Read")))
    assert stage.lines == ["Starting Claude Code…", "Using Read…"]
    _, stage = after(wire.retry(1, 10, 592, 529, "x"), wire.system("compact_boundary"))
    assert stage.lines == [
        "Starting Claude Code…",
        "Claude Code is retrying a failed API call (attempt 1 of 10, in 1 s)…",
        "Claude Code agent compacted its context.",
    ]


@pytest.mark.parametrize(
    ("recording", "lines"),
    [
        (
            recordings.TOOLS,
            [None, "Using Read…", None, "Show a", "Using Bash…", None, "Using Write…", None],
        ),
        (
            recordings.RETRY,
            [
                "Claude Code is retrying a failed API call (attempt 1 of 10, in 1 s)…",
                "Claude Code is retrying a failed API call (attempt 2 of 10, in 2 s)…",
                None,
            ],
        ),
        (recordings.COMPACTION, [None, "Claude Code agent compacted its context.", None]),
        (
            agents.FOREGROUND,
            [
                None,
                "Count lines",
                "Count lines (Bash)",
                "Sub echo",
                "Count lines (Bash)",
                None,
            ],
        ),
        (
            agents.TWO_AGENTS,
            [
                None,
                "Left half",
                "Right half",
                "Echo a",
                "Left half (Bash)",
                "Using Read…",
                "Right half (Read)",
                "Echo b",
                "Right half (Bash)",
                None,
            ],
        ),
    ],
    ids=["tools", "retry", "compaction", "foreground", "two-agents"],
)
def test_the_line_through_a_whole_run(recording: list[Wire], lines: list[str | None]) -> None:
    """What a reader sees on the status line, from the start to its end."""
    _, stage = play(recording)
    assert stage.lines == ["Starting Claude Code…", *lines]
    assert stage.line is None


def test_the_line_clears_when_the_last_open_tool_ends() -> None:
    """Of two open tools, the one that is left shows."""
    calls = wire.message("m", wire.tool("a", "Read"), wire.tool("b", "Edit"))
    _, stage = after(calls, wire.answer("b", "x"))
    assert stage.line == "Using Read…"
    _, stage = after(calls, wire.answer("a", "x"))
    assert stage.line == "Using Edit…"
    _, stage = after(calls, wire.answer("a", "x"), wire.answer("b", "x"))
    assert stage.line is None
    assert stage.lines == ["Starting Claude Code…", None, "Using Read…", "Using Edit…", None]


def test_a_sub_agents_summary_goes_before_its_description() -> None:
    """Cut to 120 characters; the last tool it used is remembered."""
    start = wire.task_started("t", "call", "Refactor imports")
    _, stage = after(start, wire.task_progress("t", "call", "Editing x", "Edit"))
    assert stage.line == "Refactor imports (Edit)"
    progress = {**wire.task_progress("t", "call", "Editing x", ""), "summary": "y" * 130}
    _, stage = after(start, progress)
    assert stage.line == "y" * 120
    _, stage = after(
        start,
        wire.task_progress("t", "call", "x", "Edit"),
        wire.task_progress("t", "call", "x", ""),
    )
    assert stage.line == "Refactor imports (Edit)"


def test_a_sub_agent_without_summary_and_description_shows_no_status() -> None:
    """Whatever tools it uses."""
    _, stage = after(
        wire.said("m", wire.tool("call", "Agent")),
        wire.task_started("t", "call", ""),
        wire.task_progress("t", "call", "Editing x", "Edit"),
    )
    assert stage.line is None


@pytest.mark.parametrize(
    "end",
    [
        wire.task_notification("t", "call", "completed", "done"),
        wire.task_updated("t", "failed"),
        wire.task_updated("t", "killed"),
        wire.task_notification("t", "call", "stopped", "Refactor"),
    ],
    ids=["completed", "failed", "killed", "stopped"],
)
def test_an_ended_sub_agent_leaves_the_line(end: Wire) -> None:
    """With the tools that were open in it; a progress that comes late doesn't bring it back."""
    _, stage = after(
        wire.task_started("t", "call", "Refactor"),
        wire.said("m", wire.tool("inner", "Bash", description="Long work"), parent="call"),
        end,
        wire.task_progress("t", "call", "x", "Bash"),
    )
    assert stage.line is None


def test_one_sub_agents_end_leaves_the_other_on_the_line() -> None:
    """The line goes back to the one that still works."""
    _, stage = after(
        wire.task_started("t", "a", "Left half"),
        wire.task_started("u", "b", "Right half"),
        wire.task_notification("u", "b", "completed", "done"),
    )
    assert stage.line == "Left half"


def test_a_new_call_shows_though_its_text_is_the_same() -> None:
    """Another step of the request may have used the line in between."""
    _, stage = after(wire.said("m", wire.tool("a", "Read")), wire.said("m", wire.tool("b", "Read")))
    assert stage.lines == ["Starting Claude Code…", "Using Read…", "Using Read…"]


def test_what_is_still_at_work_leaves_the_line_at_the_end() -> None:
    """Also where no status is kept, as in a run that waits for a person."""
    translator, stage = after(wire.said("m", wire.tool("a", "Read")))
    stage.perform(translator.end(held=True))
    assert stage.lines == ["Starting Claude Code…", "Using Read…", None]
    assert stage.kept == []
