"""``ctx.cap``: from a capability to its handle, made once a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, final

from flowstate.context import Entries
from flowstate.define.block import Block
from flowstate.define.capability import Capability
from flowstate.define.resource import Resource
from flowstate.define.tool import Tool
from flowstate.define.uses import StateDeclaration
from flowstate.errors import UndeclaredCapability

if TYPE_CHECKING:
    from flowstate.run.node_context import NodeContext
    from flowstate.run.services import Services

H = TypeVar("H")


@final
class NodeCapabilities:
    """The capabilities as one node sees them."""

    __slots__ = ("_block", "_context", "_made", "_services")

    def __init__(
        self, context: NodeContext, services: Services, block: Block[Any, Any] | None
    ) -> None:
        self._context = context
        self._services = services
        self._block = block
        self._made: dict[Capability[Any], Any] = {}

    def __getitem__(self, capability: Capability[H]) -> H:
        if capability in self._made:
            handle: H = self._made[capability]
            return handle
        if self._services.declared.capabilities.get(capability.name) is not capability:
            raise UndeclaredCapability(self._context.path, capability.name)
        handle = self._made[capability] = capability.factory(self._context)
        return handle

    def entries(self) -> Entries:
        """What the capabilities of this block bring, each capability once, dependencies first."""
        found: dict[Capability[Any], None] = {}
        for use in self._block.uses if self._block is not None else ():
            if isinstance(use, Capability):
                _gather(use, found)
            elif not isinstance(use, StateDeclaration | Resource):
                for named in use(self._context):
                    _gather(named, found)
        context: list[str] = []
        tools: list[Tool] = []
        control: list[Tool] = []
        for capability in found:
            context += [
                entry if isinstance(entry, str) else entry(self._context)
                for entry in capability.context
            ]
            tools += capability.tools
            control += capability.control_tools
        return Entries(context=tuple(context), tools=tuple(tools), control_tools=tuple(control))


def _gather(capability: Capability[Any], found: dict[Capability[Any], None]) -> None:
    if capability in found:
        return
    for use in capability.uses:
        if isinstance(use, Capability):
            _gather(use, found)
    found[capability] = None
