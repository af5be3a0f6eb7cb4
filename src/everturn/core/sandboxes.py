"""Code that somebody else wrote → what became of it: the port behind which it runs, and what is promised of it there.

A promise is only what a probe has seen to hold on this machine, a moment ago; nothing is believed because a backend is
known for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

from everturn.core.canonical import JsonObject

Guarantee = Literal["files", "net", "env", "processes", "memory", "disk", "cpu", "syscalls"]
"""What code cannot do, get at or use up: files that it was not given, any network, the environment of the host,
processes (to see, to signal, to outlive its run in, or without number), memory (its own, and what the kernel
keeps for it), the disk of a folder that it may write to, time, and the dangerous calls of the kernel."""

GUARANTEES: Final[tuple[Guarantee, ...]] = get_args(Guarantee)

Killed = Literal["", "time", "memory", "disk", "output", "cancelled"]
"""Why a run was ended from outside; "": it was not."""


class Report(Struct, frozen=True):
    """What a backend guarantees here. It is `absent` if it is not here at all: why, and what to do about it."""

    backend: str
    version: str = ""
    holds: frozenset[Guarantee] = frozenset()
    missing: Mapping[Guarantee, str] = {}  # what does not hold, and why
    absent: str = ""
    seconds: float = 0.0  # that it took to find out

    def lacks(self, needs: Collection[Guarantee] = GUARANTEES, without: Collection[Guarantee] = ()) -> str:
        """Why code that `needs` these cannot run here, in a sentence; "": it can. `without`: what is done without."""
        if self.absent:
            return self.absent
        lost: list[Guarantee] = [
            one for one in GUARANTEES if one in needs and one not in without and one not in self.holds
        ]
        return "; ".join(f"{one}: {self.missing.get(one) or 'not probed'}" for one in lost)


class Ran(Struct, frozen=True):
    """What became of a run. `value` is what the code came to, where its language has such a thing."""

    exit: int | None = None  # None: it was killed, or there is no such number
    stdout: str = ""
    stderr: str = ""
    is_stdout_cut: bool = False
    is_stderr_cut: bool = False
    killed: Killed = ""
    value: object = None
    error: str = ""  # what the code failed with, where it did not say so itself


class Sandbox(Protocol):
    """Runs code so that all it can do is what its report does not exclude.

    A run that is cancelled is dead, with everything that it began, before the cancellation goes on.
    """

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    async def probe(self) -> Report:
        """Find out what holds here; the second time it is remembered."""
        ...

    async def run(
        self, code: str, *, stdin: str = "", arguments: JsonObject | None = None, seconds: float = 10.0
    ) -> Ran:
        """Run code, for at most so many seconds. What the code does wrong is in the answer, and raises nothing.

        Raises:
            ConfigError: the backend is not here.
        """
        ...

    async def aclose(self) -> None:
        """End what is kept ready for runs."""
        ...
