"""Plant seeded bugs, run the test beside each, and print how many were caught.

python tests/mutants/run.py              all of them
python tests/mutants/run.py WORDS …      those whose name or file contains any of these words
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.mutants.mutants import MUTANTS, Mutant  # noqa: E402

# A new interpreter for each would spend nine tenths of its time on imports. Not `fork`: only a process that has no
# threads, and has not imported Everturn, may be copied.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.mutants.planting"])
BEGUN = b"begun\n"


def attempt(tests: Sequence[str], mutant: Mutant | None, log: str) -> None:
    """Run tests in this process, which is a copy of the server, and end it as pytest would."""
    output = os.open(log, os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(ROOT)
    code = 3
    try:
        from tests.mutants import planting  # compiles all of the source: in the server only

        os.write(1, BEGUN)
        code = planting.run(tests, mutant)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)  # what a bug has left running is not waited for


def passes(tests: Sequence[str], mutant: Mutant | None = None) -> bool:
    """Whether tests pass where a bug is planted, or where none is."""
    with tempfile.NamedTemporaryFile() as log:
        child = SERVER.Process(target=attempt, args=(tests, mutant, log.name))
        child.start()
        try:
            child.join()
        finally:
            child.kill()
        output = log.read()
    # A child that could not even begin ends with 1, too.
    if child.exitcode not in (0, 1) or not output.startswith(BEGUN):
        raise RuntimeError(f"{tests} did not run: {output[-2000:].decode('utf-8', 'replace')}")
    return child.exitcode == 0


def is_caught(mutant: Mutant) -> bool:
    """Whether the named test notices the bug."""
    return not passes([mutant.test], mutant)


def main() -> int:
    """Try all of them, or those that were named."""
    words = sys.argv[1:]
    chosen = [
        mutant for mutant in MUTANTS if not words or any(word in f"{mutant.path} {mutant.name}" for word in words)
    ]
    if not chosen:
        print(f"no seeded bug has a name or file with {' or '.join(words)}")
        return 2
    with ThreadPoolExecutor(2) as pool:
        caught = list(pool.map(is_caught, chosen))
    for mutant, was_caught in zip(chosen, caught, strict=True):
        print(f"{'caught ' if was_caught else 'MISSED '} {mutant.name}")
    print(f"{sum(caught)}/{len(chosen)} caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
