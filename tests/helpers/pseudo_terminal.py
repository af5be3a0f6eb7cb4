"""A terminal that a test sits in front of."""

import contextlib
import os
import pty
import signal
import subprocess
from pathlib import Path


class Terminal:
    """A program under a terminal of its own."""

    def __init__(self, words: list[str], environment: dict[str, str], cwd: Path | None = None) -> None:
        self._master, slave = pty.openpty()
        self._program = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=cwd, start_new_session=True
        )
        os.close(slave)
        self._raw = b""

    @property
    def text(self) -> str:
        """Everything it has shown, and what was typed."""
        return self._raw.decode(errors="replace").replace("\r\n", "\n")

    def until(self, text: str) -> None:
        """Read until it has shown a text after what was read before."""
        seen = len(self.text)
        while text not in self.text[seen:]:
            assert self._read(), f"it ended without {text!r}:\n{self.text}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self._program.send_signal(signal.SIGINT)

    def interrupt_until_it_ends(self) -> int:
        """Press Ctrl-C, and again should it be missed: Python's readline only hears it while it waits for a key."""
        while True:
            self.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._program.wait(5)
                return self.end()

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        while self._read():
            pass
        return self._program.wait()

    def _read(self) -> bytes:
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # how Linux says that the other end is gone
            piece = b""
        self._raw += piece
        return piece

    def close(self) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._master)
