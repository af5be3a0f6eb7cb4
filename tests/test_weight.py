"""What the core costs those who only import it: processor time, and distributions."""

import math
import os
import subprocess
import sys
import tempfile
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

IMPORT_SECONDS = 0.15  # CPU, above a Python that imports nothing
DISTRIBUTIONS = 16  # everturn itself included, extras not
ROUNDS = 8  # at most; the least counts, for whatever else a machine does only adds
YARDSTICKS = 3.5  # on a slow or busy machine, where seconds say little: so many times `import asyncio`

COST = """
import resource, sys
{statement}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, *sys.modules)
"""
HEAVY = {"pydantic", "pydantic_core", "aiohttp", "httpx", "sqlalchemy", "sqlite3", "yaml", "rich", "pytest", "anyio"}


def cost_of(statement: str) -> tuple[float, set[str]]:
    """CPU seconds of a fresh process that runs a statement, and the modules it has loaded in the end.

    With its bytecode cached, as that of an installed package is, whatever the environment of the tests says.
    """
    run = [sys.executable, "-c", COST.format(statement=statement)]
    cached = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    cached["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / f"everturn-weight-{os.getpid()}")
    used, *modules = subprocess.run(run, capture_output=True, check=True, text=True, env=cached).stdout.split()
    return float(used), set(modules)


def needed(name: str, known: set[str]) -> set[str]:
    """A distribution and everything it cannot be installed without, here."""
    name = name.lower().replace("_", "-")
    if name not in known:
        known.add(name)
        for line in requires(name) or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                needed(wanted.name, known)
    return known


def test_importing_everturn_is_cheap():
    bare = min(cost_of("")[0] for _ in range(3))
    cost_of("import everturn, asyncio")  # fills the cache
    least, yardstick = math.inf, math.inf
    for _ in range(ROUNDS):
        least = min(least, cost_of("import everturn")[0] - bare)
        yardstick = min(yardstick, cost_of("import asyncio")[0] - bare)
        if least <= IMPORT_SECONDS:
            break

    assert least <= max(IMPORT_SECONDS, YARDSTICKS * yardstick)


def test_importing_everturn_brings_nothing_heavy():
    _, modules = cost_of("import everturn")

    assert "everturn.chat" in modules
    assert not {module.partition(".")[0] for module in modules} & HEAVY


def test_the_core_needs_few_distributions():
    found = needed("everturn", set())

    assert {"everturn", "msgspec"} <= found
    assert len(found) <= DISTRIBUTIONS, sorted(found)
