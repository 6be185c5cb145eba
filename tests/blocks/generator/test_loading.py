"""pydantic-ai is imported when the first run needs it, off the loop, or said to be missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_defining_planning_and_drawing_needs_no_pydantic_ai() -> None:
    """Importing the package, and building a plan with a generator, loads no vendor."""
    loaded = python(
        "import sys\n"
        "from flowstate import build_plan, sequencer\n"
        "from flowstate.blocks.generator import generator\n"
        "ask = generator('ask', output=int, model='anthropic:claude-scripted-1')\n"
        "build_plan(sequencer('turn', str).step(ask)).mermaid()\n"
        "print(sorted({'pydantic_ai', 'anthropic', 'openai', 'httpx2', 'anyio._backends._asyncio'}"
        " & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_without_the_package_the_run_says_what_to_install() -> None:
    """The error names the extra, and the failed import is its cause."""
    told = python(
        BLOCKED
        + """
import anyio
from flowstate import run_block
from flowstate.blocks.generator import PydanticAiNotInstalledError, generator
try:
    anyio.run(run_block, generator('ask', model='test'), 'go')
except PydanticAiNotInstalledError as error:
    print(error, '|', type(error.__cause__).__name__)
"""
    )
    assert "pip install 'flowstate-engine[models]'" in told
    assert told.endswith("| ModuleNotFoundError")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_loop_goes_on_while_it_is_imported(backend: str) -> None:
    """The import takes a second, in a worker thread: a task beside it keeps running."""
    ticks = python(
        f"""
import anyio
from flowstate import run_block
from flowstate.blocks.generator import generator
import structlog
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
ticks = 0
async def main():
    async def tick():
        global ticks
        while True:
            await anyio.sleep(0.001)
            ticks += 1
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        answer = await run_block(generator('ask', model='test'), 'go')
        tasks.cancel_scope.cancel()
    print(answer.startswith('success'), ticks > 5)
anyio.run(main, backend={backend!r})
"""
    )
    assert ticks == "True True"
