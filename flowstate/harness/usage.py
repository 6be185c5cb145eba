"""
Where a subscription's limits stand: the shapes that every coding agent reports them in.

The numbers are the vendor's own: a fraction is scaled to a percent and nothing else is derived.
What the vendor didn't send is None, never 0. A reading is one of four states, and only ``windows``
carries a number; the other three say in ``reason`` why there is none. No I/O here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, Protocol, TypeAlias, Union

from pydantic import BaseModel, Field

from flowstate.context import Context
from flowstate.item.content import WIRE

HarnessUsageLevel: TypeAlias = Literal["ok", "warning", "reached"]
"""``ok``: under the vendor's warning line. ``warning``: near the limit. ``reached``: used up."""


class HarnessUsageWindow(BaseModel):
    """One limit of a subscription. Parse a stored one with ``model_validate``."""

    model_config = WIRE
    id: str
    """The vendor's name for the window, unique within a reading."""
    label: str | None = None
    """The vendor's name for people, if it has another."""
    minutes: int | None = None
    """How long the window is, or None when the vendor's name doesn't tell."""
    used_percent: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    """How much is used, 0 to 100; None when the vendor sent no number. Then show the level."""
    level: HarnessUsageLevel | None = None
    """None for a vendor that sends only a percent."""
    resets_at: int | None = None
    """When the window starts anew, in epoch milliseconds."""


class HarnessUsageReport(BaseModel):
    """One window, as a run heard it; it tells of the whole account, not of the run's own share."""

    model_config = WIRE
    harness: str
    """The name a usage record is kept under, for example ``claude-code``."""
    window: HarnessUsageWindow
    observed_at: int
    """Epoch milliseconds."""
    run_started_at: int
    """Epoch milliseconds."""
    account_id: str | None = None
    """Who the run is signed in as, if the agent says."""


class UsageWindows(BaseModel):
    """Signed in to a plan: its windows, which may be none when they only come from runs."""

    model_config = WIRE
    status: Literal["windows"] = "windows"
    windows: tuple[HarnessUsageWindow, ...] = ()
    plan: str | None = None
    account_id: str | None = None


class UsageApiKey(BaseModel):
    """The agent runs on an API key, which has no subscription limit."""

    model_config = WIRE
    status: Literal["api-key"] = "api-key"
    reason: str


class UsageSignedOut(BaseModel):
    """Nobody is signed in."""

    model_config = WIRE
    status: Literal["signed-out"] = "signed-out"
    reason: str


class UsageUnavailable(BaseModel):
    """The read couldn't be made."""

    model_config = WIRE
    status: Literal["unavailable"] = "unavailable"
    reason: str


HarnessUsageReading: TypeAlias = Annotated[
    Union[UsageWindows, UsageApiKey, UsageSignedOut, UsageUnavailable],  # noqa: UP007  (runtime)
    Field(discriminator="status"),
]
"""What a usage reader answers, told apart by ``status``."""

HarnessUsageHook: TypeAlias = Callable[[HarnessUsageReport, Context], Awaitable[None] | None]
"""Called by a harness for each window that a run reports; awaited if it returns an awaitable."""


class HarnessUsageReader(Protocol):
    """Asks an agent how much of each window is used, without a run. It never raises."""

    async def __call__(self) -> HarnessUsageReading:
        """The reading now. To stop waiting for it, cancel the call."""
        ...
