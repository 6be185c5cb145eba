"""The launcher: an exact environment, and nothing else about the process changed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from flowstate.harness.launcher import (
    LauncherUnusable,
    PrivateFiles,
    launcher_script,
    write_launcher,
)

TELL = f"""#!{sys.executable} -IS
import json, os, signal, sys
kept = {{n: os.environ[n] for n in os.environ}}
print(json.dumps([kept, os.getpid(), sys.argv[1:], sys.stdin.read(),
      signal.getsignal(signal.SIGINT) is signal.default_int_handler]))
"""


@pytest.fixture(name="files")
def _files() -> object:
    files = PrivateFiles()
    yield files
    files.remove()


@pytest.fixture(name="target")
def _target(tmp_path: Path) -> Path:
    target = tmp_path / "tell it"
    target.write_text(TELL)
    target.chmod(0o700)
    return target


def _start(
    launcher: Path, environment: dict[str, str], *arguments: str
) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [str(launcher), *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.communicate("line\n", timeout=20)[0]


def test_the_environment_is_exactly_what_is_kept(files: PrivateFiles, target: Path) -> None:
    """Names that aren't kept are gone, and values arrive whatever characters they hold."""
    given = {"KEEP": "a b\n'\"$x", "LC_ALL": "C", "DROP_PASSWORD": "hunter22", "EMPTY": ""}
    launcher = write_launcher(
        files, str(target), keep={"KEEP", "EMPTY", "LC_ALL", "ABSENT"}, environment={}
    )
    _, output = _start(launcher, given)

    assert json.loads(output)[0] == {"KEEP": "a b\n'\"$x", "EMPTY": "", "LC_ALL": "C"}


def test_pid_arguments_and_standard_input_are_unchanged(files: PrivateFiles, target: Path) -> None:
    """The binary has the process id that its parent sees, its arguments and its input."""
    launcher = write_launcher(files, str(target), keep=["LC_ALL"], environment={})
    process, output = _start(launcher, {"LC_ALL": "C"}, "--flag=a b", "", "ü")
    _, pid, arguments, read, interrupts = json.loads(output)

    assert pid == process.pid
    assert arguments == ["--flag=a b", "", "ü"]
    assert read == "line\n"
    assert interrupts


def test_ignored_signals_are_not_passed_on(files: PrivateFiles) -> None:
    """Python ignores SIGPIPE for itself; the binary must not inherit that."""
    launcher = write_launcher(files, "/bin/cat", keep=(), environment={})
    process = subprocess.Popen([launcher, "/proc/self/status"], stdout=subprocess.PIPE, text=True)
    status = process.communicate(timeout=20)[0]
    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))

    assert not int(ignored, 16) & (1 << (signal.SIGPIPE - 1))


def test_a_locale_is_what_was_given(files: PrivateFiles, target: Path) -> None:
    """A starting Python sets LC_CTYPE by itself; the binary sees the given one, or none."""
    named = write_launcher(files, str(target), keep={"LC_CTYPE"}, environment={"LC_CTYPE": "C"})
    _, output = _start(named, {"LC_CTYPE": "C"})
    # Replaced by the value that this Python, in turn, coerces it to: so look at the script.
    assert "'LC_CTYPE': 'C'" in named.read_text()
    assert "LC_CTYPE" in json.loads(output)[0]

    files.remove()
    unnamed = write_launcher(files, "/usr/bin/env", keep={"X"}, environment={})
    _, output = _start(unnamed, {"X": "1"})
    assert output == "X=1\n"


def test_a_python_with_an_awkward_path_works(tmp_path: Path, target: Path) -> None:
    """An interpreter whose path is long, or holds spaces and quotes, is found by the shell."""
    folder = tmp_path / ("it's a very long " + "x" * 120)
    folder.mkdir()
    python = folder / "python"
    python.symlink_to(sys.executable)
    script = tmp_path / "launch"
    script.write_text(launcher_script(str(target), keep={"LC_ALL"}, python=str(python)))
    script.chmod(0o700)
    _, output = _start(script, {"LC_ALL": "C", "DROP": "1"}, "a b")

    assert json.loads(output)[0] == {"LC_ALL": "C"}
    assert json.loads(output)[2] == ["a b"]


def test_files_are_private_and_go_away(files: PrivateFiles, target: Path) -> None:
    """Only this user can read a run's files; they hold no value; removing leaves nothing."""
    launcher = write_launcher(
        files, str(target), keep={"API_KEY"}, environment={"API_KEY": "sk-secret"}
    )
    directory = launcher.parent
    (directory / "beside").write_text("somebody else's")

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(launcher.stat().st_mode) == 0o500
    assert "sk-secret" not in launcher.read_text()

    assert not files.empty
    files.remove()
    files.remove()
    assert files.empty
    assert not directory.exists()


def test_a_file_is_never_written_over(files: PrivateFiles) -> None:
    """Two files of one name are a mistake, and the first is left as it was."""
    path = files.write("note", "first")
    with pytest.raises(FileExistsError):
        files.write("note", "second")

    assert path.read_text() == "first"


def test_an_unusable_place_is_told(files: PrivateFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no script may be run, the error says so and names the way out."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(LauncherUnusable, match="point TMPDIR at"):
        write_launcher(files, "/bin/true", keep=(), environment={})


def test_an_unknown_interpreter_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded Python doesn't know itself; the error says so."""
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(LauncherUnusable, match="interpreter"):
        launcher_script("/bin/true", keep=())
