"""
What people who use other workflow engines complain about, one test a complaint: here it can't be.

Each docstring says the complaint in a sentence, then what holds instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
import trio.lowlevel
from annotated_types import Ge
from pydantic import BaseModel

from flowstate import (
    Block,
    Context,
    Failure,
    Runtime,
    action,
    build_plan,
    define_capability,
    define_flow,
    handler,
    router,
    run_block,
    sequencer,
    session_state,
)
from flowstate.errors import DefinitionError, InvalidValue, LoopExhausted, PlanError
from flowstate.item.content import ErrorReport, Message, ToolOutput
from flowstate.item.item import Item
from flowstate.store.memory import MemoryStore
from flowstate.testing import RecordingSink, simulate
from tests.run.journal import Journal, stuck

pytestmark = pytest.mark.anyio


class Counter(BaseModel):
    """A piece of shared state."""

    count: Annotated[int, Ge(0)] = 0
    seen: tuple[int, ...] = ()


@handler
async def add_one(value: int) -> int:
    return value + 1


@handler
async def fails(value: int) -> int:
    await anyio.lowlevel.checkpoint()
    raise ValueError(f"no {value}")


@handler
async def mend(failure: Failure[Exception]) -> int:
    return -1


def total(results: Any) -> int:
    """The sum of a join's results."""
    return sum(results.values() if isinstance(results, dict) else results)


# --- joins and routes ---------------------------------------------------------------------------


async def test_a_join_fires_once_whatever_its_branches_do() -> None:
    """
    "The node after the join runs twice when one branch is longer, or never when one is not taken."

    It runs once, when the branches that were started have ended: long, short, skipped, left early.
    """
    journal = Journal()
    step = journal.block
    built = (
        sequencer("turn", int)
        .parallel(
            short=step("short"),
            long=sequencer("long", int).step(step("one", waits=5)).step(step("two", waits=5)),
            skipped=sequencer("skipped", int).step_if(lambda _: False, step("never")),
            other=sequencer("other", int).branch(
                (lambda _: False, step("untaken")), otherwise=step("taken", waits=2)
            ),
            early=sequencer("early", int).exit_if(lambda _: True).step(step("unreached")),
        )
        .map(total)
        .step(step("joined"))
    )
    assert await run_block(built, 1) == 5
    assert journal.count("joined starts") == 1
    assert journal.lines.index("two is over") < journal.lines.index("joined starts")
    assert {"never", "untaken", "unreached"} & set(journal.starts()) == set()


async def test_only_the_selected_route_runs() -> None:
    """
    "After a jump the edge that was drawn runs as well."

    A router owns all ways out of itself: no step follows it but through one of its routes.
    """
    journal = Journal()
    routes = [journal.block("left"), journal.block("right")]
    built = (
        sequencer("turn", int)
        .step(router("way", routes=routes, select=lambda _: "right"))
        .step(journal.block("next"))
    )
    assert await run_block(built, 1) == 1
    assert journal.starts() == ["right", "next"]
    ways_out = set(build_plan(built).graph.successors("turn/way"))
    assert ways_out == {"turn/way/left", "turn/way/right"}


# --- scheduling ---------------------------------------------------------------------------------


def sleeping(name: str, seconds: float) -> Block[int, int]:
    """A block that takes so long."""

    @handler(name=name)
    async def sleeps(value: int) -> int:
        await anyio.sleep(seconds)
        return value

    return sleeps


def test_a_slow_branch_holds_up_no_other() -> None:
    """
    "All branches take a step together, so the fast ones wait for the slowest at every step."

    Branches meet at their join and nowhere else: two that take 1 + 5 and 5 + 1 seconds take 6.
    """
    first = sequencer("first", int).step(sleeping("a", 1)).step(sleeping("b", 5))
    second = sequencer("second", int).step(sleeping("c", 5)).step(sleeping("d", 1))
    run = simulate(sequencer("turn", int).step_all(first, second), 1)
    assert run.outcome == ("value", (1, 1))
    assert run.seconds == 6
    names = [path.rpartition("/")[2] for path in run.started]
    assert names == ["a", "c", "b", "d"]


async def test_branches_may_write_the_same_state() -> None:
    """
    "Two parallel nodes that update one key of the state end the run with an error."

    Branches share no mutable state: a value goes along an edge. A state cell may be written by
    all at once; every write is based on the newest version, so none is lost and none fails.
    """

    @handler(uses=[session_state(Counter)])
    async def count(value: int, ctx: Context) -> int:
        await ctx.session[Counter].increment("count")
        await ctx.session[Counter].append("seen", value)
        return value

    @handler(uses=[session_state(Counter)])
    async def read(values: list[int], ctx: Context) -> Counter:
        return await ctx.session[Counter].get()

    built = sequencer("turn", int).for_each(lambda n: range(n), count).step(read)
    counter = await run_block(built, 20)
    assert counter.count == 20
    assert sorted(counter.seen) == list(range(20))


def test_two_things_under_one_name_are_found_before_anything_runs() -> None:
    """
    "Two parts of a flow write under the same key, and the last one wins."

    Two capabilities under one name are a fault of the plan, which names both places.
    """
    one, other = define_capability("memory", Counter), define_capability("memory", Journal)

    @handler(uses=[one])
    async def first(value: int) -> int:
        return value

    @handler(uses=[other])
    async def second(value: int) -> int:
        return value

    with pytest.raises(PlanError) as caught:
        build_plan(sequencer("turn", int).step_all(first, second))
    assert {"memory", "first", "second"} <= set(_words(str(caught.value)))


# --- failures -----------------------------------------------------------------------------------


def in_a_chain(block: Block[int, int]) -> Block[int, int]:
    """One step after another."""
    return sequencer("turn", int).step(block).step(add_one)


def in_a_parallel(block: Block[int, int]) -> Block[int, int]:
    """Beside another branch."""
    return sequencer("turn", int).parallel(left=block, right=add_one).map(total)


def in_a_for_each(block: Block[int, int]) -> Block[int, int]:
    """Once an entry."""
    return sequencer("turn", int).for_each(lambda n: [n, n], block).map(total)


def in_a_sub_flow(block: Block[int, int]) -> Block[int, int]:
    """In a sequencer in a sequencer."""
    return sequencer("turn", int).step(sequencer("inner", int).step(block)).step(add_one)


def in_a_loop(block: Block[int, int]) -> Block[int, int]:
    """In a loop's body."""
    return sequencer("turn", int).do_until(lambda n: n < 0, block, max_iterations=3)


PLACES = [in_a_chain, in_a_parallel, in_a_for_each, in_a_sub_flow, in_a_loop]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_handled_error_is_over(
    place: Callable[[Block[int, int]], Block[int, int]], streamed: bool
) -> None:
    """
    "An error that its handler dealt with is raised again once the node runs in parallel, or while
    somebody reads the stream."

    A rescue means the same everywhere: the run completes, and tells of no error.
    """
    rescued = fails.rescued(ValueError, mend)
    turn = action("turn", place(rescued))
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 4, session="s1")
        sink = RecordingSink()
        if streamed:
            await sink.read(run.events(visibility="trace"))
        output = await run.output()
        assert await run.finished() == "completed"
        items = [item async for item in runtime.session_items("s1", visibility="trace")]
    assert output == {"in_a_parallel": 4, "in_a_for_each": -2, "in_a_loop": -1}.get(
        place.__name__, 0
    )
    assert [item for item in (*items, *sink.items) if isinstance(item.content, ErrorReport)] == []


def living_tasks() -> int:
    """How many tasks there are, on the backend that runs this."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no asyncio here
        return trio.lowlevel.current_statistics().tasks_living


def failing_beside(journal: Journal) -> Block[int, int]:
    """A branch fails while others wait, clean up, and have side chains."""
    waiting = sequencer("waiting", int).side_chain(stuck(journal, "beside"))
    return (
        sequencer("turn", int)
        .step_all(
            waiting.step(stuck(journal, "stuck")),
            journal.block("cleans", until=anyio.Event(), cleaning=3),
            fails,
        )
        .map(total)
    )


def failing_in_entries(journal: Journal) -> Block[int, int]:
    """An entry fails, while others wait."""

    @handler
    async def third_fails(value: int) -> int:
        if value == 3:
            raise ValueError(value)
        await anyio.sleep_forever()
        return value

    return sequencer("turn", int).for_each(lambda n: range(10), third_fails).map(total)


def lost_races(journal: Journal) -> Block[int, int]:
    """A race in a race: the losers clean up."""
    slow = journal.block("slow", until=anyio.Event(), cleaning=5)
    inner = sequencer("inner", int).race(slow, stuck(journal, "other"))
    return sequencer("turn", int).race(inner, add_one)


def timed_out(journal: Journal) -> Block[int, int]:
    """A block takes too long; the step behind it catches that."""
    return (
        sequencer("turn", int)
        .step(stuck(journal, "late").configure(timeout=0.01))
        .rescue(Exception, mend)
    )


@pytest.mark.parametrize("scene", [failing_beside, failing_in_entries, lost_races, timed_out])
async def test_nothing_runs_on_after_the_end(scene: Callable[[Journal], Block[int, int]]) -> None:
    """
    "Sibling tasks keep running, and calling models, after one has failed."

    When a run has ended, however it did, none of its tasks is left and all it began is over.
    """
    journal = Journal()
    before = living_tasks()
    with anyio.move_on_after(10):
        with contextlib.suppress(ValueError):
            await run_block(scene(journal), 1)
    assert living_tasks() == before
    assert journal.running == 0


@pytest.mark.parametrize("scene", [failing_beside, failing_in_entries, lost_races, timed_out])
async def test_nothing_runs_on_after_a_cancel(scene: Callable[[Journal], Block[int, int]]) -> None:
    """
    "The client went away, and the nodes that were in flight went on without it."

    Whoever runs a block and is cancelled takes all of it along, at whatever point; a request of a
    Runtime is cancelled through its run.
    """
    for turns in range(12):
        journal = Journal()
        before = living_tasks()
        built = scene(journal)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def run(block: Block[int, int] = built) -> None:
                    with contextlib.suppress(ValueError):
                        await run_block(block, 1)

                group.start_soon(run)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        assert living_tasks() == before
        assert journal.running == 0

    turn = action("turn", scene(Journal()))
    before = living_tasks()
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        sent = await runtime.dispatch(turn, 1, session="s1")
        await sent.started()
        sent.cancel()
        await sent.finished()
    assert living_tasks() == before


# --- values at joins ----------------------------------------------------------------------------


async def test_a_join_has_a_value_for_every_branch() -> None:
    """
    "Of two branches that end together, one value is lost"; "a branch that gives nothing has no
    place in the result."

    Whatever a branch gives, None included, is in its declared place, in forks in forks as well.
    """

    def giving(name: str, result: object, waits: int) -> Block[int, Any]:
        async def give(value: int) -> Any:
            for _ in range(waits):
                await anyio.lowlevel.checkpoint()
            return result

        return handler(name=name)(give)

    for waits in itertools.product((0, 1), repeat=3):
        none = giving("none", None, waits[0])
        empty = giving("empty", [], waits[1])
        same = giving("same", 0, waits[2])
        inner = sequencer("inner", int).step_all(none, same, none)
        built = sequencer("turn", int).parallel(a=none, b=empty, c=inner, d=same)
        assert list((await run_block(built, 1)).items()) == [
            ("a", None),
            ("b", []),
            ("c", (None, 0, None)),
            ("d", 0),
        ]


@pytest.mark.parametrize("bound", [1, 2, 16, 40])
async def test_a_bound_is_kept_and_drops_nothing(bound: int) -> None:
    """
    "The limit on concurrency is ignored in a sub-graph"; "with a limit of one, work is dropped."

    It is an argument of the step that it bounds, wherever that stands: as many run at once as it
    says, and every result is there.
    """
    journal = Journal()
    inner = sequencer("inner", list[int]).for_each(
        journal.block("entry", lambda n: n * 2, waits=40), max_concurrency=bound
    )
    built = sequencer("turn", list[int]).parallel(only=sequencer("sub", list[int]).step(inner))
    assert await run_block(built, list(range(40))) == {"only": [n * 2 for n in range(40)]}
    assert journal.peak == bound


# --- values, types, memory ----------------------------------------------------------------------


class Large:
    """A value that is worth letting go."""

    def __init__(self, number: int) -> None:
        self.number = number


async def test_a_value_is_let_go_when_its_last_consumer_has_it() -> None:
    """
    "A long run holds on to every value that any step ever made."

    Once the next step has made its own output, nothing of the run holds the value before it.
    """
    made: list[weakref.ref[Large]] = []

    @handler
    async def make(number: int) -> Large:
        large = Large(number)
        made.append(weakref.ref(large))
        return large

    @handler
    async def use(large: Large) -> int:
        await anyio.lowlevel.checkpoint()
        return large.number + 1

    @handler
    async def look(number: int) -> int:
        assert [ref() for ref in made] == [None] * len(made)
        return number

    once = sequencer("once", int).step(make).step(use).step(look)
    built = once.do_until(lambda n: n >= 9, once, max_iterations=20).for_each(
        lambda n: [n] * 5, once, max_concurrency=1
    )
    assert await run_block(built, 1) == [10] * 5
    assert len(made) > 10


async def test_a_wrong_edge_is_found_before_it_runs() -> None:
    """
    "Types are declared, and nobody checks them until something breaks three nodes later."

    An edge that can't fit is a fault of the plan, which names both steps and both types. Where
    the plan can't tell, the value is checked where it was made.
    """

    @handler
    async def words(value: int) -> str:
        return "many"

    wrong: Any = add_one  # the type checkers find these as well
    with pytest.raises(PlanError) as caught:
        build_plan(sequencer("turn", int).step(words).step(wrong))
    assert {"words", "str", "add_one", "int"} <= set(_words(str(caught.value)))

    unknown = sequencer("turn", int).map(lambda n: "many").step(wrong)
    with pytest.raises(InvalidValue, match="int"):
        await run_block(unknown, 1)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


async def test_a_bad_value_gets_into_no_store() -> None:
    """
    "One bad value was checkpointed, and no later run of that thread can be loaded."

    A state that doesn't fit its model is refused when it is written, and the one before stays; an
    input that doesn't fit leaves no request behind.
    """

    @handler(uses=[session_state(Counter)])
    async def spoil(value: int, ctx: Context) -> int:
        await ctx.session[Counter].increment("count")
        with pytest.raises(InvalidValue):
            await ctx.session[Counter].patch(count=-5)
        with pytest.raises(InvalidValue):
            await ctx.session[Counter].patch(count="many")
        return (await ctx.session[Counter].get()).count

    turn = action("turn", spoil)
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s1")
        assert await run.output() == 1
        await run.finished()
        wrong: Any = "one"
        with pytest.raises(InvalidValue):
            await runtime.dispatch(turn, wrong, session="s1")
        again = await runtime.dispatch(turn, 1, session="s1")
        assert await again.output() == 2
        assert len(await runtime.store.requests(tenant=None)) == 2


async def test_branches_are_handed_the_value_itself() -> None:
    """
    "Branches change each other's input", and the cure: "everything is deep-copied at every step".

    Nothing is copied: values are frozen by contract. A test finds a block that breaks it.
    """
    seen: list[Counter] = []

    @handler
    async def look(counter: Counter) -> Counter:
        seen.append(counter)
        return counter

    given = Counter(seen=(1, 2))
    built = sequencer("turn", Counter).step(look).parallel(a=look, b=look, c=look)
    results = await run_block(built, given)
    assert all(each is given for each in (*seen, *results.values()))
    assert len(seen) == 4


def test_a_block_that_changes_its_input_is_found() -> None:
    """The other half of the complaint above: the simulation says which block did it."""

    @handler
    async def grow(values: list[int]) -> int:
        values.append(3)
        return len(values)

    @handler
    async def size(values: list[int]) -> int:
        return len(values)

    run = simulate(sequencer("turn", list[int]).step_all(size, grow), [1, 2])
    assert [fault for fault in run.faults if "grow" in fault]
    assert not [fault for fault in run.faults if "size" in fault]


# --- waiting, context, threads ------------------------------------------------------------------


async def test_what_stands_before_a_wait_runs_once() -> None:
    """
    "Going on after a wait runs the node again from its beginning, with its side effects"; "two
    waits in parallel are given each other's answer."

    A wait is a step of its own: what comes before it is done, and each goes on by its own news.
    """
    journal = Journal()

    def told(name: str) -> Callable[[Sequence[Item]], bool]:
        return lambda items: any(item.content == Message(text=name) for item in items)

    @handler
    async def tell(value: int, ctx: Context) -> int:
        ctx.items.add(Message(text="b"))
        while journal.count("after b starts") == 0:
            await anyio.lowlevel.checkpoint()
        assert journal.count("after a starts") == 0
        ctx.items.add(Message(text="a"))
        return value

    def waiting(name: str) -> Block[int, int]:
        return (
            sequencer(name, int)
            .step(journal.block(f"before {name}"))
            .wait_for_condition(told(name), timeout=10)
            .step(journal.block(f"after {name}"))
        )

    turn = action(
        "turn", sequencer("turn", int).step_all(waiting("a"), waiting("b"), tell).map(total)
    )
    async with Runtime(define_flow("f", actions=[turn])) as runtime:
        run = await runtime.dispatch(turn, 1, session="s1")
        with anyio.fail_after(10):
            assert await run.output() == 3
    assert sorted(journal.starts()) == ["after a", "after b", "before a", "before b"]


async def test_a_context_variable_reaches_every_block() -> None:
    """
    "Context variables, and with them spans, are lost in parallel nodes and in threads, or leak."

    Every block sees what its caller set, in branches and in worker threads too; what a branch
    sets is its own.
    """
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: dict[str, str] = {}

    def looking(name: str, *, threaded: bool = False, sets: bool = False) -> Block[int, int]:
        def look(value: int) -> int:
            seen[name] = variable.get()
            if sets:
                variable.set(f"by {name}")
            return value

        async def look_async(value: int) -> int:
            await anyio.lowlevel.checkpoint()
            return look(value)

        return handler(name=name)(look) if threaded else handler(name=name)(look_async)

    variable.set("the caller's")
    built = (
        sequencer("turn", int)
        .step(looking("step"))
        .step_all(
            looking("branch", sets=True),
            looking("thread", threaded=True, sets=True),
            looking("sibling"),
        )
        .map(total)
        .step(looking("after"))
    )
    await run_block(built, 1)
    assert seen == dict.fromkeys(["step", "branch", "thread", "sibling", "after"], "the caller's")
    assert variable.get() == "the caller's"


async def test_a_nested_run_has_a_stream_of_its_own() -> None:
    """
    "The tokens of a graph that a node calls turn up in the stream of the graph around it."

    A run that a block starts tells its own readers, and nobody else. What is composed into one
    flow is one stream, and every item says from which step it is.
    """
    inner_sink, outer_sink = RecordingSink(), RecordingSink()

    @handler
    async def speak(text: str, ctx: Context) -> str:
        ctx.items.add(Message(text=text))
        return text

    @handler
    async def calls(text: str, ctx: Context) -> str:
        await run_block(sequencer("inner", str).step(speak), f"{text} inside", emit=inner_sink)
        ctx.items.add(Message(text=text))
        return text

    built = sequencer("outer", str).step(calls).step(sequencer("sub", str).step(speak))
    await run_block(built, "word", emit=outer_sink)
    assert inner_sink.texts() == ["word inside"]
    assert outer_sink.texts() == ["word", "word"]
    assert [item.provenance.path for item in outer_sink.items] == ["outer/calls", "outer/sub/speak"]


async def test_synchronous_code_does_not_stop_the_loop() -> None:
    """
    "One blocking node stops every other run, and no timeout can end it."

    It runs in a worker thread. A timeout on it can't hold, so it is refused until the author says
    that the thread is to be left behind; then the chain goes on in time.
    """
    ticks = 0
    let_go = threading.Event()

    def block_the_thread(value: int) -> int:
        return value if let_go.wait(10) else -10

    with pytest.raises(DefinitionError, match="thread can't be stopped"):
        handler(timeout=0.05)(block_the_thread)

    async def tick() -> None:
        nonlocal ticks
        while ticks < 20:
            ticks += 1
            await anyio.sleep(0.001)
        let_go.set()

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        assert await run_block(handler(block_the_thread), 1) == 1

    let_go.clear()
    try:
        limited = handler(timeout=0.05, abandon=True)(block_the_thread)
        began = time.monotonic()
        built = sequencer("turn", int).step(limited).rescue(Exception, mend)
        assert await run_block(built, 1) == -1
        assert time.monotonic() - began < 5
    finally:
        let_go.set()


# --- storing, looping ---------------------------------------------------------------------------


async def test_what_can_t_be_stored_is_named() -> None:
    """
    "A value that couldn't be serialised failed in a background thread, or came back as None."

    The run fails and says which item of which step it was. A None that was meant is kept as one.
    """

    @handler
    async def odd(value: int, ctx: Context) -> int:
        ctx.items.add(ToolOutput(call_id="c", name="tool", output={1: object()}))
        return value

    @handler
    async def nothing(value: int) -> None:
        return None

    bad, good = action("bad", odd), action("good", nothing)
    store = MemoryStore()
    async with Runtime(define_flow("f", actions=[bad, good]), store=store) as runtime:
        run = await runtime.dispatch(bad, 1, session="s1")
        assert await run.finished() == "failed"
        with pytest.raises(Exception, match=r"'odd'.*JSON"):
            await run.output()
        fine = await runtime.dispatch(good, 1, session="s1")
        assert await fine.finished() == "completed"
        record = await store.request(fine.id)
        assert record is not None
        assert record.output == "null"


async def test_a_router_in_a_loop_decides_each_turn_once() -> None:
    """
    "In a loop a router fires twice, or is skipped because it has fired before."

    Loops are steps with a body, not edges back: each turn runs each of its steps once.
    """
    journal = Journal()
    ways = [journal.block("even", lambda n: n + 1), journal.block("odd", lambda n: n + 1)]
    body = (
        sequencer("body", int)
        .step(router("way", routes=ways, select=lambda n: "odd" if n % 2 else "even"))
        .tap(journal.block("listener"))
    )
    built = sequencer("turn", int).do_until(lambda n: n >= 6, body, max_iterations=10)
    assert await run_block(built, 0) == 6
    assert journal.starts() == ["even", "listener", "odd", "listener"] * 3


@pytest.mark.parametrize("keeps", [False, True])
async def test_an_exhausted_loop_loses_nothing(keeps: bool) -> None:
    """
    "At the recursion limit the run dies, and what it had worked out is gone."

    The bound is the loop's own. At it the author has the last value: kept as the output, or with
    an error that can be rescued, which knows how often it ran.
    """
    seen: list[Failure[LoopExhausted]] = []

    @handler
    async def go_on(failure: Failure[LoopExhausted]) -> int:
        seen.append(failure)
        assert isinstance(failure.value, int)
        return failure.value + 100

    looped = sequencer("turn", int).do_until(
        lambda _: False, add_one, max_iterations=4, on_exhausted="keep" if keeps else "raise"
    )
    output = await run_block(looped.rescue(LoopExhausted, go_on), 1)
    assert output == (5 if keeps else 105)
    assert keeps or "4 iterations" in str(seen[0].error)
