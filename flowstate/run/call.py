"""
A call: a block that a node runs beneath itself, though it stands in no plan. A model's tool, say.

The block's own plan is made when it is first called from a place, and kept. Its frame stands below
the caller's, so that paths, limits, containers and the gate are what they are for any step there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from flowstate.define.block import Block
from flowstate.errors import DefinitionError, PlanError
from flowstate.plan.build import Plan, build_plan
from flowstate.plan.declared import joined
from flowstate.plan.program import Place
from flowstate.run.drive import drive
from flowstate.run.frame import Frame
from flowstate.run.gate import Gate


async def call(
    frame: Frame,
    place: Place,
    turns: tuple[int, ...],
    block: Block[Any, Any],
    value: Any,
    number: int,
    container: str | None,
) -> Any:
    """
    Run a block beneath a node and return its output.

    Args:
        frame: the node's.
        place: where the node stands in it.
        turns: of the loops around it.
        block: what to run.
        value: validated against its input type.
        number: which call of the node's this is, from 1.
        container: the id of the container item that groups its items; None: the node's own.

    Raises:
        PlanError: the block doesn't fit together, or beside what the plan declares.
        DefinitionError: it asks a person.
        InvalidValue: the value doesn't fit.
        Exception: whatever the block raised, bare.
    """
    plan = _plan_of(block, f"{place.site.path}/{block.name}")
    declared, clashes = joined(frame.services.declared, plan.declared, plan.root.path)
    if clashes:
        raise PlanError(block.name, clashes)
    services = frame.services.lent(declared)
    gate = Gate(frame.gate)
    inner = Frame(plan.program, services, gate, frame, place, turns, "call", number)
    if container is not None:
        inner.container = container
    try:
        return await drive(inner, plan.checked_input(value))
    finally:
        gate.leave()


@lru_cache(maxsize=512)
def _plan_of(block: Block[Any, Any], path: str) -> Plan[Any, Any]:
    plan = build_plan(block, path=path)
    if plan.program.asks:
        raise DefinitionError(
            block.name,
            "it asks a person, and was called by another block",
            "Ask in the chain, and hand the answer to the block that calls.",
        )
    return plan
