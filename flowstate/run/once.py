"""Running one block by itself: no flow, no store, no admission. For tests, scripts and benches."""

from __future__ import annotations

import time
from typing import Any, TypeVar

from flowstate.define.block import Block
from flowstate.define.uses import StateDeclaration
from flowstate.ids import Identity, RequestId, SessionId, random_id
from flowstate.item.book import ItemBook
from flowstate.item.event import ItemEvent
from flowstate.plan.build import Plan, build_plan
from flowstate.plan.validator import checker
from flowstate.run.frame import Frame, Listener
from flowstate.run.gate import Gate
from flowstate.run.scheduler import execute
from flowstate.run.services import Services
from flowstate.run.side_chains import SideChains
from flowstate.state.cell import StateCell, cell_key
from flowstate.store.memory import MemoryStore

A = TypeVar("A")
B = TypeVar("B")


async def run_block(
    block: Block[A, B] | Plan[A, B],
    value: A,
    *,
    identity: Identity | None = None,
    listener: Listener | None = None,
    emit: Any = None,
) -> B:
    """
    Run a block, or a plan made before, on a value and return its output.

    Args:
        block: built anew each time if it is no plan.
        value: validated against the block's input type.
        identity: who it is for; by default a session of its own.
        listener: told of every node.
        emit: told of every item event, ``(ItemEvent) -> None``.

    Raises:
        PlanError: the composition doesn't fit together.
        InvalidValue: the value doesn't fit.
        Exception: whatever a block raised, bare.
    """
    plan = block if isinstance(block, Plan) else build_plan(block)
    check = checker(plan.input_type, f"{plan.name} (input)")
    if check is not None:
        value = check(value)
    identity = identity or Identity(session_id=SessionId("session"))
    request_id = RequestId("request")
    store = MemoryStore()

    def open_cell(declaration: StateDeclaration, path: str | None) -> StateCell[Any]:
        return StateCell(
            store, cell_key(declaration, identity, request_id, path), declaration.model
        )

    side_chains = SideChains()
    services = Services(
        request_id=request_id,
        identity=identity,
        flow="once",
        action=plan.name,
        book=ItemBook(
            request_id, clock=lambda: int(time.time() * 1000), ids=random_id, emit=emit or _ignore
        ),
        side_chains=side_chains,
        declared=plan.declared,
        open_cell=open_cell,
        listener=listener,
    )
    gate = Gate()
    if not plan.program.has_side_chains:
        result: B = await execute(Frame(plan.program, services, gate), value)
        return result
    failure: Exception | None = None
    async with side_chains:
        # Not raised in here: the side chains go on when the main chain fails.
        try:
            result = await execute(Frame(plan.program, services, gate), value)
        except Exception as error:
            failure = error
        except BaseException:
            gate.close()
            raise
    if failure is not None:
        raise failure
    return result


def _ignore(event: ItemEvent) -> None:
    """Nobody listens."""
