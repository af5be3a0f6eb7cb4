"""The tests of the bridges for evals, with the Python that `scripts/eval-bridges` made: here their libraries are not."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-eval-bridges"
pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


@pytest.mark.parametrize("library", ["pydantic_evals", "inspect"])
async def test_datasets_run_in_another_library(library: str) -> None:
    python = HOME / "bin/python"
    assert python.exists(), "there are no libraries to bridge to: run scripts/eval-bridges"
    tests = await asyncio.create_subprocess_exec(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
        f"tests/evals/bridges/test_{library}.py",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await tests.communicate()

    assert tests.returncode == 0, output.decode("utf-8", "replace")[-20_000:]
    assert b" passed" in output
    assert b" skipped" not in output
