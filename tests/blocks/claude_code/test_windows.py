"""Rate-limit events as usage windows: Claude Code's own numbers, and none where it has none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from flowstate.blocks.claude_code.windows import usage_window_of
from flowstate.harness.usage import (
    HarnessUsageLevel,
    HarnessUsageReading,
    HarnessUsageReport,
    HarnessUsageWindow,
    UsageApiKey,
    UsageSignedOut,
    UsageUnavailable,
    UsageWindows,
)


@dataclass
class Info:
    """Shaped like the SDK's object."""

    status: str
    resets_at: int | None = None
    rate_limit_type: str | None = None
    utilization: float | None = None
    raw: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("info", "window"),
    [
        (
            {
                "rateLimitType": "seven_day",
                "status": "allowed_warning",
                "utilization": 0.87,
                "resetsAt": 1790000000,
            },
            ("seven_day", 10080, 87.0, "warning", 1790000000000),
        ),
        (
            {"rateLimitType": "seven_day", "status": "rejected", "utilization": 1.0},
            ("seven_day", 10080, 100.0, "reached", None),
        ),
        (
            {"rateLimitType": "seven_day", "status": "allowed", "resetsAt": 1790000000},
            ("seven_day", 10080, None, "ok", 1790000000000),
        ),
        (
            {"rateLimitType": "five_hour", "status": "allowed"},
            ("five_hour", 300, None, "ok", None),
        ),
        (
            {"rateLimitType": "seven_day_opus", "status": "allowed"},
            ("seven_day_opus", 10080, None, "ok", None),
        ),
        (
            {"rateLimitType": "fable_weekly", "status": "allowed"},
            ("fable_weekly", None, None, "ok", None),
        ),
        (
            {"rateLimitType": "overage", "status": "allowed"},
            ("overage", None, None, "ok", None),
        ),
        (
            {"rateLimitType": "seven_days", "status": "made-up"},
            ("seven_days", None, None, None, None),
        ),
        (
            {"rateLimitType": "five_hour", "status": "allowed", "utilization": 0},
            ("five_hour", 300, 0.0, "ok", None),
        ),
        (
            {"rateLimitType": "five_hour", "status": "allowed", "utilization": 0.29},
            ("five_hour", 300, 29.0, "ok", None),
        ),
        (
            {"rateLimitType": "five_hour", "status": "rejected", "utilization": 1.07},
            ("five_hour", 300, 100.0, "reached", None),
        ),
        (
            Info("allowed_warning", 1796046656, "five_hour", 0.91, {"utilization": 0.5}),
            ("five_hour", 300, 91.0, "warning", 1796046656000),
        ),
    ],
)
def test_a_window_carries_claude_codes_own_numbers(
    info: object, window: tuple[str, int | None, float | None, HarnessUsageLevel | None, int | None]
) -> None:
    """A fraction is scaled to a percent, seconds to milliseconds; what isn't sent stays None."""
    id_, minutes, used, level, resets_at = window
    assert usage_window_of(info) == HarnessUsageWindow(
        id=id_, minutes=minutes, used_percent=used, level=level, resets_at=resets_at
    )


def test_the_number_for_this_very_window_counts_wherever_the_event_carries_it() -> None:
    """A reached limit comes without its own number; the list of windows beside it has one."""
    raw = {
        "status": "rejected",
        "rateLimitType": "five_hour",
        "unifiedWindows": {"five_hour": {"utilization": 1}, "seven_day": {"utilization": 0.3}},
    }
    window = usage_window_of(raw)
    assert window is not None
    assert window.used_percent == 100.0
    assert usage_window_of(Info("rejected", None, "five_hour", None, raw)) == window
    other = {**raw, "rateLimitType": "seven_day_opus"}
    assert usage_window_of(other) == HarnessUsageWindow(
        id="seven_day_opus", minutes=10080, level="reached"
    )


@pytest.mark.parametrize(
    "info",
    [
        {"status": "allowed", "isUsingOverage": False},
        {"rateLimitType": "", "status": "allowed"},
        {"rateLimitType": 5, "status": "allowed"},
        {},
        None,
        "five_hour",
        Info("allowed"),
    ],
)
def test_an_event_that_names_no_window_is_none(info: object) -> None:
    """Without any limit headers Claude Code sends an event that says nothing of a window."""
    assert usage_window_of(info) is None


@pytest.mark.parametrize("number", [True, "0.5", math.nan, math.inf, -0.1, None, [0.5], 10**400])
def test_what_is_no_number_is_none_and_never_zero(number: object) -> None:
    """Odd values of every field are left out; nothing raises."""
    info = {
        "rateLimitType": "five_hour",
        "status": ["allowed"],
        "utilization": number,
        "resetsAt": number,
        "unifiedWindows": number,
    }
    assert usage_window_of(info) == HarnessUsageWindow(id="five_hour", minutes=300)


def test_a_stored_window_without_a_level_parses() -> None:
    """What was stored by a vendor that sends only a percent reads as level None, in wire names."""
    window = HarnessUsageWindow.model_validate({"id": "weekly", "usedPercent": 12.5})
    assert window == HarnessUsageWindow(id="weekly", used_percent=12.5, level=None)
    assert HarnessUsageWindow.model_validate(window.model_dump(by_alias=True)) == window
    assert "resetsAt" in window.model_dump(by_alias=True)


@pytest.mark.parametrize("percent", [-1, 101, math.nan, math.inf])
def test_a_percent_is_from_0_to_100(percent: float) -> None:
    """A fraction mistaken for a percent can't be told, but these can."""
    with pytest.raises(ValidationError):
        HarnessUsageWindow(id="x", used_percent=percent)


def test_the_four_readings_are_told_apart_by_their_status() -> None:
    """Only ``windows`` carries numbers; each of the others says why there are none."""
    reading: TypeAdapter[HarnessUsageReading] = TypeAdapter(HarnessUsageReading)
    for value in (
        UsageWindows(plan="Claude Max", account_id="ada@example.com"),
        UsageApiKey(reason="runs on an API key"),
        UsageSignedOut(reason="nobody is signed in"),
        UsageUnavailable(reason="no answer within 10 s"),
    ):
        assert reading.validate_python(value.model_dump(by_alias=True)) == value
    assert UsageWindows().windows == ()
    with pytest.raises(ValidationError):
        reading.validate_python({"status": "unavailable"})


def test_a_report_carries_one_window() -> None:
    """What a hook is handed, in wire names too."""
    report = HarnessUsageReport(
        harness="claude-code",
        window=HarnessUsageWindow(id="five_hour"),
        observed_at=1796046656000,
        run_started_at=1796046655000,
    )
    assert report.account_id is None
    assert report.model_dump(by_alias=True)["runStartedAt"] == 1796046655000
