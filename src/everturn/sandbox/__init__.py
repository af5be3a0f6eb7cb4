"""Sandboxes: where code runs that a model wrote.

Each backend is a class behind the port `core.sandbox.Sandbox`, and has a function `check() -> SandboxReport` that
probes once per process which guarantees hold on this machine: it blocks, for a second at most.

- `shell_sandbox`: what the sandboxes of shells have in common: the folder, its protected paths, runs
- `bubblewrap`: shell commands in Linux namespaces (bubblewrap)
- `bubblewrap_runner`: runs one program in bubblewrap, and blocks until it has ended
- `bubblewrap_args`: the command-line options of bubblewrap, and the limits of a run
- `bubblewrap_probe`: probes the guarantees of bubblewrap
- `seatbelt`: shell commands on macOS, under `sandbox-exec`, and the probe of its guarantees
- `seatbelt_profile`: the profile that says what such a command may do
- `hostile_probe`: the code that the probe runs inside, which tries to break out
- `resource_probes`: the code that the probe runs inside, which takes memory and disk
- `hidden_paths`: finds the paths of a folder that are hidden or read-only, and mounts them so
- `quarantine`: moves protected files away that a command created
- `seccomp`: system call filters
- `cgroups`: a memory and process limit for each run
- `disk`: a disk quota for each run
- `process`: reads the output of a process, with limits
- `fair_share`: limits how many runs one session has at once
- `monty`: Python in Monty, an interpreter without access to the machine
- `monty_values`: converts values of the interpreter to JSON
- `monty_probe`: probes the guarantees of Monty
- `quickjs_ng`: JavaScript in QuickJS
- `quickjs_worker`: the worker process of QuickJS
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, cast

from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxReport
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.sandbox.shell_sandbox import ShellSandbox

OPTIONAL_GUARANTEES: Final[Mapping[str, frozenset[Guarantee]]] = {
    "bubblewrap": frozenset({"memory"}),
    "seatbelt": frozenset({"processes", "memory", "disk", "cpu", "syscalls"}),
}
"""Backend → guarantees without which its tool is still offered, with a note: few machines delegate a cgroup to a
process, and macOS has nothing that could hold these.
"""


def check_shell() -> SandboxReport:
    """The guarantees of the sandbox for shells of this platform; the first call probes them."""
    if _is_macos():
        from everturn.sandbox import seatbelt

        return seatbelt.check()
    from everturn.sandbox import bubblewrap_probe

    return bubblewrap_probe.check()


def make_shell_sandbox(folder: str | os.PathLike[str] | None, **options: Any) -> ShellSandbox:
    """Make the sandbox for shells of this platform; both backends take the same options.

    Raises:
        ConfigError: the folder cannot be used.
    """
    if _is_macos():
        from everturn.sandbox.seatbelt import Seatbelt

        return Seatbelt(folder, **options)
    from everturn.sandbox.bubblewrap import Bubblewrap

    return Bubblewrap(folder, **options)


def _is_macos() -> bool:
    return sys.platform == "darwin"


def available_sandboxes() -> list[SandboxReport]:
    """The guarantees of each backend on this machine; the first call probes them, which blocks for about a second."""
    from everturn.sandbox import monty, quickjs_ng

    checks = (check_shell, monty.check, quickjs_ng.check)
    with ThreadPoolExecutor(len(checks)) as pool:  # each mostly waits for its own subprocesses
        return [future.result() for future in [pool.submit(check) for check in checks]]


def require_guarantees(
    tool: str,
    report: SandboxReport,
    needs: Collection[Guarantee] = GUARANTEES,
    allow_degraded: Collection[Guarantee] = (),
) -> dict[str, Any]:
    """What a tool reports about its sandbox in the metadata of its results.

    Raises:
        ConfigError: a needed guarantee does not hold here, and `allow_degraded` does not list it.
    """
    check_degraded(tool, allow_degraded)
    if reason := report.explain_missing(needs, allow_degraded):
        raise ConfigError(f"{tool} cannot be offered here: {reason}")
    return {
        "sandbox": f"{report.backend} {report.version}".strip(),
        "guarantees": [guarantee for guarantee in GUARANTEES if guarantee in report.holds],
    }


def check_degraded(tool: str, allow_degraded: Collection[Guarantee]) -> None:
    """Refuse unknown guarantees: a typing error would look like a decision."""
    guarantees = cast("Any", allow_degraded)
    if isinstance(guarantees, str) or not set(guarantees) <= set(GUARANTEES):
        raise ConfigError(
            f"{tool}: allow_degraded={guarantees!r}: must be a list of guarantees to do without: {', '.join(GUARANTEES)}"
        )
