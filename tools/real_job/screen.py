"""A terminal: a program in it, and the characters that are on its screen now.

It understands what Textual writes: positions, erasures, colours (which it ignores) and text. The screen is what the person of
the campaign reads, so an approval is counted when it was drawn, and not when it was in the log.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len

UID = 65533  # the user of the program where the campaign is root, to whom the shell is refused
PATIENCE = 120.0
SEQUENCE = re.compile(
    r"\x1b(?:\[(?P<args>[0-?]*)[ -/]*(?P<kind>[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[@-Z\\-_=>])"
)
INCOMPLETE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*|P[^\x1b]*)?\x1b?$")


class Screen:
    """The characters of a screen."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._cells = [[" "] * columns for _ in range(rows)]
        self._x = self._y = 0
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        """The rows, without the spaces at their ends."""
        return ["".join(row).rstrip() for row in self._cells]

    def feed(self, text: str) -> None:
        """Take what the program has written."""
        text, position = self._rest + text, 0
        self._rest = ""
        while position < len(text):
            found = SEQUENCE.match(text, position) if text[position] == "\x1b" else None
            if found is not None:
                self._obey(found["args"] or "", found["kind"] or "")
                position = found.end()
            elif text[position] == "\x1b" and INCOMPLETE.match(text, position):
                self._rest = text[position:]
                return
            else:
                self._put(text[position])
                position += 1

    def _put(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._next_row()
        elif character == "\b":
            self._x = max(self._x - 1, 0)
        elif character >= " " and (width := cell_len(character)):
            if self._x + width > self.columns:
                self._x = 0
                self._next_row()
            if self._x < self.columns:
                self._cells[self._y][self._x] = character
                if width == 2 and self._x + 1 < self.columns:
                    self._cells[self._y][self._x + 1] = ""
            self._x += width

    def _next_row(self) -> None:
        self._y += 1
        if self._y == self.rows:
            self._y -= 1
            self._cells = [*self._cells[1:], [" "] * self.columns]

    def _obey(self, arguments: str, kind: str) -> None:
        numbers = [int(number) for number in re.findall(r"\d+", arguments)] if "?" not in arguments else []
        first = numbers[0] if numbers else 0
        if kind in ("H", "f"):
            self._y = min(max(first, 1), self.rows) - 1
            self._x = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif kind == "J" and first == 2:
            self._cells = [[" "] * self.columns for _ in range(self.rows)]
        elif kind == "K":
            self._cells[self._y][self._x :] = [" "] * (self.columns - self._x)
        elif kind in "ABCD":
            step = max(first, 1)
            self._y += {"A": -step, "B": step}.get(kind, 0)
            self._x += {"C": step, "D": -step}.get(kind, 0)
            self._y, self._x = min(max(self._y, 0), self.rows - 1), min(max(self._x, 0), self.columns - 1)


class TerminalWindow:
    """A program in a terminal of its own; a thread reads what it draws."""

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], folder: Path, size: tuple[int, int] = (100, 30)
    ) -> None:
        self._screen, self._lock = Screen(*size), threading.Lock()
        self.printed = ""  # the last of everything it wrote
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(UID)
                    os.setuid(UID)
                os.execve(words[0], list(words), dict(environ))
            except OSError as error:
                os.write(2, f"{words[0]}: {error}".encode())
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                return
            if not data:
                return
            piece = decoder.decode(data)
            with self._lock:
                self._screen.feed(piece)
                self.printed = (self.printed + piece)[-20_000:]

    @property
    def text(self) -> str:
        """What is on the screen."""
        with self._lock:
            return "\n".join(self._screen.lines)

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Wait until something is on the screen; the screen then.

        Raises:
            TimeoutError: it did not come.
        """
        end = time.monotonic() + seconds
        while not re.search(pattern, text := self.text):
            if time.monotonic() > end or not self.is_alive:
                raise TimeoutError(f"{pattern!r} did not come:\n{text}\n{self.printed[-2000:]}")
            time.sleep(0.05)
        return text

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    @property
    def is_alive(self) -> bool:
        """Whether the program runs."""
        with contextlib.suppress(ChildProcessError):
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        return False

    def kill(self) -> None:
        """`kill -9`."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def close(self) -> None:
        """End the program, and close the terminal."""
        self.kill()
        with contextlib.suppress(OSError):
            os.close(self._fd)
