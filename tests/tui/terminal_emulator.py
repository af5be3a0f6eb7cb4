"""A real terminal, as far as one is needed: a program in it, the keys it is sent, and what it has drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 90.0
SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[@-Z\\-_])")
KEYS = re.compile(r"_API_KEY$|^EVERTURN_|^NO_COLOR$|^COLUMNS$|^LINES$")


class Terminal:
    """`everturn` in a pseudo-terminal."""

    def __init__(
        self, words: list[str], environment: Mapping[str, str], size: tuple[int, int], folder: Path | None = None
    ) -> None:
        self.drawn = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the child
            try:
                if folder is not None:
                    os.chdir(folder)
                os.execve(sys.executable, [sys.executable, "-m", "everturn", *words], dict(environment))
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.code: int | None = None

    @property
    def text(self) -> str:
        """What was drawn so far, without what moves the cursor."""
        return SEQUENCE.sub(b" ", self.drawn).decode("utf-8", "replace")

    def read(self, seconds: float = 0.1) -> bool:
        """Take what has come; whether there may be more."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            return False
        self.drawn += data
        return bool(data)

    def sees(self, pattern: str, seconds: float = PATIENCE) -> None:
        """Wait until something is drawn."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, f"{pattern} did not come: {self.text[-3000:]}"
            assert self.read() or re.search(pattern, self.text), f"it has ended: {self.text[-3000:]}"

    def types(self, keys: str, *, is_forgotten: bool = True) -> None:
        """Press keys; what was drawn before them is forgotten."""
        if is_forgotten:
            self.drawn = b""
        os.write(self.fd, keys.encode())

    def ends(self, seconds: float = PATIENCE) -> int:
        """Wait for the end; the exit code, negative by a signal."""
        end = time.monotonic() + seconds
        while self.code is None:
            self.read(0.05)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"it does not end: {self.text[-2000:]}"
        for _ in range(20):
            if not self.read(0.02):
                break
        return self.code

    def close(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        with suppress(OSError):
            os.close(self.fd)


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a program is told: nothing of whoever runs this."""
    known = {name: value for name, value in os.environ.items() if not KEYS.search(name)}
    known |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(home)}
    known |= {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "DATA", "CONFIG")}
    return known | more


@contextmanager
def terminal(
    home: Path, *words: str, size: tuple[int, int] = (100, 30), **more: str
) -> Generator[Terminal, None, None]:
    """A program in a terminal."""
    console = Terminal(list(words), environment(home, **more), size)
    try:
        yield console
    finally:
        console.close()
