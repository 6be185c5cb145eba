"""The repository's own rules, held by tests: what stands in every file, and what in none."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {".git", ".venv", "build", "dist", "node_modules", "__pycache__", ".claude"}
LIBRARY = ("flowstate", "blocks", "capabilities")

MEANINGLESS = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc", "core"}


def files(*suffixes: str, under: tuple[str, ...] = (".",)) -> list[Path]:
    """Every file of the repository, each once: the two links are not followed."""
    found: list[Path] = []
    for top in under:
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = [
                name
                for name in folders
                if name not in SKIPPED
                and not name.endswith((".egg-info", "_cache"))
                and name != ".hypothesis"
                and not (Path(folder) / name).is_symlink()
            ]
            found += [Path(folder, name) for name in names if name.endswith(suffixes or ("",))]
    return sorted(found)


def source(file: Path) -> str:
    return file.read_text("utf-8")


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


PYTHON = files(".py")
LIBRARY_FILES = files(".py", under=LIBRARY)
TEST_FILES = [file for file in PYTHON if file.name.startswith("test_")]


def test_the_walk_sees_the_repository() -> None:
    """The rules below would hold of nothing if nothing were found."""
    assert {"flowstate", "blocks", "tests"} <= {named(file).split("/")[0] for file in PYTHON}
    assert not [file for file in LIBRARY_FILES if named(file).startswith("flowstate/blocks/")]


LONGER = {
    "flowstate/define/sequencer.py": 450,  # every method's signatures, for both checkers
    "flowstate/plan/assignable.py": 440,  # one recursion, whose parts call each other
    "flowstate/testing/store_contract.py": 460,  # a list of contracts, read one at a time
}
"""Files that may be longer, and why."""


@pytest.mark.parametrize("file", LIBRARY_FILES, ids=named)
def test_a_library_file_is_one_noun(file: Path) -> None:
    """
    It fits on a few screens, opens by saying what it is, has a telling name and lets annotations
    be read lazily.
    """
    text = source(file)
    assert file.stem not in MEANINGLESS
    limit = LONGER.get(named(file), 420)
    assert text.count("\n") <= limit, f"{text.count(chr(10))} lines: it holds more than one thing"
    if not text:
        assert file.name == "__init__.py"
        return
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "it opens without a docstring"
    if any(isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign)) for node in tree.body):
        assert "from __future__ import annotations" in text


@pytest.mark.parametrize("file", TEST_FILES, ids=named)
def test_every_test_says_what_it_shows(file: Path) -> None:
    """A test's docstring states the behaviour, so that a failure says what is broken."""
    silent = [
        node.name
        for node in ast.walk(ast.parse(source(file)))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_nothing_is_left_for_later() -> None:
    """What is not done is no comment in a file; it is either built or not there."""
    words = re.compile(
        r"#.*\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK", "XX" + "X")) + r")\b"
    )
    assert [named(file) for file in PYTHON if words.search(source(file))] == []


def test_no_file_knows_a_machine() -> None:
    """
    No path of the machine it was written on: neither this checkout's, nor its owner's home, nor
    any other's.
    """
    here = {str(ROOT), str(Path.home())} - {"/", "/root", "/home"}
    homes = re.compile(r"(?<![\w.])/(?:root/\.|(?:home|Users)/\w+/)\w|[A-Z]:\\Users\\")
    found = [
        named(file)
        for file in files(".py", ".toml", ".md", ".json", ".txt", "Makefile", "run")
        if file != Path(__file__).resolve()
        and (any(path in source(file) for path in here) or homes.search(source(file)))
    ]
    assert found == []


def test_no_file_names_a_registry() -> None:
    """Where packages come from is the affair of whoever installs."""
    # Put together here, so that this file doesn't hold them either.
    words = ["index" + "-url", "find" + "-links", "_auth" + "Token", "trusted" + "-host"]
    files_of_tools = files(".toml", ".cfg", ".ini", ".lock", ".txt", ".md", "Makefile", "run", "rc")
    assert [named(f) for f in files_of_tools if any(word in source(f) for word in words)] == []


def test_nothing_that_looks_like_a_credential() -> None:
    """Keys in tests are dummies that say so."""
    key = re.compile(
        r"\b(?:sk-ant-[\w-]{24,}|sk-proj-\w{20,}|gh[pousr]_\w{30,}|AKIA[A-Z0-9]{16})\b"
    )
    found = [
        (named(file), match)
        for file in files(".py", ".md", ".json", ".toml", ".yml", ".yaml")
        for match in key.findall(source(file))
        if "dummy" not in match.lower() and "secret" not in match.lower()
    ]
    assert found == []


def test_the_make_targets_are_there() -> None:
    """The commands that the documents name exist."""
    makefile = source(ROOT / "Makefile")
    for target in ("demo", "test", "check", "docs", "bench", "soak"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_ci_runs_the_tests_and_then_the_checks() -> None:
    """One gate for people and for CI: the same two commands, in this order."""
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = re.findall(r"^make (\w+)$", source(script), re.MULTILINE)
    assert commands == ["test", "check"]
    assert "CI=true" in source(script)


def test_the_changelog_knows_the_version() -> None:
    """The version in pyproject.toml has its entry, or is what stands under Unreleased."""
    version = tomllib.loads(source(ROOT / "pyproject.toml"))["project"]["version"]
    headings = re.findall(r"^## \[(.+?)\]", source(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert headings[0] in ("Unreleased", version)


def test_the_documents_link_to_what_exists() -> None:
    """A relative link in a document leads to a file of the repository."""
    broken = [
        f"{named(file)} → {target}"
        for file in files(".md")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", source(file))
        if "://" not in target and not (file.parent / target).exists()
    ]
    assert broken == []
