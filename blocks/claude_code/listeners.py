"""
The author's functions that are told of a run and decide nothing in it.

What one of them raises is logged, and the run goes on as if it had returned.
"""

from __future__ import annotations

import time
from typing import final

from flowstate.blocks.claude_code.heard import (
    AssistantHeard,
    Heard,
    SessionHeard,
    Took,
    UsageHeard,
)
from flowstate.blocks.claude_code.hook_failure import log_hook_failure
from flowstate.blocks.claude_code.options import CLAUDE_CODE_HARNESS, AgentSettings
from flowstate.blocks.claude_code.resolving import awaited
from flowstate.context import Context
from flowstate.harness.effect import MessageActivity, ToolActivity
from flowstate.harness.usage import HarnessUsageReport, HarnessUsageWindow


@final
class Listeners:
    """``on_activity``, ``on_usage`` and ``on_errored`` of one run; any may be missing."""

    def __init__(self, settings: AgentSettings, ctx: Context) -> None:
        self._settings = settings
        self._ctx = ctx

    @property
    def concerned(self) -> tuple[type[Heard], ...]:
        """What concerns functions of the author, these and others: known when a run begins."""
        settings = self._settings
        kinds: list[type[Heard]] = [SessionHeard]  # what names it is awaited before all else
        if settings.on_activity is not None:
            kinds.append(AssistantHeard)
        if settings.on_usage is not None:
            kinds.append(UsageHeard)
        if settings.on_steerable is not None:
            kinds.append(Took)
        return tuple(kinds)

    def activity(self, activity: MessageActivity | ToolActivity) -> None:
        """The agent completed a message, or started a tool call."""
        if self._settings.on_activity is None:
            return
        try:
            self._settings.on_activity(activity, self._ctx)
        except Exception as error:
            log_hook_failure(self._ctx, "on_activity failed", error)

    async def usage(
        self, window: HarnessUsageWindow, *, run_started_at: int, account_id: str | None
    ) -> None:
        """Claude Code told where a limit stands; ``run_started_at`` is in epoch milliseconds."""
        if self._settings.on_usage is None:
            return
        report = HarnessUsageReport(
            harness=CLAUDE_CODE_HARNESS,
            window=window,
            observed_at=int(time.time() * 1000),
            run_started_at=run_started_at,
            account_id=account_id,
        )
        try:
            await awaited(self._settings.on_usage(report, self._ctx))
        except Exception as error:
            log_hook_failure(self._ctx, "on_usage failed", error)

    async def errored(self, raised: BaseException) -> None:
        """The run has raised, or was cancelled."""
        if self._settings.on_errored is None:
            return
        try:
            await awaited(self._settings.on_errored(raised, self._ctx))
        except Exception as error:
            log_hook_failure(self._ctx, "on_errored failed", error)
