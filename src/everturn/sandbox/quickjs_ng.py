"""QuickJS sandbox: runs JavaScript in quickjs-ng, in a process that can be killed. The engine is never loaded in this
process.

Workers are kept ready; each forks a child for a run, which has a fresh engine, no privileges, and a seccomp filter that
allows nothing but computing. A worker whose run had to be killed is killed with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, json

from everturn.core.canonical_json import JsonObject
from everturn.core.sandbox import GUARANTEES, Guarantee, KillReason, SandboxReport, SandboxResult
from everturn.errors import ConfigError
from everturn.sandbox.process import StopSignal, read_until, run_in_thread
from everturn.sandbox.seccomp import interpreter_filter

INSTALL: Final = "there is no quickjs-ng here: pip install 'everturn[code]'"
UID: Final = 65_533  # the user of the processes where the server is root
MIB: Final = 1024 * 1024
LONGEST: Final = MIB  # characters of code
START: Final = 10.0  # seconds that a worker has to start
GRACE: Final = 1.0  # seconds after which a run is killed from outside: the engine has its own time limit
AT_ONCE: Final = 4
READY: Final = 2  # workers that are kept
BROKEN: Final = SandboxResult(error="the engine ended by itself; what the code did to it is not known")


class WorkerReply(Struct):
    """The answer of a worker."""

    token: str
    value: str | None = None
    error: str = ""
    logs: str = ""
    cut: bool = False
    killed: KillReason = ""
    died: int = 0
    found: list[str] = []
    filtered: bool = False


class QuickJs:
    """Runs JavaScript, with nothing but the language: no files, no network, no timers. `console.log` is its stdout.

    The value of a run is that of its last statement, or what it returns; of a promise, its result. In bytes: `memory`
    for the engine, `keep` for the output and for the value.
    """

    name = "quickjs-ng"

    def __init__(self, *, memory: int = 64 * MIB, keep: int = 200_000) -> None:
        self.memory = memory
        self.keep = keep
        self._ready: list[_QuickJsProcess] = []
        self._lock = threading.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._end = weakref.finalize(self, _end_all, self._ready)

    async def probe(self) -> SandboxReport:
        """Probe the guarantees."""
        return await asyncio.to_thread(check)

    async def run(
        self, code: str, *, stdin: str = "", arguments: JsonObject | None = None, seconds: float = 10.0
    ) -> SandboxResult:
        """Run code; `arguments` are available as `args`, and `stdin` as `args.stdin`."""
        script_arguments: JsonObject = {**(arguments or {}), **({"stdin": stdin} if stdin else {})}
        async with self._places:
            return await run_in_thread(lambda stop: self.run_code(code, script_arguments, seconds, stop))

    async def aclose(self) -> None:
        """Stop the workers."""
        await asyncio.to_thread(_end_all, self._ready)

    def run_code(
        self, code: str, arguments: JsonObject | None = None, seconds: float = 10.0, stop: StopSignal | None = None
    ) -> SandboxResult:
        """Run code, and block until it has ended.

        Raises:
            ConfigError: the engine is not installed.
        """
        if len(code) > LONGEST:
            return SandboxResult(error=f"the code has {len(code)} characters; at most {LONGEST} are run")
        if not code.strip():
            return SandboxResult()
        reply, killed = self._ask(code, arguments or {}, seconds, stop)
        if reply is None:
            return SandboxResult(killed=killed) if killed else BROKEN
        try:
            value: object = None if reply.value is None else json.decode(reply.value)
        except (DecodeError, RecursionError):
            value = reply.value
        return SandboxResult(None, reply.logs, "", reply.cut, False, reply.killed, value, reply.error)

    def probe_worker(self) -> WorkerReply | None:
        """What code could do in a worker if it broke out of the engine."""
        return self._ask("", {}, 1.0, None)[0]

    def _ask(
        self, code: str, script_arguments: JsonObject, seconds: float, stop: StopSignal | None
    ) -> tuple[WorkerReply | None, KillReason]:
        token = secrets.token_hex(8)
        request = {
            "token": token, "code": code, "args": json.encode(script_arguments).decode() if script_arguments else "", "seconds": seconds,
            "memory": self.memory, "keep": self.keep, "uid": UID, "host": os.getpid(),
            "filter": (interpreter_filter() or b"").hex() if sys.platform.startswith("linux") else "",
        }  # fmt: skip
        line = json.encode(request) + b"\n"
        with self._lock:
            worker = self._ready.pop() if self._ready else None
        if worker is not None and worker.process.poll() is not None:
            worker.end()
            worker = None
        worker = worker or _QuickJsProcess()
        is_well = False
        try:
            data, killed = worker.ask(line, seconds + GRACE, 16 * self.keep + 65_536, stop)
            reply = _read(data, token)
            is_well = reply is not None and not reply.died and not reply.killed
        finally:
            with self._lock:
                is_kept = is_well and len(self._ready) < READY
                if is_kept:
                    self._ready.append(worker)
            if not is_kept:
                worker.end()
        return (None if reply is None or reply.died else reply), killed


class _QuickJsProcess:
    def __init__(self) -> None:
        package = importlib.util.find_spec("quickjs")
        if package is None or package.origin is None:
            raise ConfigError(INSTALL)
        here = Path(__file__).with_name("quickjs_worker.py")
        site = str(Path(package.origin).parents[1])
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(here), site],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self.process.stdout is not None  # it is a pipe
        if read_until(self.process.stdout.fileno(), b"\n", START) != b"{}\n":
            self.end()
            raise ConfigError("quickjs-ng cannot be loaded; `python -c 'import quickjs'` shows why")

    def ask(self, line: bytes, seconds: float, most: int, stop: StopSignal | None) -> tuple[bytes, KillReason]:
        """Send a line and wait for one; the answer has no line end if it did not come in time."""
        process = self.process
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        deadline, received = time.monotonic() + seconds, bytearray()
        with contextlib.suppress(BrokenPipeError), selectors.DefaultSelector() as waiting:
            while line:
                line = line[process.stdin.write(line) or 0 :]
            waiting.register(process.stdout, selectors.EVENT_READ)
            if stop is not None:
                waiting.register(stop.reader, selectors.EVENT_READ)
            while b"\n" not in received:
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    return bytes(received), "time"
                if stop is not None and stop.is_set:
                    return bytes(received), "cancelled"
                data = os.read(process.stdout.fileno(), 65_536)
                received += data
                if not data:
                    break
                if len(received) > most:
                    return bytes(received), "output"
        return bytes(received), ""

    def end(self) -> None:
        """Kill it with its child."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with self.process:
            pass


def _end_all(workers: list[_QuickJsProcess]) -> None:
    while workers:
        workers.pop().end()


def _read(data: bytes, token: str) -> WorkerReply | None:
    """Decode the answer to a request; a hijacked run may have written anything, but does not know the next token."""
    line, end, more = data.partition(b"\n")
    try:
        reply = json.decode(line, type=WorkerReply) if end and not more else None
    except (DecodeError, ValidationError, RecursionError):
        return None
    return reply if reply is not None and reply.token == token else None


FORBIDDEN_GLOBALS: Final = (
    "require", "process", "Deno", "Bun", "std", "os", "bjson", "fetch", "XMLHttpRequest", "WebSocket", "EventSource",
    "Worker", "importScripts", "load", "read", "print", "WebAssembly", "setTimeout", "navigator", "scriptArgs",
)  # fmt: skip
IMPORTS: Final = """
(async () => {
  const came = [];
  for (const name of ["fs", "node:fs", "std", "os", "qjs:os", "/etc/passwd", "./x.so", "https://127.0.0.1/"])
    try { await import(name); came.push(name); } catch {}
  return came;
})()
"""


@functools.cache
def check() -> SandboxReport:
    """The guarantees that hold here; the first call blocks for less than a second."""
    started = time.monotonic()
    if importlib.util.find_spec("quickjs") is None or os.name != "posix":
        return SandboxReport(
            "quickjs-ng", absent=INSTALL if os.name == "posix" else "quickjs-ng is run on POSIX systems only"
        )
    try:
        number = version("quickjs-ng")
    except PackageNotFoundError:
        return SandboxReport("quickjs-ng", absent=f"another package is in its place (`quickjs` crashes): {INSTALL}")
    sandbox = QuickJs()
    try:
        missing = _missing(sandbox)
    except ConfigError as error:
        return SandboxReport("quickjs-ng", number, absent=str(error))
    holds: frozenset[Guarantee] = frozenset(guarantee for guarantee in GUARANTEES if guarantee not in missing)
    return SandboxReport("quickjs-ng", number, holds, missing, seconds=time.monotonic() - started)


def _missing(sandbox: QuickJs) -> dict[Guarantee, str]:
    looked = sandbox.probe_worker()
    if looked is None:
        return dict.fromkeys(GUARANTEES, "a worker could not shut itself in")
    missing: dict[Guarantee, str] = {}
    for guarantee in GUARANTEES:
        if guarantee in looked.found:
            missing[guarantee] = "the process of the engine could do it"
    if not looked.filtered:
        missing["syscalls"] = "this system has no filter of calls that is known here"
    names = json.encode(FORBIDDEN_GLOBALS).decode()
    strangers = sandbox.run_code(f"{names}.filter(name => typeof globalThis[name] !== 'undefined')").value
    imported = sandbox.run_code(IMPORTS).value
    for guarantee in ("files", "net", "processes"):
        if strangers != [] or imported != []:
            missing[guarantee] = f"the engine has {strangers} and imports {imported}"
    big = sandbox.run_code(f"let a; try {{ a = new ArrayBuffer({2 * sandbox.memory}).byteLength }} catch {{}}; a ?? 0")
    if big.value != 0:
        missing["memory"] = "the engine took twice its memory"
    if sandbox.run_code("for (;;);", seconds=0.1).killed != "time":
        missing["cpu"] = "an endless loop was not ended"
    return missing
