"""``ctx.resources``: from a resource to the collection of whoever the request is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from flowstate.collection import Collection, K
from flowstate.context import M
from flowstate.define.resource import Resource
from flowstate.errors import UndeclaredResource
from flowstate.item.content import ResourceChange
from flowstate.state.owner import owner_of

if TYPE_CHECKING:
    from flowstate.run.node_context import NodeContext


@final
class NodeResources:
    """The collections as one node sees them; ``flowstate.collection.Resources``."""

    __slots__ = ("_context",)

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def __getitem__(self, resource: Resource[M, K]) -> Collection[M, K]:
        services = self._context.services
        where, owner = self._context.path, services.owner
        if services.declared.resources.get(resource.name) != resource:
            raise UndeclaredResource(where, resource.scope, resource.pattern)
        if not owner_of(resource.scope, owner.identity, owner.request_id):
            where = f"{where} (the request names no {resource.scope})"
            raise UndeclaredResource(where, resource.scope, resource.pattern)
        return owner.open_collection(resource, self._teller(resource))

    def _teller(self, resource: Resource[M, K]) -> Callable[[ResourceChange], object] | None:
        """What makes an item of a change; None where nobody listens."""
        if not resource.live:
            return None
        if resource.client != "none":
            return lambda change: self._context.items.add(change)
        # Clients may not read it, so they don't learn of its ids either.
        return lambda change: self._context.hidden_items().add(change)
