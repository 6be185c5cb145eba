"""
A first flow: typed steps in a row, checked before anything runs.

    python examples/first_flow.py

It prints the plan, runs the flow twice in one session, and shows what an author sees whose steps
don't fit together.
"""

from __future__ import annotations

import anyio
from pydantic import BaseModel

from flowstate import (
    Context,
    Failure,
    Runtime,
    action,
    build_plan,
    define_flow,
    handler,
    sequencer,
    session_state,
)
from flowstate.errors import PlanError


class Order(BaseModel):
    """What a customer asks for."""

    item: str
    amount: int


class Quote(BaseModel):
    """What it costs, and when it comes."""

    price: float
    days: int


class History(BaseModel):
    """What the session has been quoted so far: it outlives a request, and a process."""

    quotes: int = 0


@handler
async def price(order: Order) -> float:
    if order.amount <= 0:
        raise ValueError(f"{order.amount} of {order.item!r} can't be ordered")
    return 2.5 * order.amount


@handler
async def delivery(order: Order) -> int:
    return 1 if order.amount < 10 else 3


@handler
async def no_quote(failure: Failure[ValueError]) -> Quote:
    return Quote(price=0.0, days=0)


@handler(uses=[session_state(History)])
async def remember(quote: Quote, ctx: Context) -> None:
    written = await ctx.session[History].increment("quotes")
    ctx.status.show(f"quote number {written.value.quotes}")


quote = (
    sequencer("quote", Order)
    .parallel(Quote, price=price, days=delivery)  # both at once, into a Quote
    .rescue(ValueError, no_quote)  # covers every step before it
    .tap(remember)  # awaited; the quote stays as it is
)
ordering = define_flow("ordering", actions=[action("quote", quote, concurrency="queue")])


async def main() -> None:
    print(build_plan(quote).mermaid())
    async with Runtime(ordering) as runtime:
        for order in (Order(item="bolt", amount=12), Order(item="nut", amount=0)):
            run = await runtime.dispatch(ordering.action("quote"), order, session="s1")
            print(f"{order!r} → {await run.output()!r}")

    try:
        # `delivery` takes an Order; by now the running value is a Quote.
        build_plan(quote.step(delivery))  # type: ignore[arg-type]  # pyright: ignore
    except PlanError as error:
        print(f"\n{error}")


if __name__ == "__main__":
    anyio.run(main)
