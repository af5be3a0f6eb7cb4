"""A text in the environment → what happens at which fault point: `{"log.StepFinished.after": {"nth": 2, "do": "kill"}}`.

A process is told its plan before it starts, in `EVERTURN_FAULTS`. The name of a point may be a pattern (`tool.*.before`).
With a `token`, a path, the fault happens once however many processes have the plan: to whoever makes that file first,
and the file says where, to whom and when.
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

from everturn import faults
from everturn.errors import ConfigError

VARIABLE = "EVERTURN_FAULTS"
EXIT_CODE = 86  # of a process that was told to exit: no other one ends with it by accident


class FaultInjected(Exception):
    """A plan said that this point fails."""


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens at a point: `trace` writes its name into `file`, each of the others happens the nth time only."""

    do: Literal["kill", "stop", "raise", "exit", "trace"]
    nth: int = 1
    token: str = ""
    file: str = ""


class Happened(Struct, frozen=True):
    """What a token holds."""

    point: str
    do: str
    pid: int
    at: float


class FaultPlan:
    """A plan, to be given to `faults.install`."""

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
            ConfigError: it is none, and the text says why.
        """
        try:
            return cls(msgspec.json.decode(text, type=dict[str, Fault]))
        except msgspec.DecodeError as error:
            raise ConfigError(f"{VARIABLE} is not a plan of faults: {error}") from None

    def __call__(self, point: str) -> None:
        """A point is reached."""
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
    """Whether nobody has taken the token yet; it is whole from the moment it is there, for somebody may be waiting."""
    if not fault.token:
        return True
    made = f"{fault.token}.{os.getpid()}"
    _append(made, msgspec.json.encode(Happened(point, fault.do, os.getpid(), time.time())).decode())
    try:
        os.link(made, fault.token)
    except FileExistsError:
        return False
    finally:
        os.unlink(made)
    return True


def read_token(path: str) -> Happened | None:
    """What happened, if it has."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Happened)
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
    """Follow the plan this process was given, if it was given one."""
    text = os.environ.get(VARIABLE, "")
    plan = FaultPlan.parse(text) if text else None
    faults.install(plan)
    return plan
