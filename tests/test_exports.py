"""Every public name has one home, says what it is, and is seen by both type checkers."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def doors() -> list[str]:
    """The modules that users import from: each package that exports something, and the errors."""
    found = ["flowstate.errors"]
    for file in sorted((ROOT / "flowstate").glob("**/__init__.py")) + sorted(
        folder / "__init__.py"
        for name in ("blocks", "capabilities")
        for folder in (ROOT / "flowstate" / name).iterdir()
        if (folder / "__init__.py").exists()
    ):
        if "__all__" in file.read_text("utf-8"):
            found.append(".".join(file.relative_to(ROOT).parent.parts))
    return sorted(set(found))


DOORS = doors()


def exported(door: str) -> dict[str, object]:
    """The public names of a door; of ``errors``, its classes."""
    module = importlib.import_module(door)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == door
        ]
    return {name: getattr(module, name) for name in names}


def test_the_root_is_a_door() -> None:
    """The rest of this file would prove nothing if it looked at nothing."""
    assert "flowstate" in DOORS
    assert len(exported("flowstate")) > 20
    assert len(exported("flowstate.errors")) > 10


@pytest.mark.parametrize("door", [door for door in DOORS if door != "flowstate.errors"])
def test_a_door_exports_what_it_lists(door: str) -> None:
    """``__all__`` is what the file imports as ``name as name`` or defines, no more and no less."""
    module = importlib.import_module(door)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    defined = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
    ]
    assert sorted(imported + defined) == sorted(module.__all__)


def test_every_public_name_has_exactly_one_home() -> None:
    """The same thing is never exported by two doors: there is one way to import it."""
    homes: dict[int, list[str]] = {}
    for door in DOORS:
        for name, value in exported(door).items():
            homes.setdefault(id(value), []).append(f"{door}.{name}")
    assert [names for names in homes.values() if len(names) > 1] == []


def public_things() -> Iterator[tuple[str, object]]:
    """Every exported class and function, and the public members of the classes."""
    for door in DOORS:
        for name, value in exported(door).items():
            if not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            yield f"{door}.{name}", value
            if not inspect.isclass(value):
                continue
            for member in dir(value):
                found = inspect.getattr_static(value, member)
                found = getattr(found, "__func__", found)  # of a class or static method
                of = getattr(found, "fget", found)  # of a property
                if member.startswith("_") or not inspect.isfunction(of):
                    continue
                if of.__module__.startswith("flowstate"):
                    yield f"{door}.{name}.{member}", of


def test_every_public_name_has_a_docstring() -> None:
    """The first sentence of each is its promise; an inherited or generated one doesn't count."""
    assert [name for name, thing in public_things() if not _documented(thing)] == []


def _documented(thing: object) -> bool:
    text = thing.__doc__ if not inspect.isclass(thing) else vars(thing).get("__doc__")
    # A dataclass without a docstring gets its own signature for one.
    return bool(text) and not (
        inspect.isclass(thing) and str(text).startswith(f"{thing.__name__}(")
    )


@pytest.mark.xdist_group("checkers")
def test_both_checkers_see_every_public_name(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """A strict program may import each name from its home, with a known type."""
    lines = [f"from {door} import {name} as {name}" for door in DOORS for name in exported(door)]
    program = tmp_path / "imports_everything.py"
    program.write_text("\n".join(lines) + "\n", "utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "include": ["."],
        "extraPaths": [str(ROOT)],
        "reportUnusedImport": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    # The same name from two doors (an item's Status, a handle's) would hide one of them here.
    assert len({line.rpartition(" ")[2] for line in lines}) == len(lines)
    for command in (
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(program)],
        [require_tool("pyright"), "--pythonpath", sys.executable, "-p", str(tmp_path)],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_the_distributions() -> None:
    """What is installed under the distribution's name is this package."""
    metadata = importlib.import_module("importlib.metadata")
    assert isinstance(metadata, ModuleType)
    assert metadata.version("flowstate-engine")
