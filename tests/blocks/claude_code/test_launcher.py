"""How a run gets its environment: by a launcher of its own, gone with the run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.environment import CONTROL_NAMES
from flowstate.blocks.claude_code.errors import MissingDirectoryError
from flowstate.harness.handle import HarnessRunInput
from flowstate.harness.launcher import LauncherUnusable
from tests.blocks.claude_code.fake_context import FakeContext
from tests.blocks.claude_code.fake_sdk import (
    Client,
    FakeSdk,
    ProcessError,
    ResultMessage,
    fake_sdk,
    idle,
    init,
    running,
)

pytestmark = [pytest.mark.anyio, pytest.mark.may_block]

ENV = {"HOME": "/h", "PATH": "/bin", "A_TOKEN": "hunter22"}


@pytest.fixture(name="scratch", autouse=True)
def _scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


def _sdk(monkeypatch: pytest.MonkeyPatch, look: Callable[[Client], object]) -> FakeSdk:
    return fake_sdk(monkeypatch, running(), init(), look, ResultMessage(), idle())


async def _run(**options: Any) -> None:
    agent = claude_code_agent(detached=True, **{"options": {"cli_path": "/opt/claude"}, **options})
    await agent.fn(HarnessRunInput(prompt="Do it"), FakeContext())


async def test_with_an_environment_the_sdk_starts_a_launcher(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    """It names the binary and the variables that stay, never a value, and is removed at the end."""
    scripts: list[str] = []
    sdk = _sdk(
        monkeypatch, lambda client: scripts.append(Path(client.options.cli_path).read_text())
    )
    await _run(env=ENV)

    (script,) = scripts
    assert "/opt/claude" in script
    assert "hunter22" not in script
    for name in (*ENV, *CONTROL_NAMES):
        assert repr(name) in script
    assert sdk.client.options.env.items() >= ENV.items()
    assert os.listdir(scratch) == []


async def test_without_one_the_binary_is_started_itself(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    """Only the control variables are added to what the server has."""
    made: list[list[str]] = []
    sdk = _sdk(monkeypatch, lambda _: made.append(os.listdir(scratch)))
    await _run(env=None, options={})

    assert made == [[]]
    assert sdk.client.options.cli_path is None
    assert set(sdk.client.options.env) <= set(CONTROL_NAMES)


async def test_files_are_removed_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    """A long system prompt lies in a file; a run that dies takes it along."""
    prompts: list[int] = []

    def look(client: Client) -> None:
        path = client.options.extra_args["system-prompt-file"]
        prompts.append(os.stat(path).st_size)
        raise ProcessError("died", -9)

    _sdk(monkeypatch, look)
    with pytest.raises(Exception, match="SIGKILL"):
        await _run(env=ENV, system_prompt="x" * 200_000)

    assert prompts == [200_000]
    assert os.listdir(scratch) == []


async def test_where_no_script_can_be_run_the_start_is_refused(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    """Never with the server's environment instead; the error comes out as it is."""
    sdk = _sdk(monkeypatch, lambda _: None)
    monkeypatch.setattr("flowstate.harness.launcher.os.access", lambda *_: False)
    with pytest.raises(LauncherUnusable, match="TMPDIR"):
        await _run(env=ENV)

    assert sdk.clients == []
    assert os.listdir(scratch) == []


async def test_a_directory_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its name, before a process is started."""
    sdk = _sdk(monkeypatch, lambda _: None)
    with pytest.raises(MissingDirectoryError, match="gone"):
        await _run(cwd=lambda _: tmp_path / "gone")

    assert sdk.clients == []
