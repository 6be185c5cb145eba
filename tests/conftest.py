"""
What every test shares: both backends, the blocking-call detector, tools that may be missing.

A test that is ``anyio`` runs once on asyncio and once on trio. Under asyncio, library code that
blocks the event loop fails the test. A tool that is missing skips the tests that need it on a
developer's machine, and fails them where ``CI=true``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

RequireTool: TypeAlias = Callable[[str], str]

MISSING = re.compile(r"could not import|not installed|No module named|not available")
"""Reasons of a skip that a prepared machine must not have."""

# One processor may serve several test processes: a deadline an example would only measure that.
_CHECKS = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("gate", deadline=None, suppress_health_check=_CHECKS)
settings.register_profile(
    "soak", deadline=None, suppress_health_check=_CHECKS, max_examples=5_000, print_blob=True
)
settings.load_profile("soak" if os.environ.get("FLOWSTATE_SOAK") else "gate")


@pytest.fixture(
    scope="module",
    params=[pytest.param(("asyncio", {}), id="asyncio"), pytest.param(("trio", {}), id="trio")],
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    """The event loop that an ``anyio`` test runs on."""
    return request.param


@pytest.fixture(autouse=True)
def blocking_calls_fail(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    Fail a test in which library code, or what it calls, blocks asyncio's event loop.

    ``@pytest.mark.may_block`` lifts it from a test. Importing a module lazily is let through: the
    import system reads files whoever asks, and once.
    """
    if request.node.get_closest_marker("may_block"):
        yield
        return
    with blockbuster_ctx(["flowstate", "flowstate.blocks", "flowstate.capabilities"]) as detector:
        for function in detector.functions.values():
            function.can_block_in("<frozen importlib._bootstrap>", {"_find_and_load"})
            # Pydantic looks once for its plugins, when the first validator is made.
            function.can_block_in("pydantic/plugin/_loader.py", {"get_plugins"})
        yield


@pytest.fixture(scope="session")
def require_tool() -> RequireTool:
    """
    Finds a program by name, beside this Python or on the path, and gives its own path.

    Without it the test is skipped, or fails where ``CI=true``.
    """

    def find(name: str) -> str:
        found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
        if found is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name} is not installed, and CI=true")
            pytest.skip(f"{name} is not installed")
        return found

    return find


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where ``CI=true``, a test that was skipped because something isn't installed is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None or hasattr(session.config, "workerinput"):
        return
    skipped = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    missing = [reason for reason in skipped if MISSING.search(reason)]
    if missing:
        reporter.write_line("")
        for reason in missing:
            reporter.write_line(f"CI=true, so this is a failure: {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
