"""Plant every seeded bug in a copy of the source, run the test beside it, and print how many were caught."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.mutants.mutants import MUTANTS, Mutant  # noqa: E402


def plant(mutant: Mutant, where: Path) -> None:
    """Copy the source and plant one bug in it."""
    shutil.copytree(ROOT / "src", where, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    file = where / "everturn" / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise LookupError(f"{mutant.name}: {mutant.file} has the line {text.count(mutant.old)} times; mend the mutant")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def passes(test: str, source: Path) -> bool:
    """Whether a test passes on a source tree."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--timeout=10",
        "--timeout-method=thread",
        test,
    ]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def is_caught(mutant: Mutant) -> bool:
    """Whether the named test notices the bug (it passes without it: the ordinary test run sees to that)."""
    with tempfile.TemporaryDirectory() as folder:
        plant(mutant, Path(folder))
        return not passes(mutant.test, Path(folder))


def main() -> int:
    """Try all of them."""
    with ThreadPoolExecutor(2) as pool:
        caught = list(pool.map(is_caught, MUTANTS))
    for mutant, was_caught in zip(MUTANTS, caught, strict=True):
        print(f"{'caught ' if was_caught else 'MISSED '} {mutant.name}")
    print(f"{sum(caught)}/{len(MUTANTS)} caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
