"""What a model call used: counted by the provider, told after each answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from flowstate.context import Context


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One call of the model, as its provider counted it; what it didn't send is 0."""

    model: str
    """The model that answered, by its provider's name for it."""
    turn: int
    """Which call of this run it was, from 1."""
    input_tokens: int = 0
    """All that it read, cached or not."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    """Of the input, what it read from a cache."""
    cache_write_tokens: int = 0
    """Of the input, what it put into a cache."""
    complete: bool = True
    """False: the answer broke off or was cancelled, and this is what had been told until then."""


OnModelUsage: TypeAlias = Callable[[ModelUsage, Context], "object | Awaitable[object]"]
"""Told of each call of the model; awaited if it returns an awaitable. What it raises is logged."""
