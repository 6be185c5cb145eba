"""
What the Claude Code block costs: over a bare ``ClaudeSDKClient`` that does the same run.

    make bench                               all of it, after the engine's
    make bench ARGS="cpu eight"              parts of it: cpu, memory, first, eight
    make bench ARGS="--gate"                 fail where a number is above 1.5 times its target

Each run is a process of its own, so that its CPU time, its peak of memory and its event loop are
its alone: the scripted endpoint is in this one, and the real Claude Code is its child. The two
kinds alternate, so that a busy machine slows both, and medians are compared. Both have imported
the SDK and flowstate, and have done a short run, before anything is measured.

The bare client asks for what the block asks for, partial messages included, and reads to the end.
The block runs in a Runtime with a reader, and with an environment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from flowstate import HarnessRunInput, Runtime, action, define_flow
from flowstate.blocks.claude_code import claude_code_agent
from flowstate.testing.agent_home import CleanHome, clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import Turn, text, tool_call

GATE = 1.5
"""How far above its target a number may be before the gate fails: machines differ."""

TURNS = 20
AT_ONCE = 8
MODEL = "claude-sonnet-4-5"
WORDS = "The module is short, so I read it whole before I change anything in it. " * 6
TOOLS = ["Bash", "Write"]


def turns(number: int) -> list[Turn]:
    """A run of so many turns: words and a command in each, words alone in the last."""
    working = [Turn(text(WORDS), tool_call("Bash", command="true"))] * (number - 1)
    return [*working, Turn(text("Done."))]


# --- in a process of its own --------------------------------------------------------------------


def memory_mb() -> float:
    """The most resident memory that this process has had so far (Linux), in MB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


async def bare(env: Mapping[str, str], prompt: str) -> float:
    """The run by a bare client; gives the seconds to the first words."""
    import claude_agent_sdk as sdk

    options = sdk.ClaudeAgentOptions(
        env=dict(env),
        cwd=env["HOME"],
        permission_mode="acceptEdits",
        allowed_tools=TOOLS,
        model=MODEL,
        system_prompt={"type": "preset", "preset": "claude_code"},
        include_partial_messages=True,
        verbatim_prompts=True,
        max_buffer_size=64 * 1024 * 1024,
    )
    began, first = time.perf_counter(), 0.0
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query(prompt)
        async for message in client.receive_response():
            if not first and isinstance(message, sdk.StreamEvent):
                delta = message.event.get("delta") or {}
                first = time.perf_counter() - began if "text" in delta else 0.0
            if isinstance(message, sdk.ResultMessage):
                assert not message.is_error, message
    return first


class Flow:
    """The run by the block, in a Runtime."""

    def __init__(self, env: Mapping[str, str]) -> None:
        agent = claude_code_agent(
            env=env,
            cwd=lambda _: env["HOME"],
            permission_mode="acceptEdits",
            allowed_tools=TOOLS,
            model=MODEL,
            detached=True,
        )
        self.flow = define_flow("bench", actions=[action("run", agent)])

    async def run(self, runtime: Runtime, prompt: str, session: str = "s1") -> float:
        """One request, read to its end; gives the seconds to the first words."""
        began, first = time.perf_counter(), 0.0
        run = await runtime.dispatch(
            self.flow.action("run"), HarnessRunInput(prompt=prompt), session=session
        )
        async for event in run.events():
            if not first and event.kind == "delta":
                first = time.perf_counter() - began
        assert (await run.output()).status == "completed"
        return first


async def one(kind: str, env: Mapping[str, str]) -> dict[str, float]:
    """A short run of this kind, and then the one that is measured."""
    import claude_agent_sdk  # noqa: F401  both kinds have it before anything is measured

    async with Runtime((flow := Flow(env)).flow) as runtime:

        async def work(prompt: str) -> float:
            return await (bare(env, prompt) if kind == "bare" else flow.run(runtime, prompt))

        await work("warm up")
        gc.collect()
        spent = time.process_time()
        first = await work("measure")
        return {"cpu": time.process_time() - spent, "first": first, "memory": memory_mb()}


async def eight(env: Mapping[str, str]) -> dict[str, float]:
    """So many runs at once, on an event loop whose every step is timed."""
    import claude_agent_sdk  # noqa: F401

    longest = {"busy": 0.0, "late": 0.0}
    step = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        step(handle)
        longest["busy"] = max(longest["busy"], time.thread_time() - began)

    async def watch() -> None:
        while True:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            longest["late"] = max(longest["late"], time.perf_counter() - due)

    async with Runtime((flow := Flow(env)).flow) as runtime:
        await flow.run(runtime, "warm up")
        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        watcher = asyncio.create_task(watch())
        async with anyio.create_task_group() as tasks:
            for number in range(AT_ONCE):
                tasks.start_soon(flow.run, runtime, f"measure {number}", f"s{number}")
        watcher.cancel()
    return {name: seconds * 1000 for name, seconds in longest.items()}


def child(kind: str) -> None:
    """Measure in this process; the environment comes on the standard input."""
    env: dict[str, str] = json.load(sys.stdin)
    print(json.dumps(asyncio.run(eight(env) if kind == "eight" else one(kind, env))))


# --- in this process ----------------------------------------------------------------------------


async def measured(kind: str, api: ScriptedMessagesApi, home: CleanHome) -> dict[str, float]:
    """What a process of that kind has measured of itself."""
    done = await anyio.run_process(
        [sys.executable, __file__, "--child", kind],
        input=json.dumps(dict(home.env)).encode(),
        stderr=None,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the process of {kind!r} ended with {done.returncode}")
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


async def compared(rounds: int) -> dict[str, list[float]]:
    """The numbers of both kinds, alternately; ``flow cpu`` and ``bare cpu``, for example."""
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        # Whoever comes second finds the files in the cache, so they take turns.
        for kind in ("bare", "flow") if number % 2 else ("flow", "bare"):
            async with ScriptedMessagesApi() as api, clean_home(api) as home:
                api.route("warm up", Turn(text("Warm.")))
                api.route("measure", *turns(TURNS))
                for name, value in (await measured(kind, api, home)).items():
                    found.setdefault(f"{kind} {name}", []).append(value)
    return found


async def crowded() -> dict[str, float]:
    async with ScriptedMessagesApi() as api, clean_home(api) as home:
        api.route("warm up", Turn(text("Warm.")))
        for number in range(AT_ONCE):
            api.route(f"measure {number}", *turns(TURNS))
        return await measured("eight", api, home)


def report(name: str, value: float, target: float, unit: str) -> bool:
    """Print one line; True if the value is within the gate."""
    mark = "ok" if value <= target else "above target" if value <= GATE * target else "TOO MUCH"
    print(f"{name:46} {value:8.2f} {unit:3} target ≤ {target:g} {unit:3} {mark}", flush=True)
    return value <= GATE * target


def lines(found: Mapping[str, list[float]], chosen: Callable[[str], bool]) -> bool:
    """One line for each number that was chosen; True if all are within the gate."""
    middle = {name: statistics.median(values) for name, values in found.items()}
    good = True
    run = f"Claude Code, {TURNS} turns: "
    if chosen("cpu"):
        good &= report(f"{run}CPU", middle["flow cpu"] / middle["bare cpu"], 1.25, "×")
    if chosen("memory"):
        good &= report(f"{run}memory", middle["flow memory"] - middle["bare memory"], 5, "MB")
    if chosen("first"):
        late = (middle["flow first"] - middle["bare first"]) * 1000
        good &= report(f"{run}to the first words", late, 50, "ms")
    return good


async def main(words: list[str], rounds: int) -> bool:
    def chosen(name: str) -> bool:
        return not words or any(word in name for word in words)

    good = True
    if any(map(chosen, ("cpu", "memory", "first"))):
        good &= lines(await compared(rounds), chosen)
    if chosen("eight"):
        found = await crowded()
        run = f"Claude Code, {AT_ONCE} at once: "
        good &= report(f"{run}longest step, CPU", found["busy"], 50, "ms")
        # On a machine with fewer processors than agents this tells how long it waited for one.
        print(f"{run + 'longest delay of the loop':46} {found['late']:8.2f} ms", flush=True)
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        sys.exit(0)
    within = asyncio.run(main(arguments.words, arguments.rounds))
    sys.exit(0 if within or not arguments.gate else 1)
