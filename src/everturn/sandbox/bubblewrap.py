"""A shell command → what it wrote and how it ended, in namespaces of its own (bubblewrap) behind a filter of calls.

It sees the programs of the system, an empty /tmp and, if it was given one, a folder at /work; it has no network, no
environment, no privileges and, where the server is root, a uid that nobody else has.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Final, cast

from msgspec import json

from everturn.core.canonical import JsonObject
from everturn.core.sandboxes import Killed, Ran, Report
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import cgroups
from everturn.sandbox.bubblewrap_walls import PROGRAMS, WORK, Limits, limited, options, passwd
from everturn.sandbox.disk import DiskWatch
from everturn.sandbox.keeping import OBEYED, Judge, Kept, can_keep, check_mounted, find, open_beneath
from everturn.sandbox.keeping import words as words_for
from everturn.sandbox.quarantine import Quarantined, move_away
from everturn.sandbox.running import Bounds, Stop, in_thread, read_all, read_soon
from everturn.sandbox.seccomp import for_shell

UID: Final = 65_533
"""Whose processes they are where the server is root, for whom the limit of processes does not hold."""

LONGEST: Final = 100_000  # bytes of a command: the kernel takes 128 KiB as one argument
START: Final = 10.0  # seconds that it may take until a command can begin
AT_ONCE: Final = 8  # runs of one sandbox at the same time
SHELLS: Final = ("/bin/bash", "/bin/sh")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
DEFAULTS: Final = Limits()


class Bubblewrap:
    """Commands in bubblewrap. `folder` is bound at /work, for reading only unless it is `writable`.

    `read_only` are paths of the host to be seen at their own places, such as an interpreter outside /usr. `judge` says
    what in the folder is hidden, or can only be read.

    Raises:
        ConfigError: it is no folder, or one that the uid of the sandbox could not write to; or what is in it cannot be
            kept, for bubblewrap is too old.
    """

    name = "bubblewrap"

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        writable: bool = False,
        read_only: Sequence[str | os.PathLike[str]] = (),
        limits: Limits = DEFAULTS,
        judge: Judge | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder).resolve()
        if self.folder is not None and (not self.folder.is_dir() or self.folder == Path("/")):
            raise ConfigError(f"{self.folder} is not a folder that a shell could be given; name one beneath /")
        self._opened = -1
        if self.folder is not None:  # once: what somebody puts in its place later is not it
            self._opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._opened)
        self.writable = writable
        self.read_only = tuple(str(Path(path).resolve()) for path in read_only)
        self.limits = limits
        self._identity = _identity(self.folder if writable else None)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._judge = None if self.folder is None else judge
        if self._judge is not None and not can_keep():
            raise ConfigError(
                "this bubblewrap cannot keep files of a folder from a shell: take 0.10 or a patched one (it knows "
                "--ro-bind-fd), or a folder in which nothing is protected (protect=NOTHING)"
            )

    async def probe(self) -> Report:
        """Find out what holds here."""
        from everturn.sandbox.bubblewrap_probe import check

        return await asyncio.to_thread(check)

    async def run(
        self, code: str, *, stdin: str = "", arguments: JsonObject | None = None, seconds: float = 10.0
    ) -> Ran:
        """Run a command line in a shell; arguments are variables of its environment."""
        if len(code.encode(errors="replace")) > LONGEST or "\0" in code:
            return Ran(error=f"a command has at most {LONGEST} bytes, and no NUL among them; put data into a file")
        argv = (next(filter(os.path.exists, SHELLS), SHELLS[-1]), "-c", code)
        variables = _variables(arguments or {})
        async with self._places:
            return await in_thread(lambda stop: self.run_program(argv, stdin, variables, seconds, stop))

    def kept(self) -> Kept:
        """What in the folder is kept from commands, as it is now; it blocks.

        Raises:
            ToolError: there is too much in it, or a link that is in the way.
        """
        if self.folder is None or self._judge is None:
            return Kept()
        return find(self._opened, self._judge, writable=self.writable)

    def quarantine(self, before: Kept, why: str) -> Quarantined:
        """Move away what is protected and was not there before, where no program obeys it; it blocks.

        Raises:
            ToolError: the folder cannot be gone through.
        """
        if self.folder is None or self._judge is None or not self.writable:
            return Quarantined()
        links: list[str] = []
        after = find(self._opened, self._judge, writable=True, links=links)
        made = {*after.all, *links} - before.all
        whole = made - after.repositories
        # Of a folder that has become a repository, only what makes it one: the rest may have been there before.
        parts = {f"{one}/{name}" for one in made & after.repositories if one not in OBEYED for name in OBEYED}
        return move_away(self._opened, sorted({*whole, *parts, *(made & OBEYED)}), why)

    async def aclose(self) -> None:
        """Nothing is kept ready."""

    def run_program(
        self,
        argv: Sequence[str],
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        seconds: float = 10.0,
        stop: Stop | None = None,
    ) -> Ran:
        """Run a program, and block until it, and all that it began, has ended.

        Raises:
            ConfigError: bubblewrap is not here, or is not allowed to do this.
            ToolError: what is protected in the folder cannot be kept.
        """
        kept = self.kept()
        with contextlib.ExitStack() as owned:
            group = self._group(owned)
            block, info, process = self._start(argv, stdin, variables or {}, seconds, kept, owned)
            first = _first_process(info.fileno(), process)
            pidfd = os.pidfd_open(first)
            owned.callback(os.close, pidfd)

            def kill() -> None:
                # The first process of its namespace: all others die with it, whatever they did to get away.
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
            block.write(b"x")  # it waited until we had hold of it
            assert process.stdout is not None and process.stderr is not None  # noqa: PT018 - both are pipes
            read = read_all(
                process.stdout.fileno(),
                process.stderr.fileno(),
                pidfd,
                Bounds(seconds, self.limits.keep, self.limits.flood),
                stop,
                kill,
                watch,
            )
            exited = process.wait()
            killed = read.killed or watch()  # it may have ended before anybody looked
        return Ran(
            None if killed else exited,
            read.stdout.decode(errors="replace"),
            read.stderr.decode(errors="replace"),
            read.is_stdout_cut,
            read.is_stderr_cut,
            killed,
        )

    def _group(self, owned: contextlib.ExitStack) -> cgroups.Group | None:
        """A control group for a run, where one can be had."""
        parent = cgroups.parent()
        if isinstance(parent, str):
            return None
        group = cgroups.make(parent, self.limits.memory, self.limits.processes)
        owned.callback(group.remove)
        return group

    def _watch(self, first: int, group: cgroups.Group | None) -> Callable[[], Killed]:
        """Say why a run has to be ended, if it has."""
        disk = DiskWatch(self._opened, self.limits, lambda: alive(first)) if self.writable and self.folder else None

        def watch() -> Killed:
            if (group is not None and group.was_stopped()) or used(first) > self.limits.memory:
                return "memory"
            return "disk" if disk is not None and disk.is_exceeded() else ""

        return watch

    def _start(
        self,
        argv: Sequence[str],
        stdin: str,
        variables: Mapping[str, str],
        seconds: float,
        kept: Kept,
        owned: contextlib.ExitStack,
    ) -> tuple[FileIO, FileIO, subprocess.Popen[bytes]]:
        """Start it up to where it waits: what to write to let it go, where it says who it is, and the process."""
        program, path, limiter = for_shell(), shutil.which("bwrap"), shutil.which("prlimit", path=PROGRAMS)
        if path is None or program is None or limiter is None:
            raise ConfigError("there is no bubblewrap here that could hold a shell; `everturn doctor` says why")

        def given(data: bytes) -> int:
            made = _sealed(data)
            owned.callback(os.close, made)
            return made

        def pipe() -> tuple[FileIO, FileIO]:
            reader, writer = os.pipe()
            return owned.enter_context(FileIO(reader, "r")), owned.enter_context(FileIO(writer, "w"))

        (blocked, block), (info, inform) = pipe(), pipe()
        uid, gid = self._identity.get("user", os.getuid()), self._identity.get("group", os.getgid())
        users, groups = (given(text.encode()) for text in passwd(uid, gid))
        folder: str | int | None = None if self.folder is None else self._opened if can_keep() else str(self.folder)
        words = options(
            folder, writable=self.writable, read_only=self.read_only, limits=self.limits, variables=variables
        )
        held = [folder] if isinstance(folder, int) else []
        if kept != Kept():
            last = len(words) - 2  # the root is closed behind everything else
            words[last:last] = self._keep(kept, given, held, owned)
        # In front of all others, for the last one closes the root.
        words[:0] = ["--ro-bind-data", str(users), "/etc/passwd", "--ro-bind-data", str(groups), "/etc/group"]
        filtering = given(program)
        words += ["--seccomp", str(filtering), "--info-fd", str(inform.fileno()), "--block-fd", str(blocked.fileno())]
        # Not on the command line: the first process inside shows its own to all others, with the host's paths in it.
        told = given(b"".join(os.fsencode(word) + b"\0" for word in words))
        process = cast(
            "subprocess.Popen[bytes]",
            subprocess.Popen(
                [path, "--args", str(told), "--", *limited(limiter, self.limits, seconds), *argv],
                stdin=given(stdin.encode(errors="replace")) if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},  # bubblewrap's own environment can be read inside, from its first process
                cwd="/",
                pass_fds=(*held, users, groups, filtering, told, inform.fileno(), blocked.fileno()),
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
        self, kept: Kept, given: Callable[[bytes], int], held: list[int], owned: contextlib.ExitStack
    ) -> list[str]:
        def hold(handle: int) -> int:
            held.append(handle)
            return handle

        def opened(path: str) -> int:
            try:
                handle = open_beneath(self._opened, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                raise ToolError(f"the shell was not run: {path!r}, which is protected, was moved; try again") from None
            owned.callback(os.close, handle)
            return hold(handle)

        return words_for(kept, WORK, opened, lambda: hold(given(b"")))


def alive(first: int) -> list[str]:
    """The numbers of a process and all its descendants."""
    found, waiting = list[str](), [str(first)]
    while waiting:
        one = waiting.pop()
        found.append(one)
        with contextlib.suppress(OSError):  # it ended meanwhile
            for children in glob.glob(f"/proc/{one}/task/*/children"):
                waiting += Path(children).read_text(encoding="utf-8").split()
    return found


def used(first: int) -> int:
    """Bytes of memory that a process and all its descendants hold, pages of files aside."""
    total = 0
    for one in alive(first):
        with contextlib.suppress(OSError, ValueError):  # it ended meanwhile
            status = Path("/proc", one, "status").read_text(encoding="utf-8")
            total += sum(int(number) for number in re.findall(r"^Rss(?:Anon|Shmem):\s*(\d+) kB", status, re.MULTILINE))
    return total * 1024


def _first_process(info: int, process: subprocess.Popen[bytes]) -> int:
    """The first process inside, by its number out here.

    Raises:
        ConfigError: it did not come to that; in bubblewrap's own words.
    """
    text = read_soon(info, b"}", START)
    found = re.search(rb'"child-pid": *(\d+)', text)
    if found is not None:
        return int(found[1])
    raise _failed(process)


def _failed(process: subprocess.Popen[bytes]) -> ConfigError:
    process.kill()
    _, said = process.communicate()
    reason = said.decode(errors="replace").strip() or "it said nothing"
    return ConfigError(f"bubblewrap could not make a sandbox here: {reason[:300]}")


def _identity(written: Path | None) -> dict[str, Any]:
    """Who runs it: whoever we are, unless that is root."""
    if os.geteuid() != 0:
        return {}
    owner = UID if written is None else written.stat().st_uid
    if owner == 0:
        raise ConfigError(
            f"a shell may not write to {written}, which belongs to root: chown -R {UID}:{UID} {written}, "
            "or run Everturn as an ordinary user"
        )
    group = UID if written is None else written.stat().st_gid or UID
    return {"user": owner, "group": group, "extra_groups": []}


def _variables(arguments: JsonObject) -> dict[str, str]:
    if wrong := [name for name in arguments if VARIABLE.fullmatch(name) is None]:
        raise ConfigError(f"{wrong[0]!r} is not a name for a variable of a shell: letters, digits and '_'")
    return {
        name: value.replace("\0", "") if isinstance(value, str) else json.encode(value).decode()
        for name, value in arguments.items()
    }


def _sealed(data: bytes) -> int:
    """A file without a name that can be read, and never written again."""
    import fcntl  # Windows has none, and may still ask what there is

    made = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(made, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(made, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(made, fcntl.F_ADD_SEALS, seals)
    return made
