"""Serialization: events, messages, commands and frames as versioned JSON, for stores and clients.

Only msgspec decodes; no type is ever looked up by name. Every stored event has the version of the format that last changed
its type, so an older release reads all the others. A newer version reads it by applying `UPGRADES`; an event that cannot be
decoded is an error, never a guess. Golden logs of every released version are kept under tests/golden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from everturn.core.commands import AnyCommand
from everturn.core.deltas import Frame
from everturn.core.events import Entry, Event, Gate, GateResolution, LogEvent
from everturn.core.gates import CallClaim
from everturn.core.messages import Message
from everturn.core.tenants.encryption import is_sealed
from everturn.errors import ConfigError, UnreadableLog

T = TypeVar("T")

VERSION: Final = 2
UNCHANGED: Final = 1  # the version of messages, gates and commands: their format has never changed

EventConverter = Callable[[dict[str, Any]], dict[str, Any]]

UPGRADES: Final[Mapping[tuple[str, int], EventConverter]] = {}
"""(event type, version) -> converts an event of that version to the next one. Never remove a row."""


ADDED: Final[Mapping[str, int]] = {"FileUploadChanged": 2}
"""event type -> the version of the format that added it. Whoever writes such an event asks `can_write` before, and does
without where an older release may read it."""


ASKED: Final[Mapping[str, int]] = {"fork": 2}
"""what a command can ask for -> the version of the format since which drivers know it. An older driver does not see it, and
does something else: whoever sends such a command asks `can_ask` before."""


DOWNGRADES: Final[Mapping[tuple[str, int], EventConverter]] = {}
"""(event type, version) -> converts an event of that version so that the version before it can read it."""


class _Stored(Struct, frozen=True):
    v: int
    event: LogEvent


class _StoredMessage(Struct, frozen=True):
    v: int
    message: Message


class _StoredGate(Struct, frozen=True):
    v: int
    gate: Gate


class _StoredResolution(Struct, frozen=True):
    v: int
    resolution: GateResolution


class _StoredClaim(Struct, frozen=True):
    v: int
    claim: CallClaim


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
_decode_resolution = msgspec.json.Decoder(_StoredResolution).decode
_decode_claim = msgspec.json.Decoder(_StoredClaim).decode
_decode_command = msgspec.json.Decoder(_StoredCommand).decode
_decode_frames = msgspec.json.Decoder(list[Frame]).decode


_written = VERSION


def _event_of(raw: dict[str, Any]) -> Event:
    return msgspec.convert(raw, LogEvent)


def set_write_version(version: int) -> None:
    """Write the format of an older release while its processes still run (a rolling upgrade); 0: the present format.

    Raises:
        ConfigError: the version is unknown, or newer than this one.
    """
    global _written
    if not 0 <= version <= VERSION:
        raise ConfigError(f"there is no version {version} of the log format to write; there are 1 to {VERSION}")
    _written = version or VERSION


def can_write(event: type[Event]) -> bool:
    """Whether the format that this process writes has events of this type; not while an older release may read them."""
    return ADDED.get(event.__name__, 1) <= _written


def can_ask(what: str) -> bool:
    """Whether a command may ask for this; not while a driver of an older release may carry it out."""
    return ASKED[what] <= _written


def dump_event(event: Event) -> bytes:
    """Write an event as one line of JSON."""
    name = type(event).__name__
    added = ADDED.get(name, 1)
    changes = sorted(version for changed, version in DOWNGRADES if changed == name)
    newer = [version for version in changes if version > max(_written, added)]
    if not newer:
        return _encode({"v": changes[-1] if changes else added, "event": event})
    raw: dict[str, Any] = msgspec.to_builtins(event)
    for version in reversed(newer):
        raw = DOWNGRADES[name, version](raw)
    return _encode({"v": max(_written, added), "event": raw})


def load_event(
    data: bytes | str, upgrades: Mapping[tuple[str, int], EventConverter] | None = None, version: int | None = None
) -> Event:
    """Read an event that this version or an older one wrote.

    Raises:
        UnreadableLog: the data is invalid, or a newer version wrote it.
    """
    upgrades = UPGRADES if upgrades is None else upgrades
    version = VERSION if version is None else version
    try:
        written = _decode_version(data).v
        if written < 1:
            raise UnreadableLog(f"there never was a version {written} of the log format")
        if written > version:
            raise UnreadableLog(
                f"this event was written by version {written} of the log format and this is {version}: upgrade everturn"
            )
        if not any(changed >= written for _, changed in upgrades):
            return _decode(data).event
        raw = _decode_raw(data).event
        for step_version in range(written, version):
            upgrade = upgrades.get((str(raw.get("type")), step_version))
            raw = raw if upgrade is None else upgrade(raw)
        return _event_of(raw)
    except UnreadableLog:
        raise
    except Exception as error:  # an upgrade may fail in any way
        raise UnreadableLog(_encrypted(data) or f"this is not an event: {error!r}") from error


def dump_log(entries: Iterable[Entry]) -> bytes:
    """Write a log, one event a line."""
    return b"".join(dump_event(entry.event) + b"\n" for entry in entries)


def load_log(data: bytes) -> list[Entry]:
    """Read what `dump_log` wrote."""
    return [Entry(seq, load_event(line)) for seq, line in enumerate(data.splitlines(), 1)]


def dump_message(message: Message) -> bytes:
    """Write a message as the log's version of it."""
    return _encode({"v": UNCHANGED, "message": message})


def load_message(data: bytes) -> Message:
    """Read a message; raises `UnreadableLog` if it is invalid."""
    return _read(_decode_message, data).message


def dump_gate(gate: Gate) -> bytes:
    """Write a gate."""
    return _encode({"v": UNCHANGED, "gate": gate})


def load_gate(data: bytes) -> Gate:
    """Read a gate."""
    return _read(_decode_gate, data).gate


def dump_resolution(resolution: GateResolution) -> bytes:
    """Write a gate resolution."""
    return _encode({"v": UNCHANGED, "resolution": resolution})


def load_resolution(data: bytes) -> GateResolution:
    """Read a gate resolution."""
    return _read(_decode_resolution, data).resolution


def dump_claim(claim: CallClaim) -> bytes:
    """Write a client's claim of a call."""
    return _encode({"v": UNCHANGED, "claim": claim})


def load_claim(data: bytes) -> CallClaim:
    """Read a client's claim."""
    return _read(_decode_claim, data).claim


def dump_command(command: AnyCommand) -> bytes:
    """Write a command."""
    return _encode({"v": UNCHANGED, "command": command})


def load_command(data: bytes) -> AnyCommand:
    """Read a command; raises `UnreadableLog` if it is invalid."""
    return _read(_decode_command, data).command


def _read(decode: Callable[[bytes], T], data: bytes) -> T:
    try:
        return decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableLog(_encrypted(data) or f"this cannot be read: {error}") from error


def _encrypted(data: bytes | str) -> str:
    """Return the reason why encrypted data cannot be read; "" for other data."""
    is_encrypted = isinstance(data, bytes) and is_sealed(data)
    return "this is encrypted, and encryption is not configured: see [store.encryption]" if is_encrypted else ""


def dump_frames(frames: Sequence[Frame]) -> bytes:
    """Write a batch of frames as one JSON array."""
    return _encode(frames)


def load_frames(data: bytes) -> list[Frame]:
    """Read a batch of frames; raises `UnreadableLog` if it is invalid."""
    return _read(_decode_frames, data)
