"""
What goes wrong with a Claude Code run that is not for the agent itself to report.

Refused starts, and whatever keeps us from hearing the outcome. What the agent reports (a limit
reached, an API error) is a handle with the status ``errored``, never one of these. A conversation
that Claude Code doesn't know raises ``flowstate.harness.failure.UnknownConversationError``.
Texts of the agent's are redacted before they get here.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import final

from flowstate.errors import HarnessError

INSTALL = "pip install 'flowstate-engine[claude]'"
"""What to type to get the SDK."""


@final
class ClaudeAgentSdkNotInstalledError(HarnessError):
    """``claude-agent-sdk`` could not be loaded, or is too old; a failed import is the cause."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Claude Code can't run: {reason}. Install the SDK with: {INSTALL}")


@final
class EmptyPromptError(HarnessError):
    """The prompt holds nothing but white space; nothing was started."""

    def __init__(self) -> None:
        super().__init__("the prompt is empty; give Claude Code something to do")


@final
class MissingHomeError(HarnessError):
    """
    The run's ``env`` has no ``HOME``. Claude Code would fall back to the account's real home and
    its shell would read the start-up files there, so it isn't started.
    """

    def __init__(self) -> None:
        super().__init__(
            "env has no HOME, so Claude Code would use the account's real one. "
            "Pass it: harness_env(pass_=['PATH', 'HOME', ...])."
        )


@final
class MissingDirectoryError(HarnessError):
    """The directory that a run is to work in isn't there."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"the run's directory {directory!r} doesn't exist. Make it before cwd returns it."
        )


@final
class SandboxUnavailableError(HarnessError):
    """A sandbox was asked for and Claude Code can't give one; the run was not let go on."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the sandbox that this run requires is unavailable: {reason}. "
            "Install what it needs (on Linux bubblewrap and socat), or run without one."
        )


@final
class ClaudeAgentRunError(HarnessError):
    """
    The outcome of a run could not be heard: the process died, or what it sent broke off.

    Attributes:
        exit_code: the process's exit code, negative for a signal; None if it isn't known.
        stderr: the last lines that it wrote to its standard error, secrets taken out.
    """

    def __init__(
        self, problem: str, *, exit_code: int | None = None, stderr: Sequence[str] = ()
    ) -> None:
        ending = f" ({_exit(exit_code)})" if exit_code is not None else ""
        last = "\n".join(f"  {line}" for line in stderr)
        super().__init__(f"{problem}{ending}" + (f"\nits last words:\n{last}" if last else ""))
        self.exit_code = exit_code
        self.stderr = tuple(stderr)


def _exit(code: int) -> str:
    """
    An exit code in words.

    >>> _exit(1), _exit(-9)
    ('exit code 1', 'killed by SIGKILL, exit code -9: often the system ran out of memory')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ": often the system ran out of memory" if code == -9 else ""
    return f"killed by {name}, exit code {code}{hint}"
