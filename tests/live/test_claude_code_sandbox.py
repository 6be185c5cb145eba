"""
Claude Code's own sandbox, which is there: what it confines, and how a run in it ends.

On Linux it is bubblewrap and socat, both of which a prepared machine has. The network is closed
with a network namespace of the sandbox's own, so it is tried with loopback addresses alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flowstate.blocks.claude_code.approval import AllowTool, DenyTool, ToolApprovalRequest
from flowstate.blocks.claude_code.errors import SandboxUnavailableError
from flowstate.context import Context
from flowstate.testing.scripted_turns import Turn, text, tool_call
from tests.blocks.claude_code.fake_context import FakeContext
from tests.conftest import RequireTool
from tests.live.test_claude_code_block import (
    SLEEP,
    Bench,
    _bench,
    agent_of,
    one_backend,
    sleeping,
)

__all__ = ["_bench"]

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.live,
    pytest.mark.skipif(sys.platform != "linux", reason="these tools are those of Linux"),
]

OWN = {".claude"}
"""What Claude Code itself leaves in a directory that it ran sandboxed commands in."""


@dataclass
class Sandbox:
    """A bench whose agents have a directory within the home, and the tools of a sandbox."""

    bench: Bench
    work: Path
    env: dict[str, str]

    def options(self, **sandbox: Any) -> dict[str, Any]:
        """Options of a run that is sandboxed to its directory."""
        return {
            "env": self.env,
            "cwd": lambda _: self.work,
            "sandbox": {"enabled": True, **sandbox},
        }

    def sleeps(self) -> bool:
        """Whether a command of the directory has written its file, and sleeps since."""
        return (self.work / "in.txt").exists() and bool(sleeping(self.bench))

    async def outputs(self, *commands: str, options: dict[str, Any] | None = None) -> list[str]:
        """Run commands in one run, each in a turn of its own, and say what they put out."""
        turns = [Turn(tool_call("Bash", command=command)) for command in commands]
        self.bench.api.script(*turns, Turn(text("ok")))
        ctx = FakeContext()
        await self.bench.run(ctx=ctx, detached=True, **(options or self.options()))
        return [str(content.output) for content in ctx.contents("tool_output")]


@pytest.fixture(name="tools", scope="session")
def _tools(require_tool: RequireTool) -> str:
    """A path on which the sandbox finds its tools, on a system that lets it use them."""
    if sys.platform != "linux":
        return ""
    if why := os.environ.get("FLOWSTATE_NO_SANDBOX"):
        pytest.skip(f"the sandbox is left out: {why}")
    bwrap, socat = require_tool("bwrap"), require_tool("socat")
    spaces = ["--unshare-user", "--unshare-net", "--unshare-pid"]
    mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    tried = subprocess.run([bwrap, *mounts, *spaces, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        # Inside another container the kernel may refuse what no package can bring.
        pytest.skip(f"this system refuses the sandbox its namespaces: {tried.stderr.strip()}")
    return f"{Path(bwrap).parent}:{Path(socat).parent}"


@pytest.fixture(name="sandbox")
def _sandbox(bench: Bench, tools: str) -> Sandbox:
    work = bench.home.path / "work"
    work.mkdir()
    return Sandbox(bench, work, {**bench.home.env, "PATH": f"{tools}:{bench.home.env['PATH']}"})


def fetch(url: str, *, proxied: bool) -> str:
    """A command that asks for a URL, by the sandbox's proxy or past it, and says what came."""
    program = (
        "import urllib.error, urllib.request as u\n"
        f"proxies = u.ProxyHandler({'' if proxied else '{}'})\n"
        f"try: print(u.build_opener(proxies).open('{url}', timeout=5).read())\n"
        "except urllib.error.HTTPError as e: print(e.code, e.read().decode())\n"
        "except OSError as e: print(e)"
    )
    return f'NO_PROXY= no_proxy= python3 -c "{program}"'


# --- what it confines ---------------------------------------------------------------------------


async def test_a_command_writes_in_its_directory_and_nowhere_else(sandbox: Sandbox) -> None:
    """Outside, the file system is read only, but for what the author allows."""
    extra = sandbox.bench.home.path / "extra"
    extra.mkdir()
    command = "echo a > in.txt; echo b > ../out.txt; echo c > ../extra/c.txt"
    confined = sandbox.options(filesystem={"allowWrite": [str(extra)]})
    (said,) = await sandbox.outputs(command, options=confined)

    assert said.count("Read-only file system") == 1
    assert (sandbox.work / "in.txt").read_text() == "a\n"
    assert (extra / "c.txt").read_text() == "c\n"
    assert not (sandbox.work.parent / "out.txt").exists()
    assert {path.name for path in sandbox.work.iterdir()} == {"in.txt", *OWN}

    await sandbox.outputs(command, options={**confined, "sandbox": None})
    assert (sandbox.work.parent / "out.txt").exists(), "it isn't the sandbox that confines"


@one_backend
async def test_a_file_tool_is_not_confined(sandbox: Sandbox) -> None:
    """The sandbox is one of commands: an allowed Write goes where it likes."""
    path = sandbox.work.parent / "out.txt"
    sandbox.bench.api.script(
        Turn(tool_call("Write", file_path=str(path), content="out")), Turn(text("ok"))
    )
    await sandbox.bench.run(ctx=FakeContext(), detached=True, **sandbox.options())

    assert path.read_text() == "out"


@one_backend
async def test_the_network_is_closed_but_for_named_hosts(sandbox: Sandbox) -> None:
    """Not even this machine's loopback is there; a proxy lets named hosts through, no others."""
    port = sandbox.bench.api.url.rpartition(":")[2]
    named, other = f"http://localhost:{port}", f"http://127.0.0.1:{port}"
    commands = (
        fetch(f"{named}/direct", proxied=False),
        fetch(f"{named}/named", proxied=True),
        fetch(f"{other}/other", proxied=True),
    )

    def reached() -> set[str]:
        return {request.path for request in sandbox.bench.api.requests} & {
            *("/direct", "/named", "/other")
        }

    direct, *proxied = await sandbox.outputs(*commands)
    assert "refused" in direct
    assert all("blocked by network allowlist" in said for said in proxied)
    assert reached() == set()

    allowed = sandbox.options(network={"allowedDomains": ["localhost"]})
    direct, through, blocked = await sandbox.outputs(*commands, options=allowed)
    assert "refused" in direct
    assert "the scripted endpoint has no /named" in through
    assert "blocked by network allowlist" in blocked
    assert reached() == {"/named"}


@one_backend
async def test_a_command_leaves_the_sandbox_only_if_that_is_approved(sandbox: Sandbox) -> None:
    """Though Bash itself is allowed, that much is asked about; or it isn't possible at all."""
    asked: list[ToolApprovalRequest] = []

    def deny(request: ToolApprovalRequest, _: Context) -> AllowTool | DenyTool:
        asked.append(request)
        return DenyTool("stay inside")

    call = tool_call("Bash", command="echo b > ../out.txt", dangerouslyDisableSandbox=True)
    for sealed in (False, True):
        sandbox.bench.api.script(Turn(call), Turn(text("ok")))
        ctx = FakeContext()
        options = sandbox.options(**({"allowUnsandboxedCommands": False} if sealed else {}))
        await sandbox.bench.run(ctx=ctx, detached=True, on_tool_approval=deny, **options)
        (content,) = ctx.contents("tool_output")
        expected = "Read-only file system" if sealed else "stay inside"
        assert expected in str(content.output)

    assert [request.tool_name for request in asked] == ["Bash"]
    assert not (sandbox.work.parent / "out.txt").exists()


# --- without one --------------------------------------------------------------------------------


@one_backend
async def test_a_sandbox_is_required_unless_its_author_says_otherwise(
    sandbox: Sandbox, tmp_path: Path, require_tool: RequireTool
) -> None:
    """With a tool missing: unset means required, and what the author says is left as it is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bwrap", "bash", "sh"):
        (folder / name).symlink_to(require_tool(name))
    sandbox.env["PATH"] = str(folder)
    for said in ({}, {"failIfUnavailable": True}):
        with pytest.raises(SandboxUnavailableError, match="socat not installed"):
            await sandbox.bench.run(ctx=FakeContext(), detached=True, **sandbox.options(**said))
    assert sandbox.bench.api.requests == ()

    open_ = sandbox.options(failIfUnavailable=False)
    await sandbox.outputs("echo b > ../out.txt", options=open_)
    assert (sandbox.work.parent / "out.txt").exists()


async def test_a_run_that_is_not_sandboxed_gets_no_prompt(sandbox: Sandbox) -> None:
    """Whatever it is that undoes the settings, what Claude Code says of itself counts."""
    ctx = FakeContext()
    undone = {"extra_args": {"settings": "{}"}}
    with pytest.raises(SandboxUnavailableError, match="started without one"):
        await sandbox.bench.run(ctx=ctx, detached=True, options=undone, **sandbox.options())

    assert sandbox.bench.api.requests == ()
    assert [error.code for error in ctx.contents("error")] == ["sandbox_unavailable"]


@one_backend
async def test_a_sandbox_that_cannot_start_runs_no_command(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Where the system refuses the namespaces, say: the command fails, it doesn't go without."""
    folder = tmp_path / "bin"
    folder.mkdir()
    refusing = folder / "bwrap"
    words = "bwrap: No permissions to create new namespace"
    refusing.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    refusing.chmod(0o700)
    sandbox.env["PATH"] = f"{folder}:{sandbox.env['PATH']}"
    (said,) = await sandbox.outputs("echo a > in.txt")

    assert words in said
    assert not (sandbox.work / "in.txt").exists()


# --- ending it ----------------------------------------------------------------------------------


async def test_a_cancel_in_a_sandboxed_command_leaves_nothing(sandbox: Sandbox) -> None:
    """Over within five seconds, no process of the sandbox's left, and none of its files."""
    sandbox.bench.api.script(Turn(tool_call("Bash", command=f"echo a > in.txt; {SLEEP}")))
    ctx = FakeContext(sandbox.bench.session)
    seconds = await sandbox.bench.cancelled(ctx, sandbox.sleeps, **sandbox.options())

    assert seconds < 5
    assert sleeping(sandbox.bench) == []
    assert {path.name for path in sandbox.work.iterdir()} == {"in.txt", *OWN}

    sandbox.bench.api.script(Turn(text("I am back.")))
    handle = await sandbox.bench.run("Go on", **sandbox.options())
    assert handle.final_message == "I am back."


@one_backend
async def test_a_sandboxed_agent_that_hangs_is_killed_with_its_sandbox(sandbox: Sandbox) -> None:
    """
    Its commands, the proxy and the namespaces are gone in time. What it can't clear away any more
    are the empty files on which the sandbox had mounted what no command may write.
    """
    sandbox.bench.api.script(Turn(tool_call("Bash", command=f"echo a > in.txt; {SLEEP}")))

    def stopped() -> bool:
        if not sandbox.sleeps():
            return False
        os.kill(agent_of(sandbox.bench), signal.SIGSTOP)
        return True

    ctx = FakeContext(sandbox.bench.session)
    seconds = await sandbox.bench.cancelled(ctx, stopped, **sandbox.options())

    assert seconds < 5.5  # five, and what a loaded machine takes to see the end
    left = [path for path in sandbox.work.rglob("*") if path.is_file() and path.stat().st_size]
    assert [path.name for path in left] == ["in.txt"]
