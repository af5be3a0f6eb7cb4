"""Hostile code against the shell's sandbox: everything it could find is really there, and it finds nothing."""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.core.sandbox import GUARANTEES, SandboxResult
from everturn.errors import ConfigError
from everturn.sandbox import bubblewrap_probe
from everturn.sandbox.bubblewrap import Bubblewrap
from everturn.sandbox.bubblewrap_args import MIB, ShellLimits
from everturn.sandbox.bubblewrap_runner import UID

pytestmark = pytest.mark.live
PYTHON = next(path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(path))
SMALL = ShellLimits(
    memory=256 * MIB, address_space=256 * MIB, processes=32, scratch=8 * MIB, file=4 * MIB, keep=50_000, flood=2 * MIB
)


def inside(
    code: str, *args: object, limits: ShellLimits = SMALL, seconds: float = 20, **choices: object
) -> SandboxResult:
    """Run Python in there."""
    argv = [PYTHON, "-I", "-S", "-c", "import os, sys, socket, ctypes, signal\n" + code, *map(str, args)]
    return Bubblewrap(limits=limits, **choices).run_program(argv, seconds=seconds)  # type: ignore[arg-type]


def attempt(code: str, *args: object) -> str:
    """What a line of hostile code says: "in" if it got what it wanted, or the error it was met with."""
    lines = "\n".join("    " + line for line in code.splitlines())
    ran = inside(f"try:\n{lines}\n    print('in')\nexcept BaseException as e: print(type(e).__name__)", *args)
    assert ran.exit == 0, ran
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path("/var/tmp", f"everturn-{secrets.token_hex(8)}")  # not in /tmp, which is only hidden
    folder.mkdir(mode=0o755)
    (folder / "canary").write_text("secret")
    (folder / "canary").chmod(0o644)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.mark.parametrize("path", ["{folder}/canary", "/etc/shadow", "/etc/hostname", "/etc/hosts", "/root/.bashrc"])
def test_no_file_of_the_host_is_found(path: str, folder: Path) -> None:
    assert attempt("open(sys.argv[1]).read()", path.format(folder=folder)) in ("FileNotFoundError", "PermissionError")


def test_the_users_of_the_host_are_not_told() -> None:
    assert inside("print(open('/etc/passwd').read())").stdout.count(":x:") == 1
    assert inside("print(os.path.exists(sys.argv[1]))", __file__).stdout == "False\n"


@pytest.mark.parametrize(
    "place", ["/", "/usr", "/usr/bin", "/etc", "/dev", "/home", "/lib", "/proc", "/proc/sys/kernel"]
)
def test_nothing_can_be_written_outside_of_what_is_scratch(place: str) -> None:
    assert attempt(f"open('{place}/x', 'w')") in ("OSError", "PermissionError", "FileNotFoundError")


def test_what_is_the_systems_is_mounted_for_reading() -> None:
    code = "print([p for p in ('/', '/usr', '/dev', '/etc/passwd') if not os.statvfs(p).f_flag & os.ST_RDONLY])"
    assert inside(code).stdout == "[]\n"


def test_no_open_file_is_inherited(folder: Path) -> None:
    with open(folder / "canary", encoding="utf-8") as file:
        os.set_inheritable(file.fileno(), True)
        code = "print(sorted(int(f) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)))"
        assert inside(code).stdout == "[0, 1, 2]\n"


@pytest.mark.parametrize("kind", ["tcp", "udp", "unix", "abstract"])
def test_no_listener_is_reached(kind: str, folder: Path) -> None:
    name = "\0" + secrets.token_hex(8) if kind == "abstract" else str(folder / secrets.token_hex(4))
    family = socket.AF_INET if kind in ("tcp", "udp") else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0) if family == socket.AF_INET else name)
        if kind != "udp":
            server.listen()
        if kind == "unix":
            os.chmod(name, 0o777)
        address = server.getsockname()
        code = f"s = socket.socket({int(family)}, {int(server.type)})\ns.connect({address!r})\ns.send(b'out')"
        outcome = attempt(code)
        assert outcome == "in" if kind == "udp" else outcome != "in"  # to nobody, on a loopback of its own
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.recv(1) if kind == "udp" else server.accept()


def test_not_even_a_socket_in_the_folder_that_it_was_given(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "door"))
        os.chmod(folder / "door", 0o777)
        server.listen()
        result = inside("socket.socket(socket.AF_UNIX).connect('/work/door')", folder=folder)
        assert result.exit == 1
        assert "Address family not supported" in result.stderr


def test_there_is_no_way_out_but_a_loopback() -> None:
    assert inside("print(open('/proc/net/dev').read().count(':'))").stdout == "1\n"
    assert attempt("socket.create_connection(('1.1.1.1', 80), 1)") == "OSError"
    assert attempt("socket.getaddrinfo('example.com', 80)") == "gaierror"


def test_no_environment_is_seen_not_even_that_of_the_first_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "do-not-tell")
    code = """
for pid in filter(str.isdigit, os.listdir('/proc')):
    print(open(f'/proc/{pid}/environ').read(), open(f'/proc/{pid}/cmdline').read())
print(os.environ)"""
    ran = inside(code)
    assert ran.exit == 0
    assert "CANARY" not in ran.stdout
    assert "HOME=/home/sandbox" in ran.stdout


def test_the_paths_of_the_host_are_not_told(folder: Path) -> None:
    ran = inside(
        "print([open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()])", folder=folder
    )
    assert "bwrap" in ran.stdout
    assert str(folder) not in ran.stdout


def test_processes_can_be_made_up_to_a_number_which_is_of_this_sandbox_alone() -> None:
    code = """
n = 0
try:
    while n < 200:
        if os.fork() == 0: signal.pause()
        n += 1
except OSError: pass
print(n, flush=True)
import time; time.sleep(0.3)"""
    counts: list[int] = []
    both = [threading.Thread(target=lambda: counts.append(int(inside(code).stdout))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert all(20 <= count <= SMALL.processes for count in counts), counts


def test_no_process_of_the_host_is_seen_or_signalled() -> None:
    identity = {"user": UID, "group": UID, "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(["/bin/sleep", "60"], **identity) as victim:  # type: ignore[call-overload]
        try:
            assert attempt("os.kill(int(sys.argv[1]), 9)", victim.pid) == "ProcessLookupError"
            assert attempt("os.kill(-1, 9)") in ("in", "ProcessLookupError")
            assert victim.poll() is None
            assert int(inside("print(len([p for p in os.listdir('/proc') if p.isdigit()]))").stdout) <= 4
        finally:
            victim.kill()


DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        import time
        while True:
            open('/work/alive', 'w').write(str(time.time()))
            time.sleep(0.02)
    os._exit(0)
import time
while not os.path.exists('/work/alive'): time.sleep(0.01)
"""


@pytest.fixture
def ours(folder: Path) -> Path:
    """A folder that may be written to."""
    subfolder = folder / secrets.token_hex(4)
    subfolder.mkdir()
    if os.geteuid() == 0:
        os.chown(subfolder, UID, UID)
    return subfolder


def test_a_daemon_dies_with_its_run(ours: Path) -> None:
    ran = inside(DAEMON, folder=ours, writable=True)
    assert ran.exit == 0
    before = (ours / "alive").read_text()
    time.sleep(0.2)
    assert (ours / "alive").read_text() == before


async def test_a_run_that_is_cancelled_is_dead_with_all_that_it_began(ours: Path) -> None:
    sandbox = Bubblewrap(ours, writable=True, limits=SMALL)
    command = "(trap '' TERM; while :; do date +%s%N > alive; sleep 0.02; done) & while :; do sleep 1; done"
    task = asyncio.create_task(sandbox.run(command, seconds=60))
    while not (ours / "alive").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = (ours / "alive").read_text()
    await asyncio.sleep(0.2)
    assert (ours / "alive").read_text() == before


def test_a_command_dies_with_the_server(ours: Path) -> None:
    code = f"""
from everturn.sandbox.bubblewrap import Bubblewrap
Bubblewrap({str(ours)!r}, writable=True).run_program(
    ["/bin/sh", "-c", "while :; do date +%s%N > alive; sleep 0.02; done"], seconds=50)"""
    with subprocess.Popen([sys.executable, "-c", code]) as server:
        while not (ours / "alive").exists():
            assert server.poll() is None
            time.sleep(0.01)
        server.kill()
    time.sleep(0.2)
    before = (ours / "alive").read_text()
    time.sleep(0.2)
    assert (ours / "alive").read_text() == before


@pytest.mark.parametrize(
    "code",
    [
        "b = bytearray(640 << 20)",
        "import mmap; m = mmap.mmap(-1, 640 << 20); m.write(b'x' * (640 << 20))",
        "l = []\nwhile sum(map(len, l)) < 640 << 20: l.append(bytearray(1 << 20))",
    ],
)
def test_one_process_has_no_more_memory_than_it_may(code: str) -> None:
    ran = inside(code)
    assert ran.exit != 0 or ran.killed == "memory"


def test_where_an_address_space_may_be_large_what_is_used_of_it_may_not() -> None:
    code = "l = []\nwhile sum(map(len, l)) < 2000 << 20: l.append(bytearray(b'x') * (1 << 20))"
    assert inside(code, limits=replace(SMALL, address_space=1 << 40)).killed == "memory"


def test_many_processes_have_no_more_memory_together_than_one_may() -> None:
    code = """
import time
for _ in range(6):
    if os.fork() == 0:
        b = bytearray(100 << 20)
        for at in range(0, len(b), 4096): b[at] = 1
        time.sleep(30)
        os._exit(0)
time.sleep(30)"""
    ran = inside(code, seconds=25)
    assert ran.killed == "memory"


def test_memory_cannot_be_hidden_in_files_or_in_the_kernel() -> None:
    for place in ("/tmp", "/dev/shm", "/home/sandbox", "/work"):
        code = f"for n in range(9): open('{place}/' + str(n), 'wb').write(bytes(3 << 20))"
        assert attempt(code) == "OSError"
    assert attempt("open('/tmp/x', 'wb').write(bytes(6 << 20))") == "OSError"  # SIGXFSZ is ignored by Python
    assert attempt("os.memfd_create('x')") == "PermissionError"


def test_a_loop_and_a_sleep_are_ended_and_so_is_one_that_has_closed_its_output() -> None:
    for command in ("while :; do :; done", "sleep 30", "exec >&- 2>&-; sleep 30", "trap '' TERM INT HUP; sleep 30"):
        ran = Bubblewrap(limits=SMALL).run_program(["/bin/bash", "-c", command], seconds=0.3)
        assert (ran.exit, ran.killed) == (None, "time"), command


def test_processor_time_is_limited_by_the_kernel_too() -> None:
    ran = inside("import resource as r; print(r.getrlimit(r.RLIMIT_CPU), r.getrlimit(r.RLIMIT_CORE))", seconds=7)
    assert ran.stdout == "(8, 8) (0, 0)\n"


def test_a_flood_is_stopped_and_the_host_keeps_none_of_it() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * 4096

    peak, done = [resident()], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    ran = inside("for _ in range(200): os.write(1, b'x' * (1 << 20))\nprint('all of it', file=sys.stderr)")
    done.set()
    watcher.join()
    assert ran.killed == "output"
    assert ran.is_stdout_cut
    assert len(ran.stdout) == SMALL.keep
    assert ran.stderr == ""
    assert max(peak) - peak[0] < 20 * MIB


DANGEROUS = {
    "ptrace": (101, 0), "bpf": (321, 0, 0, 0), "io_uring_setup": (425, 1, 0), "keyctl": (250, 0, -3, 0),
    "add_key": (248, 0, 0, 0, 0, 0), "unshare": (272, 0x10000000), "setns": (308, 0, 0), "mount": (165, 0, 0, 0, 0, 0),
    "userfaultfd": (323, 1), "perf_event_open": (298, 0, 0, -1, -1, 0), "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0), "open_by_handle_at": (304, 0, 0, 0), "init_module": (175, 0, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0), "clone for a user namespace": (56, 0x10000011, 0, 0, 0, 0),
    "memfd_create": (319, 0, 0), "shmget": (29, 0, 4096, 0o1600),
}  # fmt: skip


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
def test_no_dangerous_call_gets_to_the_kernel() -> None:
    code = """
import json
libc = ctypes.CDLL(None, use_errno=True)
for name, (number, *args) in json.loads(sys.argv[1]).items():
    answer = libc.syscall(number, *map(ctypes.c_long, args))
    print(name, answer, ctypes.get_errno())
print('clone3', libc.syscall(435, 0, 0), ctypes.get_errno())
import fcntl
try: fcntl.ioctl(0, 0x5412, b'x')
except OSError as e: print('TIOCSTI', -1, e.errno)
"""
    import json

    lines = inside(code, json.dumps(DANGEROUS)).stdout.splitlines()
    assert len(lines) == len(DANGEROUS) + 2
    assert [line for line in lines if not line.endswith(("-1 1", "clone3 -1 38"))] == []


def test_it_has_no_privileges_and_can_gain_none() -> None:
    status = inside("print(open('/proc/self/status').read())").stdout
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in status
    assert f"Uid:\t{UID if os.geteuid() == 0 else os.geteuid()}\t" in status


def test_a_folder_can_be_read_and_only_if_that_was_said_written(folder: Path, ours: Path) -> None:
    assert inside("print(open('canary').read())", folder=folder).stdout == "secret\n"
    assert inside("open('new', 'w')", folder=ours).exit == 1
    assert inside("open('new', 'w').write('here')", folder=ours, writable=True).exit == 0
    assert (ours / "new").read_text() == "here"
    assert inside("open('../new', 'w')", folder=ours, writable=True).exit == 1


def test_a_folder_that_is_none_is_refused() -> None:
    for wrong in ("/", "/nowhere", "/etc/passwd"):
        with pytest.raises(ConfigError, match="cannot be the folder of a shell"):
            Bubblewrap(wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be mistaken for root")
def test_root_is_told_how_a_folder_becomes_writable(folder: Path) -> None:
    with pytest.raises(ConfigError, match=f"chown -R {UID}"):
        Bubblewrap(folder, writable=True)


async def test_a_command_is_run_as_it_is_written_with_its_input_and_its_variables() -> None:
    sandbox = Bubblewrap()
    ran = await sandbox.run('cat; echo "$who" | tr a-z A-Z >&2; exit 3', stdin="héllo", arguments={"who": "me"})
    assert (ran.exit, ran.stdout, ran.stderr, ran.killed) == (3, "héllo", "ME\n", "")
    assert (await sandbox.run("x" * 200_000)).error.startswith("a command has at most")
    assert (await sandbox.run("printf '\\xff\\x00'")).stdout == "�\0"
    with pytest.raises(ConfigError, match="not a valid name"):
        await sandbox.run("true", arguments={"LD PRELOAD": "x"})


async def test_many_runs_at_once_do_not_mix_and_leave_nothing_open() -> None:
    sandbox = Bubblewrap()
    await sandbox.run("true")
    before = len(os.listdir("/proc/self/fd"))
    ran = await asyncio.gather(*(sandbox.run(f"echo {n} > x; cat x", seconds=30) for n in range(12)))
    assert [result.stdout for result in ran] == [f"{n}\n" for n in range(12)]
    assert len(os.listdir("/proc/self/fd")) <= before


def test_everything_holds_here_and_that_is_found_out_quickly() -> None:
    bubblewrap_probe.check.cache_clear()
    report = bubblewrap_probe.check()
    assert report.absent == ""
    assert report.missing == {}
    assert report.holds == frozenset(GUARANTEES)
    assert bubblewrap_probe.check() is report
