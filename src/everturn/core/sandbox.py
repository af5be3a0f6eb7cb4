"""Sandbox port: runs untrusted code, and reports which isolation guarantees hold on this machine.

A guarantee holds only if a probe has just verified it on this machine, not because a backend is known for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

from everturn.core.canonical_json import JsonObject

Guarantee = Literal["files", "net", "env", "processes", "memory", "disk", "cpu", "syscalls"]
"""What code cannot access or exhaust: files it was not given, any network, the host's environment, processes (to see,
to signal, to leave running, or in unlimited number), memory (its own, and what the kernel holds for it), the disk space
of a writable folder, CPU time, and dangerous system calls."""

GUARANTEES: Final[tuple[Guarantee, ...]] = get_args(Guarantee)

KillReason = Literal["", "time", "memory", "disk", "output", "cancelled"]
"""Why a run was killed; "": it was not."""


class SandboxReport(Struct, frozen=True):
    """What a backend guarantees on this machine. `absent` says why it is unavailable, and how to fix that."""

    backend: str
    version: str = ""
    holds: frozenset[Guarantee] = frozenset()
    missing: Mapping[Guarantee, str] = {}  # what does not hold, and why
    absent: str = ""
    seconds: float = 0.0  # that the probe took

    def explain_missing(self, needs: Collection[Guarantee] = GUARANTEES, without: Collection[Guarantee] = ()) -> str:
        """Why code that `needs` these guarantees cannot run here; "" if it can.

        `without`: guarantees that are waived.
        """
        if self.absent:
            return self.absent
        lost: list[Guarantee] = [
            guarantee
            for guarantee in GUARANTEES
            if guarantee in needs and guarantee not in without and guarantee not in self.holds
        ]
        return "; ".join(f"{guarantee}: {self.missing.get(guarantee) or 'not probed'}" for guarantee in lost)


class SandboxResult(Struct, frozen=True):
    """The result of a run. `value` is the value of the code, if its language has one."""

    exit: int | None = None  # None: it was killed, or the backend has no exit code
    stdout: str = ""
    stderr: str = ""
    is_stdout_cut: bool = False
    is_stderr_cut: bool = False
    killed: KillReason = ""
    value: object = None
    error: str = ""  # the failure of the code, if its output does not show it


class Sandbox(Protocol):
    """Runs code within the guarantees of its report.

    A cancelled run is dead, with every process it started, before the cancellation propagates.
    """

    @property
    def name(self) -> str:
        """The name in reports."""
        ...

    async def probe(self) -> SandboxReport:
        """Probe which guarantees hold here; the result is cached."""
        ...

    async def run(
        self, code: str, *, stdin: str = "", arguments: JsonObject | None = None, seconds: float = 10.0
    ) -> SandboxResult:
        """Run code, for at most so many seconds. Errors of the code are in the result and are not raised.

        Raises:
            ConfigError: the backend is unavailable.
        """
        ...

    async def aclose(self) -> None:
        """Stop processes that are kept ready for runs."""
        ...
