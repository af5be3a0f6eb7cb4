"""A restore may die anywhere: whoever goes on with it ends in the exact tree."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


async def test_a_restore_that_is_killed_at_any_point_ends_in_the_exact_tree_when_it_is_gone_on_with(
    tmp_path: Path,
) -> None:
    line = [sys.executable, "-m", "tests.snapshots.killed_restore_process", str(tmp_path)]
    done = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False, cwd=TOP)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 15, "it died often enough to mean something"
