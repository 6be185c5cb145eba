"""
The capability: a typed thing that blocks are given through their context, and what it brings.

``ctx.cap[memory]`` is a ``Memory``, made by the capability's factory for the node that asks. A
capability may bring state cells, resources, context entries, tools, control tools and other
capabilities; it never hooks into anybody's life cycle. It is identified by reference: the same one
used twice is there once, and two under one name is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

from flowstate.context import Context
from flowstate.errors import DefinitionError

if TYPE_CHECKING:
    from flowstate.define.tool import Tool
    from flowstate.define.uses import Use

H = TypeVar("H")
H_co = TypeVar("H_co", covariant=True)

ContextEntry: TypeAlias = "str | Callable[[Context], str]"
"""A text for a model's context, or what makes it for a run."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Capability(Generic[H_co]):
    """Made by ``define_capability``."""

    name: str
    factory: Callable[[Context], H_co]
    uses: tuple[Use, ...] = ()
    """State, resources and other capabilities that it needs."""
    context: tuple[ContextEntry, ...] = ()
    tools: tuple[Tool, ...] = ()
    """What a model may call."""
    control_tools: tuple[Tool, ...] = ()
    """Tools that steer the run itself rather than do its work."""

    def __repr__(self) -> str:
        return f"<capability {self.name!r}>"


def define_capability(
    name: str,
    kind: type[H],
    factory: Callable[[Context], H] | None = None,
    *,
    uses: Sequence[Use] = (),
    context: Sequence[ContextEntry] = (),
    tools: Sequence[Tool] = (),
    control_tools: Sequence[Tool] = (),
) -> Capability[H]:
    """
    A capability whose handle is a ``kind``.

    Args:
        name: unique within a plan.
        kind: what ``ctx.cap[...]`` gives.
        factory: makes it for a node; by default ``kind`` itself, called with the context. Called
            at most once a node, when it is first asked for. Synchronous.
        uses: state cells, resources and capabilities that it needs; declared wherever it is.
        context: entries for the context of models and agents that use it.
        tools: what they may call.
        control_tools: tools that steer the run.

    Raises:
        DefinitionError: the name is empty, or something it brings is of the wrong kind.
    """
    if not isinstance(name, str) or not name:
        raise DefinitionError("define_capability", f"name={name!r}", "Give it a name.")
    made: Callable[[Any], Any] = kind if factory is None else factory
    if not callable(made):
        raise DefinitionError(
            f"capability {name!r}", f"{made!r} is no factory", "Give a function of the context."
        )
    return Capability(
        name=name,
        factory=made,
        uses=tuple(uses),
        context=tuple(context),
        tools=tuple(tools),
        control_tools=tuple(control_tools),
    )
