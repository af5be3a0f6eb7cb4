"""Cgroups: a control group for each run, in which the kernel counts all memory that the run causes, and enforces the
limit.

Mapped memory, socket buffers, pipes, tmpfs pages and inodes are counted alike. A group is always made below the group
that this process is in, or beside it where that has no limit, so that no limit of the operator's is evaded.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from everturn.errors import ToolError

PREFIX: Final = "everturn-"
NETWORK_SHARE: Final = 8  # version 1 counts the buffers of IP sockets separately: they get this fraction in addition
REMOVED: Final = 2.0  # seconds in which the processes of a killed run must be gone
HOW: Final = (
    "under systemd, run Everturn in a unit with Delegate=yes and DelegateSubgroup=main, or by `systemd-run --user "
    "--scope`; in a container, give it a writable cgroup (a cgroup v1 mount that can be written, or cgroup v2 delegated "
    "to it)"
)
_numbers = itertools.count()


class CgroupParent(Struct, frozen=True):
    """Where groups can be made: a folder for each controller; version 2 has one for both."""

    version: Literal[1, 2]
    memory: str
    pids: str = ""


class RunCgroup:
    """The group of one run."""

    def __init__(self, version: Literal[1, 2], folders: Mapping[str, str]) -> None:
        self.version: Literal[1, 2] = version
        self.folders = folders

    def add(self, process: int) -> None:
        """Move a process into the group; its children follow.

        Raises:
            ToolError: the kernel refuses.
        """
        for folder in set(self.folders.values()):
            _set(folder, "cgroup.procs", process)

    def was_oom_killed(self) -> bool:
        """Whether the kernel has killed a process of the group because of the memory limit."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        try:
            text = Path(self.folders["memory"], name).read_text(encoding="utf-8")
        except OSError:
            return False
        match = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
        return match is not None and match[1] != "0"

    def remove(self) -> None:
        """Remove the group, once its processes are gone."""
        until = time.monotonic() + REMOVED
        for folder in set(self.folders.values()):
            while not _removed(folder) and time.monotonic() < until:
                time.sleep(0.005)


def make_cgroup(parent: CgroupParent, memory: int, processes: int) -> RunCgroup:
    """Make a group with these limits. Groups left over from killed processes are removed first.

    Raises:
        ToolError: the group cannot be made, so that nothing is run.
    """
    name = f"{PREFIX}{os.getpid()}-{_began(os.getpid())}-{next(_numbers)}"
    folders: dict[str, str] = {}
    group = RunCgroup(parent.version, folders)
    try:
        for controller, above in (("memory", parent.memory), ("pids", parent.pids)):
            if not above:
                continue
            remove_stale_cgroups(above)
            folders[controller] = f"{above}/{name}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(folders[controller])
        if parent.version == 1:
            _set(folders["memory"], "memory.limit_in_bytes", memory)
            _set(folders["memory"], "memory.kmem.tcp.limit_in_bytes", memory // NETWORK_SHARE)
            if os.path.exists(f"{folders['memory']}/memory.memsw.limit_in_bytes"):
                _set(folders["memory"], "memory.memsw.limit_in_bytes", memory)
        else:
            _set(folders["memory"], "memory.max", memory)
            _set(folders["memory"], "memory.oom.group", 1)
            if os.path.exists(f"{folders['memory']}/memory.swap.max"):
                _set(folders["memory"], "memory.swap.max", 0)
        if "pids" in folders:
            _set(folders["pids"], "pids.max", processes + 2)  # bubblewrap itself is in it
    except (OSError, ToolError) as error:
        group.remove()
        raise ToolError(f"the command was not run: no control group could be created for it ({error})") from None
    return group


def remove_stale_cgroups(above: str) -> None:
    """Remove the groups of processes that no longer exist: a process that was killed could not do it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(above):
            owner = re.fullmatch(rf"{PREFIX}(\d+)-(\d+)-\d+", name)
            if owner is not None and _began(int(owner[1])) != owner[2]:
                _removed(f"{above}/{name}")


@functools.cache
def find_parent_cgroup() -> CgroupParent | str:
    """Where groups can be made; or why they cannot."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    except OSError as error:
        return f"the control group of this process cannot be read ({error.strerror})"
    places = locate_cgroups(own, mounts)
    if "memory" in places:
        return _first_version(places)
    if "" in places:
        return _second_version(places[""])
    return "there are no control groups (cgroups) here"


def locate_cgroups(own: str, mounts: str) -> dict[str, str]:
    """The folder of our group by controller, from `/proc/self/cgroup` and `/proc/self/mountinfo`; "" is version 2."""
    mounted: dict[str, tuple[str, str]] = {}
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) < 5 or not kind[0].startswith("cgroup"):
            continue
        names = [""] if kind[0] == "cgroup2" else kind[-1].split(",")
        for name in names:
            mounted.setdefault(name, (fields[3], fields[4]))
    folders: dict[str, str] = {}
    for line in own.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for name in controllers.split(","):
            root, at = mounted.get(name, ("", ""))
            inside = root.rstrip("/")
            if at and (path == inside or path.startswith(f"{inside}/")):
                folders[name] = at + path[len(inside) :].rstrip("/")
    return folders


def _first_version(places: Mapping[str, str]) -> CgroupParent | str:
    memory, pids = places["memory"], places.get("pids", "")
    if not os.access(memory, os.W_OK):
        return f"no control group can be made in {memory} (cgroup v1), which cannot be written"
    return CgroupParent(1, memory, pids if os.access(pids, os.W_OK) else "")


def _second_version(own: str) -> CgroupParent | str:
    """Our group contains processes, so it cannot have subgroups with limits; its parent can, if that is delegated to
    us.
    """
    above = os.path.dirname(own)
    try:
        limit = Path(own, "memory.max").read_text(encoding="utf-8").strip()
    except OSError:
        return f"{own} (cgroup v2) has no controller of memory"
    if limit != "max":
        return f"{own} (cgroup v2) has a limit of memory of its own, which groups beside it would get round"
    if not os.access(above, os.W_OK) or not os.access(f"{above}/cgroup.procs", os.W_OK):
        return f"no control group can be made in {above} (cgroup v2), which is not delegated to us"
    control = Path(above, "cgroup.subtree_control")
    with contextlib.suppress(OSError):
        control.write_text("+memory +pids", encoding="utf-8")
    try:
        controllers = control.read_text(encoding="utf-8").split()
    except OSError:
        controllers = []
    if "memory" not in controllers:
        return f"{above} (cgroup v2) does not give the controller of memory to groups in it"
    return CgroupParent(2, above, above if "pids" in controllers else "")


def _set(folder: str, name: str, value: int) -> None:
    try:
        Path(folder, name).write_text(str(value), encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{name}: {error.strerror}") from None


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _began(process: int) -> str:
    """The start time of a process in clock ticks; "": there is no such process."""
    try:
        return Path("/proc", str(process), "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
