"""
The environment in which a test runs the real Claude Code binary: a home of its own, no more.

:func:`clean_environment` is the whole environment for the binary, not an addition to one.
:func:`require_clean_environment` refuses any other before a process is started with it: one that
would write into somebody's real home, talk to another machine or spend a real credential.
:func:`clean_home` keeps such a home for as long as a test needs it.

It starts no process and reads nothing of the environment it runs in. Permission checks stay on:
``IS_SANDBOX``, with which the binary lets root bypass them, is refused. Use
``permission_mode="acceptEdits"`` and name the tools that may run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from flowstate.errors import DefinitionError

DUMMY_KEY = "sk-ant-dummy-of-flowstate-tests"
"""The API key of a test; no service knows it."""

DUMMY_OAUTH_TOKEN = "sk-ant-oat01-dummy-of-flowstate-tests"
"""The token of a test that plays a subscription; no service knows it."""

SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
)
"""What keeps the binary from talking to anything but its endpoint."""

_DUMMIES = {"ANTHROPIC_API_KEY": DUMMY_KEY, "CLAUDE_CODE_OAUTH_TOKEN": DUMMY_OAUTH_TOKEN}

_FORBIDDEN = {
    "ANTHROPIC_AUTH_TOKEN": "it is a credential that tests have no dummy for",
    "CLAUDE_CODE_USE_BEDROCK": "it leads to another endpoint than ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_FOUNDRY": "it leads to another endpoint than ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_VERTEX": "it leads to another endpoint than ANTHROPIC_BASE_URL",
    "HTTP_PROXY": "a proxy would see what is meant for loopback",
    "HTTPS_PROXY": "a proxy would see what is meant for loopback",
    "ALL_PROXY": "a proxy would see what is meant for loopback",
    "IS_SANDBOX": "it lets root run every tool unasked",
}

_REMOVAL_LIMIT = 5.0
"""Seconds for which the removal of a home is tried again."""


def clean_environment(
    home: str | os.PathLike[str], *, base_url: str, oauth: bool = False
) -> dict[str, str]:
    """
    The whole environment for a binary that lives in ``home`` and talks to ``base_url`` only.

    Makes ``home`` and, within it, ``config`` (settings, transcripts) and ``tmp`` (sockets, output
    of background tasks), so that what the binary leaves behind goes away with the home.

    Args:
        home: a directory for this purpose alone.
        base_url: a loopback URL, :attr:`ScriptedMessagesApi.url` for example.
        oauth: play a subscription (dummy OAuth token) in place of an API key (dummy key).

    Raises:
        DefinitionError: what was asked for wouldn't be clean; see
            :func:`require_clean_environment`.
    """
    root = Path(os.path.abspath(home))
    credential = "CLAUDE_CODE_OAUTH_TOKEN" if oauth else "ANTHROPIC_API_KEY"
    environment = {
        "ANTHROPIC_BASE_URL": base_url,
        "CLAUDE_CONFIG_DIR": str(root / "config"),
        "HOME": str(root),
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": str(root / "tmp"),
        credential: _DUMMIES[credential],
        **SWITCHES,
    }
    require_clean_environment(environment)
    for directory in (root, root / "config", root / "tmp"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return environment


def require_clean_environment(env: Mapping[str, str]) -> None:
    """
    Refuse an environment in which a test must not start the binary.

    ``env`` is all that the process will see: where a client adds to what it inherits (the Python
    SDK's ``env`` does), hand in the sum. No value of a credential appears in the error. Links in
    the two paths are followed, which touches the file system.

    Raises:
        DefinitionError: names the first variable that is missing or forbidden, and the way out.
    """
    for name, reason in _FORBIDDEN.items():
        for written in (name, name.lower()):
            if env.get(written):
                raise _unclean(f"{written} is set: {reason}", f"Remove {written}")
    home = _directory(env, "HOME", "without it the binary uses the account's own home")
    config = _directory(env, "CLAUDE_CONFIG_DIR", "without it the binary writes to ~/.claude")
    own = _account_home()
    if own is not None and (home == own or config.is_relative_to(own / ".claude")):
        raise _unclean(
            "HOME or CLAUDE_CONFIG_DIR is the account's own", "Use a temporary directory"
        )
    url = env.get("ANTHROPIC_BASE_URL", "")
    if not _is_loopback(url):
        raise _unclean(
            f"ANTHROPIC_BASE_URL is {_host(url)!r}, not loopback"
            if url
            else "ANTHROPIC_BASE_URL is missing",
            "Set it to the url of a ScriptedMessagesApi",
        )
    for name, dummy in _DUMMIES.items():
        if env.get(name, dummy) != dummy:
            raise _unclean(f"{name} isn't the dummy of tests", f"Remove {name}")
    if not _DUMMIES.keys() & env.keys():
        raise _unclean("ANTHROPIC_API_KEY is missing", "Set it to DUMMY_KEY")
    for name, value in SWITCHES.items():
        if env.get(name) != value:
            raise _unclean(f"{name} isn't {value!r}", f"Set {name}={value}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CleanHome:
    """A temporary home and the environment of a binary that lives in it."""

    path: Path
    """The home; ``config`` and ``tmp`` within it belong to the binary."""
    env: Mapping[str, str]
    """The whole environment for the binary."""


class Endpoint(Protocol):
    """Whatever answers the binary, a ScriptedMessagesApi for example."""

    @property
    def url(self) -> str:
        """A loopback URL."""
        ...


@asynccontextmanager
async def clean_home(api: Endpoint, *, oauth: bool = False) -> AsyncGenerator[CleanHome]:
    """
    Keep a temporary home for a binary that talks to ``api``; leaving removes it with all it holds.

    Files that a dying process still writes are waited for, a few seconds at most; one that stays
    is left behind without an error, for it is no fault of the test.

    Args:
        api: the endpoint, already entered.
        oauth: play a subscription in place of an API key.
    """
    url = api.url
    home = await anyio.to_thread.run_sync(_make, url, oauth)
    try:
        yield home
    finally:
        with anyio.CancelScope(shield=True):  # bounded by _REMOVAL_LIMIT
            await anyio.to_thread.run_sync(_remove, home.path)


def _make(url: str, oauth: bool) -> CleanHome:
    # The name is short because sockets lie below it, and a socket's path is limited to ~100 bytes.
    path = Path(tempfile.mkdtemp(prefix="fs-")).resolve()
    try:
        return CleanHome(
            path=path, env=MappingProxyType(clean_environment(path, base_url=url, oauth=oauth))
        )
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _remove(path: Path) -> None:
    deadline = time.monotonic() + _REMOVAL_LIMIT
    while True:
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists() or time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _directory(env: Mapping[str, str], name: str, why: str) -> Path:
    value = env.get(name, "")
    if not os.path.isabs(value):
        state = f"is {value!r}, not absolute" if value else "is missing"
        raise _unclean(f"{name} {state}: {why}", f"Set {name} to a temporary directory")
    return Path(os.path.realpath(value))


def _account_home() -> Path | None:
    """The home that the account data base names, whatever HOME says; None where there is none."""
    try:
        import pwd

        return Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    except (ImportError, KeyError):
        return None


def _is_loopback(url: str) -> bool:
    host = _host(url)
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(url: str) -> str:
    """The host alone: a URL may hold a password."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _unclean(problem: str, way_out: str) -> DefinitionError:
    return DefinitionError(
        "environment of a test", problem, f"{way_out}, or use clean_environment()."
    )
