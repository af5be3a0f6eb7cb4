"""Events ⇄ JSON: what a store keeps and a face is sent. msgspec only; no type is ever revived by name.

Every stored event says which version wrote it. A newer one reads it by walking `UPGRADES`; an event that cannot be
read is an error, never a guess. Golden logs of every released version are kept under tests/golden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from everturn.core.commands import AnyCommand
from everturn.core.deltas import Frame
from everturn.core.events import Entry, Event, LogEvent
from everturn.errors import UnreadableLog

T = TypeVar("T")

VERSION: Final = 1

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: Final[Mapping[tuple[str, int], Upgrade]] = {}
"""(event type, version) -> how to read what that version wrote as the next one would have. Never remove a row."""


class _Stored(Struct, frozen=True):
    v: int
    event: LogEvent


class _Version(Struct, frozen=True):
    v: int


class _Raw(Struct, frozen=True):
    v: int
    event: dict[str, Any]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Stored).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_raw = msgspec.json.Decoder(_Raw).decode
_decode_command = msgspec.json.Decoder(AnyCommand).decode
_decode_frame = msgspec.json.Decoder(Frame).decode


def dump(event: Event) -> bytes:
    """Write an event as one line of JSON."""
    return _encode({"v": VERSION, "event": event})


def load(data: bytes | str, upgrades: Mapping[tuple[str, int], Upgrade] = UPGRADES, version: int = VERSION) -> Event:
    """Read an event that this version or an older one wrote.

    Raises:
        UnreadableLog: it is broken, or a newer version wrote it.
    """
    try:
        written = _decode_version(data).v
        if written == version:
            return _decode(data).event
        if written < 1:
            raise UnreadableLog(f"there never was a version {written} of the log format")
        if written > version:
            raise UnreadableLog(
                f"this event was written by version {written} of the log format and this is {version}: upgrade everturn"
            )
        raw = _decode_raw(data).event
        for at in range(written, version):
            upgrade = upgrades.get((str(raw.get("type")), at))
            raw = raw if upgrade is None else upgrade(raw)
        return msgspec.convert(raw, LogEvent)
    except UnreadableLog:
        raise
    except Exception as error:  # an upgrade may stumble over anything
        raise UnreadableLog(f"this is not an event: {error!r}") from error


def dump_log(entries: Iterable[Entry]) -> bytes:
    """Write a log, one event a line."""
    return b"".join(dump(entry.event) + b"\n" for entry in entries)


def load_log(data: bytes) -> list[Entry]:
    """Read what `dump_log` wrote."""
    return [Entry(seq, load(line)) for seq, line in enumerate(data.splitlines(), 1)]


def dump_command(command: AnyCommand) -> bytes:
    """Write a command."""
    return _encode(command)


def load_command(data: bytes) -> AnyCommand:
    """Read a command; what is none is `UnreadableLog`, too."""
    return _read(_decode_command, data)


def dump_frame(frame: Frame) -> bytes:
    """Write a frame of the live edge."""
    return _encode(frame)


def load_frame(data: bytes) -> Frame:
    """Read a frame; what is none is `UnreadableLog`, too."""
    return _read(_decode_frame, data)


def _read(decode: Callable[[bytes], T], data: bytes) -> T:
    try:
        return decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableLog(f"this cannot be read: {error}") from error
