"""The filters, walked through step by step as the kernel does: what becomes of each call, on both machines."""

import struct
from typing import Any

import pytest

from everturn.sandbox import seccomp

X86, ARM = 0xC000003E, 0xC00000B7
ALLOW, KILL, EPERM, ENOSYS, NO_FAMILY = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50061

# Written down a second time, from the kernel's own tables: what one table has wrong the other has not.
DANGEROUS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "unshare": (272, 97),
    "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41), "mount": (165, 40), "umount2": (166, 39),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "open_by_handle_at": (304, 265), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "memfd_create": (319, 279), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "syslog": (103, 116), "fanotify_init": (300, 262),
}  # fmt: skip
ORDINARY = {
    "read": (0, 63), "openat": (257, 56), "execve": (59, 221), "mmap": (9, 222), "socketpair": (53, 199),
    "connect": (42, 203), "kill": (62, 129), "wait4": (61, 260), "prctl": (157, 167), "pipe2": (293, 59),
}  # fmt: skip


def walk(program: bytes, number: int, *args: int, architecture: int = X86) -> int:
    """What the kernel would do with a call."""
    shown = struct.pack("<IIQ6Q", number, architecture, 0, *args, *([0] * (6 - len(args))))
    steps = list(struct.iter_unpack("<HBBI", program))
    accumulator = at = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("<I", shown, value)[0]
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(code)


MACHINES = pytest.mark.parametrize(("machine", "column", "architecture"), [("x86_64", 0, X86), ("aarch64", 1, ARM)])


@MACHINES
@pytest.mark.parametrize("name", DANGEROUS)
def test_a_dangerous_call_is_refused(name: str, machine: str, column: int, architecture: int) -> None:
    program = seccomp.shell_filter(machine)
    assert program is not None
    assert walk(program, DANGEROUS[name][column], architecture=architecture) == EPERM


@MACHINES
@pytest.mark.parametrize("name", ORDINARY)
def test_what_programs_live_on_is_let_through(name: str, machine: str, column: int, architecture: int) -> None:
    program = seccomp.shell_filter(machine)
    assert program is not None
    assert walk(program, ORDINARY[name][column], architecture=architecture) == ALLOW


@MACHINES
def test_what_a_call_is_given_decides_where_it_must(machine: str, column: int, architecture: int) -> None:
    program = seccomp.shell_filter(machine)
    assert program is not None
    clone, clone3, socket, ioctl = (
        numbers[column] for numbers in (seccomp.CLONE, seccomp.CLONE3, seccomp.SOCKET, seccomp.IOCTL)
    )
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert walk(program, clone, flag | 17, architecture=architecture) == EPERM
    assert walk(program, clone, 0x003D0F00, architecture=architecture) == ALLOW  # a thread
    assert walk(program, clone3, architecture=architecture) == ENOSYS
    assert [walk(program, socket, family, architecture=architecture) for family in (2, 10)] == [ALLOW, ALLOW]
    for family in (0, 1, 16, 17, 38, 40):
        assert walk(program, socket, family, architecture=architecture) == NO_FAMILY
    assert walk(program, ioctl, 0, 0x5412, architecture=architecture) == EPERM
    assert walk(program, ioctl, 0, 0x1_0000_5412, architecture=architecture) == EPERM  # the kernel reads 32 bits
    assert walk(program, ioctl, 0, 0x541C, architecture=architecture) == EPERM
    assert walk(program, ioctl, 0, 0x5401, architecture=architecture) == ALLOW


@pytest.mark.parametrize("make", [seccomp.shell_filter, seccomp.interpreter_filter])
def test_another_dialect_is_killed_and_calls_of_tomorrow_are_not_there(make: Any) -> None:
    program = make("x86_64")
    assert walk(program, 0, architecture=0x40000003) == KILL  # 32-bit: its 0 is another call
    assert walk(program, 0, architecture=ARM) == KILL
    assert walk(program, 0x40000000) == KILL  # x32
    assert walk(program, 467) in (ENOSYS, EPERM)  # open_tree_attr
    assert walk(program, 999) in (ENOSYS, EPERM)


@MACHINES
def test_an_interpreter_that_is_shut_in_can_only_compute(machine: str, column: int, architecture: int) -> None:
    program = seccomp.interpreter_filter(machine)
    assert program is not None
    allowed = {number for number in range(470) if walk(program, number, architecture=architecture) == ALLOW}
    assert allowed == {row[column] for row in seccomp.ALLOWED.values() if row[column] is not None}
    opened = {"openat": (257, 56), "socket": (41, 198), "clone": (56, 220), "execve": (59, 221), "kill": (62, 129)}
    reach = {
        **DANGEROUS,
        **opened,
        "ioctl": (16, 29),
        "prlimit64": (302, 261),
        "sendto": (44, 206),
        "tgkill": (234, 131),
    }
    assert not allowed & {row[column] for row in reach.values()}


def test_a_machine_nobody_has_thought_of_has_no_filter() -> None:
    assert seccomp.shell_filter("riscv64") is None
    assert seccomp.interpreter_filter("riscv64") is None
