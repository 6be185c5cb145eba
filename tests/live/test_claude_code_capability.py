"""The agent's tool and a provider of one's own, in a Runtime, with the real Claude Code binary."""

from __future__ import annotations

import pytest

from flowstate import Context, Runtime, action, define_flow, handler, sequencer
from flowstate.blocks.claude_code import ClaudeCodeHandle, SessionBinding, SessionBindings
from flowstate.capabilities.claude_code_agent import claude_code_agent_capability
from flowstate.harness.handle import HarnessRunInput
from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import Turn, text

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [pytest.mark.anyio, pytest.mark.live]


class Warm:
    """Keeps something open from one run of a session to the next, upon the thin provider."""

    def __init__(self) -> None:
        self.opened = 0
        self.errors: list[BaseException | None] = []
        self._thin = SessionBindings()
        self._open: set[str] = set()

    async def resolve(self, ctx: Context, *, agent: str) -> SessionBinding:
        if ctx.session.id not in self._open:
            self._open.add(ctx.session.id)
            self.opened += 1
        return await self._thin.resolve(ctx, agent=agent)

    async def release(self, binding: SessionBinding, error: BaseException | None) -> None:
        self.errors.append(error)


async def test_the_tool_s_block_continues_its_session_in_a_runtime() -> None:
    """Two requests are one conversation, what is held stays open, and the handle tells of it."""
    warm = Warm()
    async with ScriptedMessagesApi(Turn(text("One.")), Turn(text("Two."))) as api:
        async with clean_home(api) as home:
            coder = claude_code_agent_capability(
                name="coder",
                env=home.env,
                cwd=lambda ctx: home.path,
                model="claude-sonnet-4-5",
                provider=warm,
            )

            @handler(uses=[coder])
            async def told(handle: ClaudeCodeHandle, ctx: Context) -> str:
                assert await ctx.cap[coder].conversation() == handle.session_id
                return f"{handle.session_id} {handle.final_message}"

            turn = sequencer("turn", HarnessRunInput).step(coder.tools[0].block).step(told)
            ask = action("ask", turn)
            async with Runtime(define_flow("coding", actions=[ask])) as runtime:
                first = await runtime.dispatch(ask, HarnessRunInput(prompt="Q1"), session="s1")
                one = await first.output()
                second = await runtime.dispatch(ask, HarnessRunInput(prompt="Q2"), session="s1")
                two = await second.output()

        assert (one.split(" ", 1)[1], two.split(" ", 1)[1]) == ("One.", "Two.")
        assert one.split()[0] == two.split()[0]
        assert "Q1" in "\n".join(api.conversation()[-1].user_texts)
    assert (warm.opened, warm.errors) == (1, [None, None])
