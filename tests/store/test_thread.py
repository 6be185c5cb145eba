"""The thread that works through what tasks ask of it, in groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import pytest

from flowstate.errors import StoreError
from flowstate.store.thread import GROUP, Ticket, WorkThread

pytestmark = pytest.mark.anyio

NAME = "a thread under test"


def _nothing() -> None:
    pass


def _made(
    work: Callable[[Sequence[Ticket[int]]], None],
    *,
    begin: Callable[[], None] = _nothing,
    end: Callable[[], None] = _nothing,
) -> WorkThread[int]:
    return WorkThread(NAME, begin=begin, work=work, end=end)


async def _until(holds: Callable[[], bool]) -> None:
    """Wait for something that the other thread does, and tells nobody."""
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.001)


def _is_running() -> bool:
    return any(thread.name == NAME for thread in threading.enumerate())


async def test_it_begins_works_and_ends_on_one_thread_of_its_own() -> None:
    """Whatever lives on the thread is made, used and let go there."""
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        seen.append((what, threading.get_ident()))

    def work(tickets: Sequence[Ticket[int]]) -> None:
        note("work")
        for ticket in tickets:
            ticket.result = ticket.job * 2

    thread = _made(work, begin=lambda: note("begin"), end=lambda: note("end"))
    await thread.start()
    assert await thread.ask(21) == 42
    assert _is_running()
    await thread.stop(within=10)
    assert not _is_running()
    assert [what for what, _ in seen] == ["begin", "work", "end"]
    assert len({ident for _, ident in seen}) == 1
    assert seen[0][1] != threading.get_ident()


async def test_what_waits_is_one_group_in_order() -> None:
    """Tickets asked for while the thread is busy come together, none lost, none twice."""
    groups: list[list[int]] = []
    busy = threading.Event()

    def work(tickets: Sequence[Ticket[int]]) -> None:
        groups.append([ticket.job for ticket in tickets])
        busy.wait(10)

    thread = _made(work)
    await thread.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(thread.ask, 0)
        await _until(lambda: bool(groups))
        for job in range(1, GROUP + 11):
            tasks.start_soon(thread.ask, job)
        await anyio.wait_all_tasks_blocked()
        busy.set()
    await thread.stop(within=10)
    assert [len(group) for group in groups] == [1, GROUP, 10]
    assert sorted(job for group in groups for job in group) == list(range(GROUP + 11))


async def test_an_error_reaches_the_one_who_asked() -> None:
    """A ticket's error is raised there, as it is; others are not touched."""

    def work(tickets: Sequence[Ticket[int]]) -> None:
        for ticket in tickets:
            if ticket.job < 0:
                ticket.error = ValueError("negative")

    thread = _made(work)
    await thread.start()
    with pytest.raises(ValueError, match="negative"):
        await thread.ask(-1)
    await thread.ask(1)
    await thread.stop(within=10)


async def test_work_that_raises_fails_its_group_and_the_thread_goes_on() -> None:
    """Nobody is left waiting, whatever the work does; the cause is kept, its text isn't."""
    broken = [True]

    def work(tickets: Sequence[Ticket[int]]) -> None:
        if broken.pop():
            raise KeyError("hunter2")

    thread = _made(work)
    await thread.start()
    with pytest.raises(StoreError, match="KeyError") as caught:
        await thread.ask(1)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "hunter2" not in str(caught.value)
    broken[:] = [False]
    await thread.ask(2)
    await thread.stop(within=10)


async def test_a_begin_that_raises_ends_the_thread() -> None:
    """``start`` raises the same error, ``end`` is called, and no thread is left."""
    ended: list[bool] = []

    def begin() -> None:
        raise StoreError("no such file")

    thread = _made(lambda _: None, begin=begin, end=lambda: ended.append(True))
    with pytest.raises(StoreError, match="no such file"):
        await thread.start()
    assert ended == [True]
    assert not _is_running()
    with pytest.raises(StoreError, match="not open"):
        await thread.ask(1)


async def test_a_cancelled_start_leaves_no_thread() -> None:
    """The caller goes at once; the thread ends by itself when its begin is through."""
    slow = threading.Event()
    thread = _made(lambda _: None, begin=lambda: _wait(slow))
    with anyio.move_on_after(0.05) as scope:
        await thread.start()
    assert scope.cancelled_caught
    assert _is_running()
    slow.set()
    await _until(lambda: not _is_running())


def _wait(event: threading.Event) -> None:
    event.wait(10)


async def test_a_cancelled_ask_leaves_at_once_and_withdraws() -> None:
    """A task doesn't wait for a busy thread to be cancelled; the thread sees what was withdrawn."""
    busy = threading.Event()
    withdrawn: list[int] = []

    def work(tickets: Sequence[Ticket[int]]) -> None:
        for ticket in tickets:
            if ticket.withdrawn:
                withdrawn.append(ticket.job)
            elif ticket.job == 0:
                busy.wait(10)

    thread = _made(work)
    await thread.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(thread.ask, 0)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.05) as scope:
            await thread.ask(1)
        assert scope.cancelled_caught
        assert not busy.is_set()
        busy.set()
    await thread.ask(2)
    await thread.stop(within=10)
    assert withdrawn == [1]


async def test_stop_works_through_what_waits_even_when_cancelled() -> None:
    """Every ticket asked for before ``stop`` is worked on, and then the thread has ended."""
    busy = threading.Event()
    done: list[int] = []

    def work(tickets: Sequence[Ticket[int]]) -> None:
        busy.wait(10)
        done.extend(ticket.job for ticket in tickets)

    thread = _made(work)
    await thread.start()
    async with anyio.create_task_group() as tasks:
        for job in range(20):
            tasks.start_soon(thread.ask, job)
        await anyio.wait_all_tasks_blocked()
        threading.Timer(0.05, busy.set).start()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await thread.stop(within=10)
        assert sorted(done) == list(range(20))
        assert not _is_running()


async def test_a_thread_that_does_not_end_is_told() -> None:
    """``stop`` is bounded: it raises, and the thread ends by itself later."""
    busy = threading.Event()
    thread = _made(lambda _: _wait(busy))
    await thread.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(thread.ask, 0)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(StoreError, match=r"still busy after 0.05 s"):
            await thread.stop(within=0.05)
        busy.set()
    await _until(lambda: not _is_running())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_event_loop_that_ended_does_not_hold_the_thread_up(backend: str) -> None:
    """A loop that ends while the thread works is not waited for: the next one can go on."""
    busy = threading.Event()
    thread = _made(lambda _: _wait(busy))

    async def ask_and_leave() -> None:
        await thread.start()
        with anyio.move_on_after(0.02):
            await thread.ask(0)

    async def ask_again_and_stop() -> None:
        await thread.ask(1)
        await thread.stop(within=10)

    anyio.run(ask_and_leave, backend=backend)
    busy.set()
    anyio.run(ask_again_and_stop, backend=backend)
    assert not _is_running()
