"""
How the Claude Code binary is started: with the server's environment, or exactly with its own.

The SDK merges what it is given over the server's environment. So a run with variables of its own
is started through a launcher that drops the rest (``flowstate.harness.launcher``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from flowstate.blocks.claude_code.environment import (
    CONTROL_NAMES,
    OPTION_NAMES,
    control_environment,
)
from flowstate.blocks.claude_code.sdk import Sdk, binary_path
from flowstate.harness.launcher import PrivateFiles, write_launcher


def launch_arguments(
    sdk: Sdk,
    files: PrivateFiles,
    *,
    env: Mapping[str, str] | None,
    run_id: str,
    api_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    The SDK's options that say what is started, and with which variables. Blocks.

    Args:
        env: the run's variables; None leaves it the server's.
        run_id: the marker that its processes carry.
        options: further options of the SDK's: some of them work through a variable, and one names
            the binary.

    Raises:
        LauncherUnusable: no launcher can be made or run.
        ClaudeAgentSdkNotInstalledError: there is no binary to start.
    """
    control = control_environment(run_id=run_id, api_retries=api_retries)
    if env is None:
        return {"env": control}
    given = options or {}
    launcher = write_launcher(
        files,
        os.path.abspath(given.get("cli_path") or binary_path(sdk)),
        keep=kept_names(env, given),
        environment=env,
    )
    return {"env": {**env, **control}, "cli_path": launcher}


def kept_names(env: Iterable[str], options: Mapping[str, Any]) -> frozenset[str]:
    """The names of all variables that a run with its own ``env`` may have: a closed list."""
    given = {name for name, value in options.items() if value not in (None, False)}
    by_option = {name for option, name in OPTION_NAMES.items() if option in given}
    return frozenset({*env, *CONTROL_NAMES, *by_option})
