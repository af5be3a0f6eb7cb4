"""Seatbelt sandbox: runs shell commands of macOS under `sandbox-exec`, and probes what it holds.

A command sees the folder under its own path, the programs of the machine, and an empty folder for temporary files and as
home; it has no network and no environment. It runs in its own process group, which is killed when it ends or its time
is over. macOS has no namespaces and no control groups: a process that leaves its group outlives the command (still under
its profile), and memory and processes are not limited as a whole. So of the guarantees only `files`, `net` and `env` can hold here.

The probe runs the same hostile script twice: in the sandbox, where everything outside must be refused, and without it as the
control, where all of it must succeed. A refusal proves nothing if the same attempt fails anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from everturn.core.sandbox import Guarantee, KillReason, SandboxReport, SandboxResult
from everturn.errors import ConfigError, ToolError
from everturn.sandbox.bubblewrap_args import ENVIRONMENT, ShellLimits
from everturn.sandbox.disk import DiskWatch
from everturn.sandbox.git_folder import GIT, open_git_folder
from everturn.sandbox.hidden_paths import HiddenPaths, PathPolicy, Protection, open_in_folder
from everturn.sandbox.process import ProcessLimits, StopSignal, read_output
from everturn.sandbox.seatbelt_profile import SeatbeltPolicy, quote_sbpl, seatbelt_profile
from everturn.sandbox.shell_sandbox import SHELLS, ShellSandbox

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
PROGRAMS: Final = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
HARMLESS: Final = frozenset({*ENVIRONMENT, "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"})
WITH_LIMITS: Final = 'ulimit -c 0; ulimit -n "$1"; ulimit -f "$2"; ulimit -t "$3"; shift 3; exec "$@"'
BLOCK: Final = 512  # bytes per unit of `ulimit -f`
PROBE_SECONDS: Final = 20.0
MAX_CONFIG_BYTES: Final = 100_000
DEFAULTS: Final = ShellLimits()
NOT_HERE: Final[Mapping[Guarantee, str]] = {
    "processes": "macOS has no PID namespaces: a process that leaves its group outlives the command",
    "memory": "macOS has no control groups: memory is not limited",
    "disk": "removed files that are still open are not counted on macOS",
    "cpu": "a process that leaves its group is not ended with the command",
    "syscalls": "Seatbelt filters operations, not system calls",
}
_SECRET_SETTING: Final = re.compile(
    rb"https?://[^/\s]*@|://[^/\s:@]*:[^/\s@]*@|^[^=\n\[]*(?:pass|token|secret|header|cookie|auth)[^=\n]*=",
    re.IGNORECASE | re.MULTILINE,
)
"""A password in an address, or a setting that is called like one."""


class Seatbelt(ShellSandbox):
    """Runs commands under `sandbox-exec`. `folder` keeps its path, and is read-only unless it is `writable`.

    `read_only` are further readable paths. With `proxy_port` a proxy on this machine can be reached, and nothing else.

    Raises:
        ConfigError: the folder does not exist, or its path cannot be written in a profile.
    """

    name = "seatbelt"

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        writable: bool = False,
        read_only: Sequence[str | os.PathLike[str]] = (),
        limits: ShellLimits = DEFAULTS,
        path_policy: PathPolicy | None = None,
        proxy_port: int = 0,
    ) -> None:
        super().__init__(folder, writable=writable, path_policy=path_policy)
        self.read_only = tuple(str(Path(path).resolve()) for path in read_only)
        self.limits, self._proxy_port = limits, proxy_port
        try:
            for path in (self.mount, *self.read_only):
                quote_sbpl(path or "/")
        except ToolError as error:
            raise ConfigError(str(error)) from None

    @property
    def mount(self) -> str:
        """The path of the folder as a command sees it; "": it has none."""
        return "" if self.folder is None else str(self.folder)

    async def probe(self) -> SandboxReport:
        """Probe the guarantees."""
        return await asyncio.to_thread(check)

    def run_program(
        self,
        argv: Sequence[str],
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        seconds: float = 10.0,
        stop: StopSignal | None = None,
        writes_git: bool = False,
    ) -> SandboxResult:
        """Run a program, and block until it and its process group have ended.

        Raises:
            ConfigError: there is no `sandbox-exec`.
            ToolError: the protected paths of the folder cannot be protected.
        """
        kept = self.find_protected()
        if writes_git and self.writable:
            kept = open_git_folder(self._opened, kept)
        self._check_in_place()
        with contextlib.ExitStack() as owned:
            made = owned.enter_context(tempfile.TemporaryDirectory(prefix="everturn-", ignore_cleanup_errors=True))
            run = Path(made).resolve()
            scratch, profile = run / "tmp", run / "profile.sb"  # the profile is outside of what a command can write
            scratch.mkdir(mode=0o700)
            policy = SeatbeltPolicy(
                str(scratch),
                self.mount,
                self.writable,
                _home(),
                self.read_only,
                self._readable_settings(kept),
                self._proxy_port,
            )
            profile.write_text(seatbelt_profile(policy), encoding="utf-8")
            (run / "stdin").write_text(stdin, encoding="utf-8", errors="replace")
            reading = owned.enter_context((run / "stdin").open("rb"))
            numbers = (self.limits.open_files, self.limits.file // BLOCK, max(1, int(seconds) + 1))
            limited = ("/bin/sh", "-c", WITH_LIMITS, "sh", *map(str, numbers), *argv)
            try:
                process = subprocess.Popen(
                    [SANDBOX_EXEC, "-f", str(profile), *limited],
                    stdin=reading,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**self._environment(scratch), **(variables or {})},
                    cwd=self.folder or scratch,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(f"{SANDBOX_EXEC} could not be started: {error.strerror}") from None
            return self._read(process, seconds, stop)

    def _read(self, process: subprocess.Popen[bytes], seconds: float, stop: StopSignal | None) -> SandboxResult:
        ended, ending = os.pipe()

        def kill() -> None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses if only zombies are left
                os.killpg(process.pid, signal.SIGKILL)

        def wait() -> None:
            process.wait()
            kill()  # what it has left running
            os.close(ending)

        disk = DiskWatch(self._opened, self.limits, lambda: ()) if self.writable and self.folder else None

        def watch() -> KillReason:
            return "disk" if disk is not None and disk.is_exceeded() else ""

        waiting = threading.Thread(target=wait, name="sandbox-wait", daemon=True)
        waiting.start()
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018 - both are pipes
        try:
            limits = ProcessLimits(seconds, self.limits.keep, self.limits.flood)
            pipes = process.stdout.fileno(), process.stderr.fileno(), ended
            read = read_output(*pipes, limits, stop, kill, watch)
            killed = read.killed or watch()
        finally:
            if process.returncode is None:
                kill()
            waiting.join()
            os.close(ended)
            process.stdout.close()
            process.stderr.close()
        exited = process.wait()
        return SandboxResult(
            None if killed else 128 - exited if exited < 0 else exited,
            read.stdout.decode(errors="replace"),
            read.stderr.decode(errors="replace"),
            read.is_stdout_cut,
            read.is_stderr_cut,
            killed,
        )

    def _environment(self, scratch: Path) -> dict[str, str]:
        place = str(scratch)
        own = {**ENVIRONMENT, "PATH": PROGRAMS, "LANG": "en_US.UTF-8", "HOME": place, "TMPDIR": place}
        proxy = f"http://localhost:{self._proxy_port}"
        return own | ({"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy} if self._proxy_port else {})

    def _check_in_place(self) -> None:
        """Check that the path still names the folder that was opened: the profile knows paths only."""
        if self.folder is None:
            return
        try:
            is_same = os.path.samestat(os.stat(self.folder, follow_symlinks=False), os.fstat(self._opened))
        except OSError:
            is_same = False
        if not is_same or Path(os.path.realpath(self.folder)) != self.folder:
            raise ToolError(
                f"the command did not run: {self.folder} was moved or replaced; start again in the folder you mean"
            )

    def _readable_settings(self, kept: HiddenPaths) -> HiddenPaths:
        """Open the settings of the repository that hold no secret: git does not work if it may not read them.

        Bubblewrap lets them read as empty; Seatbelt can only refuse, which ends git with an error.
        """
        plain = tuple(path for path in kept.empty_files if path == f"{GIT}/config" and self._is_plain(path))
        hidden = tuple(path for path in kept.empty_files if path not in plain)
        return replace(kept, empty_files=hidden, read_only=(*kept.read_only, *plain))

    def _is_plain(self, path: str) -> bool:
        try:
            with os.fdopen(
                open_in_folder(self._opened, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb"
            ) as file:
                text = file.read(MAX_CONFIG_BYTES + 1)
        except OSError:
            return False
        return len(text) <= MAX_CONFIG_BYTES and _SECRET_SETTING.search(text) is None


def _home() -> str:
    home = os.path.realpath(os.path.expanduser("~"))
    return "" if home in ("/", "/var/empty", "/private/var/empty") else home


# The probe ------------------------------------------------------------------------------------------------------------

SCRIPT: Final = r"""
outside=$1 port=$2 other=$3
try() { local fact=$1; shift; if "$@" >/dev/null 2>&1; then echo "fact $fact"; fi; }
write() { echo x > "$1"; }
alias_of() { ln ./hidden ./alias && cat ./alias; }
move() { mv ./parent ./moved && cat ./moved/hidden; }
connect() { : 3<> "/dev/tcp/127.0.0.1/$port"; }
echo "fact ran"
try inside write ./new
try temporary write "${TMPDIR:-.}/new"
try write_outside write "$outside/written"
try read_outside cat "$outside/secret"
try read_hidden cat ./hidden
try write_fixed write ./fixed/new
try link_hidden alias_of
try link_outside ln "$outside/secret" ./outside-alias
try move_parent move
try connect connect
try signal kill -0 "$other"
for name in $(compgen -e); do echo "env $name"; done
"""
OWN: Final = frozenset({"ran", "inside", "temporary"})
"""What a command must be able to do."""

ATTACKS: Final[Mapping[str, tuple[Guarantee, str]]] = {
    "write_outside": ("files", "could write outside of its folder"),
    "read_outside": ("files", "could read a private file outside of its folder"),
    "read_hidden": ("files", "could read a hidden file"),
    "write_fixed": ("files", "could write to a protected folder"),
    "link_hidden": ("files", "could read a hidden file by another name"),
    "link_outside": ("files", "could make a hard link to a file outside of its folder"),
    "move_parent": ("files", "could read a hidden file by moving the folder above it"),
    "connect": ("net", "could connect to a port of this machine"),
    "signal": ("processes", "could signal another process"),
}
SECRET_VARIABLE: Final = "EVERTURN_PROBE"


@functools.cache
def check() -> SandboxReport:
    """The guarantees that hold here; the first call blocks for less than a second."""
    started = time.monotonic()
    if sys.platform != "darwin":
        return SandboxReport("seatbelt", absent="Seatbelt is part of macOS")
    if not os.access(SANDBOX_EXEC, os.X_OK):
        return SandboxReport("seatbelt", absent=f"there is no {SANDBOX_EXEC}, which is part of macOS")
    version = platform.mac_ver()[0]
    try:
        control, held = _facts()
    except (ConfigError, ToolError, OSError, subprocess.SubprocessError) as error:
        return SandboxReport("seatbelt", version, absent=str(error), seconds=time.monotonic() - started)
    if not held >= {"fact ran"}:
        why = next(iter(sorted(held)), "it said nothing")
        reason = f"{SANDBOX_EXEC} does not run commands with the profile of Everturn here: {why}"
        return SandboxReport("seatbelt", version, absent=reason, seconds=time.monotonic() - started)
    missing = broken_guarantees(control, held)
    holds = frozenset[Guarantee](("files", "net", "env")) - missing.keys()
    return SandboxReport("seatbelt", version, holds, missing, seconds=time.monotonic() - started)


def broken_guarantees(control: frozenset[str], held: frozenset[str]) -> dict[Guarantee, str]:
    """What the script did in the sandbox that it must not, and what it could not do without a sandbox either."""
    against: dict[Guarantee, list[str]] = {}

    def hold(guarantee: Guarantee, is_broken: bool, problem: str) -> None:
        if is_broken:
            against.setdefault(guarantee, []).append(problem)

    for fact, (guarantee, problem) in ATTACKS.items():
        hold(guarantee, f"fact {fact}" in held, problem)
        hold(guarantee, f"fact {fact}" not in control, f"without a sandbox, {fact} fails too, so nothing is shown")
    for fact in sorted(OWN):
        hold("files", f"fact {fact}" not in held, f"a command cannot do its work: {fact} is refused")
    seen = sorted(line.removeprefix("env ") for line in held if line.startswith("env "))
    hold("env", bool(set(seen) - HARMLESS), f"could see the variables {', '.join(sorted(set(seen) - HARMLESS))}")
    is_blind = f"env {SECRET_VARIABLE}" not in control
    hold("env", is_blind, "without a sandbox, no variables are seen either, so nothing is shown")
    return {**NOT_HERE, **{guarantee: "; ".join(problems) for guarantee, problems in against.items()}}


def _facts() -> tuple[frozenset[str], frozenset[str]]:
    """The lines that the script prints without a sandbox, and in it."""
    bash = next(filter(os.path.exists, SHELLS), "")
    with contextlib.ExitStack() as owned:
        listener = owned.enter_context(socket.create_server(("127.0.0.1", 0)))
        above = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="everturn-probe-", dir="/tmp"))).resolve()
        other = owned.enter_context(subprocess.Popen(["/bin/sleep", "60"]))
        owned.callback(other.kill)

        def words(name: str) -> tuple[list[str], Path]:
            inside, outside = above / name / "inside", above / name / "outside"
            for folder in (inside / "fixed", inside / "parent", outside):
                folder.mkdir(parents=True)
            for file in (inside / "hidden", inside / "parent/hidden", outside / "secret"):
                file.write_text("secret\n", encoding="utf-8")
            port = listener.getsockname()[1]
            return [bash, "-c", SCRIPT, "probe", str(outside), str(port), str(other.pid)], inside

        argv, inside = words("control")
        control = subprocess.run(
            argv,
            cwd=inside,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": PROGRAMS, SECRET_VARIABLE: "x"},
        )
        argv, inside = words("sandbox")
        sandbox = Seatbelt(inside, writable=True, path_policy=_probe_policy)
        result = sandbox.run_program(argv, seconds=PROBE_SECONDS)
    said = result.stdout.splitlines() or [result.stderr.strip()[:200] or f"exit {result.exit} {result.killed}"]
    return frozenset(control.stdout.decode(errors="replace").splitlines()), frozenset(said)


def _probe_policy(path: str) -> tuple[Protection, int]:
    name = path.rpartition("/")[2]
    return ("hidden", 0) if name == "hidden" else ("fixed", 0) if path == "fixed" else ("", 0)
