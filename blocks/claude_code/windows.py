"""
What Claude Code says about a subscription's limits, as neutral usage windows.

Pure. It takes the SDK's ``RateLimitInfo`` or the raw payload and reads both spellings. It never
raises, and it makes no number up: a missing one is None.
"""

from __future__ import annotations

from typing import Final

from flowstate.blocks.claude_code.json_value import mapping_of, number_of, text_of
from flowstate.harness.usage import HarnessUsageLevel, HarnessUsageWindow

_FIVE_HOURS: Final = 5 * 60
_SEVEN_DAYS: Final = 7 * 24 * 60

_LEVELS: Final[dict[str, HarnessUsageLevel]] = {
    "allowed": "ok",
    "allowed_warning": "warning",
    "rejected": "reached",
}


def usage_window_of(info: object) -> HarnessUsageWindow | None:
    """
    The window that one rate-limit event tells of, or None when it names no window.

    Args:
        info: the SDK's ``RateLimitInfo``, or the event's raw ``rate_limit_info`` dict.

    >>> usage_window_of({"rateLimitType": "seven_day", "status": "allowed", "resetsAt": 1790000000})
    ... # doctest: +NORMALIZE_WHITESPACE
    HarnessUsageWindow(id='seven_day', label=None, minutes=10080, used_percent=None, level='ok',
                       resets_at=1790000000000)
    >>> usage_window_of({"status": "allowed", "isUsingOverage": False}) is None
    True
    """
    name = text_of(_read(info, "rate_limit_type", "rateLimitType"))
    if name is None:
        return None
    status = _read(info, "status", "status")
    # The event's own number comes only near a limit. The same event may carry it for this very
    # window beside it, also once the limit is reached; that is Claude Code's number as well.
    fraction = number_of(_read(info, "utilization", "utilization"))
    if fraction is None:
        fraction = number_of(mapping_of(mapping_of(_unified(info)).get(name)).get("utilization"))
    resets_at = number_of(_read(info, "resets_at", "resetsAt"))
    return HarnessUsageWindow(
        id=name,
        minutes=_minutes(name),
        used_percent=None if fraction is None else _percent(fraction),
        level=_LEVELS.get(status) if isinstance(status, str) else None,
        resets_at=None if resets_at is None or resets_at <= 0 else round(resets_at * 1000),
    )


def _minutes(name: str) -> int | None:
    if name == "five_hour":
        return _FIVE_HOURS
    if name == "seven_day" or name.startswith("seven_day_"):
        return _SEVEN_DAYS
    return None


def _percent(fraction: float) -> float:
    # Rounded where binary fractions get in the way (0.29 * 100), far below what anyone can see.
    return min(100.0, round(fraction * 100, 6))


def _unified(info: object) -> object:
    raw = mapping_of(info) or mapping_of(getattr(info, "raw", None))
    return raw.get("unifiedWindows")


def _read(info: object, attribute: str, key: str) -> object:
    raw = mapping_of(info)
    return raw.get(key) if raw else getattr(info, attribute, None)
