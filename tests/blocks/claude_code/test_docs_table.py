"""The table of ``docs/claude-code.md`` names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "claude-code.md"
FOLDERS = ("blocks/claude_code", "live", "properties", "harness", "item")

NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


def defined() -> dict[str, set[str]]:
    """The tests of all files of a name, in the folders that the document speaks of."""
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            found.setdefault(path.name, set()).update(DEFINED.findall(path.read_text("utf-8")))
    return found


def rows() -> list[str]:
    """The rows of the tables that have proofs, without their heads."""
    table = DOCUMENT.read_text("utf-8").partition("## Line by line")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.endswith("| proof |")]


def test_every_test_that_the_table_names_exists() -> None:
    """A proof that was renamed or removed proves nothing."""
    there = defined()
    named = NAMED.findall(DOCUMENT.read_text("utf-8"))
    missing = [f"{file}::{test}" for file, test in named if test not in there.get(file, ())]
    assert len(named) > 100
    assert missing == []


def test_every_row_has_a_proof_or_says_why_not() -> None:
    """Three columns; the last one names a test, or is a dash after a reason."""
    unproved = [
        row
        for row in rows()
        if row.count(" | ") != 2 or not (NAMED.search(row) or row.endswith("| – |"))
    ]
    assert unproved == []
