"""Each example runs, from a directory of its own, without a key and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SCRIPTS = [file for file in EXAMPLES if '__name__ == "__main__"' in file.read_text("utf-8")]


def run(file: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, str(file)],
        cwd=folder,
        env={**keep, "HOME": str(folder), "PYTHONUTF8": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_there_are_examples() -> None:
    """The parametrised test below would pass over an empty folder."""
    assert {"first_flow.py", "policies.py"} <= {file.name for file in SCRIPTS}


@pytest.mark.slow
@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: str(file.stem))
def test_an_example_runs(file: Path, tmp_path: Path) -> None:
    """It ends well, and prints something to look at."""
    done = run(file, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.stem))
def test_an_example_says_what_it_shows(file: Path) -> None:
    """It opens with a docstring that tells how to run it."""
    text = file.read_text("utf-8")
    assert text.startswith('"""'), "it opens without a docstring"
    assert f"examples/{file.name}" in text
