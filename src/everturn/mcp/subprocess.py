"""Server process: starts the program of a stdio server, exchanges lines with it, and ends it with this process.

It has its own process group, so that its children end with it, and inherits only PATH, HOME and LANG. Its stderr is
read continuously; the last bytes are kept to explain why it died.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from typing import Final, cast

from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.jsonrpc import IncomingMessage, LineSplitter

INHERITED: Final = ("PATH", "HOME", "LANG")
STDERR_KEPT: Final = 4096  # bytes
QUEUED: Final = 256  # lines read ahead
GRACE: Final = 0.5  # seconds to exit after its stdin is closed, and again after SIGTERM
LINGER: Final = 0.1  # seconds in which output of a dead process may still arrive


class ServerProcess(asyncio.SubprocessProtocol):
    """A server process. `why` says what ended it."""

    def __init__(self) -> None:
        self.end_reason, self.pid = "", 0
        self._lines, self._queue = LineSplitter(), deque[bytes | IncomingMessage]()
        self._wakeup, self._exited = asyncio.Event(), asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stderr = bytearray()
        self._is_paused = False
        self._transport: asyncio.SubprocessTransport | None = None

    # Callbacks of the event loop ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The process wrote to stdout or stderr."""
        if fd == 2:
            self._stderr += data[-STDERR_KEPT:]
            del self._stderr[:-STDERR_KEPT]
            return
        self._queue += self._lines.feed(data)
        self._wakeup.set()
        if len(self._queue) > QUEUED and not self._is_paused:
            self._pause(True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """The process closed a pipe. Without stdin or stdout it cannot be used."""
        if fd == 1 and self._exited.is_set():
            self._end(self._exit_text())
        elif fd != 2:
            # Usually it is exiting, and then its exit code says more.
            why = "it closed its output" if fd else "it closed its input"
            asyncio.get_running_loop().call_later(LINGER, self._end, why)

    def process_exited(self) -> None:
        """The process has exited. Its children may still hold its stdout open, and are killed too."""
        self._exited.set()
        self._signal(signal.SIGKILL)
        pipe = self._transport.get_pipe_transport(1) if self._transport is not None else None
        if pipe is None or pipe.is_closing():
            self._end(self._exit_text())
        else:
            asyncio.get_running_loop().call_later(LINGER, self._end, self._exit_text())

    def _exit_text(self) -> str:
        code = self._transport.get_returncode() if self._transport is not None else None
        return f"it was killed by signal {-code}" if code is not None and code < 0 else f"it exited with code {code}"

    def pause_writing(self) -> None:
        """The process does not read its stdin."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The process reads its stdin again."""
        self._writable.set()

    # Operations --------------------------------------------------------------------------------------------------

    @property
    def stderr(self) -> str:
        """The last bytes of its stderr, as text."""
        return bytes(self._stderr).decode("utf-8", "replace")

    @property
    def is_over(self) -> bool:
        """Whether the process can no longer be used."""
        return bool(self.end_reason)

    async def receive(self) -> bytes | IncomingMessage:
        """Return the next line.

        Raises:
            EOFError: the process has ended, and all lines were read.
        """
        while not self._queue:
            if self.end_reason:
                raise EOFError(self.end_reason)
            self._wakeup.clear()
            await self._wakeup.wait()
        line = self._queue.popleft()
        if self._is_paused and len(self._queue) < QUEUED // 2:
            self._pause(False)
        return line

    def write(self, line: bytes) -> None:
        """Write a line; all of it is buffered when this returns.

        Raises:
            BrokenPipeError: the process cannot be written to. Nothing was written.
        """
        pipe = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if self.end_reason or pipe is None or pipe.is_closing():
            raise BrokenPipeError(self.end_reason or "it closed its input")
        cast("asyncio.WriteTransport", pipe).write(line)
        if pipe.is_closing():  # the first attempt to write failed: the process does not read
            raise BrokenPipeError("it closed its input")

    async def drain(self) -> None:
        """Wait while the process does not read its stdin."""
        while not self._writable.is_set() and not self.end_reason:
            await self._writable.wait()

    async def stop(self) -> None:
        """Stop the process: close its stdin, then SIGTERM, then SIGKILL."""
        self._end("it was stopped")
        try:
            if self._transport is not None and (pipe := self._transport.get_pipe_transport(0)) is not None:
                pipe.close()
            if not await self._wait_for_exit():
                self._signal(signal.SIGTERM)
                await self._wait_for_exit()
        finally:
            self.kill()
        await self._wait_for_exit()

    def kill(self) -> None:
        """Kill the process at once."""
        if not self._exited.is_set():
            self._signal(signal.SIGKILL)
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._transport.close()

    async def _wait_for_exit(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _pause(self, is_paused: bool) -> None:
        pipe = self._transport.get_pipe_transport(1) if self._transport is not None else None
        if pipe is None or pipe.is_closing():
            return
        reading = cast("asyncio.ReadTransport", pipe)
        reading.pause_reading() if is_paused else reading.resume_reading()
        self._is_paused = is_paused

    def _end(self, why: str) -> None:
        self.end_reason = self.end_reason or why
        self._wakeup.set()
        self._writable.set()


async def start_process(spec: ServerSpec) -> ServerProcess:
    """Start the program of a server.

    Raises:
        ConfigError: there is no such program, or it cannot be started.
    """
    env = {name: os.environ[name] for name in INHERITED if name in os.environ} | spec.env
    command = await asyncio.to_thread(command_line, spec, env)
    try:
        _, child = await asyncio.get_running_loop().subprocess_exec(
            ServerProcess,
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=spec.cwd or None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"{spec.command!r} cannot be started: {error}") from None
    return child


def command_line(spec: ServerSpec, env: Mapping[str, str]) -> list[str]:
    """Return the full command line: the resolved program, behind a wrapper that ends it with its parent if there is
    one."""
    if "/" in spec.command:
        path = os.path.join(spec.cwd, spec.command) if spec.cwd else spec.command
        program = path if os.access(path, os.X_OK) else None
    else:
        program = shutil.which(spec.command, path=env.get("PATH"))
    if program is None:
        raise ConfigError(f"the program {spec.command!r} was not found; install it, or write its path")
    return [*_death_signal_prefix(), program, *spec.args]


@functools.cache
def _death_signal_prefix() -> tuple[str, ...]:
    """Return a `setpriv --pdeathsig` prefix: the kernel then kills a child whose parent was killed.

    Without it, closing stdin must do.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL", "--")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        result = subprocess.run(
            (*prefix, "true"), capture_output=True, timeout=5, stdin=subprocess.DEVNULL, check=False
        )
        return prefix if result.returncode == 0 else ()
    return ()
