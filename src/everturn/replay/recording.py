"""Recording: the log of a session as one file, one line per event, after a header line.

    {"everturn":{"session":"…","turn":"…","head":57,…}}     header: what follows, and a fingerprint of each line
    {"v":1,"event":{…}}                                     the log, exactly as `log.jsonl` of an exported session has it
    {"everturn":{…}}                                        the logs of sub-agents, if any, likewise

A bare `log.jsonl` and a whole exported session (a zip) can be read as well. The bytes of files are not included, and
are not needed for a replay. Private values stay as the log has them.
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

from everturn.core.context.context_size import compaction_of
from everturn.core.events import (
    CompactionStarted,
    Entry,
    Event,
    GateOpened,
    LateResultReceived,
    LogEvent,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    SubagentStarted,
    Terminal,
    TurnCancelled,
    TurnEvent,
    TurnStarted,
    WaitStarted,
)
from everturn.core.parts import FilePart
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, EverturnError, UnknownSession, UnknownTurn, UnreadableLog
from everturn.stores.export import ENTRY_LIMIT, LOG, MANIFEST, Manifest, open_zip, private_file
from everturn.wire import dump_event, load_event

VERSION: Final = 1
FINGERPRINT_LENGTH: Final = 8  # characters of the fingerprint of a line
NOT_OVER = "turn {turn} is not over in this recording; record it when it is (`--show` shows it as it is)"
COMPACTED = (
    "turn {turn} was compacted, by a limit that is not in the recording, so it cannot be replayed (`--show` shows it); "
    "replay a turn before it"
)
NO_TURN = "there is no turn in this recording; record a session in which something was said"


class RecordingHeader(Struct, frozen=True, omit_defaults=True):
    """Header of a log in a file."""

    version: int = VERSION
    session: str = ""
    turn: str = ""
    tenant: str = ""
    head: int = 0  # number of events that follow
    marks: tuple[str, ...] = ()


class _Line(Struct, frozen=True):
    everturn: RecordingHeader


class Recording(Struct, frozen=True):
    """The events of a session; with a `turn`, those until that turn was over."""

    events: tuple[Event, ...]
    name: str = ""  # of the session
    turn: str = ""
    tenant: str = ""  # the tenant, if known: permissions are bound to it
    below: tuple[Recording, ...] = ()  # the sessions of sub-agents
    edited: tuple[int, ...] = ()  # numbers of events whose fingerprint differs

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> Recording:
        """Make a recording of log entries."""
        return cls(tuple(entry.event for entry in entries))

    @classmethod
    async def from_log(cls, store: Store, session: str) -> Recording:
        """Record the log of a session until now, without sub-agents."""
        return cls.from_entries(await store.events(session))

    @classmethod
    async def from_session(cls, store: Store, session: str, turn: str = "") -> Recording:
        """Record a session until now, or until one of its turns was over, with the sessions of its sub-agents.

        Raises:
            UnknownTurn: there is no such turn.
            ConfigError: the turn is not over.
        """
        events = [entry.event for entry in await store.events(session)]
        if turn:
            events = _log_until(events, turn)
        children: list[Recording] = []
        for name in dict.fromkeys(event.session for event in events if isinstance(event, SubagentStarted)):
            try:
                children.append(await cls.from_session(store, name))
            except UnknownSession:  # the sub-agent was requested, but never started
                continue
        tenant = (await store.info(session)).tenant
        return cls(tuple(events), session, turn, tenant, tuple(children))

    @classmethod
    def read(cls, path: str | Path) -> Recording:
        """Read a file: a recording, a bare log, or an exported session.

        Raises:
            UnreadableLog: the file is none of these.
        """
        try:
            # is_file first: is_zipfile would read an endless device.
            if Path(path).is_file() and zipfile.is_zipfile(path):
                return _read_zip(Path(path))
            with Path(path).open("rb") as file:
                data = file.read(ENTRY_LIMIT + 1)
            if len(data) > ENTRY_LIMIT:
                raise UnreadableLog("it is too long")
            return cls.load(data)
        except UnreadableLog as error:
            raise UnreadableLog(f"{Path(path).name}: {error}") from error
        except OSError as error:
            raise UnreadableLog(f"{path} cannot be read: {error.strerror or error}") from error

    @classmethod
    def load(cls, data: bytes) -> Recording:
        """Parse the bytes of a file.

        Raises:
            UnreadableLog: they are truncated, or not a recording.
        """
        sections: list[tuple[RecordingHeader, list[bytes]]] = []
        for number, line in enumerate(data.splitlines(), 1):
            if line.startswith(b'{"everturn"'):
                sections.append((_header(line, number), []))
            elif line.strip():
                if not sections:
                    sections.append((RecordingHeader(), []))
                sections[-1][1].append(line)
        recordings = [_section(header, lines) for header, lines in sections] or [cls(())]
        return replace(recordings[0], below=tuple(recordings[1:]))

    def dump(self) -> bytes:
        """Encode as the bytes of a file; a bare log if the session is not known."""
        return b"".join(self._sections())

    def _sections(self) -> Iterator[bytes]:
        lines = [dump_event(event) for event in self.events]
        if self.name:
            header = RecordingHeader(
                VERSION, self.name, self.turn, self.tenant, len(lines), tuple(map(_fingerprint, lines))
            )
            yield msgspec.json.encode(_Line(header)) + b"\n"
        yield from (line + b"\n" for line in lines)
        for child in self.below:
            yield from child._sections()

    def write(self, path: str | Path) -> None:
        """Write to a file that only its owner can read, because it contains the conversation."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with private_file(path) as file:
            file.write((self if self.name else replace(self, name=self.session)).dump())

    def with_paths_replaced(self, places: Mapping[str, str]) -> Recording:
        """Return the recording as if it had happened elsewhere: in every text, these paths are replaced by others."""
        events = (msgspec.convert(_replace_paths(msgspec.to_builtins(item), places), LogEvent) for item in self.events)
        return replace(self, events=tuple(events), below=tuple(item.with_paths_replaced(places) for item in self.below))

    @property
    def session(self) -> str:
        """The id of the session; if the recording does not name it, that of a gate."""
        gates = (event.gate.session for event in self.events if isinstance(event, GateOpened) and event.gate.session)
        return self.name or next(gates, "replay")

    @property
    def turns(self) -> list[str]:
        """The turns to replay: the recorded one, or all."""
        return [self.turn] if self.turn else [event.turn for event in self.events if isinstance(event, TurnStarted)]

    def check(self) -> None:
        """Check that it can be replayed on real tools.

        Raises:
            ConfigError: it cannot; the text says why.
        """
        for event in self.events if self.turns else ():
            if reason := _rerun_obstacle(event):
                raise ConfigError(f"this recording cannot be replayed on real tools: {reason}")
        self.check_over()

    def check_over(self) -> None:
        """Check that it has turns, and that all of them are over.

        Raises:
            ConfigError: it has none, or one is not over.
        """
        if not self.turns or not any(isinstance(event, TurnStarted) for event in self.events):
            raise ConfigError(NO_TURN)
        over = {item.turn for item in self.events if isinstance(item, Terminal)}
        for event in self.events:
            if isinstance(event, CompactionStarted | MessageAdded) and _is_compaction(event):
                raise ConfigError(COMPACTED.format(turn=event.turn))
            if isinstance(event, TurnEvent) and event.turn not in over:
                raise ConfigError(NOT_OVER.format(turn=event.turn))


def _is_compaction(event: CompactionStarted | MessageAdded) -> bool:
    return isinstance(event, CompactionStarted) or compaction_of(event.message) is not None


def _rerun_obstacle(event: Event) -> str:
    match event:
        case TurnCancelled():
            return "a turn was cancelled, at a moment that cannot be had again"
        case LateResultReceived():
            return "a result came late, at a moment that cannot be had again"
        case SubagentStarted():
            return "a sub-agent run has a log of its own"
        case WaitStarted():
            return "a tool waited for a time or an external result, at a moment that cannot be had again"
        case StepFinished(parts=parts) | StepInterrupted(parts=parts):
            if any(isinstance(part, FilePart) for part in parts):
                return "the model made a file, and its bytes are not in the log"
        case _:
            pass
    return ""


def _log_until(events: Sequence[Event], turn: str) -> list[Event]:
    """Return the log up to the end of a turn, without turns that were not over then."""
    ends = {event.turn: at for at, event in enumerate(events) if isinstance(event, Terminal)}
    if not any(isinstance(event, TurnStarted) and event.turn == turn for event in events):
        raise UnknownTurn(f"there is no turn {turn!r} in this session; `everturn sessions show` lists them")
    if turn not in ends:
        raise ConfigError(f"turn {turn} is still running; export it when it has ended")
    until = ends[turn] + 1
    return [
        event for event in events[:until] if not isinstance(event, TurnEvent) or ends.get(event.turn, until) < until
    ]


# Parsing -----------------------------------------------------------------------------------------------------------


def _fingerprint(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:FINGERPRINT_LENGTH]


def _header(line: bytes, number: int) -> RecordingHeader:
    try:
        header = msgspec.json.decode(line, type=_Line).everturn
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UnreadableLog(f"line {number} should be a header, and cannot be read: {error}") from error
    if header.version > VERSION:
        raise UnreadableLog(f"a newer everturn wrote it (format {header.version}, this is {VERSION}): upgrade")
    return header


def _section(header: RecordingHeader, lines: Sequence[bytes]) -> Recording:
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(load_event(line))
        except UnreadableLog as error:
            raise UnreadableLog(f"event {number} cannot be read: {error}") from error
    if header.head and len(events) != header.head:
        raise UnreadableLog(f"it has {len(events)} events, and should have {header.head}: record it again")
    marks = zip(header.marks, lines, strict=False)
    edited = tuple(at for at, (mark, line) in enumerate(marks, 1) if mark != _fingerprint(line))
    return Recording(tuple(events), header.session, header.turn, header.tenant, edited=edited)


def _read_zip(path: Path) -> Recording:
    try:
        with path.open("rb") as file:
            archive = open_zip(file)
            if max(archive.getinfo(name).file_size for name in (LOG, MANIFEST)) > ENTRY_LIMIT:
                raise UnreadableLog("its log is too long")
            manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
            return replace(Recording.load(archive.read(LOG)), name=manifest.session)
    except EverturnError:
        raise
    except Exception as error:  # a broken zip breaks in many ways
        raise UnreadableLog(f"it is not an exported session: {error!r}") from error


def _replace_paths(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in places.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict):
        return {key: _replace_paths(item, places) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_replace_paths(item, places) for item in cast("list[Any]", value)]
    return value
