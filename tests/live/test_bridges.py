"""The tests of the bridges, with the Python that `scripts/bridges` made: here their libraries are not installed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-bridges"
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


@pytest.mark.parametrize("library", ["pydantic_ai", "litellm"])
async def test_a_bridge_keeps_the_contract_of_a_model(library: str) -> None:
    python = HOME / "bin/python"
    assert python.exists(), "there are no libraries to bridge to: run scripts/bridges"
    tests = await asyncio.create_subprocess_exec(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-m", "not long"),
        "--hypothesis-profile=quick",  # our own formats are looked at more closely, by the same tests
        f"tests/models/bridges/test_{library}.py",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await tests.communicate()

    assert tests.returncode == 0, output.decode("utf-8", "replace")[-20_000:]
    assert b" passed" in output
