"""
Starts an agent's binary with exactly the environment it is meant to have.

An SDK that merges a run's environment over the server's leaks every variable of the server into
the agent's shell. So the SDK is pointed at a small script instead of the binary: it drops what
isn't listed and replaces itself with the binary. The process id, the standard streams and the
signals stay what they were, and the script holds names and a path, never a value that is passed.

What the script costs is one bare Python start (10 to 50 ms). Files live in a private directory
that belongs to one run and is removed with it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import final

from flowstate.errors import HarnessError

_LONGEST_SHEBANG = 127
"""What a kernel reads of a script's first line, on the strictest of those in use."""

_PROGRAM = """\
import os, signal
keep = {keep!r}
environment = {{name: value for name, value in os.environ.items() if name in keep}}
environment.update({exact!r})
for name in ("SIGPIPE", "SIGXFSZ"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
import sys
os.execve({target!r}, [{target!r}, *sys.argv[1:]], environment)
"""
# Python ignores SIGPIPE and SIGXFSZ, and an ignored signal stays ignored across an exec.


class LauncherUnusable(HarnessError):
    """No launcher can be made here, so the run's environment could not be kept exact."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the agent can't be started with an environment of its own: {reason}. "
            "Leave env unset to start it with the server's."
        )


@final
class PrivateFiles:
    """
    Files of one run, in a directory that only this user can read; made when the first is written.

    All methods block; call them in a worker thread.
    """

    def __init__(self) -> None:
        self._directory: str | None = None
        self._files: list[str] = []

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remove."""
        return self._directory is None

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        """Write a file and return its absolute path."""
        if self._directory is None:
            # mkdtemp makes it with mode 0700, so no other user can plant or read a file in it.
            self._directory = os.path.realpath(tempfile.mkdtemp(prefix="flowstate-"))
        path = os.path.join(self._directory, name)
        mode = 0o500 if executable else 0o400
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
        self._files.append(path)
        return Path(path)

    def remove(self) -> None:
        """Remove the directory and all in it. A second call does nothing."""
        directory, self._directory = self._directory, None
        if directory is None:
            return
        try:
            while self._files:
                os.unlink(self._files.pop())
            os.rmdir(directory)
        except OSError:
            # Somebody was here before, or has put something beside them.
            self._files.clear()
            shutil.rmtree(directory, ignore_errors=True)


def launcher_script(
    target: str,
    *,
    keep: Collection[str],
    exact: Mapping[str, str] | None = None,
    python: str | None = None,
) -> str:
    """
    The text of a launcher for this binary.

    Args:
        target: the absolute path of the binary.
        keep: the names of the variables that stay; all others are dropped.
        exact: variables whose values are written into the script, for those that a starting
            Python changes by itself. Never secrets: the script lies on disk.
        python: the interpreter, by default this process's.

    Raises:
        LauncherUnusable: this process doesn't know its own interpreter.
    """
    interpreter = python or sys.executable
    if not interpreter:
        raise LauncherUnusable("this process doesn't know its Python interpreter")
    program = _PROGRAM.format(keep=frozenset(keep), target=target, exact=dict(exact or {}))
    shebang = f"#!{interpreter} -IS"
    if len(os.fsencode(shebang)) <= _LONGEST_SHEBANG and not any(c.isspace() for c in interpreter):
        return f"{shebang}\n{program}"
    # A path that is too long or holds a space: the shell finds the interpreter, and Python reads
    # the shell's line as a string. The same trick that installers use for scripts.
    quoted = interpreter.replace("'", "'\"'\"'")
    return f"#!/bin/sh\n'''exec' '{quoted}' -IS \"$0\" \"$@\"\n' '''\n{program}"


def write_launcher(
    files: PrivateFiles, target: str, *, keep: Collection[str], environment: Mapping[str, str]
) -> Path:
    """
    Write a launcher that keeps these names and return its path. Blocks.

    A starting Python sets ``LC_CTYPE`` in a C locale; if the run's environment names it, its value
    is put into the script, and otherwise it is dropped like anything that isn't listed.

    Raises:
        LauncherUnusable: it could not be written, or can't be run where it lies.
    """
    exact = {"LC_CTYPE": environment["LC_CTYPE"]} if "LC_CTYPE" in environment else {}
    script = launcher_script(target, keep=keep, exact=exact)
    try:
        path = files.write("launch", script, executable=True)
    except OSError as error:
        raise LauncherUnusable(f"no script can be written: {error}") from error
    if not os.access(path, os.X_OK):
        # A file system mounted noexec answers no, whatever the file's mode.
        raise LauncherUnusable(
            f"no script can be run from {path.parent}; point TMPDIR at a directory where it can"
        )
    return path
