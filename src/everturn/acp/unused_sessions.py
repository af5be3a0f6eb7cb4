"""Unused sessions: those that an editor has opened and not written in, so that it can load them after a restart.

A session begins with its first message: before that there is nothing in the store, only an id, which the server derived
from an idempotency key of ours. An editor remembers the id. A file in the state folder, named like the session, has the
key, until the first message is sent.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_FILES: Final = 200  # editors open a session with every window; the oldest files go
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")


class UnusedSessions:
    """The keys of unused sessions. Where the folder cannot be written to, nothing is remembered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, session: str, key: str) -> None:
        """Remember the key of a session."""
        if _ID.fullmatch(session) is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
            with os.fdopen(os.open(self._folder / session, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(key)
            known = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime)
            for path in known[:-MAX_FILES]:
                path.unlink()

    def find(self, session: str) -> str:
        """Return the key of a session; "": none is known."""
        if _ID.fullmatch(session) is not None:
            with suppress(OSError, UnicodeDecodeError):
                return (self._folder / session).read_text(encoding="utf-8")
        return ""

    def remove(self, session: str) -> None:
        """Forget a session: it has a message."""
        if _ID.fullmatch(session) is not None:
            with suppress(OSError):
                (self._folder / session).unlink()
