"""The handle of a Claude Code run: the neutral one, and what only Claude Code can fill."""

from __future__ import annotations

from flowstate.blocks.claude_code.waiting_call import WaitingCall
from flowstate.harness.handle import HarnessRunHandle

SOURCE = "claude-code/sdk"


class ClaudeCodeHandle(HarnessRunHandle):
    """
    What ``claude_code_agent`` returns.

    A run that stopped because a tool call waits for a person is ``completed`` and has no outcome:
    it neither finished nor failed. ``waiting`` then names the call.
    """

    source: str = SOURCE
    result_subtype: str | None = None
    """The SDK's terminal result code, for example ``success``; None for a run that waits."""
    tools_observed: tuple[str, ...] = ()
    """The distinct names of the tools that the run used, in the order of first use."""
    waiting: tuple[WaitingCall, ...] = ()
    """The tool calls that this run stopped for: a person is to decide them, and none has run."""
