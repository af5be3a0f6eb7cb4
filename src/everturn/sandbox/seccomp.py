"""Seccomp filters: builds system call filters for the kernel (classic BPF, as `seccomp(2)` takes it).

There are two filters: one for a whole shell, which refuses calls that no program needs and exploits use; and one for an
interpreter that has loaded all it will ever load, which allows only memory, time, and reading and writing open files.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable
from typing import Final

ARCHITECTURES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
"""Machine → the column of the tables below, and the kernel's number for it."""

REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # large and often broken parts of the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41), "mount": (165, 40),
    "umount2": (166, 39), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    # the machine itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161),
    "setdomainname": (171, 162), "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None),
    "_sysctl": (156, None), "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
    "mbind": (237, 235), "set_mempolicy": (238, 237), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # memory that belongs to no process, so that no limit and no watch would see it
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
}  # fmt: skip

ALLOWED: Final[dict[str, tuple[int | None, int | None]]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "close": (3, 57), "fstat": (5, 80),
    "lseek": (8, 62), "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "madvise": (28, 233), "brk": (12, 214), "futex": (202, 98), "sched_yield": (24, 124), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132), "restart_syscall": (219, 128),
    "clock_gettime": (228, 113), "gettimeofday": (96, 169), "getrandom": (318, 278), "getpid": (39, 172),
    "gettid": (186, 178), "getrusage": (98, 165), "exit": (60, 93), "exit_group": (231, 94), "poll": (7, None),
    "ppoll": (271, 73), "membarrier": (324, 283), "rseq": (334, 293),
}  # fmt: skip

CLONE, CLONE3, SOCKET, IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
NEWEST: Final = 462  # later calls of the kernel do not exist here until we have reviewed them
NAMESPACES: Final = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
INET, INET6 = 2, 10
TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type into a terminal

_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS, _NO_FAMILY = 1, 38, 97
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in the data that the filter reads
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def shell_filter(machine: str | None = None) -> bytes | None:
    """A filter that allows everything but the refused calls; None: this machine is not supported."""
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    program = _opening(architecture)
    program += [_step(_AT_LEAST, NEWEST + 1, 0, 1), _give(_ERRNO | _ENOSYS)]
    program += [_step(_EQUAL, CLONE3[column], 0, 1), _give(_ERRNO | _ENOSYS)]  # a filter cannot read its flags
    for number in _numbers(REFUSED.values(), column):
        program += [_step(_EQUAL, number, 0, 1), _give(_ERRNO | _EPERM)]
    program += [
        _step(_EQUAL, CLONE[column], 0, 4), _load(_FIRST),
        _step(_ANY_BIT, NAMESPACES, 0, 1), _give(_ERRNO | _EPERM), _give(_ALLOW),
        # A socket in a shared folder would bypass every other protection, and the vsock family knows no
        # namespace; a pair of sockets is made by another call.
        _step(_EQUAL, SOCKET[column], 0, 5), _load(_FIRST),
        _step(_EQUAL, INET, 2, 0), _step(_EQUAL, INET6, 1, 0), _give(_ERRNO | _NO_FAMILY), _give(_ALLOW),
        _step(_EQUAL, IOCTL[column], 0, 4), _load(_SECOND),
        _step(_EQUAL, TERMINAL_INPUT[0], 1, 0), _step(_EQUAL, TERMINAL_INPUT[1], 0, 1), _give(_ERRNO | _EPERM),
        _give(_ALLOW),
    ]  # fmt: skip
    return b"".join(program)


def interpreter_filter(machine: str | None = None) -> bytes | None:
    """A filter that refuses everything but the allowed calls; None: this machine is not supported."""
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    program = _opening(architecture)
    for number in _numbers(ALLOWED.values(), column):
        program += [_step(_EQUAL, number, 0, 1), _give(_ALLOW)]
    return b"".join([*program, _give(_ERRNO | _EPERM)])


def _opening(architecture: int) -> list[bytes]:
    """Kill a process that uses another calling convention, in which the numbers mean other calls. Then load the
    number.
    """
    x32 = 0x40000000
    return [
        _load(_ARCHITECTURE), _step(_EQUAL, architecture, 1, 0), _give(_KILL),
        _load(_NUMBER), _step(_AT_LEAST, x32, 0, 1), _give(_KILL),
    ]  # fmt: skip


def _numbers(rows: Iterable[tuple[int | None, int | None]], column: int) -> list[int]:
    return [number for row in rows if (number := row[column]) is not None]


def _step(code: int, value: int, yes: int, no: int) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _load(at: int) -> bytes:
    return _step(_LOAD, at, 0, 0)


def _give(action: int) -> bytes:
    return _step(_RETURN, action, 0, 0)
