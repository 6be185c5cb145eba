"""
Both type checkers follow values through a chain, and refuse a step that doesn't fit.

``typing/chain.py`` says what they infer. Each file in ``typing/wrong`` marks with ``# wrong:``
exactly the lines that a checker must refuse.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from flowstate import Sequencer

# One process runs them all: a checker is asked once for all the files.
pytestmark = pytest.mark.xdist_group("checkers")

ROOT = Path(__file__).resolve().parents[1]
RIGHT = ROOT / "tests" / "typing" / "chain.py"
WRONG = sorted((ROOT / "tests" / "typing" / "wrong").glob("*.py"))

Lines: TypeAlias = dict[str, set[int]]
"""The numbers of the lines with an error, by file name."""


def mypy(*files: Path) -> Lines:
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--hide-error-context"]
    done = run([*command, *(str(file.relative_to(ROOT)) for file in files)])
    return lines(re.findall(r"^([^:\n]+):(\d+)(?::\d+)?: error:", done.stdout, re.MULTILINE))


def pyright(program: str, *, folder: Path) -> Lines:
    done = run([program, "--pythonpath", sys.executable, "--outputjson", "-p", str(folder)])
    found = json.loads(done.stdout)["generalDiagnostics"]
    return lines(
        [
            (diagnostic["file"], str(diagnostic["range"]["start"]["line"] + 1))
            for diagnostic in found
            if diagnostic["severity"] == "error"
        ]
    )


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # 0 and 1 are verdicts; anything else is a checker that couldn't do its work.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


def lines(found: list[tuple[str, str]]) -> Lines:
    by_file: Lines = {}
    for file, line in found:
        by_file.setdefault(Path(file).name, set()).add(int(line))
    return by_file


def marked(file: Path) -> set[int]:
    text = file.read_text("utf-8")
    return {number for number, line in enumerate(text.splitlines(), 1) if "# wrong:" in line}


@pytest.fixture(scope="module")
def mypy_on_wrong() -> Lines:
    """What mypy says of all wrong files, in one run."""
    return mypy(*WRONG)


@pytest.fixture(scope="module")
def pyright_on_wrong(require_tool: Callable[[str], str]) -> Lines:
    """What pyright says of all wrong files, in one run."""
    return pyright(require_tool("pyright"), folder=WRONG[0].parent)


def test_mypy_infers_every_step() -> None:
    """mypy agrees with each ``assert_type``, the design's example chain among them."""
    assert mypy(RIGHT).get(RIGHT.name) is None


def test_pyright_infers_every_step(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """pyright, strict, agrees with each ``assert_type``."""
    (tmp_path / RIGHT.name).write_text(RIGHT.read_text("utf-8"), "utf-8")
    settings = {"typeCheckingMode": "strict", "include": ["."], "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    assert pyright(require_tool("pyright"), folder=tmp_path) == {}


@pytest.mark.parametrize("file", WRONG, ids=lambda file: str(file.stem))
def test_mypy_refuses(file: Path, mypy_on_wrong: Lines) -> None:
    """mypy reports the marked lines of the file, and no other."""
    assert marked(file)
    assert mypy_on_wrong.get(file.name, set()) == marked(file)


@pytest.mark.parametrize("file", WRONG, ids=lambda file: str(file.stem))
def test_pyright_refuses(file: Path, pyright_on_wrong: Lines) -> None:
    """pyright reports the marked lines of the file, and no other."""
    assert pyright_on_wrong.get(file.name, set()) == marked(file)


def test_every_method_of_a_sequencer_is_covered() -> None:
    """A method added later can't stay without an assertion on what it infers."""
    text = RIGHT.read_text("utf-8")
    methods = [
        name
        for name in dir(Sequencer)
        if inspect.isfunction(getattr(Sequencer, name)) and not name.startswith("_")
    ]
    assert {"step", "parallel", "rescue"} < set(methods)
    assert [name for name in methods if f".{name}(" not in text] == []
