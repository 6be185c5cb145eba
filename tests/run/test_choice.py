"""branch and routers: one of several ways, and the error where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate import Failure, handler, route_by, router, run_block, sequencer
from flowstate.errors import NoMatchingBranch, WrongRoute
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def double(value: int) -> int:
    return value * 2


@handler
async def zero(failure: Failure[Exception]) -> int:
    return 0


async def test_the_first_arm_whose_condition_holds_is_taken() -> None:
    """Arms are asked in order, and no further than the first that holds."""
    asked: list[str] = []

    def asks(name: str, answer: bool) -> Any:
        def condition(value: int) -> bool:
            asked.append(name)
            return answer

        return condition

    built = sequencer("turn", int).branch(
        (asks("a", False), add_one), (asks("b", True), double), (asks("c", True), add_one)
    )
    assert await run_block(built, 5) == 10
    assert asked == ["a", "b"]


async def test_otherwise_is_taken_where_no_arm_is() -> None:
    """Without it, a value that no arm takes is an error that says what to write."""
    arms = sequencer("turn", int).branch((lambda value: value > 9, add_one), otherwise=double)
    assert [await run_block(arms, value) for value in (10, 9)] == [11, 18]
    built = sequencer("turn", int).branch((lambda value: value > 9, add_one))
    with pytest.raises(NoMatchingBranch, match=r"turn/branch: no arm matches 9.*otherwise=block"):
        await run_block(built, 9)
    assert await run_block(built.rescue(NoMatchingBranch, zero), 9) == 0


async def test_a_condition_that_raises_is_the_branchs_failure() -> None:
    """No further arm is tried."""
    journal = Journal()
    built = sequencer("turn", int).branch(
        (lambda value: 1 // value > 0, journal.block("a")), otherwise=journal.block("b")
    )
    with pytest.raises(ZeroDivisionError):
        await run_block(built, 0)
    assert journal.lines == []


async def test_exit_if_in_an_arm_leaves_that_arm() -> None:
    """The steps after the branch go on with what the arm left with."""
    arm = sequencer("arm", int).exit_if(lambda value: value > 3).step(double)
    built = sequencer("turn", int).branch((lambda _: True, arm)).step(add_one)
    assert [await run_block(built, value) for value in (5, 2)] == [6, 5]


async def test_a_router_runs_the_route_it_selects() -> None:
    """By the block or by its name."""
    by_block = router("way", routes=[add_one, double], select=lambda v: double if v else add_one)
    by_name = router("way", routes=[add_one, double], select=lambda v: "double" if v else "add_one")
    for way in (by_block, by_name):
        built = sequencer("turn", int).step(way).step(add_one)
        assert [await run_block(built, value) for value in (0, 5)] == [2, 11]


async def test_the_decision_is_an_item_before_the_route_starts() -> None:
    """A trace item that names the router, the route and where."""
    journal = Journal()
    told: list[str] = []

    def tell(event: Any) -> None:
        told.append(event.item.content.type)
        journal.lines.append("decided")
        assert event.item.content.router == "way"
        assert event.item.content.route == "right"
        assert event.item.provenance.path == "turn/way"
        assert event.item.visibility == "trace"

    way = router(
        "way",
        routes=[journal.block("left"), journal.block("right")],
        select=lambda value: "right",
    )
    await run_block(sequencer("turn", int).step(way), 1, emit=tell)
    assert told == ["router_decision"]
    assert journal.lines[:2] == ["decided", "right starts"]


@pytest.mark.parametrize("wrong", ["triple", None, 5, [], add_one.configure()])
async def test_a_choice_that_is_no_route_is_an_error(wrong: Any) -> None:
    """Another block, another name or nothing: named, with the routes there are."""
    way: Any = router("way", routes=[add_one, double], select=lambda value: wrong)
    with pytest.raises(WrongRoute, match=r"turn/way: .*none of its routes \(add_one, double\)"):
        await run_block(sequencer("turn", int).step(way), 1)
    rescued = sequencer("turn", int).step(way).rescue(WrongRoute, zero)
    assert await run_block(rescued, 1) == 0


async def test_routes_lead_on_to_the_same_next_step_once() -> None:
    """Whichever way is taken, what follows runs once: a join waits for nothing not taken."""
    journal = Journal()
    way = router(
        "way",
        routes=[sequencer("long", int).step(add_one).step(add_one), double],
        select=lambda value: "long" if value < 5 else "double",
    )
    built = sequencer("turn", int).step(way).step(journal.block("next"))
    assert [await run_block(built, value) for value in (1, 5)] == [3, 10]
    assert journal.count("next starts") == 2


async def test_route_by_looks_a_key_up() -> None:
    """A key that isn't there is an error."""
    way = route_by("way", lambda value: value % 3, {0: add_one, 1: double})
    built = sequencer("turn", int).step(way)
    assert [await run_block(built, value) for value in (3, 4)] == [4, 8]
    with pytest.raises(WrongRoute, match="select returned '2'"):
        await run_block(built, 5)


async def test_a_router_in_a_loop_decides_anew_each_turn() -> None:
    """Nothing of a decision is kept."""
    way = router(
        "way", routes=[add_one, double], select=lambda value: "double" if value % 2 else "add_one"
    )
    built = sequencer("turn", int).do_until(lambda value: value > 20, way, max_iterations=20)
    assert await run_block(built, 0) == 30  # 1 2 3 6 7 14 15 30
