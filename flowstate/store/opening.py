"""
Which store a name means.

A store's name may hold a password (a database URL does), so no error here repeats more of it than
its scheme.
"""

from __future__ import annotations

import os
import re
from os import PathLike

from flowstate.errors import DefinitionError
from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store

_WAY_OUT = 'Use "memory:", "sqlite:///path/to/file", a path that ends in ".db", or a Store.'

# At least two letters: one and a colon is a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def open_store(store: str | PathLike[str] | Store) -> Store:
    """
    The store that a name means; a store is handed back as it is. Its ``open`` is still to call.

    Args:
        store: ``"memory:"``; ``"sqlite:///app.db"`` (relative to the working directory) or
            ``"sqlite:////var/lib/app.db"`` (absolute); a path that ends in ``.db``, or any
            ``Path``; a Store.

    Raises:
        DefinitionError: it names nothing that is supported, or SQLAlchemy isn't installed.

    >>> open_store("memory:")
    <MemoryStore open, 0 requests, 0 cells, 0 entries, 0 items>
    """
    if isinstance(store, str):
        return _named(store)
    return _sqlite(os.fspath(store)) if isinstance(store, PathLike) else store


def _named(name: str) -> Store:
    if name == "memory:":
        return MemoryStore()
    if name.startswith("sqlite:"):
        return _sqlite(_path_of(name))
    scheme = _SCHEME.match(name)
    if scheme is not None:
        raise DefinitionError("store", f"{scheme[1] + ':'!r} is not supported", _WAY_OUT)
    if not name.endswith(".db"):
        raise DefinitionError("store", "it has no scheme and is no path to a .db file", _WAY_OUT)
    return _sqlite(name)


def _path_of(url: str) -> str:
    if not url.startswith("sqlite:///"):
        raise DefinitionError(
            "store",
            "a SQLite URL has no host",
            'Write three slashes and a path, "sqlite:///app.db"; four, if the path is absolute.',
        )
    if "?" in url:
        raise DefinitionError(
            "store",
            "a SQLite URL takes no options here",
            "Hand over SqlStore(path, busy_timeout=...) instead.",
        )
    path = url.removeprefix("sqlite:///")
    if not path:
        raise DefinitionError(
            "store",
            "a SQLite URL without a path keeps nothing",
            'Write "sqlite:///app.db", or say "memory:".',
        )
    return path


def _sqlite(path: str) -> Store:
    try:
        from flowstate.store.sql import SqlStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise DefinitionError(
            "store",
            "a SQLite store needs SQLAlchemy, which isn't installed",
            "Run pip install 'flowstate-engine[sql]'.",
        ) from error
    return SqlStore(path)
