"""A provider of the host's own that keeps something open from one run of a session to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from flowstate import Context, HarnessRunInput, Runtime, action, define_flow
from flowstate.blocks.claude_code import claude_code_agent
from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import Turn, text

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]


class Notebook:
    """What is kept open: it has a task of its own, and the conversation that it is in."""

    def __init__(self) -> None:
        self.conversation: str | None = None
        self.written: list[str] = []
        self.beats = 0

    async def beat(self) -> None:
        while True:
            self.beats += 1
            await anyio.sleep(0.01)


class Line:
    """One run's hold on it."""

    total_before_usd = None

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook

    @property
    def conversation_id(self) -> str | None:
        return self.notebook.conversation

    async def confirm(self, conversation_id: str) -> None:
        self.notebook.conversation = conversation_id
        self.notebook.written.append(conversation_id)

    async def forget(self, conversation_id: str) -> None:
        self.notebook.conversation = None

    async def note_total(self, conversation_id: str, total_usd: float) -> None:
        """What it costs is not this one's business."""


class Notebooks:
    """The provider: a notebook a session, in the Runtime's keeping."""

    def __init__(self) -> None:
        self.opened: list[Notebook] = []
        self.closed: list[Notebook] = []

    async def resolve(self, ctx: Context, *, agent: str) -> Line:
        return Line(await ctx.keep(f"notebook of {agent}", self._open))

    async def release(self, binding: Line, error: BaseException | None) -> None:
        assert binding.notebook not in self.closed

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Notebook]:
        notebook = Notebook()
        self.opened.append(notebook)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(notebook.beat)
            yield notebook
            tasks.cancel_scope.cancel()
        self.closed.append(notebook)


async def test_what_a_provider_keeps_outlives_its_run_and_not_the_runtime() -> None:
    """Two runs of a session share a live thing in the Runtime's task, and one conversation."""
    async with ScriptedMessagesApi() as api, clean_home(api) as home:
        provider = Notebooks()
        agent = claude_code_agent(
            env=home.env, cwd=lambda _: home.path, model="claude-sonnet-4-5", provider=provider
        )
        ask = action("ask", agent)
        async with Runtime(define_flow("coding", actions=[ask])) as runtime:
            api.script(Turn(text("One.")))
            run = await runtime.dispatch(ask, HarnessRunInput(prompt="first"), session="s")
            first = await run.output()
            await run.finished()
            beats = provider.opened[0].beats
            await anyio.sleep(0.05)
            assert provider.opened[0].beats > beats, "it lives on between two runs"

            api.script(Turn(text("Two.")))
            run = await runtime.dispatch(ask, HarnessRunInput(prompt="second"), session="s")
            second = await run.output()
            assert provider.closed == []

        assert first.session_id == second.session_id == provider.opened[0].conversation
        assert "first" in str(api.conversation()[-1].body["messages"])
        assert len(provider.opened) == 1
        assert provider.closed == provider.opened
