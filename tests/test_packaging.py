"""
What is built is what stands in the tree.

The list of packages is explicit, since discovery through the two links would ship an sdist
without blocks; these tests are what keeps an explicit list from forgetting one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINKED = ("blocks", "capabilities")
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def modules(root: Path, *, followed: bool = True) -> set[str]:
    """The files of the package under a root, by their installed names, ``/`` between the parts."""
    places = {"flowstate": root / "flowstate"}
    if followed:
        places |= {f"flowstate/{name}": root / name for name in LINKED}
    return {
        f"{name}/{file.relative_to(place).as_posix()}"
        for name, place in places.items()
        for file in place.rglob("*.py")
        if not (followed and name == "flowstate" and file.relative_to(place).parts[0] in LINKED)
    }


def test_every_package_of_the_tree_is_listed() -> None:
    """A folder with Python files in it that pyproject.toml doesn't list would silently not ship."""
    in_tree = {str(Path(name).parent).replace("/", ".") for name in modules(ROOT)}
    assert sorted(project()["tool"]["setuptools"]["packages"]) == sorted(in_tree)


def test_every_package_is_a_regular_one() -> None:
    """A folder of Python files without an ``__init__.py`` is invisible to half of the tools."""
    found = modules(ROOT)
    folders = {str(Path(name).parent) for name in found}
    assert [folder for folder in sorted(folders) if f"{folder}/__init__.py" not in found] == []


@pytest.mark.parametrize("name", LINKED)
def test_the_links_resolve(name: str) -> None:
    """``flowstate/blocks`` shows tools the installed name of what lies in ``blocks``."""
    link = ROOT / "flowstate" / name
    assert link.resolve() == ROOT / name
    if link.is_symlink():  # not so in a checkout made with core.symlinks=false
        assert str(link.readlink()) == f"../{name}"


def test_all_holds_every_extra() -> None:
    """``flowstate-engine[all]`` is what the documents say it is."""
    extras = project()["project"]["optional-dependencies"]
    (everything,) = extras.pop("all")
    assert everything == f"flowstate-engine[{','.join(extras)}]"


@pytest.mark.slow
def test_the_wheel_holds_the_tree(tmp_path: Path) -> None:
    """
    Built the way a release is, sdist first and the wheel from it, no module is lost or added,
    types are marked, and the wheel imports from where it is installed.
    """
    source, out, site = tmp_path / "source", tmp_path / "out", tmp_path / "site"
    shutil.copytree(ROOT, source, symlinks=True, ignore=LEFT_OUT)
    run("-m", "build", "--no-isolation", "--outdir", str(out), str(source))
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")

    expected = modules(ROOT)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith("dist-info/METADATA"))
        head = archive.read(metadata).decode("utf-8")
    assert {name for name in names if name.endswith(".py")} == expected
    assert "flowstate/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "License-Expression: MIT" in head
    with tarfile.open(sdist) as tar:
        kept = {name.partition("/")[2] for name in tar.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "blocks/__init__.py"} <= kept

    run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    origin = run(
        "-c",
        "import flowstate, flowstate.blocks as b; print(flowstate.__file__); print(b.__file__)",
        cwd=site,
    ).split()
    assert [Path(line).is_relative_to(site) for line in origin] == [True, True]


def run(*arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
