"""JavaScript → what it came to, in quickjs-ng, in a process that can be killed. The engine is never loaded in here.

Workers are kept ready; each makes a child for a run, which has a fresh engine, no privileges, and a filter that lets
nothing through but computing. A worker whose run had to be ended is ended with it.
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

from everturn.core.canonical import JsonObject
from everturn.core.sandboxes import GUARANTEES, Guarantee, Killed, Ran, Report
from everturn.errors import ConfigError
from everturn.sandbox.running import Stop, in_thread, read_soon
from everturn.sandbox.seccomp import for_interpreter

INSTALL: Final = "there is no quickjs-ng here: pip install 'everturn[code]'"
UID: Final = 65_533  # whose processes they are where the server is root
MIB: Final = 1024 * 1024
LONGEST: Final = MIB  # characters of code
START: Final = 10.0  # seconds that a worker has to begin
GRACE: Final = 1.0  # seconds after which a run is ended from outside: the engine has its own clock
AT_ONCE: Final = 4
READY: Final = 2  # workers that are kept
BROKEN: Final = Ran(error="the engine ended by itself; what the code did to it is not known")


class Answer(Struct):
    """What a worker says."""

    token: str
    value: str | None = None
    error: str = ""
    logs: str = ""
    cut: bool = False
    killed: Killed = ""
    died: int = 0
    found: list[str] = []
    filtered: bool = False


class QuickJs:
    """JavaScript, with nothing but the language: no files, no network, no timers. `console.log` is its stdout.

    The value of a run is that of its last statement, or what it returns; of a promise, what that comes to. Numbers of
    bytes: `memory` for the engine, `keep` for what is written and for the value.
    """

    name = "quickjs-ng"

    def __init__(self, *, memory: int = 64 * MIB, keep: int = 200_000) -> None:
        self.memory = memory
        self.keep = keep
        self._ready: list[_Worker] = []
        self._lock = threading.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._end = weakref.finalize(self, _end_all, self._ready)

    async def probe(self) -> Report:
        """Find out what holds here."""
        return await asyncio.to_thread(check)

    async def run(
        self, code: str, *, stdin: str = "", arguments: JsonObject | None = None, seconds: float = 10.0
    ) -> Ran:
        """Run code; `arguments` are there as `args`, and `stdin` as `args.stdin`."""
        given: JsonObject = {**(arguments or {}), **({"stdin": stdin} if stdin else {})}
        async with self._places:
            return await in_thread(lambda stop: self.run_code(code, given, seconds, stop))

    async def aclose(self) -> None:
        """End the workers."""
        await asyncio.to_thread(_end_all, self._ready)

    def run_code(
        self, code: str, arguments: JsonObject | None = None, seconds: float = 10.0, stop: Stop | None = None
    ) -> Ran:
        """Run code, and block until it has ended.

        Raises:
            ConfigError: the engine is not here.
        """
        if len(code) > LONGEST:
            return Ran(error=f"the code has {len(code)} characters; at most {LONGEST} are run")
        if not code.strip():
            return Ran()
        told, killed = self._ask(code, arguments or {}, seconds, stop)
        if told is None:
            return Ran(killed=killed) if killed else BROKEN
        try:
            value: object = None if told.value is None else json.decode(told.value)
        except (DecodeError, RecursionError):
            value = told.value
        return Ran(None, told.logs, "", told.cut, False, told.killed, value, told.error)

    def look(self) -> Answer | None:
        """What code could do in a worker if it got out of the engine."""
        return self._ask("", {}, 1.0, None)[0]

    def _ask(self, code: str, given: JsonObject, seconds: float, stop: Stop | None) -> tuple[Answer | None, Killed]:
        token = secrets.token_hex(8)
        request = {
            "token": token, "code": code, "args": json.encode(given).decode() if given else "", "seconds": seconds,
            "memory": self.memory, "keep": self.keep, "uid": UID, "host": os.getpid(),
            "filter": (for_interpreter() or b"").hex() if sys.platform.startswith("linux") else "",
        }  # fmt: skip
        line = json.encode(request) + b"\n"
        with self._lock:
            worker = self._ready.pop() if self._ready else None
        if worker is not None and worker.process.poll() is not None:
            worker.end()
            worker = None
        worker = worker or _Worker()
        is_well = False
        try:
            data, killed = worker.ask(line, seconds + GRACE, 16 * self.keep + 65_536, stop)
            told = _read(data, token)
            is_well = told is not None and not told.died and not told.killed
        finally:
            with self._lock:
                is_kept = is_well and len(self._ready) < READY
                if is_kept:
                    self._ready.append(worker)
            if not is_kept:
                worker.end()
        return (None if told is None or told.died else told), killed


class _Worker:
    def __init__(self) -> None:
        found = importlib.util.find_spec("quickjs")
        if found is None or found.origin is None:
            raise ConfigError(INSTALL)
        here = Path(__file__).with_name("quickjs_worker.py")
        site = str(Path(found.origin).parents[1])
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
        if read_soon(self.process.stdout.fileno(), b"\n", START) != b"{}\n":
            self.end()
            raise ConfigError("quickjs-ng cannot be loaded here; try: python -c 'import quickjs'")

    def ask(self, line: bytes, seconds: float, most: int, stop: Stop | None) -> tuple[bytes, Killed]:
        """Hand over a line and wait for one; without an end of line if there was none in time."""
        process = self.process
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        deadline, came = time.monotonic() + seconds, bytearray()
        with contextlib.suppress(BrokenPipeError), selectors.DefaultSelector() as waiting:
            while line:
                line = line[process.stdin.write(line) or 0 :]
            waiting.register(process.stdout, selectors.EVENT_READ)
            if stop is not None:
                waiting.register(stop.reader, selectors.EVENT_READ)
            while b"\n" not in came:
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    return bytes(came), "time"
                if stop is not None and stop.is_set:
                    return bytes(came), "cancelled"
                data = os.read(process.stdout.fileno(), 65_536)
                came += data
                if not data:
                    break
                if len(came) > most:
                    return bytes(came), "output"
        return bytes(came), ""

    def end(self) -> None:
        """Kill it with the child that it may have."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with self.process:
            pass


def _end_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().end()


def _read(data: bytes, token: str) -> Answer | None:
    """An answer to what was asked; a run that was taken over may have written anything, but not for the next one."""
    line, end, more = data.partition(b"\n")
    try:
        told = json.decode(line, type=Answer) if end and not more else None
    except (DecodeError, ValidationError, RecursionError):
        return None
    return told if told is not None and told.token == token else None


STRANGERS: Final = (
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
def check() -> Report:
    """What holds here; it blocks for less than a second, the first time."""
    started = time.monotonic()
    if importlib.util.find_spec("quickjs") is None or os.name != "posix":
        return Report("quickjs-ng", absent=INSTALL if os.name == "posix" else "quickjs-ng is run on POSIX systems only")
    try:
        number = version("quickjs-ng")
    except PackageNotFoundError:
        return Report("quickjs-ng", absent=f"another package is in its place (`quickjs` crashes): {INSTALL}")
    sandbox = QuickJs()
    try:
        missing = _missing(sandbox)
    except ConfigError as error:
        return Report("quickjs-ng", number, absent=str(error))
    holds: frozenset[Guarantee] = frozenset(one for one in GUARANTEES if one not in missing)
    return Report("quickjs-ng", number, holds, missing, seconds=time.monotonic() - started)


def _missing(sandbox: QuickJs) -> dict[Guarantee, str]:
    looked = sandbox.look()
    if looked is None:
        return dict.fromkeys(GUARANTEES, "a worker could not shut itself in")
    missing: dict[Guarantee, str] = {}
    for one in GUARANTEES:
        if one in looked.found:
            missing[one] = "the process of the engine could do it"
    if not looked.filtered:
        missing["syscalls"] = "this system has no filter of calls that is known here"
    names = json.encode(STRANGERS).decode()
    strangers = sandbox.run_code(f"{names}.filter(name => typeof globalThis[name] !== 'undefined')").value
    imported = sandbox.run_code(IMPORTS).value
    for one in ("files", "net", "processes"):
        if strangers != [] or imported != []:
            missing[one] = f"the engine has {strangers} and imports {imported}"
    big = sandbox.run_code(f"let a; try {{ a = new ArrayBuffer({2 * sandbox.memory}).byteLength }} catch {{}}; a ?? 0")
    if big.value != 0:
        missing["memory"] = "the engine took twice its memory"
    if sandbox.run_code("for (;;);", seconds=0.1).killed != "time":
        missing["cpu"] = "an endless loop was not ended"
    return missing
