"""What the core costs those who only import it: processor time, and distributions."""

import math
import os
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

IMPORT_SECONDS = 0.15  # CPU, above a Python that imports nothing
DISTRIBUTIONS = 17  # everturn itself included, extras not
ROUNDS = 20  # at most; the least counts, for whatever else a machine does only adds
ENOUGH = 4  # rounds after which the yardstick is believed
HELP_SECONDS = 0.25  # CPU of `everturn --help`, Python itself included
BARE = 8.0  # the same, in Pythons that do nothing
YARDSTICKS = 4.5  # on a slow or busy machine: so many times `import asyncio` (3.3 to 4.2 were measured)

COST = """
import resource, sys
{statement}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, *sys.modules)
"""
FIRST = "from everturn import Chat, tool"
pytestmark = pytest.mark.timeout(240)  # it starts processes, and a machine may be busy
HEAVY = {"pydantic", "pydantic_core", "aiohttp", "httpx", "sqlalchemy", "sqlite3", "yaml", "rich", "pytest", "anyio"}


def cost_of(statement: str) -> tuple[float, set[str]]:
    """CPU seconds of a fresh process that runs a statement, and the modules it has loaded in the end.

    With its bytecode cached, as that of an installed package is, whatever the environment of the tests says.
    """
    run = [sys.executable, "-c", COST.format(statement=statement)]
    used, *modules = subprocess.run(run, capture_output=True, check=True, text=True, env=cached()).stdout.split()
    return float(used), set(modules)


def cached() -> dict[str, str]:
    known = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return known | {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"everturn-weight-{os.getpid()}")}


def cost_of_program(*words: str) -> float:
    """CPU seconds of a fresh Python, from its very beginning to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # which, unlike os.times(), does not count in hundredths
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True, env=cached())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
    cost_of(f"{FIRST}; import asyncio")  # fills the cache
    least, yardstick = math.inf, math.inf
    for number in range(1, ROUNDS + 1):
        least = min(least, cost_of(FIRST)[0] - bare)
        yardstick = min(yardstick, cost_of("import asyncio")[0] - bare)
        if least <= IMPORT_SECONDS or (number >= ENOUGH and least <= YARDSTICKS * yardstick):
            break

    assert least <= max(IMPORT_SECONDS, YARDSTICKS * yardstick)


@pytest.mark.parametrize("words", [("--help",), ("version",)], ids=" ".join)
def test_the_command_line_answers_at_once(words: tuple[str, ...]):
    cost_of_program("-m", "everturn", *words)  # fills the cache
    least, bare = math.inf, math.inf
    for _ in range(ROUNDS):
        least = min(least, cost_of_program("-m", "everturn", *words))
        bare = min(bare, cost_of_program("-c", "pass"))
        if least <= min(HELP_SECONDS, BARE * bare):
            break

    assert least <= HELP_SECONDS
    assert least <= BARE * bare


def test_the_package_itself_brings_nothing():
    _, modules = cost_of("import everturn")

    assert {module for module in modules if module.startswith("everturn")} == {"everturn", "everturn.version"}
    assert "msgspec" not in modules
    _, modules = cost_of("import everturn.cli, everturn.errors; everturn.cli._parser().format_help()")
    assert not {"msgspec", "asyncio", "json", "shtab", "everturn.chat", "everturn.core"} & modules


def test_importing_everturn_brings_nothing_heavy():
    _, modules = cost_of(FIRST)

    assert "everturn.chat" in modules
    assert not {module.partition(".")[0] for module in modules} & HEAVY


def test_the_core_needs_few_distributions():
    found = needed("everturn", set())

    assert {"everturn", "msgspec"} <= found
    assert len(found) <= DISTRIBUTIONS, sorted(found)
