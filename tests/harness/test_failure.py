"""The kinds of refusal, found through whatever wraps them."""

from __future__ import annotations

import pytest

from flowstate.harness.failure import UnknownConversationError, harness_failure_kind


def _refusal() -> UnknownConversationError:
    return UnknownConversationError("Claude Code", "6ef4", "not found")


def test_the_refusal_itself_has_its_kind() -> None:
    """An unknown conversation is told apart, and its message names the id and the way out."""
    error = _refusal()

    assert harness_failure_kind(error) == "unknown-conversation"
    assert "'6ef4'" in str(error)
    assert "Start a fresh one" in str(error)


def test_other_failures_have_none() -> None:
    """Everything else is None, texts that sound alike included."""
    assert harness_failure_kind(ValueError("No conversation found with session ID")) is None
    assert harness_failure_kind(KeyboardInterrupt()) is None


def test_it_reads_through_causes_contexts_and_groups() -> None:
    """A cause, a context and a group's member, each below the others, don't hide the refusal."""
    caused = RuntimeError("wrapped")
    caused.__cause__ = _refusal()
    in_context = KeyError("while handling")
    in_context.__context__ = caused
    group = ExceptionGroup("several", [ValueError("other"), ExceptionGroup("deep", [in_context])])

    assert harness_failure_kind(group) == "unknown-conversation"


def test_a_suppressed_context_is_not_read() -> None:
    """``raise … from None`` says that the earlier error is not the reason."""

    def fail() -> None:
        try:
            raise _refusal()
        except UnknownConversationError:
            raise ValueError("something else") from None

    with pytest.raises(ValueError, match="something else") as caught:
        fail()
    assert caught.value.__context__ is not None
    assert harness_failure_kind(caught.value) is None


def test_errors_that_go_in_circles_end() -> None:
    """Two errors that are each other's cause don't hang the search."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    assert harness_failure_kind(first) is None


@pytest.mark.parametrize("deep", [1, 5_000])
def test_a_long_chain_is_no_problem(deep: int) -> None:
    """The search doesn't recurse, so no chain is too long for it."""
    error: BaseException = _refusal()
    for _ in range(deep):
        outer = ValueError("outer")
        outer.__cause__ = error
        error = outer

    assert harness_failure_kind(error) == "unknown-conversation"
