"""Command-line options of bubblewrap: namespaces, mounts and environment of a sandboxed shell."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

MIB: Final = 1024 * 1024
WORK: Final = "/work"
HOME: Final = "/home/sandbox"
SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
FROM_ETC: Final = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/certs", "mime.types", "services",
    "protocols",
)  # fmt: skip
PROGRAMS: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
ENVIRONMENT: Final = {
    "PATH": PROGRAMS,
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


class ShellLimits(Struct, frozen=True):
    """How much one run may use; sizes in bytes."""

    memory: int = (
        512 * MIB
    )  # of all its processes together and of the kernel for them; without a cgroup only the former
    address_space: int = 512 * MIB  # of each process, enforced by the kernel; node reserves 8 GiB of it and uses little
    processes: int = 64
    open_files: int = 256
    file: int = 64 * MIB
    scratch: int = 64 * MIB  # of /tmp, the home, /dev/shm, and of /work where that is no folder: each
    disk: int = 2048 * MIB  # written to a writable folder, by one run
    disk_files: int = 200_000  # created or changed there, by one run
    free: int = 256 * MIB  # that stay free on that disk; a run that uses them is killed
    keep: int = 200_000  # of each of stdout and stderr
    flood: int = 16 * MIB  # written in all, after which it is killed


NAMESPACES: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try",
    "--hostname", "sandbox", "--die-with-parent", "--new-session",
)  # fmt: skip


def bubblewrap_options(
    folder: str | int | None,
    *,
    writable: bool,
    read_only: Sequence[str],
    limits: ShellLimits,
    variables: Mapping[str, str],
) -> list[str]:
    """Namespaces, mounts and environment. The root is made read-only last: until then mounts are added to it.

    `folder` is a path, or an open file descriptor.
    """

    def scratch(*places: str) -> list[str]:
        return [word for place in places for word in ("--size", str(limits.scratch), "--tmpfs", place)]

    words = [*NAMESPACES, "--ro-bind", "/usr", "/usr"]
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for name in FROM_ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", *scratch("/dev/shm"), "--remount-ro", "/dev"]
    words += scratch("/tmp", HOME)
    for path in read_only:
        words += ["--ro-bind", path, path]
    if folder is None:
        words += scratch(WORK)
    else:
        how = ("--bind" if writable else "--ro-bind") + ("-fd" if isinstance(folder, int) else "")
        words += [how, str(folder), WORK]
    words += ["--chdir", WORK]
    for name, value in {**ENVIRONMENT, **variables}.items():
        words += ["--setenv", name, value]
    return [*words, "--remount-ro", "/"]


def prlimit_command(limiter: str, limits: ShellLimits, seconds: float) -> list[str]:
    """The program in front of the command that sets the limits of each process.

    It runs inside: there the number of processes is counted for this sandbox alone, outside for all that the same user
    runs; and the root of a container mostly may not set limits of another user's process.
    """
    numbers = {
        "as": limits.address_space, "nproc": limits.processes, "nofile": limits.open_files, "fsize": limits.file,
        "cpu": max(1, int(seconds) + 1), "core": 0, "memlock": 0,
    }  # fmt: skip
    return [limiter, *(f"--{name}={number}:{number}" for name, number in numbers.items()), "--"]


def passwd_files(uid: int, gid: int) -> tuple[str, str]:
    """The users and groups that exist inside: one of each."""
    return f"sandbox:x:{uid}:{gid}::{HOME}:/bin/sh\n", f"sandbox:x:{gid}:\n"
