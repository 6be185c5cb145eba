"""What sessions keep open between requests: entered and left in the Runtime's own task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from flowstate import Context, Runtime, action, define_flow, handler, run_block
from flowstate.errors import RuntimeClosed

pytestmark = pytest.mark.anyio


class Lines:
    """Connections, numbered, and what became of them."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed: list[int] = []
        self.tasks: list[int] = []
        self.fail: Exception | None = None
        self.gate: anyio.Event | None = None

    def connect(self) -> AbstractAsyncContextManager[int]:
        @asynccontextmanager
        async def connection() -> AsyncIterator[int]:
            if self.gate is not None:
                await self.gate.wait()
            if self.fail is not None:
                raise self.fail
            self.opened += 1
            number = self.opened
            # A scope of its own, as an SDK's client has: it must be left in the task it was
            # entered in.
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                self.tasks.append(anyio.get_current_task().id)
                try:
                    yield number
                finally:
                    assert anyio.get_current_task().id == self.tasks[number - 1]
                    await anyio.lowlevel.checkpoint()
                    self.closed.append(number)
                    tasks.cancel_scope.cancel()

        return connection()


def using(lines: Lines, name: str = "line") -> Any:
    @handler
    async def talk(value: int, ctx: Context) -> int:
        if value < 0:
            await ctx.let_go(name)
            return 0
        return await ctx.keep(name, lines.connect)

    return action("talk", talk)


async def said(runtime: Runtime, talk: Any, value: int = 0, **who: Any) -> int:
    run = await runtime.dispatch(talk, value, **{"session": "s", **who})
    number: int = await run.output()
    await run.finished()
    return number


async def test_the_next_request_goes_on_using_it() -> None:
    """Opened once, in another task than any run's; closed when the Runtime is left."""
    lines = Lines()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        assert [await said(runtime, talk) for _ in range(3)] == [1, 1, 1]
        assert lines.closed == []
    assert lines.closed == [1]


async def test_sessions_and_tenants_never_share_one() -> None:
    """Whatever their ids hold."""
    lines = Lines()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        numbers = [
            await said(runtime, talk, session="s"),
            await said(runtime, talk, session="s", tenant="s"),
            await said(runtime, talk, session="s", tenant=""),
            await said(runtime, talk, session="t"),
        ]
        assert numbers == [1, 2, 3, 4]
        assert await said(runtime, talk, session="s", tenant="") == 3
    assert sorted(lines.closed) == [1, 2, 3, 4]


async def test_who_asks_while_it_is_opened_waits_for_the_same() -> None:
    """Also when the one who asked first is cancelled meanwhile."""
    lines = Lines()
    lines.gate = anyio.Event()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        first = await runtime.dispatch(talk, 0, session="s")
        second = await runtime.dispatch(talk, 0, session="s")
        await anyio.sleep(0.01)
        first.cancel()
        assert await first.finished() == "cancelled"
        lines.gate.set()
        assert await second.output() == 1
    assert (lines.opened, lines.closed) == (1, [1])


async def test_let_go_closes_it_and_the_next_opens_another() -> None:
    """It is closed when ``let_go`` returns; letting go of nothing does nothing."""
    lines = Lines()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        await said(runtime, talk, -1)
        assert await said(runtime, talk) == 1
        await said(runtime, talk, -1)
        assert lines.closed == [1]
        assert await said(runtime, talk) == 2
    assert lines.closed == [1, 2]


async def test_one_let_go_while_it_is_opened_is_not_handed_out() -> None:
    """Who waited for it is given the next one, and neither a closed one nor an error."""
    lines = Lines()
    lines.gate = anyio.Event()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        waiting = await runtime.dispatch(talk, 0, session="s")
        await anyio.sleep(0.01)
        letting_go = await runtime.dispatch(talk, -1, session="s")
        await anyio.sleep(0.01)
        lines.gate.set()
        assert await letting_go.output() == 0
        assert await waiting.output() == 2
        assert lines.closed == [1]
    assert lines.closed == [1, 2]


async def test_one_that_can_not_be_opened_is_told_and_tried_again() -> None:
    """The error is the opener's own; nothing half-open stays."""
    lines = Lines()
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        lines.fail = OSError("no route")
        with pytest.raises(OSError, match="no route"):
            await said(runtime, talk)
        lines.fail = None
        assert await said(runtime, talk) == 1
    assert lines.closed == [1]


async def test_one_that_can_not_be_made_is_told_too() -> None:
    """A factory that raises is no different."""

    def broken() -> AbstractAsyncContextManager[int]:
        raise ValueError("no such host")

    lines = Lines()
    lines.connect = broken  # type: ignore[method-assign]
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        with pytest.raises(ValueError, match="no such host"):
            await said(runtime, talk)


async def test_a_cancelled_runtime_closes_it_all_the_same() -> None:
    """Its closing is sheltered from the cancellation, which goes on afterwards."""
    lines = Lines()
    talk = using(lines)
    with anyio.CancelScope() as scope:
        async with Runtime(define_flow("f", actions=[talk])) as runtime:
            assert await said(runtime, talk) == 1
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert lines.closed == [1]


async def test_an_error_of_the_host_closes_it_too() -> None:
    """And goes on bare."""
    lines = Lines()
    talk = using(lines)
    try:
        async with Runtime(define_flow("f", actions=[talk])) as runtime:
            assert await said(runtime, talk) == 1
            raise LookupError("host")
    except LookupError as error:
        assert str(error) == "host"  # noqa: PT017
    assert lines.closed == [1]


async def test_requests_still_under_way_go_on_using_it_while_the_runtime_is_left() -> None:
    """It is closed behind the last of them."""
    lines = Lines()
    used: list[int] = []

    @handler
    async def slow(value: int, ctx: Context) -> int:
        number = await ctx.keep("line", lines.connect)
        await anyio.sleep(0.03)
        used.append(number)
        assert lines.closed == []
        return await ctx.keep("line", lines.connect)

    act = action("slow", slow)
    async with Runtime(define_flow("f", actions=[act])) as runtime:
        run = await runtime.dispatch(act, 1, session="s")
        await run.started()
    assert await run.output() == 1
    assert (used, lines.closed) == ([1], [1])


async def test_one_that_fails_to_close_holds_nothing_up() -> None:
    """It is logged; the Runtime is left all the same."""

    @asynccontextmanager
    async def sticky() -> AsyncIterator[int]:
        yield 1
        raise OSError("will not close")

    lines = Lines()
    lines.connect = sticky  # type: ignore[method-assign]
    talk = using(lines)
    async with Runtime(define_flow("f", actions=[talk])) as runtime:
        assert await said(runtime, talk) == 1


async def test_without_a_runtime_nothing_is_kept() -> None:
    """The error says what is missing."""
    lines = Lines()
    talk: Any = using(lines).block
    with pytest.raises(RuntimeClosed, match="keeping 'line' open"):
        await run_block(talk, 1)
    assert lines.opened == 0
