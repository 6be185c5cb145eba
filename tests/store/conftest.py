"""Stores to run tests against: each kind, opened and empty, closed afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flowstate.store.memory import MemoryStore
from flowstate.store.protocol import Store
from flowstate.store.sql import SqlStore


@pytest.fixture(name="store", params=["memory", "sqlite"])
async def _store(
    request: pytest.FixtureRequest, anyio_backend: object, tmp_path: Path
) -> AsyncIterator[Store]:
    store = MemoryStore() if request.param == "memory" else SqlStore(tmp_path / "store.db")
    await store.open()
    yield store
    await store.close()
