"""Bubblewrap runner: runs one program in Linux namespaces, and blocks until it and all its descendants have ended."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Final, cast

from everturn.core.sandbox import KillReason, SandboxResult
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import cgroups
from everturn.sandbox.bubblewrap_args import (
    PROGRAMS,
    WORK,
    ShellLimits,
    bubblewrap_options,
    passwd_files,
    prlimit_command,
)
from everturn.sandbox.disk import DiskWatch
from everturn.sandbox.git_folder import open_git_folder
from everturn.sandbox.hidden_paths import (
    HiddenPaths,
    PathPolicy,
    can_mount_descriptors,
    check_mounted,
    open_in_folder,
)
from everturn.sandbox.hidden_paths import mount_options as words_for
from everturn.sandbox.process import ProcessLimits, StopSignal, read_output, read_until
from everturn.sandbox.seccomp import shell_filter
from everturn.sandbox.shell_sandbox import ShellSandbox

UID: Final = 65_533
"""The user of the processes where the server is root, to whom the process limit does not apply."""

START_TIMEOUT: Final = 10.0  # seconds until a command must have started
DEFAULTS: Final = ShellLimits()


class BubblewrapRunner(ShellSandbox):
    """Runs programs in bubblewrap. `folder` is mounted at /work, read-only unless it is `writable`.

    `read_only` are paths of the host that are mounted in their own places, such as an interpreter outside /usr.
    `path_policy` decides what in the folder is hidden or read-only.

    Raises:
        ConfigError: the folder does not exist, or the uid of the sandbox cannot write to it; or bubblewrap is too old
            to protect paths in it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        writable: bool = False,
        read_only: Sequence[str | os.PathLike[str]] = (),
        limits: ShellLimits = DEFAULTS,
        path_policy: PathPolicy | None = None,
    ) -> None:
        super().__init__(folder, writable=writable, path_policy=path_policy)
        self.read_only = tuple(str(Path(path).resolve()) for path in read_only)
        self.limits = limits
        self._identity = _identity(self.folder if writable else None)
        if self._path_policy is not None and not can_mount_descriptors():
            raise ConfigError(
                "this version of bubblewrap cannot hide files of a folder from a shell: install 0.10 or newer "
                "(with --ro-bind-fd), or protect no files (protect=NOTHING)"
            )

    @property
    def mount(self) -> str:
        """The path of the folder as a command sees it."""
        return WORK

    def run_program(
        self,
        argv: Sequence[str],
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        seconds: float = 10.0,
        stop: StopSignal | None = None,
        writes_git: bool = False,
    ) -> SandboxResult:
        """Run a program, and block until it, and all its descendants, have ended.

        With `writes_git` it may write the parts of the folder's own repository that a commit changes (`git_folder`).

        Raises:
            ConfigError: bubblewrap is not installed, or not permitted.
            ToolError: the protected paths of the folder cannot be protected.
        """
        kept = self.find_protected()
        if writes_git and self.writable:
            kept = open_git_folder(self._opened, kept)
        with contextlib.ExitStack() as owned:
            group = self._group(owned)
            block, info, process = self._start(argv, stdin, variables or {}, seconds, kept, owned)
            first = _first_process(info.fileno(), process)
            pidfd = os.pidfd_open(first)
            owned.callback(os.close, pidfd)

            def kill() -> None:
                # The first process of its PID namespace: all others die with it, whatever they did to
                # detach.
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                process.kill()

            owned.callback(process.wait)
            owned.callback(kill)
            try:
                check_mounted(first, kept, WORK)
            except ProcessLookupError:
                raise _failed(process) from None
            if group is not None:
                group.add(first)
            watch = self._watch(first, group)
            block.write(b"x")  # the process waited until we had its pidfd
            assert process.stdout is not None and process.stderr is not None  # noqa: PT018 - both are pipes
            read = read_output(
                process.stdout.fileno(),
                process.stderr.fileno(),
                pidfd,
                ProcessLimits(seconds, self.limits.keep, self.limits.flood),
                stop,
                kill,
                watch,
            )
            exited = process.wait()
            killed = read.killed or watch()  # it may have ended between two checks
        return SandboxResult(
            None if killed else exited,
            read.stdout.decode(errors="replace"),
            read.stderr.decode(errors="replace"),
            read.is_stdout_cut,
            read.is_stderr_cut,
            killed,
        )

    def _group(self, owned: contextlib.ExitStack) -> cgroups.RunCgroup | None:
        """The cgroup of a run, where one is available."""
        parent = cgroups.find_parent_cgroup()
        if isinstance(parent, str):
            return None
        group = cgroups.make_cgroup(parent, self.limits.memory, self.limits.processes)
        owned.callback(group.remove)
        return group

    def _watch(self, first: int, group: cgroups.RunCgroup | None) -> Callable[[], KillReason]:
        """The function that says why a run must be killed, or ""."""
        disk = (
            DiskWatch(self._opened, self.limits, lambda: descendant_pids(first))
            if self.writable and self.folder
            else None
        )

        def watch() -> KillReason:
            if (group is not None and group.was_oom_killed()) or memory_used(first) > self.limits.memory:
                return "memory"
            return "disk" if disk is not None and disk.is_exceeded() else ""

        return watch

    def _start(
        self,
        argv: Sequence[str],
        stdin: str,
        variables: Mapping[str, str],
        seconds: float,
        kept: HiddenPaths,
        owned: contextlib.ExitStack,
    ) -> tuple[FileIO, FileIO, subprocess.Popen[bytes]]:
        """Start it up to the point where it waits: the pipe that releases it, the pipe with its pid, and the
        process.
        """
        program, path, limiter = shell_filter(), shutil.which("bwrap"), shutil.which("prlimit", path=PROGRAMS)
        if path is None or program is None or limiter is None:
            raise ConfigError("bubblewrap cannot run a shell on this machine; `everturn doctor` shows why")

        def make_file(data: bytes) -> int:
            descriptor = _sealed(data)
            owned.callback(os.close, descriptor)
            return descriptor

        def pipe() -> tuple[FileIO, FileIO]:
            reader, writer = os.pipe()
            return owned.enter_context(FileIO(reader, "r")), owned.enter_context(FileIO(writer, "w"))

        (blocked, block), (info, inform) = pipe(), pipe()
        uid, gid = self._identity.get("user", os.getuid()), self._identity.get("group", os.getgid())
        users, groups = (make_file(text.encode()) for text in passwd_files(uid, gid))
        folder: str | int | None = (
            None if self.folder is None else self._opened if can_mount_descriptors() else str(self.folder)
        )
        words = bubblewrap_options(
            folder, writable=self.writable, read_only=self.read_only, limits=self.limits, variables=variables
        )
        inherited = [folder] if isinstance(folder, int) else []
        if kept != HiddenPaths():
            last = len(words) - 2  # the root is made read-only after everything else
            words[last:last] = self._keep(kept, make_file, inherited, owned)
        # In front of all others, because the last one makes the root read-only.
        words[:0] = ["--ro-bind-data", str(users), "/etc/passwd", "--ro-bind-data", str(groups), "/etc/group"]
        filtering = make_file(program)
        words += ["--seccomp", str(filtering), "--info-fd", str(inform.fileno()), "--block-fd", str(blocked.fileno())]
        # Not on the command line: the first process inside shows its own to all others, with the host's paths
        # in it.
        argument_file = make_file(b"".join(os.fsencode(word) + b"\0" for word in words))
        process = cast(
            "subprocess.Popen[bytes]",
            subprocess.Popen(
                [path, "--args", str(argument_file), "--", *prlimit_command(limiter, self.limits, seconds), *argv],
                stdin=make_file(stdin.encode(errors="replace")) if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},  # bubblewrap's own environment can be read inside, from its first process
                cwd="/",
                pass_fds=(*inherited, users, groups, filtering, argument_file, inform.fileno(), blocked.fileno()),
                start_new_session=True,
                **self._identity,
            ),
        )
        owned.enter_context(process)
        owned.callback(process.kill)
        inform.close()
        blocked.close()
        return block, info, process

    def _keep(
        self, kept: HiddenPaths, make_file: Callable[[bytes], int], inherited: list[int], owned: contextlib.ExitStack
    ) -> list[str]:
        def hold(handle: int) -> int:
            inherited.append(handle)
            return handle

        def opened(path: str) -> int:
            try:
                handle = open_in_folder(self._opened, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                raise ToolError(f"the shell was not run: {path!r}, which is protected, was moved; try again") from None
            owned.callback(os.close, handle)
            return hold(handle)

        return words_for(kept, WORK, opened, lambda: hold(make_file(b"")))


def descendant_pids(first: int) -> list[str]:
    """The pids of a process and all its descendants."""
    pids, waiting = list[str](), [str(first)]
    while waiting:
        pid = waiting.pop()
        pids.append(pid)
        with contextlib.suppress(OSError):  # the process ended meanwhile
            for children in glob.glob(f"/proc/{pid}/task/*/children"):
                waiting += Path(children).read_text(encoding="utf-8").split()
    return pids


def memory_used(first: int) -> int:
    """Bytes of memory that a process and all its descendants use, without page cache."""
    total = 0
    for pid in descendant_pids(first):
        with contextlib.suppress(OSError, ValueError):  # the process ended meanwhile
            status = Path("/proc", pid, "status").read_text(encoding="utf-8")
            total += sum(int(number) for number in re.findall(r"^Rss(?:Anon|Shmem):\s*(\d+) kB", status, re.MULTILINE))
    return total * 1024


def _first_process(info: int, process: subprocess.Popen[bytes]) -> int:
    """The pid of the first process inside, as the host sees it.

    Raises:
        ConfigError: the sandbox did not start; with bubblewrap's own message.
    """
    text = read_until(info, b"}", START_TIMEOUT)
    match = re.search(rb'"child-pid": *(\d+)', text)
    if match is not None:
        return int(match[1])
    raise _failed(process)


def _failed(process: subprocess.Popen[bytes]) -> ConfigError:
    process.kill()
    _, stderr = process.communicate()
    reason = stderr.decode(errors="replace").strip() or "it said nothing"
    return ConfigError(f"bubblewrap could not create a sandbox: {reason[:300]}")


def _identity(written: Path | None) -> dict[str, Any]:
    """The user that runs it: our own, unless that is root."""
    if os.geteuid() != 0:
        return {}
    owner = UID if written is None else written.stat().st_uid
    if owner == 0:
        raise ConfigError(
            f"the shell would have no access to {written}, which belongs to root: chown -R {UID}:{UID} {written}, "
            "or run Everturn as an ordinary user"
        )
    group = UID if written is None else written.stat().st_gid or UID
    return {"user": owner, "group": group, "extra_groups": []}


def _sealed(data: bytes) -> int:
    """An anonymous file that is sealed against writing."""
    import fcntl  # Windows has none, and may still import this module

    descriptor = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
