"""Claude Code, a real coding agent, as a block of a flow."""

from flowstate.blocks.claude_code.agent import claude_code_agent as claude_code_agent
from flowstate.blocks.claude_code.conversation import SdkAgentRun as SdkAgentRun
from flowstate.blocks.claude_code.conversation import SdkAgentRuns as SdkAgentRuns
from flowstate.blocks.claude_code.environment import CLAUDE_CODE_PASS as CLAUDE_CODE_PASS
from flowstate.blocks.claude_code.errors import ClaudeAgentRunError as ClaudeAgentRunError
from flowstate.blocks.claude_code.errors import (
    ClaudeAgentSdkNotInstalledError as ClaudeAgentSdkNotInstalledError,
)
from flowstate.blocks.claude_code.errors import EmptyPromptError as EmptyPromptError
from flowstate.blocks.claude_code.errors import MissingDirectoryError as MissingDirectoryError
from flowstate.blocks.claude_code.errors import MissingHomeError as MissingHomeError
from flowstate.blocks.claude_code.errors import SandboxUnavailableError as SandboxUnavailableError
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle as ClaudeCodeHandle
from flowstate.blocks.claude_code.options import ClaudeCodeOptions as ClaudeCodeOptions
from flowstate.blocks.claude_code.windows import usage_window_of as usage_window_of

__all__ = [
    "CLAUDE_CODE_PASS",
    "ClaudeAgentRunError",
    "ClaudeAgentSdkNotInstalledError",
    "ClaudeCodeHandle",
    "ClaudeCodeOptions",
    "EmptyPromptError",
    "MissingDirectoryError",
    "MissingHomeError",
    "SandboxUnavailableError",
    "SdkAgentRun",
    "SdkAgentRuns",
    "claude_code_agent",
    "usage_window_of",
]
