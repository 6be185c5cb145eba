"""
What a step costs elsewhere: a chain of 100 steps that do nothing, in other workflow libraries.

    make peers                      all of them
    make peers ARGS="burr"          those whose name holds one of the words

Each peer lives in a virtual environment of its own, made on first use beside ours, and is measured
in a process of its own against plain asyncio in that same process. Installing them takes the
network; ours runs in the environment that runs this file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import final

HOME = Path(sys.prefix) / "peers"
"""Where their environments are kept; goes when ours goes."""

FRAME = """
import asyncio, statistics, time
N = 100

{source}

async def limit():
    async def add(value): return value + 1
    value = 0
    for _ in range(N): value = await add(value)

async def cost(work, times):
    start = time.process_time()
    for _ in range(times): await work()
    return (time.process_time() - start) / times / N * 1e6

async def main():
    run = await prepare()
    await run()
    pairs = [(await cost(run, {times}), await cost(limit, 2000)) for _ in range(5)]
    theirs, plain = (statistics.median(side) for side in zip(*pairs))
    print(theirs, theirs / plain)

asyncio.run(main())
"""
"""What a process runs; ``source`` defines ``prepare``, which gives one run of the chain."""


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """One library and the chain in its words."""

    name: str
    requirement: str | None
    """As pip takes it; None: it is here already."""
    source: str
    times: int = 3


PEERS = (
    Peer(
        "flowstate",
        None,
        """
from flowstate import build_plan, handler, run_block, sequencer

@handler
async def add(value: int) -> int: return value + 1

async def prepare():
    chain = sequencer("chain", int)
    for _ in range(N): chain = chain.step(add)
    plan = build_plan(chain)
    async def run(): assert await run_block(plan, 0) == N
    return run
""",
        times=500,
    ),
    Peer(
        "burr",
        "apache-burr==0.43.0",
        """
from burr.core import ApplicationBuilder, action

@action(reads=["n"], writes=["n"])
async def add(state): return state.update(n=state["n"] + 1)

async def prepare():
    names = [f"n{i}" for i in range(N)]
    def make():
        return (
            ApplicationBuilder().with_actions(**{name: add for name in names})
            .with_transitions(*zip(names, names[1:])).with_state(n=0).with_entrypoint("n0").build()
        )
    async def run():
        *_, state = await make().arun(halt_after=[names[-1]])
        assert state["n"] == N
    return run
""",
    ),
    Peer(
        "langgraph",
        "langgraph==1.2.24",
        """
from typing import TypedDict
from langgraph.graph import END, START, StateGraph

class S(TypedDict):
    n: int

async def add(state): return {"n": state["n"] + 1}

async def prepare():
    graph, last = StateGraph(S), START
    for i in range(N):
        graph.add_node(f"n{i}", add)
        graph.add_edge(last, f"n{i}")
        last = f"n{i}"
    graph.add_edge(last, END)
    app = graph.compile()
    async def run():
        assert (await app.ainvoke({"n": 0}, {"recursion_limit": 10 * N}))["n"] == N
    return run
""",
    ),
    Peer(
        "pydantic-graph",
        "pydantic-graph==2.68.0",
        """
from pydantic_graph import GraphBuilder, StepContext

async def add(ctx: StepContext[None, None, int]) -> int: return ctx.inputs + 1

async def prepare():
    builder = GraphBuilder(input_type=int, output_type=int, auto_instrument=False)
    steps = [builder.step(add, node_id=f"n{i}") for i in range(N)]
    builder.add(
        builder.edge_from(builder.start_node).to(steps[0]),
        *(builder.edge_from(a).to(b) for a, b in zip(steps, steps[1:])),
        builder.edge_from(steps[-1]).to(builder.end_node),
    )
    graph = builder.build()
    async def run(): assert await graph.run(inputs=0) == N
    return run
""",
    ),
)


def interpreter(peer: Peer) -> str:
    """The Python of a peer's environment, made if it isn't there."""
    if peer.requirement is None:
        return sys.executable
    place = HOME / peer.requirement
    python = place / "bin" / "python"
    if not (place / "done").exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", peer.requirement], check=True)
        (place / "done").touch()
    return str(python)


def measure(peer: Peer) -> tuple[float, float]:
    """CPU microseconds a step, and how many times plain asyncio's that is."""
    code = FRAME.format(source=peer.source, times=peer.times)
    done = subprocess.run(
        [interpreter(peer), "-c", code], check=True, capture_output=True, text=True
    )
    cost, ratio = done.stdout.split()[-2:]
    return float(cost), float(ratio)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    for each in PEERS:
        if not words or any(word in each.name for word in words):
            cost, ratio = measure(each)
            print(f"{each.name:20}{cost:10.2f} µs a step{ratio:10.1f} × asyncio", flush=True)
