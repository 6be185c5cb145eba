"""
Tools of this process, called by the real Claude Code binary over MCP.

Everything else about a run is in ``test_claude_code_block``, whose bench this uses: it ends by
looking for processes and files that a run left behind.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from flowstate.blocks.claude_code.mcp_tools import McpContent, McpServer, McpTool
from flowstate.context import Context
from flowstate.testing.scripted_turns import Turn, text, tool_call
from tests.blocks.claude_code.fake_context import FakeContext
from tests.live.test_claude_code_block import Bench, _bench, one_backend

pytestmark = [pytest.mark.anyio, pytest.mark.live]

bench = _bench
"""The fixture, for this module, too."""

ADD = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "points": {"type": "integer"}},
    "required": ["title"],
}
ALL_SENT = {"ENABLE_TOOL_SEARCH": "false"}
"""Else Claude Code only names its tools, and offers those that the model asks for."""


class Tracker:
    """A server whose tools keep what they were called with."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.closed: list[str] = []
        self.entered = threading.Event()
        self.cancelled = 0
        self.loop_thread = threading.get_ident()

    async def add(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert threading.get_ident() == self.loop_thread
        await anyio.sleep(0.01)
        self.calls.append(arguments)
        return {"id": len(self.calls), "title": arguments["title"]}

    async def fail(self, arguments: dict[str, Any]) -> str:
        raise RuntimeError("cannot reach db with hunter2-of-the-server and hunter2-of-the-run")

    async def shout(self, arguments: dict[str, Any]) -> McpContent:
        return McpContent([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])

    async def wait(self, arguments: dict[str, Any]) -> str:
        self.entered.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return "never"

    async def close(self) -> None:
        await anyio.sleep(0.01)
        self.closed.append("tracker")

    def servers(self, ctx: object = None) -> dict[str, McpServer]:
        tools = [
            McpTool(name="add", description="Add an issue.", schema=ADD, call=self.add),
            McpTool(name="fail", description="Fails.", schema={}, call=self.fail),
            McpTool(name="shout", description="Two blocks.", schema={}, call=self.shout),
            McpTool(name="wait", description="Never answers.", schema={}, call=self.wait),
        ]
        return {"tracker": McpServer(tools=tools, close=self.close)}


def env(bench: Bench, **more: str) -> Mapping[str, str]:
    return {**bench.home.env, **ALL_SENT, **more}


def offered(bench: Bench) -> set[str]:
    """The MCP tools of the last request to the model."""
    return {n for n in bench.api.conversation()[-1].tool_names if n.startswith("mcp__")}


async def test_the_agent_calls_a_tool_of_this_process(bench: Bench) -> None:
    """Arguments in, an answer out, unasked in the default mode; closed once the run is over."""
    tracker = Tracker()
    bench.api.script(
        Turn(
            tool_call("mcp__tracker__add", title="A bug", points=3),
            tool_call("mcp__tracker__shout"),
        ),
        Turn(text("Added.")),
    )
    seen: list[Context] = []

    async def serve(ctx: Context) -> dict[str, McpServer]:
        seen.append(ctx)
        await anyio.lowlevel.checkpoint()
        return tracker.servers()

    ctx = FakeContext(bench.session)
    handle = await bench.run(
        ctx=ctx, env=env(bench), mcp_tools=serve, permission_mode="default", allowed_tools=[]
    )

    assert handle.final_message == "Added."
    assert seen == [ctx.as_context()]
    assert tracker.calls == [{"title": "A bug", "points": 3}]
    added, shouted = bench.api.conversation()[-1].tool_results
    assert json.loads(added.text) == {"id": 1, "title": "A bug"}
    assert shouted.text.startswith("one\ntwo")  # Claude Code may add a reminder of its own
    assert not added.is_error
    assert offered(bench) == {f"mcp__tracker__{n}" for n in ("add", "fail", "shout", "wait")}
    assert [o.name for o in ctx.contents("tool_output")] == [
        *("mcp__tracker__add", "mcp__tracker__shout"),
    ]
    assert {item.status for item in ctx.items.shown} == {"completed"}
    assert tracker.closed == ["tracker"]


async def test_a_call_that_raises_is_an_error_result_without_secrets(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is told and goes on; neither the server's secrets nor the run's are in it."""
    tracker = Tracker()
    monkeypatch.setenv("MY_DB_PASSWORD", "hunter2-of-the-server")
    bench.api.script(
        Turn(tool_call("mcp__tracker__fail"), tool_call("mcp__tracker__add", points="x")),
        Turn(text("I see.")),
    )
    ctx = FakeContext(bench.session)
    handle = await bench.run(
        ctx=ctx, env=env(bench, MY_TOKEN="hunter2-of-the-run"), mcp_tools=tracker.servers()
    )

    assert handle.status == "completed"
    failed, refused = bench.api.conversation()[-1].tool_results
    assert failed.is_error
    assert "RuntimeError: cannot reach db with [redacted] and [redacted]" in failed.text
    assert refused.is_error
    assert tracker.calls == []
    shown = str([item.content for item in ctx.items.shown]) + str(ctx.logger.calls)
    assert "hunter2" not in shown
    assert tracker.closed == ["tracker"]


async def test_a_cancel_reaches_a_call_and_the_servers_are_closed(bench: Bench) -> None:
    """The call is cancelled with the run; closing is sheltered; the session goes on."""
    tracker = Tracker()
    bench.api.script(Turn(tool_call("mcp__tracker__wait")))
    ctx = FakeContext(bench.session)
    seconds = await bench.cancelled(
        ctx, tracker.entered.is_set, env=env(bench), mcp_tools=tracker.servers
    )

    assert seconds < 5
    assert tracker.cancelled == 1
    assert tracker.closed == ["tracker"]
    assert [item.settled for item in ctx.items.shown] == [True] * len(ctx.items.shown)

    bench.api.script(Turn(text("I am back.")))
    assert (await bench.run("Go on", env=env(bench))).final_message == "I am back."


@one_backend
@pytest.mark.parametrize("disallowed", ["mcp__tracker__add", "mcp__tracker", "mcp__tracker__*"])
async def test_a_disallowed_tool_is_kept_out(bench: Bench, disallowed: str) -> None:
    """One tool, or a whole server: not offered, and a call of it doesn't arrive."""
    tracker = Tracker()
    bench.api.script(Turn(tool_call("mcp__tracker__add", title="A bug")), Turn(text("No.")))
    await bench.run(env=env(bench), mcp_tools=tracker.servers(), disallowed_tools=[disallowed])

    assert tracker.calls == []
    assert "mcp__tracker__add" not in offered(bench)
    assert bench.api.conversation()[-1].tool_results[0].is_error
    assert ("mcp__tracker__shout" in offered(bench)) is (disallowed == "mcp__tracker__add")


FOREIGN = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, result = asked["method"], {}
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "leak", "description": "x", "inputSchema":
                             {"type": "object", "properties": {}}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def foreign_servers(bench: Bench, tmp_path: Path) -> dict[str, Any]:
    """A project's server and a plugin's, and the options that let a run have them."""
    script = tmp_path / "foreign.py"
    script.write_text(FOREIGN)

    def config(name: str) -> str:
        # Of two servers with the same command line Claude Code would start one.
        server = {"command": sys.executable, "args": [str(script), name]}
        return json.dumps({"mcpServers": {name: server}})

    (bench.home.path / ".mcp.json").write_text(config("project"))
    plugin = tmp_path / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "plug", "version": "1.0.0"}')
    (plugin / ".mcp.json").write_text(config("plugged"))
    return {
        "settings": {"enableAllProjectMcpServers": True},
        "plugins": [{"type": "local", "path": str(plugin)}],
    }


@one_backend
@pytest.mark.parametrize("mcp_tools", [None, {}, "tracker"])
async def test_the_servers_of_a_run_are_all_there_are(
    bench: Bench, tmp_path: Path, mcp_tools: object
) -> None:
    """A project's server and a plugin's come along by default, and never beside ours, or none."""
    tracker = Tracker()
    bench.api.script(Turn(text("ok")), Turn(text("ok")))
    served = tracker.servers() if mcp_tools == "tracker" else mcp_tools
    await bench.run(
        env=env(bench, MCP_CONNECTION_NONBLOCKING="0"),
        mcp_tools=served,
        **foreign_servers(bench, tmp_path),
    )
    servers = {name.split("__")[1] for name in offered(bench)}

    if mcp_tools is None:
        assert servers == {"project", "plugin_plug_plugged"}
    else:
        assert servers == ({"tracker"} if served else set())
