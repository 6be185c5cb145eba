"""Results as a handle's fields: status, outcome, error, tokens."""

from __future__ import annotations

import pytest

from flowstate.blocks.claude_code.heard import ApiFailureHeard, ResultHeard
from flowstate.blocks.claude_code.outcome import TokenCount, final_message_of, outcome_of
from flowstate.harness.handle import HarnessUsage
from flowstate.item.content import ErrorReport

DIAGNOSTIC = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"


def result(subtype: str = "success", **fields: object) -> ResultHeard:
    return ResultHeard(subtype=subtype, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("heard", "outcome", "code", "message", "reason"),
    [
        (
            result(is_error=True, text="Invalid API key"),
            "failed",
            "is_error",
            "Invalid API key",
            "Invalid API key",
        ),
        (
            result(
                "error_max_turns", is_error=True, errors=("Reached maximum number of turns (2)",)
            ),
            "stopped-at-limit",
            "error_max_turns",
            "Reached maximum number of turns (2)",
            "Reached maximum number of turns (2)",
        ),
        (
            result("error_max_budget_usd", is_error=True, errors=("Over budget", "by far")),
            "stopped-at-limit",
            "error_max_budget_usd",
            "Over budget; by far",
            "Over budget; by far",
        ),
        (
            result(
                "error_during_execution",
                is_error=True,
                errors=(DIAGNOSTIC,),
                terminal_reason="aborted_streaming",
            ),
            "failed",
            "error_during_execution",
            "Claude Code was interrupted.",
            "interrupted",
        ),
        (
            result("error_during_execution", is_error=True, errors=(DIAGNOSTIC,)),
            "failed",
            "error_during_execution",
            "Claude Code's run failed (error_during_execution).",
            "error_during_execution",
        ),
        (
            result("error_during_execution", is_error=True, errors=(DIAGNOSTIC, "disk full")),
            "failed",
            "error_during_execution",
            "disk full",
            "disk full",
        ),
        (
            result(is_error=True, text=f"API Error: 500\n{DIAGNOSTIC}\ntry later"),
            "failed",
            "is_error",
            "API Error: 500\ntry later",
            "API Error: 500\ntry later",
        ),
        (
            result(is_error=True, text=DIAGNOSTIC),
            "failed",
            "is_error",
            "Claude Code's run failed (success).",
            "is_error",
        ),
        (
            result("error_max_structured_output_retries"),
            "failed",
            "error_max_structured_output_retries",
            "Claude Code's run failed (error_max_structured_output_retries).",
            "error_max_structured_output_retries",
        ),
    ],
)
def test_an_error_result_is_an_errored_outcome(
    heard: ResultHeard, outcome: str, code: str, message: str, reason: str
) -> None:
    """In Claude Code's own words where it has any; its internal diagnostics are never shown."""
    found = outcome_of([heard])
    assert found.status == "errored"
    assert found.outcome == outcome
    assert found.result_subtype == heard.subtype
    assert found.error == ErrorReport(code=code, message=message)
    assert found.reason == reason


@pytest.mark.parametrize("reason", ["completed", "tool_deferred", "hook_stopped", None])
def test_a_success_that_is_not_flagged_is_completed(reason: str | None) -> None:
    """Whatever ended the turn, the agent itself calls it a success."""
    found = outcome_of([result(terminal_reason=reason)])
    assert (found.status, found.outcome, found.error) == ("completed", "finished", None)
    assert found.result_subtype == "success"


def test_the_last_result_decides() -> None:
    """A turn that failed may be followed by one that did not, and the other way round."""
    bad, good = result("error_max_turns", is_error=True), result()
    assert outcome_of([bad, good]).status == "completed"
    assert outcome_of([good, bad]).status == "errored"


def test_a_run_without_a_result_is_errored() -> None:
    """With the last API failure's words, if there was one."""
    found = outcome_of([])
    assert found.status == "errored"
    assert found.result_subtype is None
    assert found.error == ErrorReport(
        code="no_result", message="Claude Code ended without a result."
    )
    failure = ApiFailureHeard(code="rate_limit", text="You've hit your limit")
    assert outcome_of([], failure).reason == "You've hit your limit"


def test_the_final_message_is_the_last_one_said() -> None:
    """A result's text stands in where the main thread said nothing, unless it is an error."""
    assert final_message_of("said", [result(text="other")]) == "said"
    assert final_message_of(None, [result(text="Compacted")]) == "Compacted"
    assert final_message_of(None, [result(text="bad key", is_error=True)]) is None
    assert final_message_of("said", [result(text="bad key", is_error=True)]) == "said"
    assert final_message_of(None, []) is None


def tokens(count: TokenCount) -> tuple[int, int] | None:
    usage = count.usage
    return None if usage is None else (usage.input_tokens, usage.output_tokens)


def test_tokens_rise_while_messages_stream_and_end_as_the_results_say() -> None:
    """Nothing is counted twice: not a message's growing total, nor a turn that has its result."""
    count = TokenCount()
    assert count.usage is None
    count.begin("msg_1", 10, 1)
    assert tokens(count) == (10, 1)
    count.count(None, 5)
    count.count(10, 7)
    assert tokens(count) == (10, 7)
    count.begin("msg_2", 20, 1)
    assert tokens(count) == (30, 8)
    count.settle(result(input_tokens=31, output_tokens=9))
    assert tokens(count) == (31, 9)
    count.begin("msg_3", 5, 1)
    assert tokens(count) == (36, 10)
    count.settle(result(input_tokens=5, output_tokens=2))
    assert tokens(count) == (36, 11)


def test_two_results_add_up() -> None:
    """Each result counts its own turn."""
    count = TokenCount()
    count.settle(result(input_tokens=1000, output_tokens=200))
    count.settle(result(input_tokens=1500, output_tokens=260))
    assert count.usage == HarnessUsage(input_tokens=2500, output_tokens=460)


def test_a_repeated_or_late_count_changes_nothing() -> None:
    """A message's numbers are totals: said again, or out of order, they don't fall or add up."""
    count = TokenCount()
    count.begin("msg_1", 10, 1)
    count.count(10, 7)
    count.begin("msg_1", 10, 1)
    count.count(None, 3)
    assert tokens(count) == (10, 7)


def test_a_broken_off_turn_keeps_what_had_streamed() -> None:
    """Its result leaves out the message that it was broken off in."""
    count = TokenCount()
    count.begin("msg_1", 10, 1)
    broken = result(
        "error_during_execution",
        terminal_reason="aborted_streaming",
        input_tokens=0,
        output_tokens=0,
    )
    count.settle(broken)
    assert tokens(count) == (10, 1)


def test_a_result_without_a_count_leaves_what_had_streamed() -> None:
    """A run that fails reports the tokens it got before it failed."""
    count = TokenCount()
    count.settle(result())
    assert count.usage is None
    count.begin("msg_1", 10, 1)
    count.settle(result())
    assert tokens(count) == (10, 1)
    count.settle(result(output_tokens=4))
    assert tokens(count) == (10, 5)


def test_a_message_that_never_streamed_counts_its_input() -> None:
    """Its output is only known from the result."""
    count = TokenCount()
    count.speak("msg_1", None)
    assert count.usage is None
    count.speak("msg_1", 10)
    count.speak("msg_1", 10)
    assert tokens(count) == (10, 0)
    count.begin("msg_2", 20, 1)
    count.speak("msg_2", 20)
    assert tokens(count) == (30, 1)
