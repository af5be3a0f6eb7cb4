"""Where code runs that a model wrote. Each backend is a module with a class behind the port `core.sandboxes.Sandbox`,
and a function `check() -> Report` that probes it once in a process: it blocks, for a second at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

from everturn.core.sandboxes import GUARANTEES, Guarantee, Report
from everturn.errors import ConfigError

NOT_NEEDED: Final[Mapping[str, frozenset[Guarantee]]] = {"bubblewrap": frozenset({"memory"})}
"""Backend → guarantees without which its tool is still offered, and says so: few machines give a cgroup to a process."""


def available() -> list[Report]:
    """What each backend guarantees on this machine; probed the first time, which blocks for about a second."""
    from everturn.sandbox import bubblewrap_probe, monty, quickjs_ng

    checks = (bubblewrap_probe.check, monty.check, quickjs_ng.check)
    with ThreadPoolExecutor(len(checks)) as pool:  # each mostly waits for processes of its own
        return [found.result() for found in [pool.submit(check) for check in checks]]


def promise(
    tool: str, report: Report, needs: Collection[Guarantee] = GUARANTEES, allow_degraded: Collection[Guarantee] = ()
) -> dict[str, Any]:
    """What a tool may say of where it runs, for the metadata of its results.

    Raises:
        ConfigError: what it needs does not hold here, and nobody has said that it is done without.
    """
    check_degraded(tool, allow_degraded)
    if reason := report.lacks(needs, allow_degraded):
        raise ConfigError(f"{tool} cannot be offered here: {reason}")
    return {
        "sandbox": f"{report.backend} {report.version}".strip(),
        "guarantees": [one for one in GUARANTEES if one in report.holds],
    }


def check_degraded(tool: str, allow_degraded: Collection[Guarantee]) -> None:
    """Refuse words that are no guarantees: a slip of the hand would look like a decision."""
    given = cast("Any", allow_degraded)
    if isinstance(given, str) or not set(given) <= set(GUARANTEES):
        raise ConfigError(f"{tool}: allow_degraded={given!r}: a list of what is done without: {', '.join(GUARANTEES)}")
