"""Bubblewrap probe: runs hostile code in a sandbox, with bait outside, to find out which guarantees hold on this
machine.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from msgspec import DecodeError, json
from msgspec.structs import replace

from everturn.core.sandbox import GUARANTEES, Guarantee, SandboxReport, SandboxResult
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import cgroups
from everturn.sandbox.bubblewrap_args import ENVIRONMENT, MIB, PROGRAMS, ShellLimits
from everturn.sandbox.bubblewrap_runner import DEFAULTS, UID, BubblewrapRunner
from everturn.sandbox.seccomp import ARCHITECTURES, CLONE, CLONE3, REFUSED, shell_filter

INSTALL: Final = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
NO_NAMESPACES: Final = (
    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0; "
    "in a container: --security-opt seccomp=unconfined or a profile that lets them through)"
)
HARMLESS: Final = frozenset({*ENVIRONMENT, "PWD", "SHLVL", "_", "LC_CTYPE"})
TRIED: Final = (
    "ptrace", "bpf", "io_uring_setup", "keyctl", "add_key", "unshare", "setns", "mount", "pivot_root", "kexec_load",
    "init_module", "perf_event_open", "userfaultfd", "process_vm_readv", "pidfd_getfd", "open_by_handle_at",
    "memfd_create", "shmget", "fsopen", "open_tree",
)  # fmt: skip
MEMORY_HOGS: Final = ("idle", "mapped", "sockets", "tcp", "udp", "scratch", "inodes")
TIGHT: Final = ShellLimits(memory=48 * MIB, scratch=48 * MIB, disk=8 * MIB, disk_files=500, free=0)
WANTED_FILES: Final = 2 * TIGHT.disk_files
HOGS_AT_ONCE: Final = 5
PROBE_SECONDS: Final = 10.0
KERNEL_FAMILIES: Final = (16, 17, 38, 40)  # netlink, packet, crypto, and the one between a VM and its host


@functools.cache
def check() -> SandboxReport:
    """The guarantees that hold here; the first call blocks for less than a second."""
    started = time.monotonic()
    path = shutil.which("bwrap")
    if not sys.platform.startswith("linux") or shell_filter() is None:
        return SandboxReport(
            "bubblewrap", absent="bubblewrap is for Linux on x86_64 or aarch64; there is no shell tool here"
        )
    if path is None:
        return SandboxReport("bubblewrap", absent=f"there is no `bwrap` on the PATH: {INSTALL}")
    if shutil.which("prlimit", path=PROGRAMS) is None:
        return SandboxReport("bubblewrap", absent="there is no `prlimit`, by which limits are set: install util-linux")
    output = subprocess.run([path, "--version"], capture_output=True, timeout=5, check=False, env={})
    version = output.stdout.decode(errors="replace").strip().rpartition(" ")[2]
    try:
        facts = _facts()
    except ConfigError as error:
        return SandboxReport(
            "bubblewrap", version, absent=f"{error}; {NO_NAMESPACES}", seconds=time.monotonic() - started
        )
    missing = broken_guarantees(facts, DEFAULTS)
    holds: frozenset[Guarantee] = frozenset(guarantee for guarantee in GUARANTEES if guarantee not in missing)
    return SandboxReport("bubblewrap", version, holds, missing, seconds=time.monotonic() - started)


def broken_guarantees(facts: Mapping[str, Any], limits: ShellLimits) -> dict[Guarantee, str]:
    """The findings of the hostile code that break each guarantee."""
    if "failed" in facts:
        return dict.fromkeys(GUARANTEES, str(facts["failed"]))
    against: dict[Guarantee, list[str]] = {guarantee: [] for guarantee in GUARANTEES}

    def hold(guarantee: Guarantee, is_broken: bool, problem: str) -> None:
        if is_broken:
            against[guarantee].append(problem)

    hold("files", bool(facts["read"]), f"could read {facts['read']}")
    hold("files", facts["passwd"] > 1, "could read the host's /etc/passwd")
    hold("files", bool(facts["written"]), f"could write to {facts['written']}")
    hold("files", bool(facts["open"]), f"was given open files {facts['open']}")
    hold("net", bool(facts["connected"] or facts["arrived"]), f"reached {facts['connected'] or facts['arrived']}")
    hold("net", set(facts["interfaces"]) - {"lo"} != set(), f"has the interfaces {facts['interfaces']}")
    seen = sorted(set(facts["variables"]) - HARMLESS)
    hold("env", bool(seen), f"could read the variables {seen[:5]}")
    hold("processes", facts["forks"] >= limits.processes, f"made {facts['forks']} processes at once")
    hold("processes", facts["processes"] > 10, f"could see {facts['processes']} processes")
    hold("processes", facts["signalled"], "could signal a process of the host")
    hold("memory", bool(facts["ungrouped"]), str(facts["ungrouped"]))
    unstopped = [kind for kind, is_stopped in facts["hogs"].items() if not is_stopped]
    taken = [kind for kind in unstopped if kind not in ("disk", "files")]
    hold("memory", bool(taken), f"was not stopped at the limit when it took memory by {', '.join(taken)}")
    filled = [kind for kind in unstopped if kind in ("disk", "files")]
    hold("disk", bool(filled), f"was not stopped at the quota of a folder when it wrote {', '.join(filled)}")
    hold("disk", not {"disk", "files"} <= set(facts["hogs"]), "it was not tried")
    hold("memory", facts["memory"], f"took {2 * limits.address_space} bytes at once")
    large = {place: size for place, size in facts["scratch"].items() if size > 2 * limits.scratch}
    hold("memory", bool(large), f"could fill {large}")
    hold("memory", not facts["watched"], "the kernel does not say which processes belong together (/proc/*/children)")
    hold("cpu", not 0 < facts["cpu"] < 3600, "there is no limit to its time")
    hold("cpu", facts["ended"] != "time", "it was not ended when its time was over")
    hold("syscalls", not facts["filtered"] or facts["privileges"], "it is not filtered, or has privileges")
    hold("net", bool(facts["families"]), f"could make sockets of the families {facts['families']}")
    hold("syscalls", bool(facts["calls"]), f"the kernel answered {facts['calls']}")
    return {guarantee: "; ".join(reasons) for guarantee, reasons in against.items() if reasons}


def _facts() -> dict[str, Any]:
    """Set out bait, and let the hostile code look for it."""
    python, prefix = _python()
    sandbox = BubblewrapRunner(read_only=prefix)
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        os.chmod(folder, 0o755)  # so that only the sandbox is in the way
        canary = Path(folder, "canary")
        canary.write_text("secret", encoding="utf-8")
        name = f"everturn-{secrets.token_hex(8)}"
        udp.bind(("127.0.0.1", 0))
        unix.bind(f"{folder}/socket")
        os.chmod(f"{folder}/socket", 0o777)
        abstract.bind("\0" + name)
        for server in (unix, abstract):
            server.listen()
        column = ARCHITECTURES[os.uname().machine][0]
        probe_arguments = {
            "secrets": [str(canary), "/etc/shadow", f"/proc/{os.getpid()}/environ", __file__],
            "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "unix": f"{folder}/socket", "abstract": name,
            "host": os.getppid() if os.getpid() < 100 else os.getpid(), "memory": 2 * DEFAULTS.address_space,
            "calls": {
                **{call: number for call in TRIED if (number := REFUSED[call][column]) is not None},
                "clone": CLONE[column], "clone3": CLONE3[column],
            },
            "families": [socket.AF_UNIX, *KERNEL_FAMILIES],
            "forks": DEFAULTS.processes + 8,
        }  # fmt: skip
        source = Path(__file__).with_name("hostile_probe.py").read_text(encoding="utf-8")
        result = _run_to_end(sandbox, [python, "-I", "-S", "-c", source, json.encode(probe_arguments).decode()])
        facts = _read(result)
        for kind, server in (("tcp", tcp), ("udp", udp), ("unix", unix), ("abstract", abstract)):
            server.setblocking(False)
            try:
                server.recv(1) if kind == "udp" else server.accept()[0].close()
            except OSError:
                continue
            facts["arrived"].append(kind)
    facts |= _hogs(python, prefix)
    facts["watched"] = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
    facts["ended"] = sandbox.run_program(["/bin/sleep", "5"], seconds=0.1).killed
    return facts


def _hogs(python: str, prefix: list[str]) -> dict[str, Any]:
    """Let code take more memory and disk than it may, each in its own way, and check whether it was stopped."""
    parent = cgroups.find_parent_cgroup()
    is_grouped = not isinstance(parent, str)
    with tempfile.TemporaryDirectory() as above, ThreadPoolExecutor(HOGS_AT_ONCE) as pool:
        os.chmod(above, 0o755)

        def try_one(kind: str) -> bool:
            folder = Path(above, kind)
            folder.mkdir()
            if os.geteuid() == 0:
                os.chown(folder, UID, UID)
            return is_stopped(kind, folder, python, prefix)

        kinds = [*(MEMORY_HOGS if is_grouped else ()), "disk", "files"]
        return {
            "ungrouped": "" if is_grouped else parent,
            "hogs": dict(zip(kinds, pool.map(try_one, kinds), strict=True)),
        }


def is_stopped(kind: str, folder: Path, python: str, prefix: list[str]) -> bool:
    """Whether hostile code that takes what it can was killed, or got no more than the limit."""
    source = Path(__file__).with_name("resource_probes.py").read_text(encoding="utf-8")
    limits = replace(TIGHT, memory=TIGHT.memory // 2) if kind == "inodes" else TIGHT  # one process, and many calls
    is_disk = kind in ("disk", "files")
    sandbox = BubblewrapRunner(folder if is_disk else None, writable=is_disk, read_only=prefix, limits=limits)
    wanted = WANTED_FILES if kind == "files" else 2 * limits.memory
    try:
        result = _run_to_end(sandbox, [python, "-I", "-S", "-c", source, kind, str(wanted)])
    except ToolError:
        return False
    if kind == "idle":
        return not result.killed  # else the other kinds were stopped for another reason
    if result.killed:
        return result.killed == ("disk" if is_disk else "memory")
    got = result.stdout.strip()
    return not is_disk and got.isdigit() and int(got) < limits.memory  # further memory was refused


def _run_to_end(sandbox: BubblewrapRunner, words: list[str]) -> SandboxResult:
    """Run hostile code; once more with more time if it ran out of it: on a busy machine that proves nothing."""
    result = sandbox.run_program(words, seconds=PROBE_SECONDS)
    return sandbox.run_program(words, seconds=3 * PROBE_SECONDS) if result.killed == "time" else result


def _read(result: SandboxResult) -> dict[str, Any]:
    try:
        return {"arrived": [], **json.decode(result.stdout, type=dict[str, Any])}
    except DecodeError:
        why = (result.stderr.strip().splitlines() or [f"exit {result.exit} {result.killed}"])[-1]
        return {"arrived": [], "failed": f"the probe did not run to its end: {why[:200]}"}


def _python() -> tuple[str, list[str]]:
    """A Python that is visible inside, and the paths of the host that must be mounted for it."""
    executable = os.path.realpath(sys.executable)
    if executable.startswith("/usr/"):
        return executable, []
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.exists(path):
            return path, []
    return executable, [os.path.realpath(sys.base_prefix)]
