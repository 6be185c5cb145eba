"""
Claude Code as a tool of a block: what a model is given to hand coding work on.

The capability brings one tool, the agent's block; the model writes the prompt, and everything else
is configuration, as wherever the block stands. It brings what the block declares, too, since a
tool's block stands in no chain that the plan would find it in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from typing_extensions import Unpack

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.conversation import SdkAgentRuns, agent_runs_state
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.options import ClaudeCodeOptions
from flowstate.context import Cell, Context
from flowstate.define.capability import Capability, define_capability
from flowstate.define.handler import Handler
from flowstate.define.resource import Resource
from flowstate.define.tool import Tool
from flowstate.define.uses import StateDeclaration
from flowstate.harness.handle import HarnessRunInput

CAPABILITY = "claude_code_agent"
"""What the capability is called in a plan where the agent has no name of its own."""

DESCRIPTION = (
    "Hand a piece of work to Claude Code, a coding agent. It reads and edits files, runs commands "
    "and comes back when it is done, which can take minutes. The prompt is all that it is told of "
    "the work: say what to do, where, and how it can tell that it is right."
)
"""What a model is told of the tool where the author says nothing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCodeAgent:
    """What ``ctx.cap[...]`` gives: the agent as this node sees it."""

    block: Handler[HarnessRunInput, ClaudeCodeHandle]
    """The agent's block."""
    tool: Tool
    """The same as a tool."""
    runs: Cell[SdkAgentRuns] | None
    """The session's runs of in-session agents; None for a detached one, which writes none."""

    async def conversation(self) -> str | None:
        """
        The conversation that the next run will continue: Claude Code's id of it. None if the next
        run begins a fresh one, and for a detached agent, whose author decides.
        """
        if self.runs is None:
            return None
        last = (await self.runs.get()).last_of(self.block.name)
        return last.session_id if last is not None else None


def claude_code_agent_capability(
    *, description: str = DESCRIPTION, **options: Unpack[ClaudeCodeOptions]
) -> Capability[ClaudeCodeAgent]:
    """
    The agent as a tool of the blocks that use this capability.

    In session (the default) its session state comes with it. ``detached=True`` brings none, which
    is what a block needs that runs as a task board's worker.

    Args:
        description: what a model is told of the tool.
        options: see ``ClaudeCodeOptions``. The tool is called as the block is, ``claude_code`` by
            default; give a ``name`` to each of several in one plan.

    Raises:
        DefinitionError: an option is unknown or can't work.
    """
    block = claude_code_agent(**options)
    tool = block.as_tool(description)
    state = agent_runs_state()
    # A function in the agent's uses is asked by the agent's own run, from its block.
    brought = tuple(
        u for u in block.uses if isinstance(u, StateDeclaration | Resource | Capability)
    )

    def agent(ctx: Context) -> ClaudeCodeAgent:
        runs = ctx.session[SdkAgentRuns] if state in brought else None
        return ClaudeCodeAgent(block=block, tool=tool, runs=runs)

    return define_capability(
        options.get("name", CAPABILITY), ClaudeCodeAgent, agent, uses=brought, tools=[tool]
    )
