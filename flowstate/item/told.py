"""
Whether an error already has an item that tells of it.

A block that knows more of a failure than its message says so in an error item of its own, before
it raises. The request then adds none: one failure is one item.
"""

from __future__ import annotations

_MARK = "__flowstate_told__"


def mark_told(error: BaseException) -> None:
    """An item tells of this error. An exception that takes no attributes is told of twice."""
    try:
        setattr(error, _MARK, True)
    except (AttributeError, TypeError):
        return


def was_told(error: BaseException) -> bool:
    """Whether ``mark_told`` was called for this error."""
    return getattr(error, _MARK, False) is True
