"""A command line → a process that is talked to in lines, and that ends with us.

It has a group of its own, so that what it starts ends with it, and of our environment only where programs and the home
are. What it says on its error output is read away; the end of it is kept for whoever asks why it died.
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
from everturn.mcp.lines import Incoming, Lines

INHERITED: Final = ("PATH", "HOME", "LANG")
STDERR_KEPT: Final = 4096  # bytes
QUEUED: Final = 256  # lines that are read ahead
GRACE: Final = 0.5  # seconds to leave by itself when its input is closed, and again when it is told to
LINGER: Final = 0.1  # seconds in which what a dead process wrote may still arrive


class Child(asyncio.SubprocessProtocol):
    """A process. `why` says what ended it."""

    def __init__(self) -> None:
        self.why, self.pid = "", 0
        self._lines, self._queue = Lines(), deque[bytes | Incoming]()
        self._news, self._exited = asyncio.Event(), asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stderr = bytearray()
        self._is_paused = False
        self._transport: asyncio.SubprocessTransport | None = None

    # What the event loop tells -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It said something."""
        if fd == 2:
            self._stderr += data[-STDERR_KEPT:]
            del self._stderr[:-STDERR_KEPT]
            return
        self._queue += self._lines.feed(data)
        self._news.set()
        if len(self._queue) > QUEUED and not self._is_paused:
            self._pause(True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It closed one of its ends. With one of them gone it cannot be talked to."""
        if fd == 1 and self._exited.is_set():
            self._end(self._exit())
        elif fd != 2:
            # Most often it is because it ends, and then its exit code says more.
            why = "it closed its output" if fd else "it closed its input"
            asyncio.get_running_loop().call_later(LINGER, self._end, why)

    def process_exited(self) -> None:
        """It is dead. What it started may still hold its output open, and is ended too."""
        self._exited.set()
        self._signal(signal.SIGKILL)
        pipe = self._transport.get_pipe_transport(1) if self._transport is not None else None
        if pipe is None or pipe.is_closing():
            self._end(self._exit())
        else:
            asyncio.get_running_loop().call_later(LINGER, self._end, self._exit())

    def _exit(self) -> str:
        code = self._transport.get_returncode() if self._transport is not None else None
        return f"it was killed by signal {-code}" if code is not None and code < 0 else f"it exited with code {code}"

    def pause_writing(self) -> None:
        """It does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    # What we do --------------------------------------------------------------------------------------------------

    @property
    def stderr(self) -> str:
        """The end of what it said on its error output."""
        return bytes(self._stderr).decode("utf-8", "replace")

    @property
    def is_over(self) -> bool:
        """Whether it can no longer be talked to."""
        return bool(self.why)

    async def receive(self) -> bytes | Incoming:
        """The next line.

        Raises:
            EOFError: there will be none.
        """
        while not self._queue:
            if self.why:
                raise EOFError(self.why)
            self._news.clear()
            await self._news.wait()
        line = self._queue.popleft()
        if self._is_paused and len(self._queue) < QUEUED // 2:
            self._pause(False)
        return line

    def write(self, line: bytes) -> None:
        """Write a line; all of it is on its way when this returns.

        Raises:
            BrokenPipeError: it cannot be talked to. Nothing was written.
        """
        pipe = self._transport.get_pipe_transport(0) if self._transport is not None else None
        if self.why or pipe is None or pipe.is_closing():
            raise BrokenPipeError(self.why or "it closed its input")
        cast("asyncio.WriteTransport", pipe).write(line)
        if pipe.is_closing():  # the first attempt to write failed: nobody is at the other end
            raise BrokenPipeError("it closed its input")

    async def drain(self) -> None:
        """Wait while it does not read."""
        while not self._writable.is_set() and not self.why:
            await self._writable.wait()

    async def stop(self) -> None:
        """End it: close its input, ask, and then no longer ask."""
        self._end("it was stopped")
        try:
            if self._transport is not None and (pipe := self._transport.get_pipe_transport(0)) is not None:
                pipe.close()
            if not await self._gone():
                self._signal(signal.SIGTERM)
                await self._gone()
        finally:
            self.kill()
        await self._gone()

    def kill(self) -> None:
        """End it at once."""
        if not self._exited.is_set():
            self._signal(signal.SIGKILL)
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._transport.close()

    async def _gone(self) -> bool:
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
        self.why = self.why or why
        self._news.set()
        self._writable.set()


async def start(spec: ServerSpec) -> Child:
    """Start the program of a server.

    Raises:
        ConfigError: there is no such program, or it cannot be started.
    """
    env = {name: os.environ[name] for name in INHERITED if name in os.environ} | spec.env
    words = await asyncio.to_thread(command_line, spec, env)
    try:
        _, child = await asyncio.get_running_loop().subprocess_exec(
            Child,
            *words,
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
    """What is really started: the program by its full name, tied to our life where the system can do that."""
    if "/" in spec.command:
        found = os.path.join(spec.cwd, spec.command) if spec.cwd else spec.command
        program = found if os.access(found, os.X_OK) else None
    else:
        program = shutil.which(spec.command, path=env.get("PATH"))
    if program is None:
        raise ConfigError(
            f"there is no program {spec.command!r} here that could be started; install it, or say its path"
        )
    return [*_leash(), program, *spec.args]


@functools.cache
def _leash() -> tuple[str, ...]:
    """`setpriv --pdeathsig` has the kernel end a child whose parent was killed; without it a closed input must do."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    words = (setpriv, "--pdeathsig", "KILL", "--")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        tried = subprocess.run((*words, "true"), capture_output=True, timeout=5, stdin=subprocess.DEVNULL, check=False)
        return words if tried.returncode == 0 else ()
    return ()
