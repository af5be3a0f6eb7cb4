"""Simulated release: a worker with another version of the log format.

The next version is made up: it calls the state of a finished call `end`. It reads the logs of this one through an
upgrade, and writes what this one can read for as long as it is configured to: that is what a rolling upgrade needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from everturn import wire

NOW, NEXT = wire.VERSION, wire.VERSION + 1


def _renamed(event: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if event.get("type") != "CallFinished":
        return event
    return {(new if name == old else name): value for name, value in event.items()}


def pretend(version: int) -> None:
    """Act as the release with this version of the log format; 0 is this one. There is no way back: use a process for
    it.
    """
    if version not in (0, NOW, NEXT):
        raise ValueError(f"there is no version {version} to pretend to; there are {NOW} and {NEXT}")
    if version != NEXT:
        return
    release = cast("Any", wire)
    encode, event_of, stored = release._encode, release._event_of, release._Stored

    def native(data: bytes) -> Any:
        """Read what the next release writes into the classes of this one."""
        raw = msgspec.json.decode(data)
        return msgspec.convert({**raw, "event": _renamed(raw["event"], "end", "state")}, stored)

    def encoded(value: Any) -> bytes:
        if isinstance(value, dict) and "event" in value and cast("dict[str, Any]", value)["v"] == NEXT:
            raw = msgspec.to_builtins(value)
            return encode({**raw, "event": _renamed(raw["event"], "state", "end")})
        return encode(value)

    release.VERSION, release._written = NEXT, NEXT
    release._encode, release._decode = encoded, native
    release._event_of = _map(event_of, "end", "state")
    release.UPGRADES = {("CallFinished", NOW): _map(_same, "state", "end")}
    release.DOWNGRADES = {("CallFinished", NEXT): _map(_same, "end", "state")}


def _same(event: dict[str, Any]) -> dict[str, Any]:
    return event


def _map(then: Callable[[dict[str, Any]], Any], old: str, new: str) -> Callable[[dict[str, Any]], Any]:
    return lambda event: then(_renamed(event, old, new))
