"""The log of a session ⇄ one file, a line for each event, behind a line that says what it is.

    {"everturn":{"session":"…","turn":"…","head":57,…}}     what follows, and a mark of each line
    {"v":1,"event":{…}}                                     the log, exactly as `log.jsonl` of an exported session has it
    {"everturn":{…}}                                        where there were sub-turns: their logs, likewise

A bare `log.jsonl` and a whole exported session (a zip) are read as well. Bytes of files are not in it, and are not
needed to play it again. What is private in the log stays as the log has it.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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
from everturn.errors import ConfigError, EverturnError, UnknownSession, UnknownTurn, UnreadableLog
from everturn.stores.portable import ENTRY_LIMIT, LOG, MANIFEST, Manifest, open_zip, private_file
from everturn.wire import dump, load

VERSION: Final = 1
OVER: Final = (TurnCompleted, TurnFailed, TurnCancelled)
MARK: Final = 8  # characters of a line's hash
NOT_OVER = "turn {turn} is not over in this recording; record it when it is (`--show` shows it as it is)"
NO_TURN = "there is no turn in this recording; record a session in which something was said"


class Header(Struct, frozen=True, omit_defaults=True):
    """What a file says of the log that follows."""

    version: int = VERSION
    session: str = ""
    turn: str = ""
    tenant: str = ""
    head: int = 0  # how many events follow
    marks: tuple[str, ...] = ()


class _Line(Struct, frozen=True):
    everturn: Header


class Recording(Struct, frozen=True):
    """What happened in a session; with a `turn`, what happened until that one was over."""

    events: tuple[Event, ...]
    name: str = ""  # of the session
    turn: str = ""
    tenant: str = ""  # whose it is, where that is known: permissions are bound to it
    below: tuple[Recording, ...] = ()  # the sessions of sub-turns
    edited: tuple[int, ...] = ()  # events that are not what they were when the file was written

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Recording:
        """The log as a store gives it."""
        return cls(tuple(entry.event for entry in entries))

    @classmethod
    async def make(cls, store: Store, session: str) -> Recording:
        """The log of a session until now, and of nothing beside it."""
        return cls.of(await store.events(session))

    @classmethod
    async def take(cls, store: Store, session: str, turn: str = "") -> Recording:
        """A session until now, or until a turn of it was over, with the sessions of its sub-turns.

        Raises:
            UnknownTurn: there is none of that name.
            ConfigError: it is not over.
        """
        events = [entry.event for entry in await store.events(session)]
        if turn:
            events = _until(events, turn)
        below: list[Recording] = []
        for name in dict.fromkeys(event.session for event in events if isinstance(event, CallBelow)):
            try:
                below.append(await cls.take(store, name))
            except UnknownSession:  # it was asked for, and never begun
                continue
        tenant = (await store.info(session)).tenant
        return cls(tuple(events), session, turn, tenant, tuple(below))

    @classmethod
    def read(cls, path: str | Path) -> Recording:
        """A file: a recording, a bare log, or an exported session.

        Raises:
            UnreadableLog: it is none of these.
        """
        try:
            if Path(path).is_file() and zipfile.is_zipfile(path):  # which reads what has no end to its end
                return _read_zip(Path(path))
            with Path(path).open("rb") as file:
                data = file.read(ENTRY_LIMIT + 1)
            if len(data) > ENTRY_LIMIT:
                raise UnreadableLog("it is too long to be read")
            return cls.load(data)
        except UnreadableLog as error:
            raise UnreadableLog(f"{Path(path).name}: {error}") from error
        except OSError as error:
            raise UnreadableLog(f"{path} cannot be read: {error.strerror or error}") from error

    @classmethod
    def load(cls, data: bytes) -> Recording:
        """The bytes of a file.

        Raises:
            UnreadableLog: they are cut off, or something else.
        """
        sections: list[tuple[Header, list[bytes]]] = []
        for number, line in enumerate(data.splitlines(), 1):
            if line.startswith(b'{"everturn"'):
                sections.append((_header(line, number), []))
            elif line.strip():
                if not sections:
                    sections.append((Header(), []))
                sections[-1][1].append(line)
        made = [_section(header, lines) for header, lines in sections] or [cls(())]
        return replace(made[0], below=tuple(made[1:]))

    def dump(self) -> bytes:
        """The bytes of a file; those of a bare log where nothing else is known."""
        return b"".join(self._sections())

    def _sections(self) -> Iterator[bytes]:
        lines = [dump(event) for event in self.events]
        if self.name:
            header = Header(VERSION, self.name, self.turn, self.tenant, len(lines), tuple(map(_mark, lines)))
            yield msgspec.json.encode(_Line(header)) + b"\n"
        yield from (line + b"\n" for line in lines)
        for one in self.below:
            yield from one._sections()

    def write(self, path: str | Path) -> None:
        """Make a file of it, for whoever makes it: what was said is in it."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with private_file(path) as file:
            file.write((self if self.name else replace(self, name=self.session)).dump())

    def moved(self, places: Mapping[str, str]) -> Recording:
        """The same, had it happened elsewhere: every text that names one of these places names another instead."""
        events = (msgspec.convert(_moved(msgspec.to_builtins(one), places), LogEvent) for one in self.events)
        return replace(self, events=tuple(events), below=tuple(one.moved(places) for one in self.below))

    @property
    def session(self) -> str:
        """The session it is of; where it does not say so, a gate may."""
        gates = (one.gate.session for one in self.events if isinstance(one, GateOpened) and one.gate.session)
        return self.name or next(gates, "replay")

    @property
    def turns(self) -> list[str]:
        """The turns that are to be played: the one it was recorded for, or all."""
        return [self.turn] if self.turn else [one.turn for one in self.events if isinstance(one, TurnStarted)]

    def check(self) -> None:
        """See that it can be played again on real tools.

        Raises:
            ConfigError: it cannot, and why.
        """
        for event in self.events if self.turns else ():
            if why := _why_not(event):
                raise ConfigError(f"this recording cannot be played again on real tools: {why}")
        self.check_over()

    def check_over(self) -> None:
        """See that there is a turn in it, and that each is over.

        Raises:
            ConfigError: it is not so.
        """
        if not self.turns or not any(isinstance(event, TurnStarted) for event in self.events):
            raise ConfigError(NO_TURN)
        over = {one.turn for one in self.events if isinstance(one, OVER)}
        for event in self.events:
            if isinstance(event, TurnEvent) and event.turn not in over:
                raise ConfigError(NOT_OVER.format(turn=event.turn))


def _why_not(event: Event) -> str:
    match event:
        case TurnCancelled():
            return "a turn was cancelled, at a moment that cannot be had again"
        case LateArrived():
            return "a result came late, at a moment that cannot be had again"
        case CallBelow():
            return "a sub-turn has a log of its own"
        case StepFinished(parts=parts) | StepInterrupted(parts=parts):
            if any(isinstance(part, FilePart) for part in parts):
                return "the model made a file, and its bytes are not in the log"
        case _:
            pass
    return ""


def _until(events: Sequence[Event], turn: str) -> list[Event]:
    """The log up to where a turn was over, without turns that were not over then."""
    ends = {one.turn: at for at, one in enumerate(events) if isinstance(one, OVER)}
    if not any(isinstance(one, TurnStarted) and one.turn == turn for one in events):
        raise UnknownTurn(f"there is no turn {turn!r} in this session; `everturn sessions show` names them")
    if turn not in ends:
        raise ConfigError(f"turn {turn} is still under way; export it when it is over")
    until = ends[turn] + 1
    return [one for one in events[:until] if not isinstance(one, TurnEvent) or ends.get(one.turn, until) < until]


# Reading -----------------------------------------------------------------------------------------------------------


def _mark(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:MARK]


def _header(line: bytes, number: int) -> Header:
    try:
        header = msgspec.json.decode(line, type=_Line).everturn
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableLog(f"line {number} should say what follows, and cannot be read: {error}") from error
    if header.version > VERSION:
        raise UnreadableLog(f"a newer everturn wrote it (format {header.version}, this is {VERSION}): upgrade")
    return header


def _section(header: Header, lines: Sequence[bytes]) -> Recording:
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(load(line))
        except UnreadableLog as error:
            raise UnreadableLog(f"event {number} cannot be read: {error}") from error
    if header.head and len(events) != header.head:
        raise UnreadableLog(f"it has {len(events)} events, and should have {header.head}: record it again")
    marks = zip(header.marks, lines, strict=False)
    edited = tuple(at for at, (mark, line) in enumerate(marks, 1) if mark != _mark(line))
    return Recording(tuple(events), header.session, header.turn, header.tenant, edited=edited)


def _read_zip(path: Path) -> Recording:
    try:
        with path.open("rb") as file:
            archive = open_zip(file)
            if max(archive.getinfo(name).file_size for name in (LOG, MANIFEST)) > ENTRY_LIMIT:
                raise UnreadableLog("its log is too long to be read")
            manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
            return replace(Recording.load(archive.read(LOG)), name=manifest.session)
    except EverturnError:
        raise
    except Exception as error:  # a broken zip breaks in many ways
        raise UnreadableLog(f"it is no exported session: {error!r}") from error


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
