"""Every kind of store, for what must hold on each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn.core.ports import Store
from tests.helpers.stores import ALL, opened


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    """An empty one."""
    async with opened(request.param, tmp_path) as store:
        yield store
