"""How a Claude Code run ends, and what is known of it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate.blocks.claude_code.heard import Answered, SessionHeard
from flowstate.blocks.claude_code.translator import Translator
from flowstate.harness.effect import MessageActivity, ToolActivity
from flowstate.harness.handle import HarnessUsage
from flowstate.item.content import ErrorReport
from tests.blocks.claude_code import agent_recordings as agents
from tests.blocks.claude_code import failure_recordings as failures
from tests.blocks.claude_code import recordings, wire
from tests.blocks.claude_code.recordings import RECORDINGS
from tests.blocks.claude_code.stage import Clock, Stage, after, heard_of, play
from tests.blocks.claude_code.wire import Wire

COMPLETED = "Claude Code agent run completed in 5 seconds."


@pytest.mark.parametrize(
    ("recording", "code", "message", "reason", "outcome", "subtype"),
    [
        (
            failures.WRONG_KEY,
            "is_error",
            "Failed to authenticate. API Error: 401 fake authentication_error",
            "Failed to authenticate. API Error: 401 fake authentication_error",
            "failed",
            "success",
        ),
        (
            failures.MAX_TURNS,
            "error_max_turns",
            "Reached maximum number of turns (2)",
            "Reached maximum number of turns (2)",
            "stopped-at-limit",
            "error_max_turns",
        ),
        (
            failures.INTERRUPTED,
            "error_during_execution",
            "Claude Code was interrupted.",
            "interrupted",
            "failed",
            "error_during_execution",
        ),
        (
            failures.LIMIT_REACHED,
            "is_error",
            "You've hit your 5-hour limit · resets 4:01pm (UTC)",
            "You've hit your 5-hour limit · resets 4:01pm (UTC)",
            "failed",
            "success",
        ),
    ],
    ids=["wrong-key", "max-turns", "interrupted", "limit"],
)
def test_a_failed_run_has_one_error_and_says_why(
    recording: list[Wire], code: str, message: str, reason: str, outcome: str, subtype: str
) -> None:
    """An error item with the agent's own words, and a kept status; no internal diagnostics."""
    translator, stage = play(recording)
    assert stage.errors == [ErrorReport(code=code, message=message)]
    assert stage.kept == [f"Claude Code agent run errored ({reason})."]
    assert translator.outcome.outcome == outcome
    assert translator.outcome.result_subtype == subtype
    assert stage.open == []


def test_a_run_without_valid_credentials_is_errored_though_it_says_success() -> None:
    """The flag decides, not the subtype."""
    bad = wire.result("Invalid API key", None, None, 0.0, is_error=True, num_turns=0)
    translator, stage = play([*wire.turn_begins(), bad, wire.state("idle")])
    assert translator.outcome.status == "errored"
    assert translator.outcome.outcome == "failed"
    assert translator.outcome.result_subtype == "success"
    assert stage.errors == [ErrorReport(code="is_error", message="Invalid API key")]
    assert stage.kept == ["Claude Code agent run errored (Invalid API key)."]
    assert translator.final_message is None


def test_an_interim_result_is_not_the_end() -> None:
    """The last message and the sum of both results count; the sub-agent is completed."""
    recording = [
        wire.init(),
        wire.said("m", wire.tool("call", "Agent", description="Review", run_in_background=True)),
        wire.answer("call", "launched"),
        wire.result(None, 1000, 200, 0.1),
        wire.task_notification("t", "call", "completed", "3 files"),
        wire.said("n", wire.text("All 3 files reviewed")),
        wire.result(None, 1500, 260, 0.2),
    ]
    translator, stage = play(recording)
    assert translator.final_message == "All 3 files reviewed"
    assert translator.usage == HarnessUsage(input_tokens=2500, output_tokens=460)
    assert translator.cost_total_usd == 0.2
    assert stage.items["call"].status == "completed"
    assert stage.kept == [COMPLETED]


@pytest.mark.parametrize("seconds", [0.2, 323.6, 3779.0])
def test_the_end_says_how_long_the_run_took(seconds: float) -> None:
    """From the moment it started."""
    words = {0.2: "less than a second", 323.6: "5 mins, 24 seconds", 3779.0: "1 hr, 2 mins"}
    _, stage = play(recordings.PLAIN, seconds=seconds)
    assert stage.kept == [f"Claude Code agent run completed in {words[seconds]}."]


def test_a_run_whose_outcome_was_not_heard_says_why() -> None:
    """With the caller's own words and code; what was open is incomplete."""
    translator, stage = after(wire.start("m"), wire.piece(0, "Hel"))
    stage.perform(translator.end("deadline of 2 s passed \ud800", code="cancelled"))
    assert stage.texts == [("Hel", "incomplete")]
    assert stage.errors == [ErrorReport(code="cancelled", message="deadline of 2 s passed �")]
    assert stage.kept == ["Claude Code agent run errored (deadline of 2 s passed �)."]
    assert stage.line is None


def test_the_duration_counts_from_the_start() -> None:
    """Not from when the translator was made."""
    clock = Clock()
    translator, stage = Translator(now=clock), Stage()
    clock.seconds += 60
    stage.perform(translator.started())
    for heard in heard_of(recordings.PLAIN):
        stage.perform(translator.feed(heard))
    clock.seconds += 2
    stage.perform(translator.end())
    assert stage.kept == ["Claude Code agent run completed in 2 seconds."]


def test_a_stream_that_stops_after_an_api_failure_names_it() -> None:
    """The main thread's, not one of a sub-agent."""
    failure = wire.synthetic("m", "Not logged in", "authentication_failed")
    inside = wire.synthetic("n", "API Error: 400", "unknown", parent="call")
    _, stage = play([*wire.turn_begins(), failure, inside])
    assert stage.kept == ["Claude Code agent run errored (Not logged in)."]


def test_a_stream_that_stops_without_a_result_is_errored() -> None:
    """It is never taken for a completed run."""
    _, stage = play(recordings.PLAIN[:-2])
    assert stage.errors == [
        ErrorReport(code="no_result", message="Claude Code ended without a result.")
    ]
    assert stage.kept == ["Claude Code agent run errored (no result)."]


def test_after_its_end_a_run_says_nothing() -> None:
    """A second end, or anything that comes late, changes nothing."""
    translator, _ = play(recordings.TOOLS)
    assert translator.end() == []
    assert translator.end("again") == []
    assert [
        effect for said in heard_of(agents.TWO_AGENTS) for effect in translator.feed(said)
    ] == []


def test_a_held_call_is_neither_done_nor_failed() -> None:
    """It waits for a person, and the calls stopped with it too; the run has no error."""
    clock, stage = Clock(), Stage()
    translator = Translator(now=clock)
    stage.perform(translator.started())
    for heard in heard_of(failures.HELD):
        if isinstance(heard, Answered):
            translator.hold("call_1")
        stage.perform(translator.feed(heard))
    stage.perform(translator.end(held=True))
    assert [stage.items[key].status for key in ("call_1", "call_2")] == ["incomplete"] * 2
    assert [tool.output for tool in stage.tools] == [None, None]
    assert stage.errors == []
    assert stage.kept == []
    assert stage.line is None


def test_a_denied_call_is_failed_and_the_run_goes_on() -> None:
    """The model was told, and answered."""
    translator, stage = play(failures.DENIED)
    assert stage.items["call_1"].status == "failed"
    assert stage.tools[0].output == "no shell"
    assert translator.outcome.status == "completed"


def test_the_conversation_is_named_once() -> None:
    """At the first init, before the first request; an init comes with every turn."""
    translator, stage = after(wire.init(), wire.init())
    assert stage.sessions == [wire.SESSION]
    assert translator.session_id == wire.SESSION
    assert translator.feed(SessionHeard(session_id="other")) == []
    assert translator.session_id == wire.SESSION


def test_before_any_init_no_conversation_is_named() -> None:
    """A result repeats the id that was asked for, which confirms nothing."""
    translator, stage = play([wire.result("x", 1, 1, 0.0)])
    assert translator.session_id is None
    assert stage.sessions == []


@pytest.mark.parametrize("order", [("result", "idle"), ("idle", "result")])
def test_a_run_is_idle_when_it_has_a_result_and_says_so(order: tuple[str, str]) -> None:
    """In either order; one of them is not enough."""
    said = {"result": wire.result("x", 1, 1, 0.0), "idle": wire.state("idle")}
    first, second = (said[name] for name in order)
    assert not after(first)[0].idle
    assert after(first, second)[0].idle
    assert not after(first, second, wire.state("running"))[0].idle


def test_a_first_result_while_a_sub_agent_works_is_not_idle() -> None:
    """Nor is the notification's turn; only the end is."""
    states: list[bool] = []
    translator = Translator(now=Clock())
    for heard in heard_of(agents.BACKGROUND):
        translator.feed(heard)
        states.append(translator.idle)
    assert states == [False] * (len(states) - 1) + [True]


def test_tokens_rise_while_the_run_works() -> None:
    """Known from the first message on, never falling, and in the end what the results say."""
    seen: list[tuple[int, int]] = []
    translator = Translator(now=Clock())
    for heard in heard_of(recordings.TOOLS):
        translator.feed(heard)
        if translator.usage is not None:
            seen.append((translator.usage.input_tokens, translator.usage.output_tokens))
    assert seen[0] == (10, 1)
    assert seen == sorted(seen)
    assert seen[-1] == (40, 20)
    assert sorted(set(seen)) == [
        (10, 1), (10, 5), (20, 6), (20, 10), (30, 11), (30, 15), (40, 16), (40, 20)
    ]  # fmt: skip


@pytest.mark.parametrize("name", RECORDINGS)
def test_tokens_that_streamed_agree_with_the_results(name: str) -> None:
    """On every recording; a run that was broken off keeps what its result leaves out."""
    translator = Translator(now=Clock())
    for heard in heard_of(w for w in RECORDINGS[name] if w["type"] != "result"):
        translator.feed(heard)
    streamed, (whole, _) = translator.usage, play(RECORDINGS[name])
    assert whole.usage is not None
    assert streamed is None or streamed == whole.usage


def test_a_run_with_no_report_has_no_numbers() -> None:
    """None, never 0."""
    translator, _ = after()
    assert translator.usage is None
    assert translator.cost_total_usd is None


def test_the_model_is_the_one_that_the_first_message_names() -> None:
    """Also when another one steps in later."""
    translator, _ = play(recordings.FALLBACK)
    assert translator.model == wire.MODEL
    translator, _ = play([wire.start("m", model="claude-haiku-4-5")])
    assert translator.model == "claude-haiku-4-5"


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("forward", [True, False])
def test_every_recording_is_performed_in_full(name: str, forward: bool) -> None:
    """Every item is opened once and settled once, the line is empty, one status is kept."""
    translator, stage = play(RECORDINGS[name], forward=forward)
    assert stage.open == []
    assert stage.line is None
    assert len(stage.kept) == 1
    assert translator.session_id == wire.SESSION
    assert translator.idle
    complete = [text for text, status in stage.texts if status == "completed"]
    said: list[Any] = [
        block["text"] or block
        for w in RECORDINGS[name]
        if w["type"] == "assistant" and w["message"]["model"] != "<synthetic>"
        for block in w["message"]["content"]
        if block["type"] == "text"
    ]
    assert stage.said == said
    assert sorted(complete) == sorted(
        said
        + [
            block["thinking"]
            for w in RECORDINGS[name]
            if w["type"] == "assistant"
            for block in w["message"]["content"]
            if block["type"] == "thinking" and block["thinking"]
        ]
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_activity_that_nobody_wants_is_all_that_is_left_out(name: str) -> None:
    """The other effects are the same, in the same order."""
    told: list[list[Any]] = []
    for activity in (True, False):
        translator = Translator(now=Clock(), activity=activity)
        effects = [
            effect for heard in heard_of(RECORDINGS[name]) for effect in translator.feed(heard)
        ]
        told.append(effects + translator.end())

    assert told[1] == [e for e in told[0] if not isinstance(e, MessageActivity | ToolActivity)]


def test_two_runs_side_by_side_share_nothing() -> None:
    """A translator keeps all it knows to itself."""
    one, other = Translator(now=Clock()), Translator(now=Clock())
    alone: list[Any] = [one.started()]
    for heard in heard_of(recordings.TOOLS):
        alone.append(one.feed(heard))
    mixed: list[Any] = [other.started()]
    third = Translator(now=Clock())
    for heard, noise in zip(heard_of(recordings.TOOLS), heard_of(agents.TWO_AGENTS), strict=False):
        mixed.append(other.feed(heard))
        third.feed(noise)
    assert [effect for some in mixed for effect in some] == [
        effect for some in alone[: len(mixed)] for effect in some
    ]
