"""The terminal assistant as a person uses it: `everturn chat` in a pseudo-terminal, its keys, and the log in its store."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import signal
import sqlite3
import struct
import sys
import termios
from pathlib import Path

from everturn import wire
from everturn.core.events import Event, TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.messages import Message
from everturn.stores.sql.body_compression import decompress_message
from everturn.stores.sql.event_packs import unpack_body

LOOK = 0.2  # seconds between two looks at the log
SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[@-Z\\-_])")
FOREIGN = re.compile(r"_API_KEY$|^EVERTURN_|^NO_COLOR$|^COLUMNS$|^LINES$")


class Assistant:
    """`everturn chat` in a terminal of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pid, self._fd = 0, -1
        self.drawn = b""

    def start(self) -> None:
        """Start the process; what it draws is read from now on."""
        known = {name: value for name, value in os.environ.items() if not FOREIGN.search(name)}
        known |= {"TERM": "xterm-256color", "LANG": "C.UTF-8", "HOME": str(self._home)}
        known |= {f"XDG_{name}_HOME": str(self._home / name.lower()) for name in ("STATE", "DATA", "CONFIG")}
        self.drawn = b""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            try:
                os.chdir(self._home)
                os.execve(sys.executable, [sys.executable, "-m", "everturn", "chat"], known)
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        os.set_blocking(self._fd, False)
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            asyncio.get_running_loop().remove_reader(self._fd)
        self.drawn = (self.drawn + piece)[-200_000:]

    @property
    def text(self) -> str:
        """What was drawn, without the sequences that move the cursor."""
        return SEQUENCE.sub(b" ", self.drawn).decode("utf-8", "replace")

    async def wait_for(self, pattern: str, seconds: float = 90.0) -> None:
        """Wait until something is drawn."""
        async with asyncio.timeout(seconds):
            while not re.search(pattern, self.text):  # noqa: ASYNC110 (the screen is read by a callback of the loop)
                await asyncio.sleep(LOOK)

    def type(self, keys: str) -> None:
        """Press keys; what was drawn before is forgotten."""
        self.drawn = b""
        os.write(self._fd, keys.encode())

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return bool(self._pid) and os.waitpid(self._pid, os.WNOHANG) == (0, 0)

    def kill(self) -> None:
        """`kill -9`."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            asyncio.get_running_loop().remove_reader(self._fd)
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._pid = 0


class StoredLog:
    """The log of the only session in a store, read beside the process that writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.events: list[Event] = []
        self._read = 0  # rows
        self.sessions: set[str] = set()

    def read(self) -> None:
        """Read what is new."""
        rows = self._rows("SELECT session, body FROM events ORDER BY session, seq", self._read)
        self._read += len(rows)
        for session, body in rows:
            self.sessions.add(session)
            self.events += map(wire.load_event, unpack_body(body))

    def messages(self) -> list[Message]:
        """The messages of the session, in the order in which they were begun."""
        rows = self._rows("SELECT seq, body FROM messages ORDER BY seq")
        return [wire.load_message(decompress_message(body)) for _, body in rows]

    @property
    def ends(self) -> list[TurnCompleted | TurnFailed | TurnCancelled]:
        """The ends of the turns, in order."""
        return [event for event in self.events if isinstance(event, TurnCompleted | TurnFailed | TurnCancelled)]

    def _rows(self, query: str, offset: int = 0) -> list[tuple[str, bytes]]:
        if not self._path.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=30)) as base:
            try:
                return base.execute(f"{query} LIMIT -1 OFFSET ?", (offset,)).fetchall()
            except sqlite3.OperationalError:  # the tables are being made
                return []
