"""Context variables: a chain shares them, branches don't."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import anyio.lowlevel
import pytest

from flowstate import handler, run_block, sequencer

pytestmark = pytest.mark.anyio

variable: ContextVar[Any] = ContextVar("variable", default="unset")


class Incomparable:
    """A value that doesn't let itself be compared, as arrays don't."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("the truth of this is ambiguous")


def setting(name: str, waits: int = 0, value: Any = None) -> Any:
    """A block that reads the variable, sets it, and reads it again later."""

    async def run(given: Any) -> tuple[Any, Any]:
        before = variable.get()
        variable.set(value if value is not None else name)
        for _ in range(waits):
            await anyio.lowlevel.checkpoint()
        return before, variable.get()

    return handler(name=name)(run)


async def test_steps_of_one_chain_share_them() -> None:
    """What a step sets, a later step of the chain sees, and the host afterwards."""
    built = sequencer("turn", int).step(setting("a")).step(setting("b"))
    token = variable.set("host")
    try:
        assert await run_block(built, 1) == ("a", "b")
    finally:
        variable.reset(token)


@pytest.mark.parametrize("waits", [0, 2])
@pytest.mark.parametrize("method", ["parallel", "for_each", "race"])
async def test_branches_don_t_see_each_others(method: str, waits: int) -> None:
    """Each begins with what the chain had, waiting or not; the chain keeps its own."""
    names = ["a", "b", "c", "d", "e"]
    built: Any
    if method == "for_each":

        async def run(name: str) -> tuple[Any, Any]:
            before = variable.get()
            variable.set(name)
            for _ in range(waits):
                await anyio.lowlevel.checkpoint()
            return before, variable.get()

        built = sequencer("turn", int).map(lambda _: names).for_each(handler(run))
        expected: Any = [("chain", name) for name in names]
    elif method == "parallel":
        built = sequencer("turn", int).parallel(**{name: setting(name, waits) for name in names})
        expected = {name: ("chain", name) for name in names}
    else:
        built = sequencer("turn", int).race(setting("a", waits), setting("b", waits + 3))
        expected = ("chain", "a")

    @handler
    async def look(value: Any) -> Any:
        assert variable.get() == "chain"
        return value

    token = variable.set("chain")
    try:
        assert await run_block(built.step(look), 1) == expected
    finally:
        variable.reset(token)


async def test_values_that_can_t_be_compared_do_no_harm() -> None:
    """A branch may set whatever it likes."""
    token = variable.set(Incomparable())
    try:
        branches = {name: setting(name, value=Incomparable()) for name in "abc"}
        results = await run_block(sequencer("turn", int).parallel(**branches), 1)
        firsts = {id(before) for before, _ in results.values()}
        assert len(firsts) == 1
    finally:
        variable.reset(token)
