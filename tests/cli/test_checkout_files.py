"""What changed between two looks at a directory."""

from __future__ import annotations

from pathlib import Path

from flowstate.cli.checkout_files import changes, look


def test_files_that_came_changed_and_went_are_told(tmp_path: Path) -> None:
    """By their paths below the directory, with the number of their lines."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "same").write_text("x")
    (tmp_path / "gone").write_text("a\nb\n")
    (tmp_path / "sub" / "new_text").write_text("1\n")
    before = look(tmp_path)
    (tmp_path / "gone").unlink()
    (tmp_path / "sub" / "new_text").write_text("1\n2")
    (tmp_path / "added").write_text("")
    told = [(c.path, c.kind, c.lines) for c in changes(before, look(tmp_path))]
    assert told == [("added", "added", 0), ("gone", "removed", 2), ("sub/new_text", "changed", 2)]


def test_byte_code_and_hidden_directories_are_nobodys_work(tmp_path: Path) -> None:
    """A test run leaves the one, git the other."""
    for name in ("__pycache__", ".git"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    assert look(tmp_path) == {}


def test_a_directory_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    """The agent's checkout is made when it starts."""
    assert look(tmp_path / "nowhere") == {}
