"""
A flow whose work is done by Claude Code: each session has a checkout and a conversation of its own.

With a key (ANTHROPIC_API_KEY) or a sign-in (run `claude` once and sign in) of yours::

    flowstate run examples/coding_flow.py:coding implement --session s1 --store coding.db \\
        --input '{"prompt": "Write slug.py with a function slugify, and a test. Run the test."}'

Run it again with the same session and another prompt, and the agent goes on where it was: what
it needs for that is in the store.

    flowstate graph examples/coding_flow.py:coding
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio
from pydantic import BaseModel

from flowstate import (
    Context,
    HarnessRunInput,
    action,
    checkout_for,
    define_flow,
    handler,
    harness_env,
    sequencer,
    session_state,
)
from flowstate.blocks.claude_code import CLAUDE_CODE_PASS, claude_code_agent

CHECKOUTS = Path(os.environ.get("CODING_CHECKOUTS", "~/flowstate-checkouts")).expanduser()
"""Holds the sessions' checkouts."""

ENVIRONMENT = harness_env(
    pass_=[
        *CLAUDE_CODE_PASS,
        # A gateway in place of the service, and a place for Claude Code's own files.
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CONFIG_DIR",
        # Switches that keep Claude Code from talking to anything else.
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_TELEMETRY",
    ]
)
"""All that the agent and its commands see of this process's variables."""


class CodingTask(BaseModel):
    """What the user asks for."""

    prompt: str


class Journal(BaseModel):
    """What the session was asked for so far."""

    prompts: tuple[str, ...] = ()


@handler(uses=[session_state(Journal)])
async def recorder(task: CodingTask, ctx: Context) -> None:
    """Write the request down in the session's state."""
    written = await ctx.session[Journal].append("prompts", task.prompt)
    ctx.status.keep(f"Recorded as request {len(written.value.prompts)} of the session.")


async def checkout(ctx: Context) -> Path:
    """The session's own directory; `checkout_for` names it, making it is up to us."""
    directory = checkout_for(CHECKOUTS, ctx.session.identity.tenant_id, ctx.session.id)
    await anyio.Path(directory).mkdir(parents=True, exist_ok=True)
    return directory


def to_prompt(task: CodingTask) -> HarnessRunInput:
    """What the agent is told: here the user's words as they are."""
    return HarnessRunInput(prompt=task.prompt)


agent = claude_code_agent(
    cwd=checkout,
    env=ENVIRONMENT,
    permission_mode="acceptEdits",  # within the checkout
    allowed_tools=["Bash(python3 *)"],  # any other command is refused
)

turn = sequencer("turn", CodingTask).tap(recorder).step(to_prompt, agent)

coding = define_flow("coding", actions=[action("implement", turn, concurrency="queue")])
