"""
Small values that are made by the thousand.

A frozen dataclass costs twice as much to make as a plain one: it goes around its own lock, field by
field. For what an agent's stream is made of, the type checkers' word is enough: they take a
``value`` for frozen. It can be hashed like one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(model: type[T]) -> type[T]:
    """A dataclass with slots: frozen for type checkers, and a plain one at run time."""
    return dataclass(slots=True, unsafe_hash=True)(model)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def named_value(model: type[T]) -> type[T]:
    """A ``value`` whose fields are given by name."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(model)
