"""Fault plans: what happens at which fault point, as JSON: `{"log.StepFinished.after": {"nth": 2, "do": "kill"}}`.

A process gets its plan before it starts, in `EVERTURN_FAULTS`. The name of a point may be a pattern (`tool.*.before`).
With a `token`, a path, the fault happens once however many processes have the plan: in the process that creates that
file first, and the file records where, in which process and when.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
from msgspec import Struct

from everturn import failpoints
from everturn.errors import ConfigError

VARIABLE = "EVERTURN_FAULTS"
EXIT_CODE = 86  # of a process that a plan ended: no other one exits with it by accident


class FaultInjected(Exception):
    """A planned failure at a fault point."""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens at a point: `trace` writes its name into `file`, each of the others happens the nth time only."""

    do: Literal["kill", "stop", "raise", "exit", "trace"]
    nth: int = 1
    token: str = ""
    file: str = ""


class FaultRecord(Struct, frozen=True):
    """The content of a token."""

    point: str
    do: str
    pid: int
    at: float


class FaultPlan:
    """A plan, for `failpoints.install_plan`."""

    def __init__(self, planned: Mapping[str, Fault]) -> None:
        for point, fault in planned.items():
            if fault.do == "trace" and not fault.file:
                raise ConfigError(f"{point}: a trace needs a file to write into")
        self._planned = list(planned.items())
        self._seen = [0] * len(self._planned)

    @classmethod
    def parse(cls, text: str) -> FaultPlan:
        """Read a plan.

        Raises:
            ConfigError: it is invalid; the message says why.
        """
        try:
            return cls(msgspec.json.decode(text, type=dict[str, Fault]))
        except msgspec.DecodeError as error:
            raise ConfigError(f"{VARIABLE} is not a plan of faults: {error}") from None

    def __call__(self, point: str) -> None:
        """Process a fault point."""
        for at, (pattern, fault) in enumerate(self._planned):
            if pattern == point or fnmatchcase(point, pattern):
                self._seen[at] += 1
                if fault.do == "trace":
                    _append(fault.file, f"{point}\n")
                elif self._seen[at] == fault.nth and _is_first(fault, point):
                    _happen(fault, point)


def _append(file: str, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _is_first(fault: Fault, point: str) -> bool:
    """Whether this process takes the token; the file is complete from the moment it exists, because others may wait for
    it.
    """
    if not fault.token:
        return True
    temporary = f"{fault.token}.{os.getpid()}"
    _append(temporary, msgspec.json.encode(FaultRecord(point, fault.do, os.getpid(), time.time())).decode())
    try:
        os.link(temporary, fault.token)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def read_token(path: str) -> FaultRecord | None:
    """The recorded fault, if it has happened."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=FaultRecord)
    except FileNotFoundError:
        return None


def _happen(fault: Fault, point: str) -> None:
    match fault.do:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "exit":
            os._exit(EXIT_CODE)
        case "raise":
            raise FaultInjected(f"{point} fails, as planned")
        case "trace":
            pass


def install_from_environment() -> FaultPlan | None:
    """Install the plan of this process, if it has one."""
    text = os.environ.get(VARIABLE, "")
    plan = FaultPlan.parse(text) if text else None
    failpoints.install_plan(plan)
    return plan
