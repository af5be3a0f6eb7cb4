"""Snapshots of long turns: the fold of a turn at some position, so that a driver which takes it over need not fold it anew.

The problem: a turn is folded from its first event, and one of 500 steps has 10,000. Its driver therefore stores the fold
every few hundred events, in the transaction of an append, and the next driver folds only what came after it.

A snapshot is never the truth. It counts only if it was made by the very code that reads it, and its bytes are intact;
otherwise it is ignored, and the turn is folded from its events. So a release that changes the fold needs no migration,
and an older release, which does not know snapshots, loses nothing. A store may forget them at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.parts import ToolPart
from everturn.core.state import TurnState
from everturn.core.store_ports import TurnSnapshot

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

log = logging.getLogger(__name__)

SNAPSHOT_EVENTS: Final = 256  # events of a turn after which its fold is stored
BYTES_PER_EVENT: Final = 4_096  # of the last snapshot: a large state is stored less often
MAX_SNAPSHOT: Final = 32_000_000  # bytes; a larger state is not stored
_CHECKSUM: Final = 16  # bytes
_encode = msgspec.json.Encoder().encode


class _StoredState(Struct):
    state: TurnState
    step_calls: tuple[str, ...] = ()  # the calls of the present step are among those of the turn
    shared: tuple[str, ...] = ()  # calls whose result is the one in their message, and is written once


@cache
def _decoder() -> msgspec.json.Decoder[_StoredState]:
    return msgspec.json.Decoder(
        _StoredState
    )  # not when it is imported: it takes milliseconds, and few turns are so long


@cache
def fold_fingerprint() -> str:
    """A hash of the code that folds: all of `core`, and the projection of the SQL stores."""
    from importlib.resources import files  # ten modules, for turns that are long

    package = files("everturn")
    sources = sorted(_sources(package / "core"))
    if not sources:  # without its source nobody knows what the code is
        return os.urandom(16).hex()
    digest = hashlib.sha256()
    for _, path in [*sources, ("", package / "stores" / "sql" / "projections.py")]:
        if path.is_file():
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(folder: Traversable) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for path in folder.iterdir():
        if path.is_dir():
            found += [(f"{path.name}/{name}", inner) for name, inner in _sources(path)]
        elif path.name.endswith(".py"):
            found.append((path.name, path))
    return found


def take_snapshot(state: TurnState, seq: int) -> TurnSnapshot | None:
    """The snapshot of a turn whose last event has this position; None if it is over, or too large."""
    if state.phase.is_terminal:
        return None
    outputs = {
        part.call: part.output
        for message in state.messages.values()
        for part in message.parts
        if type(part) is ToolPart and part.output is not None
    }
    shared = tuple(
        name for name, call in state.calls.items() if call.output is not None and outputs.get(name) is call.output
    )
    calls = {**state.calls, **{name: replace(state.calls[name], output=None) for name in shared}}
    step = state.step
    names = () if step is None else tuple(call.id for call in step.calls)
    bare = replace(state, calls=calls, step=None if step is None else replace(step, calls=[]))
    fold = fold_fingerprint()
    body = seal(_encode(_StoredState(bare, names, shared)), snapshot_position(state.id, seq, fold))
    return TurnSnapshot(state.id, seq, fold, body) if len(body) <= MAX_SNAPSHOT else None


def load_snapshot(snapshot: TurnSnapshot) -> TurnState | None:
    """The fold of a turn; None if the snapshot was made by other code, or is damaged."""
    if snapshot.fold != fold_fingerprint():
        log.info("turn %s: its snapshot is of another release, and is ignored", snapshot.turn)
        return None
    data = unseal(snapshot.body, snapshot_position(snapshot.turn, snapshot.seq, snapshot.fold))
    try:
        stored = None if data is None else _decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        stored = None
    if stored is None or stored.state.id != snapshot.turn:
        log.warning("turn %s: its snapshot is damaged, and is ignored", snapshot.turn)
        return None
    state = stored.state
    parts = (part for message in state.messages.values() for part in message.parts if type(part) is ToolPart)
    outputs = {part.call: part.output for part in parts}
    for name in stored.shared:
        state.calls[name].output = outputs[name]
    if state.step is not None:
        state.step.calls = [state.calls[name] for name in stored.step_calls]
    return state


def events_until_next(snapshot: TurnSnapshot | None) -> int:
    """The events of a turn between a snapshot of it and the next one."""
    return max(SNAPSHOT_EVENTS, len(snapshot.body) // BYTES_PER_EVENT if snapshot is not None else 0)


def seal(data: bytes, about: str) -> bytes:
    """Bytes with a checksum of them, and of what they are about, in front."""
    return _checksum(data, about) + data


def unseal(data: bytes, about: str) -> bytes | None:
    """The bytes behind a checksum; None if one of the two was changed, or they are about something else."""
    return data[_CHECKSUM:] if data[:_CHECKSUM] == _checksum(data[_CHECKSUM:], about) else None


def _checksum(data: bytes, about: str) -> bytes:
    digest = hashlib.blake2b(about.encode() + b"\0", digest_size=_CHECKSUM)
    digest.update(data)
    return digest.digest()


def snapshot_position(turn: str, seq: int, fold: str) -> str:
    """What the bytes of a snapshot are about."""
    return f"{turn}\0{seq}\0{fold}"
