"""Ledger of effects: records what was really done outside of the processes that die, one line of JSON each, in a file.

A line is one write to a file that is open for appending, with nothing in between that could be lost with the process. A
kill may tear even that, where it crosses a page; so a line begins with a line break of its own, and a torn line does
not damage its successor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Kind = Literal["effect", "request", "ack", "drive", "note"]


class LedgerLine(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that happened in the world.

    - effect: a tool did something. `name` is the tool, `hash` that of tool and arguments, `key` the key that the tool
      got.
    - request: a model was called. `key` is the digest of the request, `hash` that of the input, `name` the number of
      the step.
    - ack: a command was acknowledged. `name` is its kind, `key` its key, `turn` the turn of the receipt, `hash` the
      input's.
    - drive: a worker has begun to drive a session.
    - note: anything else (a kill, say), for people and for figures.
    """

    kind: Kind
    session: str = ""
    turn: str = ""
    call: str = ""
    key: str = ""
    name: str = ""
    hash: str = ""
    pid: int = 0
    worker: str = ""
    at: float = 0.0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LedgerLine).decode


class EffectLedger:
    """A file to which any number of processes append effects."""

    def __init__(self, path: str | Path, worker: str = "", now: Callable[[], float] = time.time) -> None:
        self.worker, self._now = worker, now
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(
        self,
        kind: Kind,
        *,
        session: str = "",
        turn: str = "",
        call: str = "",
        key: str = "",
        name: str = "",
        hash: str = "",
    ) -> None:
        """Write a line. When this returns, the line survives the death of this process.

        Raises:
            OSError: it was not written, or not completely.
        """
        line = LedgerLine(kind, session, turn, call, key, name, hash, os.getpid(), self.worker, self._now())
        data = b"\n" + _encode(line) + b"\n"
        if os.write(self._file, data) != len(data):
            raise OSError("the ledger took only a part of a line: is the disk full?")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class LedgerContents(Struct, frozen=True):
    """The content of a ledger: its lines, and how many were torn by a death in the middle of a write."""

    lines: list[LedgerLine]
    torn: int


def read_ledger(*paths: str | Path) -> LedgerContents:
    """Read one ledger, or several together. A missing file is empty."""
    lines: list[LedgerLine] = []
    torn = 0
    for path in paths:
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            for raw in file:
                if raw == b"\n":
                    continue
                try:
                    lines.append(_decode(raw))
                except msgspec.DecodeError:
                    torn += 1
    return LedgerContents(lines, torn)
