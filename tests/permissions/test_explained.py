"""What is explained is what happens; see `random_configurations.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.permissions.random_configurations import disagreement, make_case

from everturn.testing.provider import Provider

EVERY = 40
PROCESSES = 6
PARTS = 4


@pytest.mark.timeout(180)
@pytest.mark.parametrize("part", range(PARTS))
async def test_what_is_explained_is_what_happens(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVERTURN_CONFIG", raising=False)
    found: list[str] = []
    for seed in range(part, EVERY, PARTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        happened, trouble = await disagreement(make_case(seed), folder)
        assert not trouble, (seed, trouble)
        found.append(happened)
    assert {"ran", "asked", "denied"} <= set(found)


@pytest.mark.timeout(300)
async def test_what_is_explained_is_what_the_commands_do(tmp_path: Path) -> None:
    async with Provider() as provider:
        for seed in range(PROCESSES):
            folder = tmp_path / str(seed)
            folder.mkdir()
            _, trouble = await disagreement(make_case(seed), folder, provider)
            assert not trouble, (seed, trouble)
