"""Events ⇄ JSON: what a store keeps and a face is sent. msgspec only; no type is ever revived by name.

Every stored event says which version wrote it. A newer one reads it by walking `UPGRADES`; an event that cannot be
read is an error, never a guess. Golden logs of every released version are kept under tests/golden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from everturn.core.asking import Claimed
from everturn.core.commands import AnyCommand
from everturn.core.deltas import Frame
from everturn.core.events import Entry, Event, Gate, LogEvent, Verdict
from everturn.core.messages import Message
from everturn.errors import ConfigError, UnreadableLog

T = TypeVar("T")

VERSION: Final = 1

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: Final[Mapping[tuple[str, int], Upgrade]] = {}
"""(event type, version) -> how to read what that version wrote as the next one would have. Never remove a row."""


DOWNGRADES: Final[Mapping[tuple[str, int], Upgrade]] = {}
"""(event type, version) -> how to write what that version means so that the one before it can read it."""


class _Stored(Struct, frozen=True):
    v: int
    event: LogEvent


class _StoredMessage(Struct, frozen=True):
    v: int
    message: Message


class _StoredGate(Struct, frozen=True):
    v: int
    gate: Gate


class _StoredVerdict(Struct, frozen=True):
    v: int
    verdict: Verdict


class _StoredClaim(Struct, frozen=True):
    v: int
    claim: Claimed


class _StoredCommand(Struct, frozen=True):
    v: int
    command: AnyCommand


class _Version(Struct, frozen=True):
    v: int


class _Raw(Struct, frozen=True):
    v: int
    event: dict[str, Any]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Stored).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_raw = msgspec.json.Decoder(_Raw).decode
_decode_message = msgspec.json.Decoder(_StoredMessage).decode
_decode_gate = msgspec.json.Decoder(_StoredGate).decode
_decode_verdict = msgspec.json.Decoder(_StoredVerdict).decode
_decode_claim = msgspec.json.Decoder(_StoredClaim).decode
_decode_command = msgspec.json.Decoder(_StoredCommand).decode
_decode_frame = msgspec.json.Decoder(Frame).decode
_decode_frames = msgspec.json.Decoder(list[Frame]).decode


_written = VERSION


def _event_of(raw: dict[str, Any]) -> Event:
    return msgspec.convert(raw, LogEvent)


def write_as(version: int) -> None:
    """Write as an older release did, for as long as processes of it run beside this one; 0: as this one does.

    Raises:
        ConfigError: there never was such a version, or this is an older one itself.
    """
    global _written
    if not 0 <= version <= VERSION:
        raise ConfigError(f"there is no version {version} of the log format to write; there are 1 to {VERSION}")
    _written = version or VERSION


def dump(event: Event) -> bytes:
    """Write an event as one line of JSON."""
    if _written == VERSION:
        return _encode({"v": VERSION, "event": event})
    raw: dict[str, Any] = msgspec.to_builtins(event)
    for at in range(VERSION, _written, -1):
        downgrade = DOWNGRADES.get((str(raw.get("type")), at))
        raw = raw if downgrade is None else downgrade(raw)
    return _encode({"v": _written, "event": raw})


def load(
    data: bytes | str, upgrades: Mapping[tuple[str, int], Upgrade] | None = None, version: int | None = None
) -> Event:
    """Read an event that this version or an older one wrote.

    Raises:
        UnreadableLog: it is broken, or a newer version wrote it.
    """
    upgrades = UPGRADES if upgrades is None else upgrades
    version = VERSION if version is None else version
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
        return _event_of(raw)
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


def dump_message(message: Message) -> bytes:
    """Write a message as the log's version of it."""
    return _encode({"v": _written, "message": message})


def load_message(data: bytes) -> Message:
    """Read a message; what is none is `UnreadableLog`, too."""
    return _read(_decode_message, data).message


def dump_gate(gate: Gate) -> bytes:
    """Write a gate."""
    return _encode({"v": _written, "gate": gate})


def load_gate(data: bytes) -> Gate:
    """Read a gate."""
    return _read(_decode_gate, data).gate


def dump_verdict(verdict: Verdict) -> bytes:
    """Write an answer."""
    return _encode({"v": _written, "verdict": verdict})


def load_verdict(data: bytes) -> Verdict:
    """Read an answer."""
    return _read(_decode_verdict, data).verdict


def dump_claim(claim: Claimed) -> bytes:
    """Write a client's claim of a call."""
    return _encode({"v": _written, "claim": claim})


def load_claim(data: bytes) -> Claimed:
    """Read a client's claim."""
    return _read(_decode_claim, data).claim


def dump_command(command: AnyCommand) -> bytes:
    """Write a command."""
    return _encode({"v": _written, "command": command})


def load_command(data: bytes) -> AnyCommand:
    """Read a command; what is none is `UnreadableLog`, too."""
    return _read(_decode_command, data).command


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


def dump_frames(frames: Sequence[Frame]) -> bytes:
    """Write a batch of frames as one JSON array."""
    return _encode(frames)


def load_frames(data: bytes) -> list[Frame]:
    """Read a batch of frames; what is none is `UnreadableLog`, too."""
    return _read(_decode_frames, data)
