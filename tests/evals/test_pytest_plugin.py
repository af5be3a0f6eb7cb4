"""The pytest plugin: datasets are collected, and a case that does not pass fails with its reasons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from everturn.evals import make_dataset
from everturn.stores.memory import MemoryStore
from tests.evals.shop import Shop, record_refund


async def project(folder: Path) -> Path:
    store = MemoryStore()
    await store.restore("refund", "local", (await record_refund(Shop("auto"))).events)
    await make_dataset(store, ["refund"], folder / "refunds")
    (folder / "conftest.py").write_text('pytest_plugins = ["everturn.evals.pytest_plugin"]\n')
    (folder / "deny.toml").write_text('[[permissions]]\ntool = "refund"\naction = "deny"\n')
    return folder


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


async def test_cases_are_tests(tmp_path: Path) -> None:
    folder = await project(tmp_path)
    passed = pytest_in(folder, "--eval-depth", "turn")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "1 passed" in passed.stdout
    failed = pytest_in(folder, "--eval-permissions", "deny.toml")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "would be denied" in failed.stdout
    assert "Traceback" not in failed.stdout


def test_a_file_that_does_not_exist_is_reported_before_a_case_runs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["everturn.evals.pytest_plugin"]\n')
    done = pytest_in(tmp_path, "--eval-system-file", "shorter.md")
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.strip() == "ERROR: --eval-system-file shorter.md: there is no such file"
