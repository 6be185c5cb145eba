"""Which store a name means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flowstate.errors import DefinitionError
from flowstate.store.memory import MemoryStore
from flowstate.store.opening import open_store
from flowstate.store.sql import SqlStore


def test_memory_means_a_store_in_this_process() -> None:
    """``memory:`` is the store that forgets, a new one each time."""
    assert isinstance(open_store("memory:"), MemoryStore)
    assert open_store("memory:") is not open_store("memory:")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sqlite:///app.db", "app.db"),
        ("sqlite:////var/app.sqlite", "/var/app.sqlite"),
        ("sqlite:///:memory:", ":memory:"),
        ("app.db", "app.db"),
        ("/var/lib/my app.db", "/var/lib/my app.db"),
        (Path("anything"), "anything"),
    ],
)
def test_a_url_or_a_path_means_a_file(name: str | Path, path: str) -> None:
    """Three slashes are relative, four absolute; a plain path ends in .db, a Path may be any."""
    store = open_store(name)
    assert isinstance(store, SqlStore)
    assert repr(path) in repr(store)


def test_a_store_is_handed_back() -> None:
    """Who made a store goes on owning it."""
    store = MemoryStore()
    assert open_store(store) is store


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("postgresql://ada:hunter2@host/db", "'postgresql:' is not supported"),
        ("redis://host", "'redis:' is not supported"),
        ("memory", "no scheme"),
        ("app.sqlite", "no scheme"),
        ("", "no scheme"),
        ("host=db password=hunter2", "no scheme"),
        ("sqlite://host/app.db", "no host"),
        ("sqlite:app.db", "no host"),
        ("sqlite:///", "keeps nothing"),
        ("sqlite:///app.db?mode=ro", "no options"),
    ],
)
def test_anything_else_is_refused_by_its_scheme_alone(name: str, problem: str) -> None:
    """The error tells what is supported and repeats nothing that may be a password."""
    with pytest.raises(DefinitionError, match=problem) as caught:
        open_store(name)
    assert "hunter2" not in str(caught.value)
    assert "sqlite:///" in str(caught.value) or "SqlStore(path" in str(caught.value)


def test_a_missing_extra_is_named() -> None:
    """Without SQLAlchemy, memory works, and a file says what to install."""
    program = """
import sys
sys.modules["sqlalchemy"] = None
from flowstate.errors import DefinitionError
from flowstate.store.opening import open_store
open_store("memory:")
try:
    open_store("app.db")
except DefinitionError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "pip install 'flowstate-engine[sql]'" in done.stdout


def test_sqlalchemy_is_imported_only_for_a_file() -> None:
    """The memory store and the way to it don't pull in the database library."""
    program = """
import sys
from flowstate.store.opening import open_store
import flowstate.state.cell
open_store("memory:")
print(any(name.partition(".")[0] in ("sqlalchemy", "sqlite3") for name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
