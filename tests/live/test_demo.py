"""``flowstate demo`` and the example flow: the real Claude Code, and nothing but loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.scripted_turns import Turn, text, tool_call

pytest.importorskip("claude_agent_sdk")

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds for one command; on a quiet machine a demo takes ten."""


def environment(home: Path) -> dict[str, str]:
    """What a new user has: no key, no sign-in, an empty home."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**keep, "HOME": str(home), "PYTHONUTF8": "1", "NO_COLOR": "1"}


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def demo(folder: Path, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flowstate", "demo", "--dir", str(folder), *options],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def still_in(folder: Path) -> list[str]:
    """The processes that work in a directory below this one."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").resolve().is_relative_to(folder):
                found.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def run_module(file: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout


def assert_in_order(said: str, *parts: str) -> None:
    at = 0
    for part in parts:
        found = said.find(part, at)
        assert found >= 0, f"{part!r} is not in what follows:\n{said[at:]}"
        at = found + len(part)


def test_the_demo_does_what_it_shows(tmp_path: Path, home: Path) -> None:
    """
    Three requests: the first writes and tests a module, the second goes on with the conversation,
    the third waits for the second. The files are real, and the user's home stays empty.
    """
    kept = tmp_path / "kept"
    done = demo(kept, home)
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert "\x1b" not in said
    assert_in_order(
        said,
        "1 │ “Write slug.py",
        "Recorded as request 1 of the session.",
        "▸ claude_code",
        "… Starting Claude Code…",
        "● I'll begin with the test.",
        "→ Write  test_slug.py",
        "… Using Write…",
        "└ File created successfully",
        "→ Bash  python3 -m unittest -v test_slug",
        "… Run the tests",
        "FAILED (failures=1)",
        "→ Edit  slug.py",
        "Ran 2 tests",
        "OK",
        "Claude Code agent run completed in",
        "1 │ ✓ completed",
        "session id",
        "Write, Bash, Edit",
        "+ slug.py (9 lines), + test_slug.py (15 lines)",
        "checkout",
    )
    assert_in_order(said, "3 │ request req_", "3 │ waits behind request req_", "2 │ ✓ completed")
    assert_in_order(said, "2 │ ✓ completed", "The endpoint was sent the history", "3 │ ✓ completed")
    assert_in_order(said, "flowchart TD", "recorder", "claude_code", "Done.")
    assert len(set(re.findall(r"session id +(\S+)", said))) == 1
    (module,) = kept.glob("checkouts/*/*/slug.py")
    assert str(module.parent) == said.splitlines()[-1]
    assert run_module(module, "Rock & Roll, baby!") == "rock-roll-baby\n"
    assert (kept / "demo.db").exists()
    assert list(home.iterdir()) == []
    assert still_in(kept) == []


def test_a_rejected_request_is_told_with_the_one_in_flight(tmp_path: Path, home: Path) -> None:
    """The refusal names the second request, which goes on; the third leaves no trace."""
    done = demo(tmp_path / "kept", home, "--policy", "reject")
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    second = re.search(r"2 │ request (req_\w+)", said)
    assert second is not None
    assert_in_order(
        said,
        "3 │ refused: action 'implement' refused",
        f"3 │ in flight: request {second[1]} (2)",
        "2 │ ✓ completed",
        "Done.",
    )
    assert "3 │ ✓" not in said
    (module,) = (tmp_path / "kept").glob("checkouts/*/*/slug.py")
    assert "__main__" not in module.read_text()


@pytest.mark.parametrize(
    ("missing", "extra"), [("claude_agent_sdk", "claude"), ("starlette", "testing")]
)
def test_what_is_not_installed_is_named(
    tmp_path: Path, home: Path, missing: str, extra: str
) -> None:
    """In one sentence that says what to type; no traceback."""
    command = f"import sys; sys.modules[{missing!r}] = None; import flowstate.cli as c; c.main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "demo", "--dir", str(tmp_path / "kept")],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"pip install 'flowstate-engine[{extra}]'" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_stopped_leaves_nothing_running(
    tmp_path: Path, home: Path, number: signal.Signals
) -> None:
    """Within seconds, whatever the agent was doing, and by the exit code of the signal."""
    kept = tmp_path / "kept"
    process = subprocess.Popen(
        [sys.executable, "-m", "flowstate", "demo", "--dir", str(kept)],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "I'll begin with the test." in line:
            break
    process.send_signal(number)
    began = time.monotonic()
    rest, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number, rest
    assert time.monotonic() - began < 30
    assert "Traceback" not in rest
    assert "■ claude_code  stopped" in rest
    assert still_in(kept) == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_session_of_the_example_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """`flowstate run` with a file as its store: the agent is in the same conversation again."""
    async with ScriptedMessagesApi(
        Turn(text("Writing."), tool_call("Write", file_path="a.py", content="print('hi')\n")),
        Turn(tool_call("Bash", command="python3 a.py", description="Run it")),
        Turn(text("It says hi.")),
        Turn(text("It still does.")),
    ) as api, clean_home(api) as home:  # fmt: skip

        async def run(prompt: str) -> list[dict[str, Any]]:
            command = [
                sys.executable, "-m", "flowstate", "run", "examples/coding_flow.py:coding",
                "implement", "--session", "s1", "--store", str(tmp_path / "coding.db"),
                "--input", json.dumps({"prompt": prompt}), "--json",
            ]  # fmt: skip
            done = await anyio.to_thread.run_sync(
                partial(
                    subprocess.run,
                    command,
                    cwd=ROOT,
                    env={**home.env, "CODING_CHECKOUTS": str(tmp_path / "checkouts")},
                    capture_output=True,
                    text=True,
                    timeout=LIMIT,
                    check=False,
                )
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return [json.loads(line) for line in done.stdout.splitlines()]

        first, second = await run("Write a.py"), await run("Is it still so?")
        requests = api.conversation()

    assert first[-1]["output"]["finalMessage"] == "It says hi."
    assert second[-1]["output"]["sessionId"] == first[-1]["output"]["sessionId"]
    said = requests[-1].user_texts
    assert any("Write a.py" in words for words in said[:-1])
    assert "Is it still so?" in said[-1]
    kept = [
        line["item"]["content"]["text"]
        for line in second
        if line.get("kind") == "settled" and line["item"]["content"].get("kept")
    ]
    assert kept[0] == "Recorded as request 2 of the session."
    (written,) = (tmp_path / "checkouts").glob("*/*/a.py")
    assert written.read_text() == "print('hi')\n"
