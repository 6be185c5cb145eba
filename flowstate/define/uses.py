"""
What a block declares that it uses: state cells, resource collections, capabilities, and functions
that name some of the latter.

Declarations are data. The plan collects them, refuses two things under one name, and hands them
to the store; a block reaches what it declared through its context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, final

from pydantic import BaseModel

from flowstate.context import Context
from flowstate.define.capability import Capability
from flowstate.define.resource import Resource
from flowstate.errors import DefinitionError

M = TypeVar("M", bound=BaseModel)

ScopeKind: TypeAlias = Literal["request", "session", "user", "org", "block"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateDeclaration:
    """One typed cell in one scope."""

    scope: ScopeKind
    model: type[BaseModel]
    name: str
    """The cell's name in every store: it must stay the same for stored values to be found."""


Dynamic: TypeAlias = Callable[[Context], Sequence[Capability[Any]]]
"""
Names capabilities when a node runs. They give context entries, tools and control tools only: state
and resources have to be declared before anything runs.
"""

Use: TypeAlias = StateDeclaration | Resource[Any, Any] | Capability[Any] | Dynamic
"""Anything that may stand in ``uses=[...]``."""


def _declare(scope: ScopeKind, model: type[Any], name: str | None) -> StateDeclaration:
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise DefinitionError(
            f"{scope}_state", f"{model!r} is no pydantic model", "Hand it a BaseModel subclass."
        )
    if name is None:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", model.__name__).lower()
    return StateDeclaration(scope=scope, model=model, name=name)


def request_state(model: type[BaseModel], *, name: str | None = None) -> StateDeclaration:
    """State of the request; ``name`` is by default the model's, in snake case."""
    return _declare("request", model, name)


def session_state(model: type[BaseModel], *, name: str | None = None) -> StateDeclaration:
    """State of the session; ``name`` is by default the model's, in snake case."""
    return _declare("session", model, name)


def user_state(model: type[BaseModel], *, name: str | None = None) -> StateDeclaration:
    """State of the user, across sessions; ``name`` is by default the model's, in snake case."""
    return _declare("user", model, name)


def block_state(model: type[BaseModel], *, name: str | None = None) -> StateDeclaration:
    """
    State of one execution of the block that declares it, seen by the blocks inside it; ``name``
    is by default the model's, in snake case.
    """
    return _declare("block", model, name)


def org_state(model: type[BaseModel], *, name: str | None = None) -> StateDeclaration:
    """State of the organisation; ``name`` is by default the model's, in snake case."""
    return _declare("org", model, name)
