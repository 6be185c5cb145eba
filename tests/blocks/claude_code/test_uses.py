"""What is in an agent's ``uses`` is there for its resolvers and hooks, as in any other block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from flowstate import Context, HarnessRunInput, Runtime, action, define_flow, session_state
from flowstate.blocks.claude_code import claude_code_agent
from flowstate.define.capability import define_capability
from tests.blocks.claude_code.fake_sdk import ResultMessage, fake_sdk, idle, init, running, says

pytestmark = pytest.mark.anyio


class Place(BaseModel):
    """Where an agent of a session works."""

    folder: str = ""


class Places:
    """The handle of the capability."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def folder(self) -> str:
        """The session's folder."""
        return (await self._ctx.session[Place].get()).folder or "/"

    async def note(self, folder: str) -> None:
        """From now on it is this one."""
        await self._ctx.session[Place].set(Place(folder=folder))


async def test_a_capability_and_its_state_serve_resolvers_and_hooks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The state that a capability brings is registered, and one run decides for the next."""
    places = define_capability("places", Places, uses=[session_state(Place)])

    async def cwd(ctx: Context) -> str:
        return await ctx.cap[places].folder()

    async def on_session(_: str, ctx: Context) -> None:
        await ctx.cap[places].note(str(tmp_path))

    agent = claude_code_agent(detached=True, uses=[places], cwd=cwd, on_session=on_session)
    run_it = action("run", agent)
    sdk = fake_sdk(monkeypatch, running(), init(), says("hi"), ResultMessage(), idle())
    async with Runtime(define_flow("coding", actions=[run_it])) as runtime:
        for _ in range(2):
            run = await runtime.dispatch(run_it, HarnessRunInput(prompt="Go"), session="s1")
            assert (await run.output()).status == "completed"

    assert [client.options.cwd for client in sdk.clients] == ["/", os.fspath(tmp_path)]
