"""Monty probe: runs hostile code in a worker, with bait outside, to find out which guarantees hold on this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxReport

if TYPE_CHECKING:
    from pydantic_monty import Monty

PACKAGE: Final = "pydantic-monty"
ABSENT: Final = "Monty is not installed: pip install 'everturn[code]'"
MEMORY: Final = 16 << 20  # bytes that a probe may use
SECONDS: Final = 0.1

TRIES: Final[Mapping[Guarantee, tuple[str, ...]]] = {
    "files": (
        "open({canary!r}).read()",
        "from pathlib import Path\nPath({canary!r}).read_text()",
        "import os\nos.listdir({folder!r})",
        "open({written!r}, 'w').write('x')",
    ),
    "net": ("import socket\nsocket.socket()", "import urllib.request", "import http.client", "import ssl"),
    "env": ("import os\nos.environ[{variable!r}]", "import os\nos.getenv({variable!r})"),
    "processes": (
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.fork()",
        "import os\nos.system('true')",
        "import os\nos.kill({host}, 0)",
        "import threading",
        "import multiprocessing",
    ),
    "memory": ("len('x' * 640_000_000)", "x = []\nwhile True:\n    x.append('x' * 1_000_000)"),
    "disk": ("open({written!r}, 'a').write('x')", "from pathlib import Path\nPath({written!r}).write_text('x')"),
    "cpu": ("while True:\n    pass",),
    "syscalls": ("import ctypes", "import mmap", "import _posixsubprocess", "__import__('ctypes')"),
}
"""Each must fail; one that runs to its end has found a way out."""


def probe(tries: Mapping[Guarantee, tuple[str, ...]] = TRIES) -> SandboxReport:
    """Try everything, and report what held."""
    started = time.monotonic()
    try:
        import pydantic_monty as monty
    except ImportError:
        return SandboxReport("monty", absent=ABSENT)
    try:
        version = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        version = monty.__version__
    missing: dict[Guarantee, str] = {}
    try:
        with tempfile.TemporaryDirectory() as folder, monty.Monty(max_processes=1, checkout_timeout=5.0) as pool:
            bait = _bait(folder)
            with pool.checkout() as session:
                if session.feed_run("1 + 1") != 2:  # where nothing works, nothing leaks either
                    raise RuntimeError("it cannot count")
            for guarantee in GUARANTEES:
                for code in tries.get(guarantee, ()):
                    if trouble := _leak(pool, code.format(**bait), guarantee):
                        missing[guarantee] = trouble
                if Path(bait["written"]).exists():
                    missing["files"] = "a file was written"
    except (OSError, RuntimeError, monty.MontyError) as error:
        return SandboxReport(
            "monty", version, absent=f"Monty's worker does not start ({error}): {ABSENT.partition(': ')[2]}"
        )
    holds: frozenset[Guarantee] = frozenset(
        guarantee for guarantee in GUARANTEES if guarantee not in missing and tries.get(guarantee)
    )
    return SandboxReport("monty", version, holds, missing, seconds=time.monotonic() - started)


def _bait(folder: str) -> dict[str, Any]:
    canary = Path(folder, "canary")
    canary.write_text("canary", encoding="utf-8")
    variable = next((name for name in ("PATH", *os.environ) if os.environ.get(name)), "PATH")
    return {
        "canary": str(canary),
        "folder": folder,
        "written": str(Path(folder, "written")),
        "variable": variable,
        "host": os.getpid(),
    }


def _leak(pool: Monty, code: str, about: Guarantee) -> str:
    """What a try got access to; "": nothing, as it should be."""
    import pydantic_monty as monty

    started = time.monotonic()
    try:
        with pool.checkout(limits={"max_feed_duration_secs": SECONDS, "max_memory": MEMORY}) as session:
            session.feed_run(code, print_callback=monty.CollectString(1000))
    except monty.MontyError:
        took = time.monotonic() - started
        return f"it ran for {took:.1f} seconds, and was given {SECONDS}" if about == "cpu" and took > 5.0 else ""
    return f"this was not stopped: {code!r}"
