"""``FILE:FLOW``, and everything that may be wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowstate.cli.target import BadTarget, find_action, load_flow

FLOW = """
from __future__ import annotations
from dataclasses import dataclass
from flowstate import action, define_flow, handler

@dataclass(frozen=True)
class Ask:
    number: int

@handler
async def double(ask: Ask) -> int:
    return ask.number * 2

twice = define_flow("twice", actions=[action("double", double)])
other = 3
"""


@pytest.fixture(name="file")
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    path = tmp_path / "my_flow.py"
    path.write_text(FLOW)
    yield path
    for name in set(sys.modules) - before:
        if name.startswith(("flowstate_target_", "beside_")):
            del sys.modules[name]


def refused(target: str) -> BadTarget:
    with pytest.raises(BadTarget) as caught:
        load_flow(target)
    return caught.value


def test_a_flow_is_loaded_by_the_path_of_its_file(file: Path) -> None:
    """Annotations of its own classes resolve, though the file is no installed module."""
    flow = load_flow(f"{file}:twice")
    assert flow.kind == "twice"
    assert getattr(flow.actions[0].block.input_type, "__name__", None) == "Ask"


def test_what_stands_beside_the_file_can_be_imported(file: Path) -> None:
    """As with ``python FILE``."""
    (file.parent / "beside_it.py").write_text("KIND = 'beside'")
    file.write_text(FLOW.replace("other = 3", "import beside_it\nother = beside_it.KIND"))
    assert load_flow(f"{file}:twice").kind == "twice"


def test_a_file_named_like_a_module_is_not_that_module(file: Path) -> None:
    """And doesn't become it for others."""
    import json

    path = file.with_name("json.py")
    path.write_text(FLOW)
    assert load_flow(f"{path}:twice").kind == "twice"
    assert sys.modules["json"] is json


@pytest.mark.parametrize("target", ["", "x", "x.py", ":twice", "x.py:", "x.py:a b", "x.py:a.b"])
def test_a_target_of_another_form_is_explained(target: str) -> None:
    """With an example to follow."""
    assert "is not FILE:FLOW" in str(refused(target))
    assert "examples/coding_flow.py:coding" in str(refused(target))


def test_a_missing_file_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    """A directory isn't a file either."""
    said = str(refused("nowhere/flow.py:x"))
    assert "no file 'nowhere/flow.py'" in said
    assert str(Path.cwd()) in said
    assert "is not a file" in str(refused(f"{tmp_path}:x"))


def test_a_missing_name_lists_the_flows_that_there_are(file: Path) -> None:
    """With their actions."""
    said = str(refused(f"{file}:twic"))
    assert "has no 'twic'" in said
    assert "It has: twice (actions: double)" in said


def test_a_name_of_something_else_says_what_it_is(file: Path) -> None:
    """A number, a block."""
    assert "'other' in" in str(refused(f"{file}:other"))
    assert "is a int, not a flow" in str(refused(f"{file}:other"))
    assert "is a Handler, not a flow" in str(refused(f"{file}:double"))


def test_a_file_without_flows_says_how_to_make_one(file: Path) -> None:
    """Nothing can be listed."""
    file.write_text("x = 1")
    assert "define_flow" in str(refused(f"{file}:y"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(3)", "__name__ == '__main__'"),
        ("from . import x", "absolute imports"),
    ],
)
def test_a_file_that_fails_is_told_with_its_own_traceback(file: Path, text: str, said: str) -> None:
    """From the user's file on; the loader's frames are nobody's business."""
    file.write_text(text)
    error = refused(f"{file}:twice")
    assert said in str(error)
    assert "my_flow.py" in error.details
    assert "importlib" not in error.details
    assert "cli/target.py" not in error.details
    assert "flowstate_target_my_flow" not in sys.modules


def test_an_unknown_action_lists_those_there_are(file: Path) -> None:
    """By their names."""
    flow = load_flow(f"{file}:twice")
    assert find_action(flow, "double").name == "double"
    with pytest.raises(BadTarget, match=r"no action 'treble'\. It has: 'double'"):
        find_action(flow, "treble")
