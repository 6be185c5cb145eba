"""
What the SDK is asked for: the fields of its options, from settings and what a run resolved.

Pure, but for texts that are too long for a command line and become files of the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from flowstate.blocks.claude_code.options import SOURCES, AgentSettings
from flowstate.harness.launcher import PrivateFiles

BUFFER_BYTES = 64 * 1024 * 1024
"""The longest line taken from Claude Code; by default the SDK gives up at 1 MiB."""

LONGEST_ARGUMENT = 100_000
"""Bytes; one argument of a command line may have 128 KiB on Linux."""

TASK_TOOLS = ("TaskCreate", "TaskUpdate", "TaskGet", "TaskList")
"""The to-do tools. They ask no permission, and newer models have them only if they are named."""

SEARCH_TOOLS = ("Grep", "Glob")
"""Added when permissions are bypassed; naming them otherwise would allow searches anywhere."""

PRESET = {"type": "preset", "preset": "claude_code"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What the resolvers said for one run."""

    cwd: str | None = None
    model: str | None = None
    conversation: str | None = None
    """The conversation to continue."""
    sandbox: Mapping[str, Any] | None = None
    mcp_tools: tuple[str, ...] | None = None
    """The names of the tools that this process serves; None where the author said nothing."""


def sdk_arguments(
    settings: AgentSettings, resolved: Resolved, files: PrivateFiles
) -> dict[str, Any]:
    """
    The fields of ``ClaudeAgentOptions`` for one run, without callbacks and without what says how
    it is started (``flowstate.blocks.claude_code.launch``). Blocks while it writes files.
    """
    prompt, flags = _system_prompt(settings.system_prompt, files)
    extra_args = {**settings.options.get("extra_args", {}), **flags}
    arguments: dict[str, Any] = {
        **settings.options,
        # Absolute, since the SDK puts it into PWD as it is.
        "cwd": os.path.abspath(resolved.cwd) if resolved.cwd is not None else None,
        "model": resolved.model,
        "resume": resolved.conversation,
        "system_prompt": prompt,
        "permission_mode": settings.permission_mode,
        "allowed_tools": allowed_tools(settings, resolved.mcp_tools or ()),
        "disallowed_tools": list(settings.disallowed_tools),
        "sandbox": sandbox_settings(resolved.sandbox),
        "max_turns": settings.max_turns,
        "max_budget_usd": settings.max_budget_usd,
        "agents": settings.agents,
        "hooks": settings.hooks,
        "plugins": list(settings.plugins),
        "skills": list(settings.skills) if isinstance(settings.skills, tuple) else settings.skills,
        # They carry the true token counts, so they are asked for even if they aren't shown.
        "include_partial_messages": True,
        # Else a sub-agent in the foreground would show its tool calls only.
        "forward_subagent_text": True,
        # A prompt is data: no command in it is run and no file that it names is read.
        "verbatim_prompts": True,
        "max_buffer_size": BUFFER_BYTES,
        "extra_args": extra_args,
    }
    sources = settings.setting_sources
    if sources is None and settings.skills is not None:
        # Given skills and no sources, the SDK would leave the local ones out.
        sources = SOURCES
    if sources is not None:
        arguments["setting_sources"] = list(sources)
    layer = settings.settings
    if resolved.mcp_tools is not None:
        # Set, even to nothing, they are all: no servers from files, plugins or the account.
        arguments["strict_mcp_config"] = True
        layer = {**(layer or {}), "disableClaudeAiConnectors": True}
    if layer is not None:
        arguments["settings"] = json.dumps(layer)
    return arguments


def allowed_tools(settings: AgentSettings, served: Sequence[str] = ()) -> list[str]:
    """
    The author's list, with the tools that this process serves, the to-do tools and, under bypass,
    the search tools added to it.

    A tool that the author disallows isn't added.
    """
    added: tuple[str, ...] = (*served, *TASK_TOOLS)
    if settings.permission_mode == "bypassPermissions":
        added += SEARCH_TOOLS
    listed = list(settings.allowed_tools)
    return listed + [
        tool for tool in added if tool not in listed and tool not in settings.disallowed_tools
    ]


def sandbox_settings(sandbox: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """
    The author's sandbox settings; enabled ones refuse to run without a sandbox, unless they say
    otherwise. Claude Code's own default is to go on without one.

    >>> sandbox_settings({"enabled": True})
    {'enabled': True, 'failIfUnavailable': True}
    """
    if sandbox is None:
        return None
    if sandbox.get("enabled") is True:
        return {**sandbox, "failIfUnavailable": sandbox.get("failIfUnavailable", True)}
    return dict(sandbox)


def sandbox_required(sandbox: Mapping[str, Any] | None) -> bool:
    """Whether a run with these settings must not go on unsandboxed."""
    settings = sandbox_settings(sandbox) or {}
    return settings.get("enabled") is True and settings.get("failIfUnavailable") is True


def _system_prompt(
    prompt: str | Mapping[str, Any] | None, files: PrivateFiles
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """
    The SDK's form of a system prompt, and flags that go with it.

    By default a conversation keeps the prompt that it began with, whatever a later run says. A
    text and an appended text are this block's configuration, so they are said to hold now
    (``snapshot``); Claude Code's own prompt, which it would have to write anew, is left alone.
    """
    if prompt is None:
        return PRESET, {}
    if isinstance(prompt, str):
        if _fits(prompt):
            return {"type": "custom", "prompt": prompt, "snapshot": False}, {}
        path = files.write("system-prompt", prompt)
        # The file form of the SDK has no snapshot; this one adds no flag of its own.
        return {**PRESET, "snapshot": False}, {"system-prompt-file": str(path)}
    if prompt.get("type") != "preset" or "append" not in prompt:
        return prompt, {}
    held = {"snapshot": False, **prompt}
    append = held["append"]
    if not isinstance(append, str) or _fits(append):
        return held, {}
    del held["append"]
    path = files.write("append-system-prompt", append)
    return cast("Mapping[str, Any]", held), {"append-system-prompt-file": str(path)}


def _fits(text: str) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) <= LONGEST_ARGUMENT
