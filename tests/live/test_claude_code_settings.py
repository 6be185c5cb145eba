"""
What the options of a run do to the real Claude Code: which files count, and what the model is sent.

A run's directory is a repository with everything in it that Claude Code looks for.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flowstate.blocks.claude_code.approval import DenyTool, ToolApprovalRequest
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.context import Context
from flowstate.harness.usage import HarnessUsageReport
from flowstate.testing.scripted_turns import Turn, text, tool_call
from tests.blocks.claude_code.fake_context import FakeContext
from tests.live.test_claude_code_block import MODEL, Bench, _bench

__all__ = ["_bench"]

pytest.importorskip("claude_agent_sdk", reason="could not import claude_agent_sdk")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.live,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

BRANCH = "branch-of-the-tests"
QUIET = {"autoMemoryEnabled": False, "includeGitInstructions": False}


@dataclass
class Seeded:
    """A bench whose agents work in a repository that is full of configuration."""

    bench: Bench
    work: Path

    async def run(self, *turns: Turn, **options: Any) -> tuple[ClaudeCodeHandle, FakeContext]:
        """One run in the repository; the last turn is a plain answer."""
        self.bench.api.script(*turns, Turn(text("ok")))
        ctx = FakeContext()
        handle = await self.bench.run(
            ctx=ctx, **{"detached": True, "cwd": lambda _: self.work, **options}
        )
        return handle, ctx

    async def sent(self, **options: Any) -> str:
        """What the model is sent with the prompt, as one text."""
        await self.run(**options)
        return str(self.bench.api.conversation()[-1].body)

    @property
    def hooked(self) -> bool:
        """Whether the repository's hook has run; from now on it hasn't."""
        mark = self.work / "hooked"
        there = mark.exists()
        mark.unlink(missing_ok=True)
        return there


@pytest.fixture(name="seeded")
def _seeded(bench: Bench) -> Seeded:
    work, config = bench.home.path / "work", bench.home.path / "config"
    (work / ".claude").mkdir(parents=True)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-C", str(work)]
    subprocess.run([*git, "init", "-q", "-b", BRANCH], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    (config / "CLAUDE.md").write_text("RULE-OF-USER")
    (work / "CLAUDE.md").write_text("RULE-OF-PROJECT")
    (work / "CLAUDE.local.md").write_text("RULE-OF-LOCAL")
    memory = config / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(work)) / "memory"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("RULE-OF-MEMORY")
    hook = {"type": "command", "command": f"touch {work}/hooked"}
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}, "env": {"WHOSE": "the files'"}}
    (work / ".claude" / "settings.json").write_text(json.dumps(settings))
    return Seeded(bench, work)


def rules(sent: str) -> set[str]:
    """The files whose rules the model was sent."""
    return set(re.findall(r"RULE-OF-(\w+)", sent))


# --- what is loaded -----------------------------------------------------------------------------


async def test_sources_say_which_files_count(seeded: Seeded) -> None:
    """Unset, all of them; ``[]``, none. A project's hooks run with it, unless they are kept off."""
    quiet: dict[str, Any] = {"settings": QUIET}
    assert rules(await seeded.sent(**quiet)) == {"USER", "PROJECT", "LOCAL"}
    assert seeded.hooked
    assert rules(await seeded.sent(**quiet, setting_sources=[])) == set()
    assert not seeded.hooked
    assert rules(await seeded.sent(**quiet, setting_sources=["user"])) == {"USER"}
    assert not seeded.hooked
    assert rules(await seeded.sent(**quiet, setting_sources=["project"])) == {"PROJECT"}
    assert seeded.hooked
    hookless = {"settings": {**QUIET, "disableAllHooks": True}}
    assert rules(await seeded.sent(**hookless, setting_sources=["project"])) == {"PROJECT"}
    assert not seeded.hooked


async def test_settings_are_above_the_files(seeded: Seeded) -> None:
    """The same key of the repository's own file doesn't count."""
    look = Turn(tool_call("Bash", command="echo it is $WHOSE"))
    settings = {"env": {"WHOSE": "ours"}}
    _, ctx = await seeded.run(look, setting_sources=["project"], settings=settings)

    assert "it is ours" in ctx.contents("tool_output")[0].output


async def test_memory_and_git_are_loaded_whatever_the_sources_say(seeded: Seeded) -> None:
    """Only settings keep them out."""
    sent = await seeded.sent(setting_sources=[])
    assert rules(sent) == {"MEMORY"}
    assert BRANCH in sent

    sent = await seeded.sent(setting_sources=[], settings=QUIET)
    assert rules(sent) == set()
    assert BRANCH not in sent


async def test_a_rule_denies_a_file_by_its_absolute_path(seeded: Seeded) -> None:
    """It takes two slashes, and holds for what is allowed otherwise."""
    secret = seeded.bench.home.path / "secret.txt"
    secret.write_text("the secret is 4711")
    read = Turn(tool_call("Read", file_path=str(secret)))
    allowed: dict[str, Any] = {"allowed_tools": ["Read"], "setting_sources": []}
    _, ctx = await seeded.run(read, **allowed)
    assert "4711" in ctx.contents("tool_output")[0].output

    denied = {"permissions": {"deny": [f"Read(/{secret})"]}}
    _, ctx = await seeded.run(read, **allowed, settings=denied)
    assert "denied by your permission settings" in ctx.contents("tool_output")[0].output


async def test_no_skills_keep_the_binary_s_own_out(seeded: Seeded) -> None:
    """Some twenty come with it; unset, the model is told of them whatever the sources say."""
    assert "dataviz" in await seeded.sent(setting_sources=[])
    assert "dataviz" not in await seeded.sent(setting_sources=[], skills=[])


async def test_a_plugin_brings_its_skills_and_sub_agents(seeded: Seeded) -> None:
    """Named after the plugin; a skill after its folder."""
    plugin = seeded.bench.home.path / "plugin"
    for folder in (".claude-plugin", "skills/knitting", "agents"):
        (plugin / folder).mkdir(parents=True)
    manifest = {"name": "craft", "version": "1.0.0", "description": "Crafts"}
    (plugin / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))
    (plugin / "skills" / "knitting" / "SKILL.md").write_text(
        "---\nname: other\ndescription: KNIT-WELL\n---\nKnit.\n"
    )
    (plugin / "agents" / "weaver.md").write_text(
        "---\nname: weaver\ndescription: WEAVE-WELL\n---\nWeave.\n"
    )
    sent = await seeded.sent(setting_sources=[], plugins=[{"type": "local", "path": str(plugin)}])

    assert "craft:knitting" in sent
    assert "craft:weaver" in sent


# --- what is handed in --------------------------------------------------------------------------


async def test_the_model_is_the_resolver_s(seeded: Seeded) -> None:
    """Asked with the context of the run; None is Claude Code's own default."""
    answers = ["claude-haiku-4-5", None]
    asked: list[Context] = []

    def model(ctx: Context) -> str | None:
        asked.append(ctx)
        return answers.pop(0)

    await seeded.run(model=model)
    assert seeded.bench.api.conversation()[-1].body["model"] == "claude-haiku-4-5"
    await seeded.run(model=model)
    default = seeded.bench.api.conversation()[-1].body["model"]
    assert default.startswith("claude-")
    assert default not in ("claude-haiku-4-5", MODEL)
    assert len(asked) == 2


async def test_what_is_allowed_is_never_asked_about(seeded: Seeded) -> None:
    """By name, by the permission mode, or by a rule in settings; the rest is."""
    asked: list[str] = []

    def deny(request: ToolApprovalRequest, _: Context) -> DenyTool:
        asked.append(request.tool_name)
        return DenyTool()

    file = str(seeded.work / "a.txt")
    touch = Turn(tool_call("Bash", command="touch b.txt"))
    write = Turn(tool_call("Write", file_path=file, content="x"))
    options: dict[str, Any] = {"on_tool_approval": deny, "setting_sources": []}
    rule = {"permissions": {"allow": ["Bash(touch:*)"]}}
    await seeded.run(touch, write, **options, permission_mode="default", allowed_tools=[])
    assert asked == ["Bash", "Write"]
    await seeded.run(touch, **options, permission_mode="default", allowed_tools=["Bash"])
    await seeded.run(write, **options, permission_mode="acceptEdits", allowed_tools=[])
    await seeded.run(touch, **options, permission_mode="default", allowed_tools=[], settings=rule)
    assert asked == ["Bash", "Write"]


async def test_a_sub_agent_s_call_says_whose_it_is(seeded: Seeded) -> None:
    """Its questions carry its id; those of the main thread carry none."""
    asked: list[tuple[object, bool]] = []

    def deny(request: ToolApprovalRequest, _: Context) -> DenyTool:
        asked.append((request.input["command"], request.agent_id is not None))
        return DenyTool()

    call = tool_call(
        "Agent",
        description="Look",
        prompt="SUBAGENT: look",
        subagent_type="general-purpose",
        run_in_background=False,
    )
    look = Turn(tool_call("Bash", command="touch theirs"))
    seeded.bench.api.route("SUBAGENT: look", look, Turn(text("I looked.")))
    own = Turn(tool_call("Bash", command="touch ours"))
    options: dict[str, Any] = {"permission_mode": "default", "allowed_tools": []}
    await seeded.run(Turn(call), own, **options, on_tool_approval=deny, setting_sources=[])

    assert asked == [("touch theirs", True), ("touch ours", False)]


async def test_sub_agents_are_kept_out_with_their_tool(seeded: Seeded) -> None:
    """What is disallowed isn't even offered."""
    await seeded.run(setting_sources=[])
    assert "Agent" in seeded.bench.api.conversation()[-1].tool_names
    await seeded.run(setting_sources=[], disallowed_tools=["Agent"])
    assert "Agent" not in seeded.bench.api.conversation()[-1].tool_names


async def test_an_author_s_hook_decides_about_calls(seeded: Seeded) -> None:
    """Also about those that are allowed."""
    from claude_agent_sdk import HookMatcher

    async def refuse(*_: object) -> Any:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": "not by hook"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[refuse])]}
    _, ctx = await seeded.run(
        Turn(tool_call("Bash", command="touch made")), hooks=hooks, setting_sources=[]
    )

    assert "not by hook" in ctx.contents("tool_output")[0].output
    assert not (seeded.work / "made").exists()


async def test_an_author_s_sub_agent_is_there_by_its_name(seeded: Seeded) -> None:
    """With the prompt that it was given."""
    from claude_agent_sdk import AgentDefinition

    reviewer = AgentDefinition(description="Reviews", prompt="REVIEW-STRICTLY")
    call = tool_call(
        "Agent", description="Review it", prompt="SUBAGENT: review", subagent_type="reviewer"
    )
    api = seeded.bench.api
    api.route("SUBAGENT: review", Turn(text("It is good.")))
    _, ctx = await seeded.run(
        Turn(call), Turn(text("So it is.")), agents={"reviewer": reviewer}, setting_sources=[]
    )

    (container,) = [item for item in ctx.items.shown if item.content.type == "container"]
    assert container.status == "completed"
    assert any("REVIEW-STRICTLY" in request.system_text for request in api.conversation())


async def test_a_budget_is_a_limit(seeded: Seeded) -> None:
    """Reaching it is the agent's own report, and no exception."""
    handle, _ = await seeded.run(
        Turn(tool_call("Bash", command="true")), max_budget_usd=0.0000001, setting_sources=[]
    )

    assert (handle.status, handle.outcome) == ("errored", "stopped-at-limit")
    assert handle.result_subtype == "error_max_budget_usd"


@pytest.mark.may_block  # the SDK asks the system for its working directory, and lists a folder
async def test_a_session_store_remembers_what_is_deleted(seeded: Seeded) -> None:
    """It is asked when a conversation is continued, and that keeps its id."""
    from claude_agent_sdk import InMemorySessionStore

    kept: dict[str, Any] = {"options": {"session_store": InMemorySessionStore()}}
    first, _ = await seeded.run(prompt="The first question", **kept)
    shutil.rmtree(seeded.bench.home.path / "config" / "projects")
    second, _ = await seeded.run(resume=lambda _: first.session_id, **kept)

    assert second.session_id == first.session_id
    assert "The first question" in seeded.bench.last_texts


async def test_without_a_directory_it_works_in_the_server_s(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a command in a terminal would."""
    monkeypatch.chdir(seeded.work)
    _, ctx = await seeded.run(Turn(tool_call("Bash", command="pwd")), cwd=None)

    assert ctx.contents("tool_output")[0].output == str(seeded.work)


async def test_on_a_key_no_usage_is_reported(seeded: Seeded) -> None:
    """An API key has no window to report of."""
    reports: list[HarnessUsageReport] = []
    await seeded.run(on_usage=lambda report, _: reports.append(report), setting_sources=[])

    assert reports == []
