"""Hostile code that takes memory and disk: it is stopped at the limit, or the guarantee is not listed."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.core.ports import ToolContext
from everturn.core.sandbox import KillReason, SandboxResult
from everturn.sandbox import bubblewrap_probe, cgroups
from everturn.sandbox.bubblewrap import Bubblewrap
from everturn.sandbox.bubblewrap_args import MIB, ShellLimits
from everturn.sandbox.bubblewrap_runner import UID
from everturn.tools.code.shell import run_shell

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)
SMALL = ShellLimits(disk=8 * MIB, disk_files=300, free=0)
PARENT = cgroups.find_parent_cgroup() if sys.platform == "linux" else "not Linux"
grouped = pytest.mark.skipif(isinstance(PARENT, str), reason=f"no cgroup can be made here: {PARENT}")


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(f"/var/tmp/everturn-{os.getpid()}-{time.monotonic_ns()}")
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(folder, UID, UID)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.fixture
def anew() -> Iterator[None]:
    bubblewrap_probe.check.cache_clear()
    yield
    bubblewrap_probe.check.cache_clear()


def groups() -> list[str]:
    assert isinstance(PARENT, cgroups.CgroupParent)
    places = {PARENT.memory, PARENT.pids} - {""}
    return [name for place in places for name in os.listdir(place) if name.startswith(cgroups.PREFIX)]


@pytest.mark.live
@grouped
@pytest.mark.parametrize("kind", bubblewrap_probe.MEMORY_HOGS)
def test_memory_of_any_kind_is_stopped_at_the_limit_by_the_kernel(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = bubblewrap_probe._python()
    assert bubblewrap_probe.is_stopped(kind, folder, *python)
    monkeypatch.setattr(cgroups, "find_parent_cgroup", lambda: "none")
    if kind not in ("idle", "mapped"):  # of these the watch of processes knows nothing, so the probe must notice
        assert not bubblewrap_probe.is_stopped(kind, folder, *python)


@pytest.mark.live
@grouped
def test_memory_is_listed_because_the_probe_was_stopped(anew: None) -> None:
    assert "memory" in bubblewrap_probe.check().holds


@pytest.mark.live
def test_without_a_cgroup_memory_is_not_listed_and_the_reason_is(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "find_parent_cgroup", lambda: "nobody gave us one")
    report = bubblewrap_probe.check()
    assert report.missing == {"memory": "nobody gave us one"}


@pytest.mark.live
def test_a_quota_that_stops_nobody_is_not_listed(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_probe, "TIGHT", replace(bubblewrap_probe.TIGHT, disk=1 << 40, disk_files=1 << 40))
    monkeypatch.setattr(bubblewrap_probe, "MEMORY_HOGS", ())
    report = bubblewrap_probe.check()
    assert "disk" not in report.holds
    assert "was not stopped at the quota of a folder" in report.missing["disk"]


@pytest.mark.live
@grouped
def test_a_child_that_the_kernel_kills_for_memory_ends_the_run_which_says_so() -> None:
    code = "(python3 -c 'x = [bytearray(b\"x\") * (1 << 20) for _ in range(300)]' || true); sleep 20; echo went on"
    ran = Bubblewrap(limits=ShellLimits(memory=64 * MIB)).run_program(["/bin/sh", "-c", code], seconds=15)
    assert (ran.killed, ran.stdout) == ("memory", "")


@pytest.mark.live
@grouped
def test_no_group_is_left_after_a_run_however_it_ends(folder: Path) -> None:
    sandbox = Bubblewrap(folder, writable=True, limits=SMALL)
    for command, seconds in (("true", 5), ("sleep 9", 0.2), ("head -c 30000000 /dev/zero > big; sleep 5", 10)):
        sandbox.run_program(["/bin/sh", "-c", command], seconds=seconds)
        assert [name for name in groups() if f"-{os.getpid()}-" in name] == []


@pytest.mark.live
@grouped
def test_the_group_of_a_process_that_was_killed_is_removed_by_the_next(folder: Path) -> None:
    code = f"""
from everturn.sandbox.bubblewrap import Bubblewrap
Bubblewrap({str(folder)!r}, writable=True).run_program(["/bin/sh", "-c", "touch begun; sleep 50"], seconds=50)"""
    with subprocess.Popen([sys.executable, "-c", code]) as server:
        while not (folder / "begun").exists():
            assert server.poll() is None
            time.sleep(0.01)
        assert [name for name in groups() if f"-{server.pid}-" in name]
        server.kill()
    assert isinstance(PARENT, cgroups.CgroupParent)
    until = time.monotonic() + 20
    while [name for name in groups() if f"-{server.pid}-" in name]:  # its processes need a moment to die
        assert time.monotonic() < until
        Bubblewrap().run_program(["/bin/true"])


@pytest.mark.live
@grouped
def test_where_a_group_cannot_be_made_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = cgroups.CgroupParent(1, str(tmp_path / "gone"))
    monkeypatch.setattr(cgroups, "find_parent_cgroup", lambda: gone)
    with pytest.raises(cgroups.ToolError, match="no control group could be created"):
        Bubblewrap().run_program(["/bin/echo", "ran"])


WRITES = {
    "one large": "head -c 60000000 /dev/zero > big",
    "many small": "mkdir many; for i in $(seq 1 2000); do : > many/$i; done",
    "many folders": "for i in $(seq 1 1500); do mkdir -p d/$i; done",
    "removed and held": "exec 9> gone; rm gone; head -c 60000000 /dev/zero >&9",
    "in small pieces": "for i in $(seq 1 60); do head -c 1000000 /dev/zero > piece$i; done",
}


@pytest.mark.live
@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
def test_a_command_that_writes_more_than_its_quota_is_ended(command: str, folder: Path) -> None:
    # What others write to this disk meanwhile must not have the folder looked at for its bytes.
    limits = replace(SMALL, disk=1 << 40) if "many" in command or "d/$i" in command else SMALL
    ran = Bubblewrap(folder, writable=True, limits=limits).run_program(
        ["/bin/bash", "-c", f"{command}; sleep 20; echo went on"], seconds=15
    )
    assert (ran.killed, ran.exit, ran.stdout) == ("disk", None, "")


@pytest.mark.live
async def test_the_model_is_told_that_a_quota_was_exceeded(folder: Path) -> None:
    tool = run_shell(folder, writable=True, limits=SMALL)
    output = await tool.run({"command": "head -c 60000000 /dev/zero > big; sleep 20"}, CONTEXT)
    assert "it wrote more files, or larger ones, than a command may" in output.text
    assert (output.metadata or {})["killed"] == "disk"
    assert (await tool.run({"command": "head -c 1000000 /dev/zero > small; wc -c < small"}, CONTEXT)).text == "1000000"


@pytest.mark.live
def test_a_command_is_not_ended_for_what_somebody_else_writes(folder: Path) -> None:
    elsewhere = folder.with_suffix(".elsewhere")
    inside = folder / "ours"
    inside.mkdir()
    os.chown(inside, *((UID, UID) if os.geteuid() == 0 else (-1, -1)))

    def write() -> None:
        elsewhere.write_bytes(bytes(64 * MIB))
        (inside / "go").write_text("")

    writer = threading.Timer(0.3, write)
    writer.start()
    try:
        code = "while [ ! -e go ]; do sleep 0.05; done; sleep 0.3; echo on"
        ran = Bubblewrap(inside, writable=True, limits=SMALL).run_program(["/bin/sh", "-c", code], seconds=20)
    finally:
        writer.join()
        elsewhere.unlink(missing_ok=True)
    assert (ran.killed, ran.stdout) == ("", "on\n")


@pytest.mark.live
@pytest.mark.parametrize("command", ["head -c 60000000 /dev/zero > big", "for i in {1..2500}; do echo > $i; done"])
def test_a_command_is_ended_although_another_program_frees_as_much_as_it_writes(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    always = os.statvfs(folder)
    monkeypatch.setattr(os, "fstatvfs", lambda _: always)
    ran = Bubblewrap(folder, writable=True, limits=SMALL).run_program(
        ["/bin/bash", "-c", f"{command}; sleep 20; echo went on"], seconds=15
    )
    assert (ran.killed, ran.stdout) == ("disk", "")


@pytest.mark.live
def test_a_command_that_fills_a_disk_which_is_nearly_full_is_ended(folder: Path) -> None:
    status = os.statvfs(folder)
    full = replace(SMALL, disk=1 << 40, free=status.f_bavail * status.f_frsize + (1 << 33))
    sandbox = Bubblewrap(folder, writable=True, limits=full)
    assert sandbox.run_program(["/bin/sh", "-c", "sleep 0.2"]).killed == ""
    command = "head -c 60000000 /dev/zero > big; sleep 20"
    assert sandbox.run_program(["/bin/sh", "-c", command], seconds=15).killed == "disk"


V1 = "5:devices:/\n4:memory:/a/b\n3:cpuset,cpu:/\n0::/u\n"
V1_MOUNTS = """25 20 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 25 0:24 / /sys/fs/cgroup/cpu rw,relatime shared:1 - cgroup cgroup rw,cpuset,cpu
"""


@pytest.mark.parametrize(
    ("own", "mounts", "found"),
    [
        (V1, V1_MOUNTS, {"memory": "/sys/fs/cgroup/memory/a/b", "cpuset": "/sys/fs/cgroup/cpu", "cpu": "/sys/fs/cgroup/cpu"}),
        ("0::/user.slice/x.scope\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
         {"": "/sys/fs/cgroup/user.slice/x.scope"}),
        ("4:memory:/docker/1\n", "9 8 0:2 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
         {"memory": "/sys/fs/cgroup/memory"}),
        ("4:memory:/docker/12\n", "9 8 0:2 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", {}),
        ("0::/\n", "", {}),
    ],
)  # fmt: skip
def test_our_own_group_is_found_where_it_is_mounted(own: str, mounts: str, found: dict[str, str]) -> None:
    assert cgroups.locate_cgroups(own, mounts) == found


def test_groups_of_others_that_are_alive_are_not_swept(tmp_path: Path) -> None:
    ours = f"{cgroups.PREFIX}{os.getpid()}-{cgroups._began(os.getpid())}-0"
    for name in (ours, f"{cgroups.PREFIX}{os.getpid()}-1-0", f"{cgroups.PREFIX}4194999-5-1", "other", "everturn-x"):
        (tmp_path / name).mkdir()
    cgroups.remove_stale_cgroups(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ours, "other", "everturn-x"])


def test_what_is_said_to_get_a_cgroup_names_the_words_of_systemd() -> None:
    assert re.search(r"Delegate=yes.*DelegateSubgroup", cgroups.HOW)


class BusyMachine:
    """A sandbox on a machine that is busy for the first runs: they run out of time."""

    def __init__(self, busy: int, then: KillReason = "") -> None:
        self.busy, self.seconds = busy, list[float]()
        self.then: KillReason = then

    def run_program(self, words: list[str], *, seconds: float) -> SandboxResult:
        self.seconds.append(seconds)
        killed: KillReason = "time" if len(self.seconds) <= self.busy else self.then
        return SandboxResult(killed=killed)


@pytest.mark.parametrize(
    ("busy", "then", "killed", "runs"),
    [(0, "", "", 1), (0, "disk", "disk", 1), (1, "disk", "disk", 2), (2, "", "time", 2)],
)
def test_a_probe_that_ran_out_of_time_is_repeated_once_with_more(busy: int, then: KillReason, killed: str, runs: int):
    machine = BusyMachine(busy, then)
    assert bubblewrap_probe._run_to_end(machine, ["true"]).killed == killed  # type: ignore[arg-type]
    assert len(machine.seconds) == runs
    assert machine.seconds == sorted(set(machine.seconds))
