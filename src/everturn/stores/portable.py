"""A session ⇄ one file, to be kept elsewhere or moved to another store.

The file is a zip: `manifest.json`, the log (`log.jsonl`), the commands nobody has acted on (`inbox.jsonl`) and the bytes
they speak of (`blobs/<hash>`). The same session always gives the same bytes. What comes in was written by anybody: all
of it is checked, and tried out in memory, before the store hears of it, and nothing of it goes on by itself. What is
held in memory is one log and one blob.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
import zipfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from everturn.core.commands import AnyCommand
from everturn.core.events import Entry, Event, FilesChanged, FilesReverted, RevertStarted
from everturn.core.ports import Store
from everturn.errors import EverturnError, KeyConflict, UnknownMessage, UnknownSession, UnreadableLog
from everturn.stores.checking import check_log
from everturn.stores.closing import ended
from everturn.stores.memory import MemoryStore
from everturn.stores.mentions import blobs_in
from everturn.stores.taming import tamed
from everturn.wire import dump, dump_command, load, load_command

FORMAT, VERSION = "everturn.session", 1

MANIFEST, LOG, INBOX, BLOBS = "manifest.json", "log.jsonl", "inbox.jsonl", "blobs/"

ENTRY_LIMIT = 256 * 1024 * 1024
"""Bytes of one entry, unpacked, that are read at all."""

MANIFEST_LIMIT = 4 * 1024 * 1024
ENTRIES_LIMIT = 100_000
DIRECTORY_LIMIT = 16 * 1024 * 1024
"""Bytes of the directory of a zip: as many as so many entries of ours need."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the zero of zip files: when it was written is no part of a session
_PIECE = 1024 * 1024


class _Leaf(Struct, frozen=True, gc=False):
    """Of a file in a tree of the session's own: the blob that it holds."""

    blob: str


class Manifest(Struct, frozen=True):
    """What a file says of itself. Whose the session is to be is said by whoever imports it."""

    format: str
    version: int
    session: str
    head: int
    missing: tuple[str, ...] = ()  # blobs that are spoken of and were not there to be exported


async def export_session(store: Store, session: str, file: str | Path) -> None:
    """Write a session to a file. One that is being driven is written as it is at this moment.

    Raises:
        UnknownSession: it is not there.
    """
    # The inbox first: what is acted on between the two looks is then in the log, and dropped here.
    inbox = await store.inbox(session)
    entries = await store.events(session)
    done = {getattr(entry.event, "command", "") for entry in entries}
    commands = [command for command in inbox if command.key not in done]
    names = _mentioned((entry.event for entry in entries), commands)
    with private_file(Path(file)) as out, zipfile.ZipFile(out, "w") as archive:
        await asyncio.to_thread(_write_log, archive, entries, commands)
        missing: list[str] = []
        for name in names:
            try:
                data = await store.blob(name)
            except UnknownMessage:
                missing.append(name)
            else:
                await asyncio.to_thread(archive.writestr, _entry(BLOBS + name, zipfile.ZIP_STORED), data)
        manifest = Manifest(FORMAT, VERSION, session, len(entries), tuple(missing))
        archive.writestr(_entry(MANIFEST, zipfile.ZIP_DEFLATED), msgspec.json.encode(manifest))


async def import_session(
    store: Store,
    file: str | Path,
    session: str | None = None,
    tenant: str = "local",
    *,
    by: str = "",
    now: float | None = None,
) -> str:
    """Make a session from a file, and return its name: the one it had, or another. The ids inside stay as they are.

    A turn that was under way is over: its open calls are settled as cancelled, and nothing runs. What people had allowed
    from then on is not allowed here, and what nobody had acted on is not asked for again. Nothing in it was used here,
    no folder of ours can be reverted by it, and nothing in it is later than `now`. With `by`, that is who began it.

    Raises:
        UnreadableLog: this is no whole session; nothing was written but, at most, blobs that nobody mentions.
        KeyConflict: there is, or was, a session of this name.
    """
    with await asyncio.to_thread(_open, file) as opened:
        manifest, archive, events = await asyncio.to_thread(_read, opened, time.time() if now is None else now, by)
        name = manifest.session if session is None else session
        await asyncio.to_thread(_try, name, tenant, events)
        await _refuse_if_there(store, name)
        wanted = set(_mentioned(events))
        for blob in filter(wanted.__contains__, _blob_names(archive)):
            data = await asyncio.to_thread(archive.read, BLOBS + blob)
            if await store.put_blob(data) != blob:
                raise UnreadableLog(f"the bytes of blob {blob} changed while they were read")
    await store.restore(name, tenant, events)
    return name


def _try(session: str, tenant: str, events: Sequence[Event]) -> None:
    """Try it out, in a loop of its own: a long log would hold up everything else in this one."""
    try:
        asyncio.run(MemoryStore().restore(session, tenant, events))
    except Exception as error:
        raise UnreadableLog(f"this session cannot be: {error}") from error


async def _refuse_if_there(store: Store, session: str) -> None:
    try:
        await store.info(session)
    except UnknownSession:
        return
    raise KeyConflict(f"there is a session {session!r} already; import it under another name")


def _mentioned(events: Iterable[Event], commands: Iterable[AnyCommand] = ()) -> list[str]:
    names = {name for event in events for name in blobs_in(event)}
    return sorted(names.union(*(blobs_in(command) for command in commands)))


# Writing -------------------------------------------------------------------------------------------------------------


@contextmanager
def private_file(path: Path) -> Generator[IO[bytes]]:
    """A file that only its owner may read, as the store is; whole or not at all, and never written through a link."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    opened = os.open(partial, flags, 0o600)
    try:
        with os.fdopen(opened, "w+b") as file:
            yield file
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _entry(name: str, how: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.compress_type, entry.create_system, entry.external_attr = how, 3, 0o600 << 16
    return entry


def _write_log(archive: zipfile.ZipFile, entries: Iterable[Entry], commands: Iterable[AnyCommand]) -> None:
    with archive.open(_entry(LOG, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as out:
        for entry in entries:
            out.write(dump(entry.event) + b"\n")
    with archive.open(_entry(INBOX, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as out:
        for command in commands:
            out.write(dump_command(command) + b"\n")


# Reading -------------------------------------------------------------------------------------------------------------


def _open(file: str | Path) -> IO[bytes]:
    return Path(file).open("rb")


def _read(file: IO[bytes], now: float, by: str) -> tuple[Manifest, zipfile.ZipFile, list[Event]]:
    """A log in which every turn is over. Blobs are only looked at: whole, bounded, and in agreement with it."""
    try:
        archive = open_zip(file)
        _check_entries(archive)
        manifest = _read_manifest(archive)
        # One more than there should be is enough to know, however many are packed inside.
        events = [load(line) for line in islice(_lines(archive, LOG), manifest.head + 1)]
        commands = [load_command(line) for line in _lines(archive, INBOX)]
        if len(events) != manifest.head:
            has = f"{len(events)}" if len(events) < manifest.head else "more"
            raise UnreadableLog(f"the log has {has} events, and should have {manifest.head}")
        if any(command.session != manifest.session for command in commands):
            raise UnreadableLog("a command in the inbox is for another session")
        events = tamed(events, now, by)
        turns = check_log(events)
        mentioned = _mentioned(events, commands)
        _check_blobs(archive, mentioned, manifest.missing)
        _check_trees(archive, events, mentioned)
        events += ended(turns, events[-1].at if events else 0.0)
    except EverturnError as error:
        raise UnreadableLog(f"{_named(file)} cannot be imported: {error}") from error
    except Exception as error:  # a broken zip breaks in many ways
        raise UnreadableLog(f"{_named(file)} is no exported session: {error!r}") from error
    return manifest, archive, events


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """The zip that a file is; its directory is looked at before it is taken apart, which costs 500 bytes an entry.

    Raises:
        UnreadableLog: it has too many entries.
        Exception: it is no zip; a broken one breaks in many ways.
    """
    guarded = cast("IO[bytes]", _Directory(file))
    archive = zipfile.ZipFile(guarded)
    archive.fp = file  # the directory was read; what is read from here on is bounded by what it says
    return archive


class _Directory:
    """A file of which a zip reads its directory: whole, at once, and as long as the file says."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > DIRECTORY_LIMIT:
            raise UnreadableLog("it has too many entries")
        data = self._file.read(DIRECTORY_LIMIT + 1 if size < 0 else size)
        if len(data) > DIRECTORY_LIMIT or data.count(b"PK\1\2") > ENTRIES_LIMIT:
            raise UnreadableLog("it has too many entries")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _named(file: IO[bytes]) -> str:
    return Path(file.name).name


def _check_entries(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(names) > ENTRIES_LIMIT or len(set(names)) != len(names):
        raise UnreadableLog("it has too many entries, or one of them twice")
    if missing := {MANIFEST, LOG, INBOX} - set(names):
        raise UnreadableLog(f"it has no {', '.join(sorted(missing))}")
    for entry in entries:
        is_blob = entry.filename.startswith(BLOBS) and _is_hash(entry.filename.removeprefix(BLOBS))
        if not is_blob and entry.filename not in (MANIFEST, LOG, INBOX):
            raise UnreadableLog(f"there is no place for an entry called {entry.filename[:100]!r}")
        # Blobs are stored as they are, so all of them together are not larger than the file.
        if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableLog(f"{entry.filename} is packed in a way that is not ours")
        if is_blob and (entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size):
            raise UnreadableLog(f"{entry.filename} is packed, and blobs are not")
        limit = MANIFEST_LIMIT if entry.filename == MANIFEST else ENTRY_LIMIT
        if entry.file_size > limit:
            raise UnreadableLog(f"{entry.filename} claims {entry.file_size:,} bytes; {limit:,} are the most")


def _is_hash(name: str) -> bool:
    return len(name) == 64 and all(char in "0123456789abcdef" for char in name)


def _blob_names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removeprefix(BLOBS) for name in archive.namelist() if name.startswith(BLOBS)]


def _read_manifest(archive: zipfile.ZipFile) -> Manifest:
    manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    if manifest.format != FORMAT:
        raise UnreadableLog(f"it is a {manifest.format[:100]!r}, not a {FORMAT!r}")
    if manifest.version > VERSION:
        raise UnreadableLog(f"a newer everturn wrote it (format {manifest.version}, this is {VERSION}): upgrade")
    return manifest


def _lines(archive: zipfile.ZipFile, name: str) -> Iterable[bytes]:
    with archive.open(name) as opened:  # never more than the size that was checked, whatever is packed inside
        yield from opened


def _check_blobs(archive: zipfile.ZipFile, mentioned: Sequence[str], missing: Sequence[str]) -> None:
    there = _blob_names(archive)
    if sorted([*there, *missing]) != list(mentioned):
        raise UnreadableLog("its blobs are not those that the log speaks of")
    for name in there:
        found = hashlib.sha256()
        with archive.open(BLOBS + name) as opened:
            while piece := opened.read(_PIECE):
                found.update(piece)
        if found.hexdigest() != name:
            raise UnreadableLog(f"the bytes of blob {name} do not give its name")


def _check_trees(archive: zipfile.ZipFile, events: Iterable[Event], mentioned: Sequence[str]) -> None:
    """A tree names blobs as well: what the log does not speak of may be here, and somebody else's."""
    known, there = set(mentioned), set(_blob_names(archive))
    files = [event for event in events if isinstance(event, FilesChanged | RevertStarted | FilesReverted)]
    for tree in {name for event in files if not event.root for name in (event.before, event.after)} & there:
        try:
            leaves = msgspec.json.decode(archive.read(BLOBS + tree), type=dict[str, _Leaf])
        except (msgspec.DecodeError, RecursionError):
            continue  # it is no tree, and nobody takes it for one
        if any(leaf.blob not in known for leaf in leaves.values()):
            raise UnreadableLog("there is a file in its trees that it does not speak of")
