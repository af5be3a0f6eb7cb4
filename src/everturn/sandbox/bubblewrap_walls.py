"""What a shell may see → the options of bubblewrap that show it that, and nothing else."""

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


class Limits(Struct, frozen=True):
    """How much one run may use; sizes in bytes."""

    memory: int = (
        512 * MIB
    )  # of all its processes together and of the kernel for them; without a cgroup only the former
    address_space: int = 512 * MIB  # of each process, held by the kernel; node wants 8 GiB of it and uses little
    processes: int = 64
    open_files: int = 256
    file: int = 64 * MIB
    scratch: int = 64 * MIB  # of /tmp, its home, /dev/shm, and of /work where that is no folder: each
    disk: int = 2048 * MIB  # taken in a folder that can be written to, by one run
    disk_files: int = 200_000  # made or changed there, by one run
    free: int = 256 * MIB  # that are left on that disk, or a run which takes of them is ended
    keep: int = 200_000  # of each of stdout and stderr
    flood: int = 16 * MIB  # written in all, after which it is killed


NAMESPACES: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try",
    "--hostname", "sandbox", "--die-with-parent", "--new-session",
)  # fmt: skip


def options(
    folder: str | int | None, *, writable: bool, read_only: Sequence[str], limits: Limits, variables: Mapping[str, str]
) -> list[str]:
    """Namespaces, mounts and environment. The root comes last: until then it is being furnished.

    `folder` is a path, or the number under which it is open.
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


def limited(limiter: str, limits: Limits, seconds: float) -> list[str]:
    """The program in front of the command that sets limits for each process that comes of it.

    It is run inside: the number of processes is counted there for this sandbox alone, out here for all that the same
    user runs; and to set limits of another user's process a container's root has mostly not the right.
    """
    numbers = {
        "as": limits.address_space, "nproc": limits.processes, "nofile": limits.open_files, "fsize": limits.file,
        "cpu": max(1, int(seconds) + 1), "core": 0, "memlock": 0,
    }  # fmt: skip
    return [limiter, *(f"--{name}={number}:{number}" for name, number in numbers.items()), "--"]


def passwd(uid: int, gid: int) -> tuple[str, str]:
    """The users and groups there are inside: one of each."""
    return f"sandbox:x:{uid}:{gid}::{HOME}:/bin/sh\n", f"sandbox:x:{gid}:\n"
