"""
A coding agent's handle as rows of a name and a value, for people.

Works for every agent's handle: the neutral fields in words, and whatever fields it adds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from flowstate.cli.terminal_text import printable
from flowstate.harness.handle import HarnessRunHandle


def handle_rows(handle: HarnessRunHandle) -> list[tuple[str, str]]:
    """The fields that have a value, in their order; the status is left to the caller."""
    rows: list[tuple[str, str]] = []
    for name in type(handle).model_fields:
        value: Any = getattr(handle, name)
        if value is None or name == "status":
            continue
        rows.append((name.replace("_", " "), printable(_text(name, value, handle))))
    return rows


def _text(name: str, value: Any, handle: HarnessRunHandle) -> str:
    if name == "dispatched_at":
        moment = datetime.fromtimestamp(handle.dispatched_at / 1000, tz=UTC)
        return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if name == "usage" and handle.usage is not None:
        return f"{handle.usage.input_tokens} tokens in, {handle.usage.output_tokens} out"
    if name == "cost" and handle.cost is not None:
        return f"{handle.cost.usd:.4f} USD ({handle.cost.basis})"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, cast("list[object]", value))) or "none"
    return str(value)
