"""Bubblewrap sandbox: runs shell commands in their own namespaces behind a seccomp filter.

A command sees the programs of the system, an empty /tmp and, if configured, a folder at /work; it has no network, no
environment, no privileges and, where the server is root, a uid that nothing else uses.
"""

from __future__ import annotations

import asyncio
import os
import re
from functools import cached_property
from typing import Final

from msgspec import json

from everturn.core.canonical_json import JsonObject
from everturn.core.sandbox import SandboxReport, SandboxResult
from everturn.errors import ConfigError
from everturn.sandbox import bubblewrap_probe
from everturn.sandbox.bubblewrap_runner import BubblewrapRunner
from everturn.sandbox.process import run_in_thread

MAX_COMMAND_BYTES: Final = 100_000  # bytes of a command: the kernel takes 128 KiB as one argument
MAX_CONCURRENT_RUNS: Final = 8  # concurrent runs of one sandbox
SHELLS: Final = ("/bin/bash", "/bin/sh")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Bubblewrap(BubblewrapRunner):
    """Runs commands in bubblewrap, a limited number at once."""

    name = "bubblewrap"

    @cached_property
    def _places(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_CONCURRENT_RUNS)

    async def probe(self) -> SandboxReport:
        """Probe the guarantees."""
        return await asyncio.to_thread(bubblewrap_probe.check)

    async def run(
        self,
        code: str,
        *,
        stdin: str = "",
        arguments: JsonObject | None = None,
        seconds: float = 10.0,
        writes_git: bool = False,
    ) -> SandboxResult:
        """Run a command line in a shell; `arguments` are environment variables."""
        if len(code.encode(errors="replace")) > MAX_COMMAND_BYTES or "\0" in code:
            return SandboxResult(
                error=f"a command has at most {MAX_COMMAND_BYTES} bytes, and no NUL among them; put data into a file"
            )
        argv = (next(filter(os.path.exists, SHELLS), SHELLS[-1]), "-c", code)
        variables = _variables(arguments or {})
        async with self._places:
            return await run_in_thread(lambda stop: self.run_program(argv, stdin, variables, seconds, stop, writes_git))

    async def aclose(self) -> None:
        """Do nothing: there are no workers."""


def _variables(arguments: JsonObject) -> dict[str, str]:
    if wrong := [name for name in arguments if VARIABLE.fullmatch(name) is None]:
        raise ConfigError(f"{wrong[0]!r} is not a valid name for a shell variable: letters, digits and '_'")
    return {
        name: value.replace("\0", "") if isinstance(value, str) else json.encode(value).decode()
        for name, value in arguments.items()
    }
