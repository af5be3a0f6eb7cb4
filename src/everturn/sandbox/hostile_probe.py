"""Hostile probe: code that runs inside a sandbox and reports as JSON what it could do.

It is passed as text to a Python inside, so it uses only the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

EVERYWHERE = ("/", "/usr", "/etc", "/dev", "/proc", "/usr/bin", "/var", "/root")


def succeeds(attempt: Callable[[], object]) -> bool:
    """Whether something that should fail succeeds."""
    try:
        attempt()
    except Exception:
        return False
    return True


def read(path: str) -> str:
    """The content of a file, if it can be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(100_000)
    except OSError:
        return ""


def write(folder: str) -> bool:
    """Whether a file can be created there."""
    return succeeds(lambda: os.close(os.open(f"{folder}/everturn-probe", os.O_CREAT | os.O_WRONLY)))


def connect(family: int, kind: int, address: Any) -> bool:
    """Whether data can be sent there; whether it arrives is checked on the host."""
    try:
        with socket.socket(family, kind) as connection:
            connection.settimeout(0.2)
            connection.connect(address)
            connection.send(b"everturn-probe")
    except OSError:
        return False
    return True


def environments() -> list[str]:
    """The names of all environment variables of all visible processes."""
    names = set(os.environ)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        names |= {pair.partition("=")[0] for pair in read(f"/proc/{pid}/environ").split("\0") if pair}
    return sorted(names)


def forks(most: int) -> int:
    """How many processes can be started at once."""
    children: list[int] = []
    try:
        while len(children) < most:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return len(children)


def calls(numbers: dict[str, int]) -> list[str]:
    """Those of these system calls that reach the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    seen: list[str] = []
    for name, number in numbers.items():
        # Invalid on purpose: a kernel that reads such arguments rejects them and does nothing.
        wrong = (0,) if name == "ptrace" else (-1, 0, 0, 0, 0)
        if name == "clone":
            wrong = (0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)  # CLONE_NEWUSER
        answer = libc.syscall(number, *(ctypes.c_long(value) for value in wrong))
        if answer == 0 and name == "clone":
            os._exit(0)
        if answer != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            seen.append(name)
    return seen


def families(numbers: list[int]) -> list[int]:
    """Those of these socket families that can be created."""
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
    return [each for each in numbers if any(succeeds(lambda: socket.socket(each, kind).close()) for kind in kinds)]  # noqa: B023


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Try everything."""
    status = read("/proc/self/status")
    found: dict[str, Any] = {
        "read": [path for path in request["secrets"] if read(path)],
        "passwd": read("/etc/passwd").count("\n"),
        "written": [folder for folder in EVERYWHERE if write(folder)],
        "open": [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")],
        "interfaces": [line.partition(":")[0].strip() for line in read("/proc/net/dev").splitlines() if ":" in line],
        "families": families(request["families"]),
        "connected": [
            name
            for name, family, kind, address in (
                ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", request["tcp"])),
                ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", request["udp"])),
                ("unix", socket.AF_UNIX, socket.SOCK_STREAM, request["unix"]),
                ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + request["abstract"]),
            )
            if connect(family, kind, address) and name != "udp"
        ],
        "variables": environments(),
        "processes": len([pid for pid in os.listdir("/proc") if pid.isdigit()]),
        "signalled": request["host"] != os.getpid() and succeeds(lambda: os.kill(request["host"], 0)),
        "memory": succeeds(lambda: mmap.mmap(-1, request["memory"]).close()),
        "scratch": {
            path: os.statvfs(path).f_blocks * os.statvfs(path).f_frsize
            for path in ("/tmp", "/dev/shm", "/home/sandbox")
        },
        "cpu": resource.getrlimit(resource.RLIMIT_CPU)[1],
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "filtered": "Seccomp:\t2" in status,
        "privileges": "CapEff:\t0000000000000000" not in status or "NoNewPrivs:\t1" not in status,
        "calls": calls(request["calls"]),
        "forks": forks(request["forks"]),
    }
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
