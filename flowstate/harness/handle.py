"""
What goes into a coding agent and what comes back: the same for every agent.

The prompt is the input; everything else is configuration. A handle says what the agent itself
reported. A refused start, and whatever keeps us from hearing the outcome, is an exception.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel

from flowstate.item.content import WIRE

HarnessStatus: TypeAlias = Literal["dispatched", "running", "completed", "errored"]
HarnessOutcome: TypeAlias = Literal["finished", "stopped-at-limit", "failed"]


class HarnessRunInput(BaseModel):
    """The one thing a harness block takes."""

    model_config = WIRE
    prompt: str


class HarnessUsage(BaseModel):
    """Tokens the agent reported."""

    model_config = WIRE
    input_tokens: int
    output_tokens: int


class HarnessCost(BaseModel):
    """What a run cost, and who says so."""

    model_config = WIRE
    usd: float
    basis: Literal["reported", "estimated"]


class HarnessRunHandle(BaseModel):
    """
    What every harness returns. A field that the agent did not report is None, with one exception:
    a resumed run's ``session_id`` starts as the one asked for.
    """

    model_config = WIRE
    source: str
    """The agent and entry point, as ``package/door``, for example ``claude-code/sdk``."""
    status: HarnessStatus
    session_id: str | None = None
    """The agent's own id for the conversation; what ``resume`` takes."""
    url: str | None = None
    dispatched_at: int
    """Epoch milliseconds."""
    outcome: HarnessOutcome | None = None
    final_message: str | None = None
    """The last assistant message."""
    usage: HarnessUsage | None = None
    cost: HarnessCost | None = None
