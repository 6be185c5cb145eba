"""
What the engine costs: CPU time of a flow over the same work written by hand on asyncio.

    make bench                      every scenario
    make bench ARGS="chain loop"    those whose name holds one of the words
    make bench ARGS="--gate"        fail where a ratio is above 1.5 times its target

Both sides run in one process, alternately, so that a busy machine slows both; the ratio of their
medians hardly depends on the machine. Blocks do nothing: a real step hides most of this.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import gc
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import flowstate
from flowstate import Block, Context, Plan, build_plan, handler, run_block, sequencer
from flowstate.item.book import ItemBook
from flowstate.item.content import Message
from flowstate.store.memory import MemoryStore
from flowstate.stream.outbox import Outbox
from flowstate.stream.reader import EventSource, read_events

Work: TypeAlias = Callable[[], Awaitable[object]]

GATE = 1.5
"""How far above its target a ratio may be before the gate fails: machines differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The same work twice, and the ratio to reach."""

    name: str
    target: float
    flow: Work
    by_hand: Work
    rounds: int = 9


@handler
async def add(number: int) -> int:
    return number + 1


@handler
async def add_in_context(number: int, ctx: Context) -> int:
    return number + 1


@handler
async def suspend(number: int) -> int:
    await asyncio.sleep(0)
    return number + 1


async def added(number: int) -> int:
    return number + 1


async def suspended(number: int) -> int:
    await asyncio.sleep(0)
    return number + 1


# --- the same work twice ------------------------------------------------------------------------


def flow(block: Block[Any, Any], value: object, *, times: int = 1) -> Work:
    plan = build_plan(block)

    async def work() -> None:
        for _ in range(times):
            await run_block(plan, value)

    return work


def listened(block: Block[Any, Any], value: object, *, times: int) -> Work:
    """A listener that keeps every event of every node."""
    plan = build_plan(block)

    async def work() -> None:
        for _ in range(times):
            events: list[Any] = []
            await run_block(plan, value, listener=events.append)
            assert len(events) == 200

    return work


def consumed(block: Block[Any, Any], value: object, *, times: int) -> Work:
    """A task beside the run that is handed every event, in batches."""
    plan = build_plan(block)

    async def work() -> None:
        for _ in range(times):
            waiting: deque[Any] = deque()
            bell = asyncio.Event()
            seen = 0

            def listen(
                event: Any, waiting: deque[Any] = waiting, bell: asyncio.Event = bell
            ) -> None:
                waiting.append(event)
                if len(waiting) & 63 == 0:
                    bell.set()

            async def consume(waiting: deque[Any] = waiting, bell: asyncio.Event = bell) -> int:
                count = 0
                while True:
                    while waiting:
                        if waiting.popleft() is None:
                            return count
                        count += 1
                    bell.clear()
                    await bell.wait()

            task = asyncio.create_task(consume())
            await run_block(plan, value, listener=listen)
            waiting.append(None)
            bell.set()
            seen = await task
            assert seen == 200

    return work


def chain(step: Block[int, int], length: int) -> Block[int, int]:
    steps = sequencer("chain", int)
    for _ in range(length):
        steps = steps.step(step)
    return steps


def chain_by_hand(length: int, *, times: int) -> Work:
    async def work() -> None:
        for _ in range(times):
            value = 0
            for _ in range(length):
                value = await added(value)

    return work


def all_at_once(fn: Callable[[int], Awaitable[int]], count: int) -> Work:
    async def work() -> None:
        async def one() -> int:
            return await fn(1)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(count)]
        assert sum(task.result() for task in tasks) == 2 * count

    return work


def pool(fn: Callable[[int], Awaitable[int]], count: int, bound: int) -> Work:
    async def work() -> None:
        entries = iter(range(count))
        results = [0] * count

        async def worker() -> None:
            for entry in entries:
                results[entry] = await fn(entry)

        async with asyncio.TaskGroup() as group:
            for _ in range(bound):
                group.create_task(worker())

    return work


def loop_by_hand(count: int) -> Work:
    async def work() -> None:
        value = 0
        while value < count:
            value = await added(value)

    return work


numbers = list(range(10_000))
each = sequencer("each", list[int])


def scenarios() -> list[Scenario]:
    by_hand = chain_by_hand(100, times=50)
    return [
        Scenario(
            name="chain of 100",
            target=3.0,
            flow=flow(chain(add, 100), 0, times=50),
            by_hand=by_hand,
        ),
        Scenario(
            name="chain of 100, a listener",
            target=6.0,
            flow=listened(chain(add, 100), 0, times=50),
            by_hand=by_hand,
        ),
        Scenario(
            name="chain of 100, a consumer task",
            target=10.0,
            flow=consumed(chain(add, 100), 0, times=50),
            by_hand=by_hand,
        ),
        Scenario(
            name="chain of 100, with a context",
            target=5.0,
            flow=flow(chain(add_in_context, 100), 0, times=50),
            by_hand=by_hand,
        ),
        Scenario(
            name="fan-out of 1000",
            target=0.5,
            flow=flow(sequencer("fan", int).step_all(*[add] * 1000), 1),
            by_hand=all_at_once(added, 1000),
        ),
        Scenario(
            name="fan-out of 1000, suspending",
            target=6.0,
            flow=flow(sequencer("fan", int).step_all(*[suspend] * 1000), 1),
            by_hand=all_at_once(suspended, 1000),
        ),
        Scenario(
            name="for_each of 10,000, bound 16",
            target=4.0,
            flow=flow(each.for_each(add, max_concurrency=16), numbers),
            by_hand=pool(added, 10_000, 16),
        ),
        Scenario(
            name="for_each of 10,000, bound 16, suspending",
            target=1.5,
            flow=flow(each.for_each(suspend, max_concurrency=16), numbers),
            by_hand=pool(suspended, 10_000, 16),
        ),
        Scenario(
            name="loop of 1000",
            target=4.0,
            flow=flow(
                sequencer("loop", int).do_until(lambda n: n >= 1000, add, max_iterations=1000),
                0,
                times=5,
            ),
            by_hand=loop_by_hand(5_000),
        ),
    ]


async def cpu_seconds(work: Work) -> float:
    start = time.process_time()
    await work()
    return time.process_time() - start


async def compare(scenario: Scenario) -> float:
    pairs = [
        (await cpu_seconds(scenario.flow), await cpu_seconds(scenario.by_hand))
        for _ in range(scenario.rounds)
    ]
    ours = statistics.median(mine for mine, _ in pairs)
    return ours / statistics.median(hand for _, hand in pairs)


# --- measurements of another shape --------------------------------------------------------------


async def many_runs() -> tuple[float, float]:
    """1000 runs of ten suspending steps at once: CPU and 99th percentile, as ratios."""
    plan = build_plan(chain(suspend, 10))

    async def by_hand(number: int) -> int:
        for _ in range(10):
            number = await suspended(number)
        return number

    async def measure(one: Callable[[], Awaitable[object]]) -> tuple[float, float]:
        latencies: list[float] = []

        async def timed() -> None:
            start = time.perf_counter()
            await one()
            latencies.append(time.perf_counter() - start)

        start = time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(1000):
                group.create_task(timed())
        latencies.sort()
        return time.process_time() - start, latencies[989]

    rounds = [
        (*await measure(lambda: run_block(plan, 0)), *await measure(lambda: by_hand(0)))
        for _ in range(7)
    ]
    ours, ours_late, hand, hand_late = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    return ours / hand, ours_late / hand_late


async def streamed() -> float:
    """Streamed text from a run to one reader, over asyncio.Queue for the same pieces."""
    pieces, burst = 20_000, 256

    async def ours() -> float:
        store = MemoryStore()
        outbox = Outbox("request", store, on_failure=lambda error: None)
        book = ItemBook("request", clock=lambda: 0, ids=lambda prefix: prefix, emit=outbox.put)
        seen = 0
        start = time.process_time()
        async with asyncio.TaskGroup() as group:
            group.create_task(outbox.pump())
            reader = read_events(EventSource(request_id="request", store=store, ring=outbox.ring))

            async def produce() -> None:
                message = book.writer("step", "step").open(Message())
                for number in range(pieces):
                    message.append("x")
                    if number % burst == 0:
                        await asyncio.sleep(0)
                message.settle()
                await outbox.close()

            group.create_task(produce())
            while events := await reader.take():
                seen += len(events)
        assert seen == pieces + 2
        return time.process_time() - start

    async def queue() -> float:
        events: asyncio.Queue[tuple[int, str, str, None, str] | None] = asyncio.Queue(burst)
        seen = 0
        start = time.process_time()

        async def produce() -> None:
            for number in range(pieces):
                await events.put((number, "delta", "item", None, "x"))
            await events.put(None)

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            while await events.get() is not None:
                seen += 1
        assert seen == pieces
        return time.process_time() - start

    pairs = [(await ours(), await queue()) for _ in range(9)]
    mine = statistics.median(ours for ours, _ in pairs)
    return mine / statistics.median(queue for _, queue in pairs)


async def built() -> tuple[float, float]:
    """Microseconds a node to define and build 5,000; a step's cost there over that at 100."""

    def make(length: int) -> tuple[float, Plan[int, int]]:
        start = time.process_time()
        plan = build_plan(chain(add, length))
        return (time.process_time() - start) / length * 1e6, plan

    gc.collect()
    builds = [make(5_000) for _ in range(7)]
    long, short = builds[-1][1], make(100)[1]

    async def step_cost(plan: Plan[int, int], length: int, times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            await run_block(plan, 0)
        return (time.process_time() - start) / (length * times)

    pairs = [(await step_cost(long, 5_000, 2), await step_cost(short, 100, 100)) for _ in range(7)]
    at_long, at_short = (statistics.median(side) for side in zip(*pairs, strict=True))
    # The least, since this is no ratio: what else the machine does only ever adds to it.
    return min(cost for cost, _ in builds), at_long / at_short


def imported() -> tuple[float, float]:
    """
    CPU of ``import flowstate`` over ``import asyncio``, and its resident memory in MB (Linux).

    From compiled files, as any installation has them.
    """
    compileall.compile_dir(Path(flowstate.__file__).parent, quiet=2)

    def child(module: str) -> tuple[float, float]:
        code = (
            f"import time; t = time.process_time(); import {module}; "
            "spent = time.process_time() - t; "
            "kb = next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]; "
            "print(spent, int(kb) / 1024)"
        )
        out = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
        spent, memory = out.split()
        return float(spent), float(memory)

    pairs = [(child("flowstate"), child("asyncio")) for _ in range(7)]
    ours = statistics.median(mine[0] for mine, _ in pairs)
    theirs = statistics.median(other[0] for _, other in pairs)
    return ours / theirs, statistics.median(mine[1] for mine, _ in pairs)


def report(name: str, value: float, target: float, unit: str = "×") -> bool:
    """Print one line; True if the value is within the gate."""
    mark = "ok" if value <= target else "above target" if value <= GATE * target else "TOO MUCH"
    print(f"{name:46} {value:8.2f} {unit:3} target ≤ {target:g} {unit:3} {mark}", flush=True)
    return value <= GATE * target


async def main(words: list[str]) -> bool:
    def chosen(name: str) -> bool:
        wanted = not words or any(word in name for word in words)
        if wanted:
            # What earlier scenarios left must not make the collections of this one dearer.
            gc.collect()
            gc.freeze()
        return wanted

    good = True
    for scenario in scenarios():
        if chosen(scenario.name):
            good &= report(scenario.name, await compare(scenario), scenario.target)
    if chosen("1000 runs"):
        cost, late = await many_runs()
        good &= report("1000 runs of ten suspending steps", cost, 1.5)
        good &= report("1000 runs: 99th percentile", late, 1.6)
    if chosen("stream"):
        good &= report("streamed text over asyncio.Queue", await streamed(), 1.0)
    if chosen("build"):
        node, growth = await built()
        good &= report("build 5,000 nodes, a node", node, 15, "µs")
        good &= report("build: a step at 5,000 over one at 100", growth, 1.3)
    if chosen("import"):
        cost, memory = imported()
        good &= report("import flowstate over import asyncio", cost, 3.0)
        good &= report("import flowstate: resident memory", memory, 32, "MB")
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--gate", action="store_true")
    arguments = parser.parse_args()
    within = asyncio.run(main(arguments.words))
    sys.exit(0 if within or not arguments.gate else 1)
