"""What the SDK is asked for, from settings and what a run resolved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowstate.blocks.claude_code.arguments import (
    SEARCH_TOOLS,
    TASK_TOOLS,
    Resolved,
    sandbox_required,
    sandbox_settings,
    sdk_arguments,
)
from flowstate.blocks.claude_code.environment import CONTROL_NAMES, control_environment
from flowstate.blocks.claude_code.launch import kept_names
from flowstate.blocks.claude_code.options import ClaudeCodeOptions, split_options
from flowstate.harness.launcher import PrivateFiles


@pytest.fixture(name="files")
def _files() -> Iterator[PrivateFiles]:
    files = PrivateFiles()
    yield files
    files.remove()


def _arguments(
    files: PrivateFiles, options: ClaudeCodeOptions, resolved: Resolved | None = None
) -> dict[str, Any]:
    settings, _ = split_options(options)
    return sdk_arguments(settings, resolved or Resolved(), files)


def test_a_prompt_is_data_and_partial_messages_are_always_asked_for(files: PrivateFiles) -> None:
    """What the block's promises rest on is set whatever the author says."""
    arguments = _arguments(files, {"forward_partial_messages": False})

    assert arguments["verbatim_prompts"] is True
    assert arguments["forward_subagent_text"] is True
    assert arguments["include_partial_messages"] is True
    assert arguments["max_buffer_size"] == 64 * 1024 * 1024


def test_no_system_prompt_means_claude_code_s_own(files: PrivateFiles) -> None:
    """None is the preset; the SDK alone would start a run with no prompt at all."""
    assert _arguments(files, {})["system_prompt"] == {"type": "preset", "preset": "claude_code"}


@pytest.mark.parametrize("text", ["Be brief.", ""])
def test_a_text_replaces_the_system_prompt(files: PrivateFiles, text: str) -> None:
    """A text is the whole prompt, an empty one is none; both hold for resumed runs, too."""
    expected = {"type": "custom", "prompt": text, "snapshot": False}

    assert _arguments(files, {"system_prompt": text})["system_prompt"] == expected


def test_an_appended_text_holds_for_resumed_runs(files: PrivateFiles) -> None:
    """Unless the author decides about it, the prompt recorded with a conversation doesn't win."""
    append = {"type": "preset", "preset": "claude_code", "append": "Commit."}

    assert _arguments(files, {"system_prompt": append})["system_prompt"]["snapshot"] is False
    kept = {**append, "snapshot": True}
    assert _arguments(files, {"system_prompt": kept})["system_prompt"] == kept


def test_other_shapes_are_forwarded_as_given(files: PrivateFiles) -> None:
    """Any shape that the SDK takes goes through."""
    shape = {"type": "file", "path": "/p"}

    assert _arguments(files, {"system_prompt": shape})["system_prompt"] == shape


@pytest.mark.parametrize(
    ("prompt", "flag"),
    [
        ("é" * 60_000, "system-prompt-file"),
        (
            {"type": "preset", "preset": "claude_code", "append": "é" * 60_000},
            "append-system-prompt-file",
        ),
    ],
)
def test_a_prompt_too_long_for_a_command_line_becomes_a_file(
    files: PrivateFiles, prompt: Any, flag: str
) -> None:
    """One argument may have 128 KiB; beyond it the text goes through a private file."""
    arguments = _arguments(files, {"system_prompt": prompt})

    assert Path(arguments["extra_args"][flag]).read_text(encoding="utf-8") == "é" * 60_000
    assert arguments["system_prompt"] == {
        "type": "preset",
        "preset": "claude_code",
        "snapshot": False,
    }


def test_to_do_tools_are_offered_unless_disallowed(files: PrivateFiles) -> None:
    """Newer models have them only if they are named; what the author takes away stays away."""
    arguments = _arguments(
        files, {"allowed_tools": ["Read", "TaskGet"], "disallowed_tools": ["TaskList"]}
    )

    assert arguments["allowed_tools"] == ["Read", "TaskGet", "TaskCreate", "TaskUpdate"]
    assert arguments["disallowed_tools"] == ["TaskList"]


def test_search_tools_come_with_bypass_only(files: PrivateFiles) -> None:
    """Naming Grep and Glob elsewhere would allow searches anywhere without asking."""
    bypass = _arguments(
        files, {"permission_mode": "bypassPermissions", "disallowed_tools": ["Glob"]}
    )
    default = _arguments(files, {"permission_mode": "default"})

    assert bypass["allowed_tools"] == [*TASK_TOOLS, "Grep"]
    assert not set(SEARCH_TOOLS) & set(default["allowed_tools"])


def test_an_enabled_sandbox_is_required_unless_said_otherwise() -> None:
    """Claude Code goes on without one by itself; an author can say that this is fine."""
    assert sandbox_settings({"enabled": True}) == {"enabled": True, "failIfUnavailable": True}
    assert sandbox_settings({"enabled": False}) == {"enabled": False}
    assert sandbox_settings(None) is None
    assert sandbox_required({"enabled": True})
    assert not sandbox_required({"enabled": True, "failIfUnavailable": False})
    assert not sandbox_required({"enabled": False})
    assert not sandbox_required({"enabled": False, "failIfUnavailable": True})
    assert not sandbox_required(None)


def test_settings_go_as_json_and_sources_as_given(files: PrivateFiles) -> None:
    """Unset sources are left to Claude Code, which loads all; [] loads none."""
    arguments = _arguments(files, {"settings": {"disableAllHooks": True}, "setting_sources": []})

    assert json.loads(arguments["settings"]) == {"disableAllHooks": True}
    assert arguments["setting_sources"] == []
    assert "setting_sources" not in _arguments(files, {})
    assert "settings" not in _arguments(files, {})


def test_naming_skills_takes_no_source_away(files: PrivateFiles) -> None:
    """The SDK alone would leave the local settings out as soon as skills are given."""
    assert _arguments(files, {"skills": []})["setting_sources"] == ["user", "project", "local"]
    named = _arguments(files, {"skills": ["a"], "setting_sources": ["user"]})
    assert (named["skills"], named["setting_sources"]) == (["a"], ["user"])
    assert _arguments(files, {"skills": "all"})["skills"] == "all"


def test_what_a_run_resolved_is_used(files: PrivateFiles) -> None:
    """Directory, model, conversation and sandbox are the run's own."""
    arguments = _arguments(
        files,
        {},
        Resolved(cwd="/w", model="m", conversation="c", sandbox={"enabled": False}),
    )

    assert arguments["cwd"] == "/w"
    assert arguments["model"] == "m"
    assert arguments["resume"] == "c"
    assert arguments["sandbox"] == {"enabled": False}


def test_the_names_a_run_keeps_are_a_closed_list() -> None:
    """Its own and the control names; one more for an option that works through a variable."""
    own = {"HOME", "PATH", *CONTROL_NAMES}

    assert kept_names(["HOME", "PATH"], {}) == own
    assert kept_names(["HOME", "PATH"], {"client_app": None, "betas": ["x"]}) == own
    app = "CLAUDE_AGENT_SDK_CLIENT_APP"
    assert kept_names(["HOME", "PATH"], {"client_app": "x/1"}) == {*own, app}
    assert kept_names(["HOME"], {"session_store": object()}) - own == {"CLAUDE_CONFIG_DIR"}


def test_control_variables_are_few() -> None:
    """The idle state, the marker, and the retries where they were given."""
    assert set(control_environment(run_id="r", api_retries=None)) == {
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
        "FLOWSTATE_RUN",
    }
    assert control_environment(run_id="r", api_retries=0)["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert set(control_environment(run_id="r", api_retries=0)) <= set(CONTROL_NAMES)
