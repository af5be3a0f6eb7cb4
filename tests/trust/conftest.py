"""Both kinds of store, for what must hold on either."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn.core.ports import Store
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    """An empty one."""
    store: Store = MemoryStore() if request.param == "memory" else SqlStore.sqlite(tmp_path / "s.db")
    yield store
    await store.aclose()
