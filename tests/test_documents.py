"""
The documents are true: their Python runs, and their terminal sessions print what they say.

The rules for a fenced block, the same in README.md and in docs/:

- ``python`` that starts with ``# name.py`` is saved under that name, and run;
- other ``python`` runs too, after what stands above it in the same document;
- ``console`` holds commands after ``$ `` and what they print, where ``...`` stands for anything;
- ``text`` right below a ``python`` block is what that block prints;
- ``sh`` is for commands that would change a machine: only that they exist is checked.
"""

from __future__ import annotations

import doctest
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from flowstate import Block, Sequencer

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS = {"python", "console", "text", "sh", "mermaid", "toml", "json"}
INSTALLERS = {"git", "cd", "make", "pip", "python", "python3", "export", "flowstate", "#"}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEPARATOR = "\x1e"


@dataclass(frozen=True)
class Fenced:
    """One fenced block, and how far below the block before it it stands."""

    kind: str
    text: str
    line: int
    follows: bool
    """True when only blank lines stand between it and the block before."""

    @property
    def file(self) -> str | None:
        found = re.match(r"# ([\w.]+\.py)\n", self.text)
        return found[1] if found and self.kind == "python" else None


def fenced(document: Path) -> Iterator[Fenced]:
    text = document.read_text("utf-8")
    end = 0
    for match in FENCE.finditer(text):
        between, start = text[end : match.start()], text.count("\n", 0, match.start()) + 1
        yield Fenced(match[1], match[2], start, not between.strip())
        end = match.end()


def prints(expected: str, got: str) -> bool:
    """Whether this is what was printed: ``...`` is anything, blanks at line ends are nothing."""
    plain = "\n".join(line.rstrip() for line in got.strip().splitlines()) + "\n"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected.strip() + "\n", plain, flags)


@dataclass
class Workplace:
    """An empty directory, and a home, in which a newcomer would follow a document."""

    folder: Path

    def run(self, command: list[str] | str) -> str:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder / "work",
            env={
                "PATH": os.pathsep.join(paths),
                "HOME": str(home),
                "PYTHONPATH": str(self.folder / "work"),
                "COLUMNS": "100",
                "NO_COLOR": "1",
                "LANG": "C.UTF-8",
                "PYTHONUTF8": "1",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        shown = done.stdout + done.stderr
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{shown}"
        return shown


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Where the document's files are saved and run."""
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.name))
def test_what_a_document_shows_happens(document: Path, workplace: Workplace) -> None:
    """Followed from top to bottom in an empty directory, everything works and prints as shown."""
    blocks = list(fenced(document))
    printed = ""
    session: list[str] = []
    for block, below in zip_longest(blocks, blocks[1:]):
        where = f"{document.name}:{block.line}"
        match block.kind:
            case "python" if block.file is not None:
                (workplace.folder / "work" / block.file).write_text(block.text, "utf-8")
                printed = workplace.run([sys.executable, block.file])
            case "python":
                # Blocks that go on from one another are run as one program, each time longer.
                program = f"print({SEPARATOR!r})\n".join([*session, block.text])
                (workplace.folder / "work" / "_session.py").write_text(program, "utf-8")
                printed = workplace.run([sys.executable, "_session.py"]).rpartition(SEPARATOR)[2]
                session.append(block.text)
            case "console":
                for command, expected in commands(block.text):
                    got = workplace.run(command)
                    assert prints(expected, got), f"{where}: {command} printed\n{got}"
            case _:
                continue
        if below is not None and below.kind == "text" and below.follows:
            assert prints(below.text, printed), f"{where} printed\n{printed}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.name))
def test_every_block_is_of_a_kind_that_is_checked(document: Path) -> None:
    """A block of another kind would go unchecked, and rot."""
    assert {block.kind for block in fenced(document)} <= KINDS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.name))
def test_shell_commands_name_what_exists(document: Path) -> None:
    """``make x`` names a target, and no command is of a program nobody was told to install."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for block in fenced(document):
        if block.kind != "sh":
            continue
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            words = [word for word in words if not re.fullmatch(r"[A-Z_]+=.*", word)]
            if not words:
                continue
            assert words[0] in INSTALLERS or (ROOT / words[0]).exists(), f"{document.name}: {line}"
            if words[0] == "make":
                assert words[1] in targets, f"{document.name}: {line}"


def test_the_readme_names_every_method_of_a_sequencer() -> None:
    """A method that the table leaves out would be found by nobody."""
    text = (ROOT / "README.md").read_text("utf-8")
    methods = {
        name
        for name in {*dir(Sequencer)} - {*dir(Block)}
        if inspect.isfunction(getattr(Sequencer, name)) and not name.startswith("_")
    }
    assert {"step", "parallel", "rescue"} < methods
    assert {name for name in methods if f"`{name}`" not in text} == set()


def commands(session: str) -> Iterator[tuple[str, str]]:
    """The commands of a terminal session, each with what it prints."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.removeprefix("> ")
        yield command, expected


def test_the_checks_can_fail(workplace: Workplace, tmp_path: Path) -> None:
    """A document that lies is caught: a wrong output, and a program that doesn't run."""
    lie = tmp_path / "lie.md"
    lie.write_text(
        textwrap.dedent(
            """
            ```python
            print(1 + 1)
            ```

            ```text
            3
            ```
            """
        ),
        "utf-8",
    )
    with pytest.raises(AssertionError, match="printed"):
        test_what_a_document_shows_happens(lie, workplace)
    lie.write_text("```console\n$ python -c 'import nothing_of_that_name'\n```\n", "utf-8")
    with pytest.raises(AssertionError, match="ended with 1"):
        test_what_a_document_shows_happens(lie, workplace)
    assert shutil.which("make") is None or not prints("a ... c", "a b d")
