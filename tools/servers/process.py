"""Server processes of a test: they can be killed, restarted and measured, and never outlive the test.

A small watchdog waits at a pipe whose other end only the test process holds. However the test ends, normally or by
`kill -9`, the pipe closes; the watchdog then ends the server and removes its files. Leaving the context takes the same
path.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from everturn.errors import ConfigError

PATIENCE = 30.0  # seconds a server has to start or to stop; a loaded machine needs many
GLANCE = 0.01  # seconds between two checks
LOOKS = 20  # at most, at a process family in which a process dies each time

# It receives the process id of the server, a line at each start, and an empty line when it has stopped.
_WATCHDOG = """
trap '' INT TERM HUP
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
    kill -CONT "$pid"; kill -QUIT "$pid"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do kill -0 "$pid" || break; sleep 0.1; done
    kill -KILL "$pid"
fi 2>/dev/null
cd "$1" 2>/dev/null && eval "$2" >/dev/null 2>&1
cd / && rm -rf "$1"
"""


def free_port() -> int:
    """A free port of the loopback.

    It is below the range of ephemeral ports: a client that connects again and again to a port of that range while its
    server is down would, one time in thirty thousand, be connected to itself.
    """
    for port in random.sample(range(15_000, 32_000), 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise ConfigError("there is no free port on the loopback between 15000 and 32000")


class ProcessFamily(Struct, frozen=True):
    """A process and its living descendants, and the processor seconds that they and their dead descendants have
    used.
    """

    pids: tuple[int, ...]
    seconds: float


class _Stat(NamedTuple):
    parent: int
    own: int
    buried: int  # processor time of its dead children


_NONE = _Stat(0, 0, 0)


def process_family(pid: int) -> ProcessFamily:
    """The process family of a process."""
    found, family = _family(pid)
    for _ in range(LOOKS):
        # A process that died between the reads of its parent and itself would be counted with neither.
        if all(_stat(member, found[member]).buried == found[member].buried for member in family):
            break
        found, family = _family(pid)
    ticks = sum(found[member].own + found[member].buried for member in family)
    return ProcessFamily((pid, *(member for member in family if member != pid)), ticks / os.sysconf("SC_CLK_TCK"))


def _family(pid: int) -> tuple[dict[int, _Stat], list[int]]:
    found = _look()
    family = [pid] if pid in found else []
    for member in family:
        family += [child for child, stat in found.items() if stat.parent == member]
    return found, family


def _look() -> dict[int, _Stat]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return {pid: stat for pid in pids if (stat := _stat(pid, _NONE)) is not _NONE}


def _stat(pid: int, otherwise: _Stat) -> _Stat:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return otherwise
    fields = text.rpartition(")")[2].split()  # the name in brackets may contain anything, brackets too
    own, buried = (sum(map(int, fields[at : at + 2])) for at in (11, 13))
    return _Stat(int(fields[1]), own, buried)


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"  # its exit status has not been collected, but it has ended


class ServerProcess:
    """A server that only this test uses."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._daemon.pid

    async def start(self) -> None:
        """Start it, and return once it accepts connections."""
        await self._daemon.start(self._is_ready)

    async def stop(self) -> None:
        """Shut it down."""
        await self._daemon.stop(signal.SIGTERM)

    async def restart(self) -> None:
        """Shut it down and start it again, on the same ports and with the same files."""
        await self.stop()
        await self.start()

    def kill9(self) -> None:
        """Kill it and all its descendants; `start` starts it again."""
        self._daemon.kill9()

    def cpu(self) -> float:
        """Processor seconds all its processes have used."""
        return self._daemon.cpu()

    def _is_ready(self) -> bool:
        raise NotImplementedError


class Daemon:
    """One server: a command that is started, stopped, killed and started again in one home directory."""

    def __init__(self, name: str, command: Sequence[str], home: Path, log: Path, farewell: str = "") -> None:
        """`farewell` is a shell command that runs in the home directory before that is removed."""
        self.name, self.command, self.home, self.log = name, list(command), home, log
        self._process: subprocess.Popen[bytes] | None = None
        self._spent = 0.0
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(home), farewell],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at the terminal is for the test
        )

    @property
    def pid(self) -> int:
        """The process, while it runs."""
        if self._process is None:
            raise ConfigError(f"{self.name} does not run; start it first")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def cpu(self) -> float:
        """Processor seconds since the first start, all its processes together."""
        return self._spent + (process_family(self._process.pid).seconds if self._process is not None else 0.0)

    async def start(self, is_ready: Callable[[], bool]) -> None:
        """Start it, and return once it is ready.

        Raises:
            ConfigError: it ended instead, or took too long; with the end of its log.
        """
        if self.is_running:
            return
        self._process = process = self._spawn()
        self._tell(str(process.pid))
        until = time.monotonic() + PATIENCE
        while not is_ready():
            if process.poll() is not None or time.monotonic() > until:
                tail = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise ConfigError(f"{self.name} did not start; the end of {self.log}:\n{tail}")
            await asyncio.sleep(GLANCE)

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    async def stop(self, how: int = signal.SIGTERM) -> None:
        """End it with a signal, and return once it is gone."""
        process = self._process
        if process is None:
            return
        self._spent = self.cpu()
        process.send_signal(signal.SIGCONT)  # a stopped process does not receive the signal
        process.send_signal(how)
        until = time.monotonic() + PATIENCE
        while process.poll() is None:
            if time.monotonic() > until:
                process.kill()
            await asyncio.sleep(GLANCE)
        self._forget()

    def kill9(self) -> None:
        """Kill it and all its descendants, as a power cut would."""
        if self._process is None:
            return
        family = process_family(self._process.pid)
        self._spent += family.seconds
        for pid in family.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        while not all(map(_is_gone, family.pids)):  # a process that is still exiting holds files and memory
            time.sleep(0.001)
        self._forget()

    async def close(self) -> None:
        """Stop it, and remove everything of it."""
        try:
            await self.stop(signal.SIGQUIT)
        finally:
            if self._process is not None:  # cancelled while it was ending
                self.kill9()
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            await asyncio.to_thread(self._watchdog.wait)

    def _forget(self) -> None:
        self._process = None
        self._tell("")

    def _tell(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(line.encode() + b"\n")
        self._watchdog.stdin.flush()
