"""
Who may see an item: a pure function of its type and of what its block declared.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Visibility: TypeAlias = Literal["client", "trace"]
"""``client``: any reader of the session. ``trace``: the host's own readers (CLI, devtool, logs)."""

_TRACE_TYPES = frozenset({"block_trace", "router_decision", "state_change"})


def visibility_of(content_type: str, declared: Visibility | None) -> Visibility:
    """
    The visibility of an item of this type made by a block with this declaration.

    A block can hide what is shown by default; it can't show what is a trace by type.

    >>> visibility_of("message", None), visibility_of("message", "trace")
    ('client', 'trace')
    >>> visibility_of("block_trace", "client")
    'trace'
    """
    if content_type in _TRACE_TYPES:
        return "trace"
    return declared or "client"
