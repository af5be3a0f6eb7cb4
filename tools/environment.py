"""Environment of the programs that a campaign or a test starts: they import `tools` from wherever they run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def child_environment(*first: Path) -> dict[str, str]:
    """The environment of this process, with the root of the repository, or other folders, first on the path of Python.

    Byte code is cached, as in an installed package: a program that compiles its imports takes seconds to start.
    """
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = [*map(str, first or (ROOT,)), *filter(None, [os.environ.get("PYTHONPATH")])]
    return known | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "everturn-bytecode"),
    }


def describe_load() -> str:
    """How busy this machine was: times that were measured on a busy machine are upper bounds."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[1]
    busy = (
        "Other programs ran at the same time, so times are upper bounds"
        if load > cores
        else "The machine was not overloaded"
    )
    return f"{busy}: load average {load:.0f} on {cores} cores."
