"""Claude Code, a real coding agent, as a block of a flow."""

from flowstate.blocks.claude_code.account import ClaudeAccount as ClaudeAccount
from flowstate.blocks.claude_code.account import ClaudeModel as ClaudeModel
from flowstate.blocks.claude_code.account import ClaudeModels as ClaudeModels
from flowstate.blocks.claude_code.account import ClaudeModelsFailed as ClaudeModelsFailed
from flowstate.blocks.claude_code.account import ClaudeSdkMissing as ClaudeSdkMissing
from flowstate.blocks.claude_code.account import NoClaudeAccount as NoClaudeAccount
from flowstate.blocks.claude_code.account import list_claude_models as list_claude_models
from flowstate.blocks.claude_code.account import probe_claude_account as probe_claude_account
from flowstate.blocks.claude_code.account import read_claude_usage as read_claude_usage
from flowstate.blocks.claude_code.agent import claude_code_agent as claude_code_agent
from flowstate.blocks.claude_code.approval import AllowTool as AllowTool
from flowstate.blocks.claude_code.approval import DenyTool as DenyTool
from flowstate.blocks.claude_code.approval import HoldTool as HoldTool
from flowstate.blocks.claude_code.approval import ToolApprovalRequest as ToolApprovalRequest
from flowstate.blocks.claude_code.approval import ToolDecision as ToolDecision
from flowstate.blocks.claude_code.conversation import SdkAgentRun as SdkAgentRun
from flowstate.blocks.claude_code.conversation import SdkAgentRuns as SdkAgentRuns
from flowstate.blocks.claude_code.conversation import SdkWaitingCalls as SdkWaitingCalls
from flowstate.blocks.claude_code.conversation import SessionBinding as SessionBinding
from flowstate.blocks.claude_code.conversation import SessionBindings as SessionBindings
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
from flowstate.blocks.claude_code.held_answers import HeldAnswers as HeldAnswers
from flowstate.blocks.claude_code.mcp_tools import McpContent as McpContent
from flowstate.blocks.claude_code.mcp_tools import McpServer as McpServer
from flowstate.blocks.claude_code.mcp_tools import McpTool as McpTool
from flowstate.blocks.claude_code.options import ClaudeCodeOptions as ClaudeCodeOptions
from flowstate.blocks.claude_code.waiting_call import WaitingCall as WaitingCall
from flowstate.blocks.claude_code.waiting_call import fingerprint_of as fingerprint_of
from flowstate.blocks.claude_code.windows import usage_window_of as usage_window_of

__all__ = [
    "CLAUDE_CODE_PASS",
    "AllowTool",
    "ClaudeAccount",
    "ClaudeAgentRunError",
    "ClaudeAgentSdkNotInstalledError",
    "ClaudeCodeHandle",
    "ClaudeCodeOptions",
    "ClaudeModel",
    "ClaudeModels",
    "ClaudeModelsFailed",
    "ClaudeSdkMissing",
    "DenyTool",
    "EmptyPromptError",
    "HeldAnswers",
    "HoldTool",
    "McpContent",
    "McpServer",
    "McpTool",
    "MissingDirectoryError",
    "MissingHomeError",
    "NoClaudeAccount",
    "SandboxUnavailableError",
    "SdkAgentRun",
    "SdkAgentRuns",
    "SdkWaitingCalls",
    "SessionBinding",
    "SessionBindings",
    "ToolApprovalRequest",
    "ToolDecision",
    "WaitingCall",
    "claude_code_agent",
    "fingerprint_of",
    "list_claude_models",
    "probe_claude_account",
    "read_claude_usage",
    "usage_window_of",
]
