"""The log of a session ⇄ one file, a line for each event: exactly the `log.jsonl` of an exported session.

Bytes are not in it. A recording in which a model made a file, or that has something in it which depends on the moment,
cannot be played again, and says so before anything is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.core.events import (
    CallBelow,
    Event,
    GateOpened,
    LateArrived,
    LogEvent,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.parts import FilePart
from everturn.core.ports import Entry, Store
from everturn.errors import ConfigError
from everturn.wire import dump, load


class Recording(Struct, frozen=True):
    """What happened in a session."""

    events: tuple[Event, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Recording:
        """The log as a store gives it."""
        return cls(tuple(entry.event for entry in entries))

    @classmethod
    async def make(cls, store: Store, session: str) -> Recording:
        """What has happened in a session until now."""
        return cls.of(await store.events(session))

    @classmethod
    def read(cls, path: str | Path) -> Recording:
        """A file.

        Raises:
            UnreadableLog: it is none of these.
        """
        return cls.load(Path(path).read_bytes())

    @classmethod
    def load(cls, data: bytes) -> Recording:
        """The bytes of a file."""
        return cls(tuple(load(line) for line in data.splitlines() if line.strip()))

    def dump(self) -> bytes:
        """The bytes of a file."""
        return b"".join(dump(event) + b"\n" for event in self.events)

    def moved(self, places: Mapping[str, str]) -> Recording:
        """The same, had it happened elsewhere: every text that names one of these places names another instead."""
        return Recording(
            tuple(msgspec.convert(_moved(msgspec.to_builtins(one), places), LogEvent) for one in self.events)
        )

    @property
    def session(self) -> str:
        """The session it is of, where a gate says so."""
        return next(
            (one.gate.session for one in self.events if isinstance(one, GateOpened) and one.gate.session), "replay"
        )

    def check(self) -> None:
        """See that it can be played again.

        Raises:
            ConfigError: it cannot, and why.
        """
        if not any(isinstance(event, TurnStarted) for event in self.events):
            raise ConfigError("there is no turn in this recording; record a session in which something was said")
        for event in self.events:
            if why := _why_not(event):
                raise ConfigError(f"this recording cannot be played again: {why}")
        over = {one.turn for one in self.events if isinstance(one, TurnCompleted | TurnFailed)}
        for event in self.events:
            if isinstance(event, TurnEvent) and event.turn not in over:
                raise ConfigError(f"turn {event.turn} is not over in this recording; record it when it is")


def _why_not(event: Event) -> str:
    match event:
        case TurnCancelled():
            return "a turn was cancelled, at a moment that cannot be had again"
        case LateArrived():
            return "a result came late, at a moment that cannot be had again"
        case CallBelow():
            return "a sub-turn has a log of its own; record the session of that one"
        case StepFinished(parts=parts) | StepInterrupted(parts=parts):
            if any(isinstance(part, FilePart) for part in parts):
                return "the model made a file, and its bytes are not in the log"
        case _:
            pass
    return ""


def _moved(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in places.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict):
        return {key: _moved(item, places) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_moved(item, places) for item in cast("list[Any]", value)]
    return value
