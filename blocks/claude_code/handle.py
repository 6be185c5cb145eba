"""The handle of a Claude Code run: the neutral one, and two fields only Claude Code can fill."""

from __future__ import annotations

from flowstate.harness.handle import HarnessRunHandle

SOURCE = "claude-code/sdk"


class ClaudeCodeHandle(HarnessRunHandle):
    """What ``claude_code_agent`` returns."""

    source: str = SOURCE
    result_subtype: str | None = None
    """The SDK's terminal result code, for example ``success`` or ``error_max_turns``."""
    tools_observed: tuple[str, ...] = ()
    """The distinct names of the tools that the run used, in the order of first use."""
