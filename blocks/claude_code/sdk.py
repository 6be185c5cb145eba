"""
The Claude Agent SDK, imported when the first run needs it, off the event loop.

Its import takes seconds, most of them in a package for tools that it pulls in; so it happens in a
worker thread, and the loop goes on. Nothing else in flowstate imports it at run time.
"""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import anyio.to_thread

from flowstate.blocks.claude_code.errors import ClaudeAgentSdkNotInstalledError

MODULE = "claude_agent_sdk"

Sdk: TypeAlias = Any
"""The module ``claude_agent_sdk``. Only what its documentation names is used of it."""

_NEEDED = frozenset(
    {"verbatim_prompts", "forward_subagent_text", "strict_mcp_config", "stderr", "max_buffer_size"}
)
"""Options without which a run could not keep its promises; older releases lack some."""


async def load_sdk() -> Sdk:
    """
    The SDK's module; imported in a worker thread if this process doesn't have it yet.

    A cancelled caller doesn't wait for the import, which goes on for the next one.

    Raises:
        ClaudeAgentSdkNotInstalledError: it can't be imported, or is too old to be used.
    """
    module = sys.modules.get(MODULE)
    # Present doesn't mean complete: another thread may be in the middle of importing it, and
    # importing it here would wait for that thread on the event loop.
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return checked(module)
    return await anyio.to_thread.run_sync(_import, abandon_on_cancel=True)


def _import() -> Sdk:
    try:
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise ClaudeAgentSdkNotInstalledError(
            f"{MODULE} can't be imported ({type(error).__name__}: {error})"
        ) from error
    return checked(module)


def checked(module: ModuleType) -> Sdk:
    """
    The module, if it can be used.

    Raises:
        ClaudeAgentSdkNotInstalledError: it lacks an option that a run needs.
    """
    missing = sorted(_NEEDED - option_names(module))
    if missing:
        version = getattr(module, "__version__", "of unknown version")
        raise ClaudeAgentSdkNotInstalledError(
            f"claude-agent-sdk {version} is too old: it lacks {', '.join(missing)}"
        )
    return module


def option_names(sdk: Sdk) -> frozenset[str]:
    """The names of all options that this release of the SDK takes."""
    options: Any = getattr(sdk, "ClaudeAgentOptions", None)
    return frozenset() if options is None else _field_names(options)


@cache
def _field_names(options: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(options))


def binary_path(sdk: Sdk) -> str:
    """
    The Claude Code binary that the SDK would start: the one it comes with, else ``claude``. Blocks.

    Raises:
        ClaudeAgentSdkNotInstalledError: there is none.
    """
    bundled = Path(sdk.__file__).parent / "_bundled" / "claude"
    if bundled.is_file():
        return str(bundled)
    found = shutil.which("claude")
    if found is None:
        raise ClaudeAgentSdkNotInstalledError(
            "this installation of claude-agent-sdk brings no binary, and no claude is on PATH"
        )
    return str(Path(found).absolute())
