"""
What changed in a directory between two looks at it.

Reads files and writes none. Byte code and what hidden directories hold is no work of anybody's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

LARGEST = 2_000_000
"""Bytes of a file that are read; the rest counts by the file's size."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """One file as it was found."""

    digest: str
    lines: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that is not as it was."""

    path: str
    """Relative to the directory, with ``/``."""
    kind: Literal["added", "changed", "removed"]
    lines: int
    """How many it has now; of a removed one, how many it had."""


def look(directory: Path) -> dict[str, FileState]:
    """The files below a directory, by relative path; none if there is no such directory."""
    found: dict[str, FileState] = {}
    for folder, folders, files in os.walk(directory):
        folders[:] = [f for f in folders if f != "__pycache__" and not f.startswith(".")]
        for name in files:
            path = Path(folder, name)
            try:
                size = path.stat().st_size
                with path.open("rb") as file:
                    content = file.read(LARGEST)
            except OSError:
                # Gone in the meantime, or no file that can be read.
                continue
            digest = hashlib.sha256(content + str(size).encode()).hexdigest()
            lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
            found[path.relative_to(directory).as_posix()] = FileState(digest=digest, lines=lines)
    return found


def changes(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> list[FileChange]:
    """
    What is different, by path.

    >>> old = {"a": FileState(digest="1", lines=3)}
    >>> [(c.path, c.kind) for c in changes(old, {"b": FileState(digest="2", lines=1)})]
    [('a', 'removed'), ('b', 'added')]
    """
    found: list[FileChange] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if new is None:
            assert old is not None
            found.append(FileChange(path=path, kind="removed", lines=old.lines))
        elif old is None:
            found.append(FileChange(path=path, kind="added", lines=new.lines))
        elif old.digest != new.digest:
            found.append(FileChange(path=path, kind="changed", lines=new.lines))
    return found
