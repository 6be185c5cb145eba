"""
Who may see an item: a pure function of its type and of what its block declared.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Visibility: TypeAlias = Literal["client", "trace"]
"""``client``: any reader of the session. ``trace``: the host's own readers (CLI, devtool, logs)."""

_TRACE_TYPES = frozenset({"block_trace", "router_decision", "state_change"})

_HIDDEN = "hidden_"


def hidden_id(item_id: str) -> str:
    """
    The id of an item that its block hides, or that lies under such a one.

    The id itself tells. So what lies under it is known to be hidden however many items there were,
    long after it has settled, and in another process, too.
    """
    return f"{_HIDDEN}{item_id}"


def is_hidden(item_id: str | None) -> bool:
    """
    Whether this is the id of an item that its block hides, or that lies under such a one.

    >>> is_hidden(hidden_id("item_1")), is_hidden("item_1"), is_hidden(None)
    (True, False, False)
    """
    return item_id is not None and item_id.startswith(_HIDDEN)


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
