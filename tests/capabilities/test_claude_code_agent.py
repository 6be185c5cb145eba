"""The agent as a tool: what a block that uses the capability is given, and what comes with it."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from flowstate import (
    Context,
    Runtime,
    action,
    define_capability,
    define_flow,
    handler,
    session_state,
)
from flowstate.blocks.claude_code import SdkAgentRun, SdkAgentRuns, SessionBindings
from flowstate.blocks.claude_code.conversation import agent_runs_state
from flowstate.capabilities.claude_code_agent import (
    CAPABILITY,
    DESCRIPTION,
    ClaudeCodeAgent,
    claude_code_agent_capability,
)
from flowstate.errors import DefinitionError

pytestmark = pytest.mark.anyio

ONE = "11111111-2222-4333-8444-555555555555"


class Ask(BaseModel):
    text: str


class Notes(BaseModel):
    lines: tuple[str, ...] = ()


class Memory:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx


def test_it_is_a_tool_that_takes_a_prompt_and_nothing_else() -> None:
    """A model writes the prompt; everything else is configuration."""
    capability = claude_code_agent_capability()

    assert capability.name == CAPABILITY
    (tool,) = capability.tools
    assert (tool.name, tool.description) == ("claude_code", DESCRIPTION)
    assert tool.schema()["required"] == ["prompt"]
    assert list(tool.schema()["properties"]) == ["prompt"]
    assert capability.control_tools == ()


def test_a_name_and_a_description_are_the_author_s() -> None:
    """The name is the block's, the tool's and the capability's, so that two can stand in a plan."""
    capability = claude_code_agent_capability(name="reviewer", description="Reviews.")

    assert capability.name == "reviewer"
    assert (capability.tools[0].name, capability.tools[0].description) == ("reviewer", "Reviews.")
    assert capability.tools[0].block.name == "reviewer"


def test_its_session_state_comes_with_it_unless_it_is_detached() -> None:
    """A detached one declares nothing, which is what a task board's worker needs."""
    memory = define_capability("memory", Memory)
    notes = session_state(Notes)

    assert claude_code_agent_capability().uses == (agent_runs_state(),)
    assert claude_code_agent_capability(detached=True).uses == ()
    used = claude_code_agent_capability(detached=True, uses=[memory, notes, lambda ctx: []]).uses
    assert used == (memory, notes)


def test_options_are_checked_as_the_block_s() -> None:
    """It takes the same ones, and refuses the same."""
    with pytest.raises(DefinitionError, match="resume= without detached=True"):
        claude_code_agent_capability(resume=lambda ctx: None)
    with pytest.raises(DefinitionError, match="provider= with detached=True"):
        claude_code_agent_capability(detached=True, provider=SessionBindings())


async def test_a_block_that_uses_it_has_the_tool_and_the_handle() -> None:
    """In a running flow: the entries hold the tool, the handle says what will be continued."""
    agent = claude_code_agent_capability(name="coder")
    seen: list[object] = []

    @handler(uses=[agent])
    async def look(ask: Ask, ctx: Context) -> str:
        handle = ctx.cap[agent]
        assert isinstance(handle, ClaudeCodeAgent)
        seen.extend([ctx.cap.entries().tools, handle.tool, await handle.conversation()])
        run = SdkAgentRun(agent="coder", session_id=ONE, request_id="r", path="p")
        await ctx.session[SdkAgentRuns].update(lambda runs: runs.with_run(run))
        return await handle.conversation() or "none"

    looking = action("look", look)
    async with Runtime(define_flow("coding", actions=[looking])) as runtime:
        run = await runtime.dispatch(looking, Ask(text="x"), session="s1")
        assert await run.output() == ONE

    assert seen == [agent.tools, agent.tools[0], None]


async def test_a_detached_one_tells_of_no_conversation() -> None:
    """There is no state to read it from; its author decides."""
    agent = claude_code_agent_capability(detached=True)

    @handler(uses=[agent])
    async def look(ask: Ask, ctx: Context) -> str:
        handle = ctx.cap[agent]
        assert handle.runs is None
        return str(await handle.conversation())

    looking = action("look", look)
    async with Runtime(define_flow("coding", actions=[looking])) as runtime:
        run = await runtime.dispatch(looking, Ask(text="x"), session="s1")
        assert await run.output() == "None"
