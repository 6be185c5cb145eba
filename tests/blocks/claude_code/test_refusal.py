"""Refused starts, and the words for a run that could not be heard."""

from __future__ import annotations

import pytest

from flowstate.blocks.claude_code.errors import SandboxUnavailableError
from flowstate.blocks.claude_code.refusal import (
    KEPT_LINES,
    StderrTail,
    errors_of,
    refusal_of,
    require_sandbox,
    run_error,
)
from flowstate.harness.environment import Redactor
from flowstate.harness.failure import UnknownConversationError


class _SdkError(Exception):
    """Shaped like the SDK's errors."""

    def __init__(self, text: str, **fields: object) -> None:
        super().__init__(text)
        self.__dict__.update(fields)


def _plain(text: str) -> str:
    return text


def test_unknown_conversations_are_told_by_claude_code_s_two_texts() -> None:
    """An id it can't find, and one that is none, are the same refusal."""
    texts = (
        "No conversation found with session ID: 6ef4",
        'Error: --resume requires a valid session ID or session title … "x" is not a UUID',
    )
    for text in texts:
        error = refusal_of([text], "6ef4")
        assert isinstance(error, UnknownConversationError)
        assert error.conversation_id == "6ef4"


def test_without_a_conversation_asked_for_none_is_unknown() -> None:
    """The same words in a fresh run, quoted by a model for example, mean nothing."""
    assert refusal_of(["No conversation found with session ID: 6ef4"], None) is None
    assert refusal_of([], "6ef4") is None
    assert refusal_of(["Reached maximum number of turns (2)"], "6ef4") is None


def test_a_missing_sandbox_is_told_with_its_reason() -> None:
    """What Claude Code lacks is passed on."""
    error = refusal_of(["Sandbox required but unavailable: bwrap\n not found. Go on?."], None)

    assert isinstance(error, SandboxUnavailableError)
    assert "unavailable: bwrap not found. Go on?. Install" in str(error)


def test_only_a_sandbox_that_is_required_and_denied_refuses() -> None:
    """Claude Code's plain no counts; where it says nothing, its own refusal is relied on."""
    with pytest.raises(SandboxUnavailableError, match="started without one"):
        require_sandbox({"enabled": True}, False)
    for said in (True, None, "no"):
        require_sandbox({"enabled": True}, said)
    for settings in (None, {"enabled": True, "failIfUnavailable": False}):
        require_sandbox(settings, False)


def test_errors_are_read_by_shape() -> None:
    """Anything but a list of texts is nothing."""
    assert errors_of(_SdkError("x", errors=["a", 3, "b"])) == ("a", "b")
    assert errors_of(_SdkError("x", errors="a")) == ()
    assert errors_of(None) == ()


def test_an_exit_code_and_the_last_words_are_named() -> None:
    """The message says how the process ended and what it said last."""
    error = run_error(_SdkError("Command failed", exit_code=1), ["a", "b"], _plain)

    assert error.exit_code == 1
    assert error.stderr == ("a", "b")
    assert str(error) == (
        "Claude Code's process ended before the run did (exit code 1)\nits last words:\n  a\n  b"
    )


def test_a_signal_is_named() -> None:
    """A negative code is a signal, and SIGKILL hints at the usual reason."""
    text = str(run_error(_SdkError("x", exit_code=-9), [], _plain))

    assert "killed by SIGKILL, exit code -9: often the system ran out of memory" in text
    assert "signal 99" in str(run_error(_SdkError("x", exit_code=-99), [], _plain))


def test_what_the_agent_said_is_preferred() -> None:
    """A result's own texts say more than an exit code, and secrets are taken out of them."""
    redact = Redactor({"A_TOKEN": "hunter22"})
    error = run_error(
        _SdkError("x", exit_code=1, errors=["bad token hunter22", "again"]), [], redact
    )

    assert "Claude Code failed: bad token [redacted]; again (exit code 1)" in str(error)


def test_other_breaks_tell_what_the_sdk_says() -> None:
    """A line that is no JSON, a text without anything: there is always a reason."""
    assert "can't be heard: Failed to decode" in str(
        run_error(_SdkError("Failed to decode"), [], _plain)
    )
    assert "can't be heard: _SdkError" in str(run_error(_SdkError(""), [], _plain))
    assert "ended without a result" in str(run_error(None, [], _plain))


def test_only_the_last_lines_are_kept_and_none_is_long() -> None:
    """Standard error can be endless; a secret that crosses the cut doesn't survive it."""
    tail = StderrTail(Redactor({"A_TOKEN": "hunter22"}))
    for number in range(100):
        tail.add(f"{number}")
    tail.add("x" * 396 + "hunter22" + "y" * 1000)

    assert len(tail.lines) == KEPT_LINES
    assert tail.lines[0] == "81"
    assert len(tail.lines[-1]) == 400
    assert "hunt" not in tail.lines[-1]
