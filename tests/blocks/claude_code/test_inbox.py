"""The inbox: what is heard is taken in its order, at once where that is possible."""

from __future__ import annotations

import itertools

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.heard import Heard, StateHeard
from flowstate.blocks.claude_code.inbox import Inbox, take_nothing

pytestmark = pytest.mark.anyio


class Run:
    """A run that takes at once whatever isn't called ``wait``, and is slow with what is."""

    def __init__(self, slow: int = 0) -> None:
        self.inbox = Inbox(self._take)
        self.at_once: list[str] = []
        self.taken: list[str] = []
        self._slow = slow

    def _take(self, heard: Heard) -> bool:
        name = _name(heard)
        if name.startswith("wait"):
            return False
        self.at_once.append(name)
        self.taken.append(name)
        return True

    async def work(self) -> None:
        """The run's own task, until it is told that it is over."""
        while (heard := await self.inbox.next()) is not None:
            for _ in range(self._slow):
                await anyio.lowlevel.checkpoint()
            self.taken.append(_name(heard))


def _name(heard: Heard) -> str:
    assert isinstance(heard, StateHeard)
    return heard.state


def _heard(name: str) -> StateHeard:
    return StateHeard(state=name)


async def test_what_needs_no_waiting_is_taken_where_it_is_heard() -> None:
    """While the run waits, it is taken before ``put`` returns."""
    run = Run()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.work)
        await anyio.wait_all_tasks_blocked()
        run.inbox.put(_heard("a"))
        assert run.taken == ["a"]
        run.inbox.mark_over()


async def test_nothing_overtakes_what_the_run_is_at() -> None:
    """What comes while the run's task works waits for it, though it could be taken at once."""
    run = Run(slow=3)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.work)
        await anyio.wait_all_tasks_blocked()
        for name in ("a", "wait", "b"):
            run.inbox.put(_heard(name))
        assert run.taken == ["a"]
        await anyio.wait_all_tasks_blocked()
        run.inbox.put(_heard("c"))
        assert run.taken == ["a", "wait", "b", "c"]
        assert run.at_once == ["a", "c"]
        run.inbox.mark_over()


@given(
    script=st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=60),
    slow=st.integers(0, 3),
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_all_is_taken_once_and_in_order(
    backend: str, script: list[tuple[bool, int]], slow: int
) -> None:
    """Whatever may be taken at once, however slow the run is and however fast things come."""
    run = Run(slow)
    names = [f"{'wait' if waits else 'go'} {number}" for number, (waits, _) in enumerate(script)]

    async def listen() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.work)
            for name, (_, turns) in zip(names, script, strict=True):
                run.inbox.put(_heard(name))
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
            run.inbox.mark_over()

    anyio.run(listen, backend=backend)
    assert run.taken == names


async def test_a_cancelled_run_leaves_the_rest() -> None:
    """What comes once the run's task has gone is kept, in order, for after the end."""
    run = Run()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.work)
        await anyio.wait_all_tasks_blocked()
        run.inbox.put(_heard("a"))
        tasks.cancel_scope.cancel()
    for name in ("b", "wait", "c"):
        run.inbox.put(_heard(name))
    run.inbox.mark_over()
    assert run.taken == ["a"]
    assert [_name(heard) for heard in run.inbox.rest()] == ["b", "wait", "c"]
    assert run.inbox.rest() == []


async def test_it_ends_at_the_mark_and_when_it_is_closed() -> None:
    """The mark comes after what was kept before it; a closed inbox gives what it has."""
    inbox = Inbox(take_nothing)
    inbox.put(_heard("a"))
    inbox.mark_over()
    inbox.put(_heard("b"))
    inbox.close()
    given = [await inbox.next() for _ in range(4)]
    assert given == [_heard("a"), None, _heard("b"), None]


async def test_closing_wakes_a_run_that_waits() -> None:
    """A listener that ended without a word lets the run go."""
    inbox = Inbox(take_nothing)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inbox.next)
            await anyio.wait_all_tasks_blocked()
            assert "the run waits" in repr(inbox)
            inbox.close()


async def test_a_long_rest_does_not_hold_up_the_loop() -> None:
    """However much a slow hook let come in, others get to run while it is taken."""
    run = Run()
    for number in range(1000):
        run.inbox.put(_heard(f"wait {number}"))
    run.inbox.mark_over()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.work)
        seen: list[int] = []
        while len(run.taken) < 1000:
            await anyio.lowlevel.checkpoint()
            seen.append(len(run.taken))
    steps = [after - before for before, after in itertools.pairwise(seen)]
    assert max(steps) < 100
