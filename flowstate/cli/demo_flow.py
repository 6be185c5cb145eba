"""
The flow of ``flowstate demo``: one action, whose work is done by Claude Code.

The same as ``examples/coding_flow.py``, but for what the demo decides: the root of the checkouts,
the environment and the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
from pydantic import BaseModel

from flowstate.blocks.claude_code import ClaudeCodeHandle, claude_code_agent
from flowstate.context import Context
from flowstate.define.flow import Action, action
from flowstate.define.handler import handler
from flowstate.define.policy import PolicyName, queue, reject
from flowstate.define.sequencer import sequencer
from flowstate.define.uses import session_state
from flowstate.harness.checkout import checkout_for
from flowstate.harness.handle import HarnessRunInput

ALLOWED_TOOLS = ("Bash(python3 *)",)
"""Beside edits within the checkout, all that runs without asking anybody."""

WAIT = 600.0
"""Seconds a request waits for the one before it; a real agent may take minutes."""


class CodingTask(BaseModel):
    """What the user asks for."""

    prompt: str


class Recorded(BaseModel):
    """The session's requests, as the recorder keeps them."""

    prompts: tuple[str, ...] = ()


@handler(uses=[session_state(Recorded)])
async def recorder(task: CodingTask, ctx: Context) -> None:
    """Write the request down in the session's state, and say the how manieth it is."""
    written = await ctx.session[Recorded].append("prompts", task.prompt)
    ctx.status.keep(f"Recorded as request {len(written.value.prompts)} of the session.")


def to_prompt(task: CodingTask) -> HarnessRunInput:
    """The agent's input of a task: here the prompt as it is."""
    return HarnessRunInput(prompt=task.prompt)


def implement_action(
    root: Path, env: Mapping[str, str], policy: PolicyName
) -> Action[CodingTask, ClaudeCodeHandle]:
    """
    The action ``implement``.

    Args:
        root: holds the checkouts; each session has its own.
        env: the whole environment of the agent.
        policy: what becomes of a request that comes while another of its session runs.
    """

    async def checkout(ctx: Context) -> Path:
        directory = checkout_for(root, ctx.session.identity.tenant_id, ctx.session.id)
        await anyio.Path(directory).mkdir(parents=True, exist_ok=True)
        return directory

    agent = claude_code_agent(
        cwd=checkout,
        env=env,
        permission_mode="acceptEdits",
        allowed_tools=ALLOWED_TOOLS,
        setting_sources=[],
    )
    turn = sequencer("turn", CodingTask).tap(recorder).step(to_prompt, agent)
    return action(
        "implement", turn, concurrency=queue(wait=WAIT) if policy == "queue" else reject()
    )
