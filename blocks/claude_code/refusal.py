"""
Why Claude Code's own end is an exception: refused starts told apart, the rest put into words.

Pure. Goes by the shape of the SDK's errors, so that nothing here needs the SDK, and by the few
texts of Claude Code's that tell a refusal; what it says otherwise is only ever shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast, final

from flowstate.blocks.claude_code.arguments import sandbox_required
from flowstate.blocks.claude_code.conversation import AGENT
from flowstate.blocks.claude_code.errors import ClaudeAgentRunError, SandboxUnavailableError
from flowstate.errors import HarnessError
from flowstate.harness.failure import UnknownConversationError, harness_failure_kind

_UNKNOWN: Final = "No conversation found with session ID"
_INVALID: Final = "--resume requires a valid session ID"
_SANDBOX: Final = "Sandbox required but unavailable:"

KEPT_LINES: Final = 20
LONGEST_LINE: Final = 400


@final
class StderrTail:
    """The last lines of a process's standard error, secrets taken out. Hand ``add`` over."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)

    def add(self, line: str) -> None:
        """One more line."""
        # Redacted before it is cut: a secret that is cut in two would no longer be found.
        self._lines.append(self._redact(line)[:LONGEST_LINE])

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, oldest first."""
        return tuple(self._lines)


def refusal_of(errors: Sequence[str], asked: str | None) -> HarnessError | None:
    """
    The refused start that Claude Code's error texts tell; None if they tell none.

    Args:
        errors: what its result, or the SDK's error in its place, holds.
        asked: the conversation that the run was to continue.

    >>> refusal_of(["No conversation found with session ID: 6ef4"], None) is None
    True
    """
    for text in errors:
        if asked is not None and (text.startswith(_UNKNOWN) or _INVALID in text):
            return UnknownConversationError(AGENT, asked, "not found")
        if _SANDBOX in text:
            reason = " ".join(text.partition(_SANDBOX)[2].split())
            return SandboxUnavailableError(reason.rstrip("."))
    return None


def require_sandbox(sandbox: Mapping[str, Any] | None, enabled: object) -> None:
    """
    Refuse to go on without the sandbox that these settings require.

    Args:
        enabled: what Claude Code says of it, before it has the prompt and when a turn begins.

    Raises:
        SandboxUnavailableError: it says that there is none.
    """
    if enabled is False and sandbox_required(sandbox):
        raise SandboxUnavailableError("Claude Code started without one")


def errors_of(failure: Exception | None) -> tuple[str, ...]:
    """The error texts that an exception of the SDK's carries."""
    errors = getattr(failure, "errors", None)
    texts: list[object] = cast("Any", errors) if isinstance(errors, list) else []
    return tuple(text for text in texts if isinstance(text, str))


def run_error(
    failure: Exception | None, stderr: Sequence[str], redact: Callable[[str], str]
) -> ClaudeAgentRunError:
    """
    The error of a run whose outcome was not heard.

    Args:
        failure: what the SDK raised; None if Claude Code's stream ended without a result.
    """
    if failure is None:
        return ClaudeAgentRunError("Claude Code ended without a result", stderr=stderr)
    code = getattr(failure, "exit_code", None)
    exit_code = code if isinstance(code, int) else None
    said = "; ".join(errors_of(failure)) or getattr(failure, "result", None)
    if isinstance(said, str) and said:
        problem = f"Claude Code failed: {redact(said)}"
    elif exit_code is not None:
        problem = "Claude Code's process ended before the run did"
    else:
        problem = f"Claude Code can't be heard: {redact(str(failure)) or type(failure).__name__}"
    return ClaudeAgentRunError(problem, exit_code=exit_code, stderr=stderr)


def error_item_of(error: Exception, redact: Callable[[str], str]) -> tuple[str, str]:
    """The code and the message of the error item for an exception."""
    kind = harness_failure_kind(error)
    if kind is not None:
        code = kind.replace("-", "_")
    elif isinstance(error, SandboxUnavailableError):
        code = "sandbox_unavailable"
    else:
        code = "run_failed"
    text = redact(str(error))
    if isinstance(error, HarnessError):
        return code, text
    return code, f"{type(error).__name__}: {text}" if text else type(error).__name__
