"""Session export and import: writes a session to one file, and creates a session from such a file.

The file is a zip: `manifest.json`, the log (`log.jsonl`), the commands that are still in the inbox (`inbox.jsonl`) and
the blobs that both reference (`blobs/<hash>`). The same session always gives the same bytes. An import trusts nothing
in the file: it validates all of it, and applies it to a store in memory, before it writes to the target store, and no
imported turn continues. Memory use is bounded by one log and one blob.
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
from everturn.core.store_ports import Store
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import EverturnError, KeyConflict, UnknownMessage, UnknownSession, UnreadableLog
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.import_check import check_log
from everturn.stores.import_close import close_open_turns
from everturn.stores.import_sanitize import sanitize_events
from everturn.stores.memory import MemoryStore
from everturn.wire import dump_command, dump_event, load_command, load_event

FORMAT, VERSION = "everturn.session", 1

MANIFEST, LOG, INBOX, BLOBS = "manifest.json", "log.jsonl", "inbox.jsonl", "blobs/"

ENTRY_LIMIT = 256 * 1024 * 1024
"""Maximum size of one entry in bytes, unpacked."""

MANIFEST_LIMIT = 4 * 1024 * 1024
ENTRIES_LIMIT = 100_000
DIRECTORY_LIMIT = 16 * 1024 * 1024
"""Maximum size of a zip's directory in bytes: enough for `ENTRIES_LIMIT` entries of ours."""

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the zip epoch: the time of the export is no part of a session
_PIECE = 1024 * 1024


class _FileLeaf(Struct, frozen=True, gc=False):
    """A file in a tree of the session's own files: the blob with its content."""

    blob: str


class Manifest(Struct, frozen=True):
    """The manifest of an exported session. Its tenant is not in it: the importer decides that."""

    format: str
    version: int
    session: str
    head: int
    missing: tuple[str, ...] = ()  # referenced blobs that the store did not have


async def export_session(store: Store, session: str, file: str | Path) -> None:
    """Write a session to a file. A session that is being driven is written as it is at this moment.

    Raises:
        UnknownSession: the session does not exist.
    """
    # The inbox first: a command that is handled between the two reads is then in the log, and dropped here.
    inbox = await store.inbox(session)
    entries = await store.events(session)
    handled = {getattr(entry.event, "command", "") for entry in entries}
    commands = [command for command in inbox if command.key not in handled]
    blob_names = _referenced_blobs((entry.event for entry in entries), commands)
    tenant = (await store.info(session)).tenant
    with blobs_of_tenant(tenant), private_file(Path(file)) as out, zipfile.ZipFile(out, "w") as archive:
        await asyncio.to_thread(_write_log, archive, entries, commands)
        missing: list[str] = []
        for name in blob_names:
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
    """Create a session from a file and return its name: the exported one, or `session`. Ids inside it stay the same.

    A turn that was running is over: its open calls are cancelled, and nothing runs. Grants are not imported, and
    commands in the inbox are not executed. The imported usage does not count, no folder on this machine can be reverted
    by it, and no event is later than `now`. With `by`, that user is recorded as the one who started every turn.

    Raises:
        UnreadableLog: the file is not a complete, valid session; nothing was written but, at most, unreferenced blobs.
        KeyConflict: a session of this name exists or existed.
    """
    with await asyncio.to_thread(_open, file) as opened:
        manifest, archive, events = await asyncio.to_thread(_read, opened, time.time() if now is None else now, by)
        name = manifest.session if session is None else session
        await asyncio.to_thread(_dry_run, name, tenant, events)
        await _refuse_if_exists(store, name)
        referenced = set(_referenced_blobs(events))
        for blob in filter(referenced.__contains__, _blob_names(archive)):
            data = await asyncio.to_thread(archive.read, BLOBS + blob)
            with blobs_of_tenant(tenant):
                stored = await store.put_blob(data)
            if stored != blob:
                raise UnreadableLog(f"the bytes of blob {blob} changed while they were read")
    await store.restore(name, tenant, events)
    return name


def _dry_run(session: str, tenant: str, events: Sequence[Event]) -> None:
    """Apply the events to a store in memory, in a loop of its own: a long log would block this event loop."""
    try:
        asyncio.run(MemoryStore().restore(session, tenant, events))
    except Exception as error:
        raise UnreadableLog(f"this session cannot be: {error}") from error


async def _refuse_if_exists(store: Store, session: str) -> None:
    try:
        await store.info(session)
    except UnknownSession:
        return
    raise KeyConflict(f"session {session!r} already exists; import it under another id")


def _referenced_blobs(events: Iterable[Event], commands: Iterable[AnyCommand] = ()) -> list[str]:
    names = {name for event in events for name in referenced_blobs(event)}
    return sorted(names.union(*(referenced_blobs(command) for command in commands)))


# Writing -------------------------------------------------------------------------------------------------------------


@contextmanager
def private_file(path: Path) -> Generator[IO[bytes]]:
    """Open a file that only its owner may read: written whole or not at all, and never through a symlink."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(partial, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _entry(name: str, compression: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
    entry.compress_type, entry.create_system, entry.external_attr = compression, 3, 0o600 << 16
    return entry


def _write_log(archive: zipfile.ZipFile, entries: Iterable[Entry], commands: Iterable[AnyCommand]) -> None:
    with archive.open(_entry(LOG, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as out:
        for entry in entries:
            out.write(dump_event(entry.event) + b"\n")
    with archive.open(_entry(INBOX, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as out:
        for command in commands:
            out.write(dump_command(command) + b"\n")


# Reading -------------------------------------------------------------------------------------------------------------


def _open(file: str | Path) -> IO[bytes]:
    return Path(file).open("rb")


def _read(file: IO[bytes], now: float, by: str) -> tuple[Manifest, zipfile.ZipFile, list[Event]]:
    """Read a log and end every open turn in it. Blobs are only checked: complete, bounded, and the referenced ones."""
    try:
        archive = open_zip(file)
        _check_entries(archive)
        manifest = _read_manifest(archive)
        # One more than the manifest says is enough to know, however many are packed inside.
        events = [load_event(line) for line in islice(_lines(archive, LOG), manifest.head + 1)]
        commands = [load_command(line) for line in _lines(archive, INBOX)]
        if len(events) != manifest.head:
            count = f"{len(events)}" if len(events) < manifest.head else "more"
            raise UnreadableLog(f"the log has {count} events, and should have {manifest.head}")
        if any(command.session != manifest.session for command in commands):
            raise UnreadableLog("a command in the inbox is for another session")
        events = sanitize_events(events, now, by)
        turns = check_log(events)
        referenced = _referenced_blobs(events, commands)
        _check_blobs(archive, referenced, manifest.missing)
        _check_trees(archive, events, referenced)
        events += close_open_turns(turns, events[-1].at if events else 0.0)
    except EverturnError as error:
        raise UnreadableLog(f"{_file_name(file)} cannot be imported: {error}") from error
    except Exception as error:  # a broken zip breaks in many ways
        raise UnreadableLog(f"{_file_name(file)} is not an exported session: {error!r}") from error
    return manifest, archive, events


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open a zip file. Its directory is checked before `zipfile` parses it, which costs 500 bytes per entry.

    Raises:
        UnreadableLog: the zip has too many entries.
        Exception: the file is not a zip, or a broken one; `zipfile` raises many types.
    """
    guarded = cast("IO[bytes]", _LimitedDirectoryReader(file))
    archive = zipfile.ZipFile(guarded)
    archive.fp = file  # the directory was read; further reads are bounded by the sizes in it
    return archive


class _LimitedDirectoryReader:
    """A file whose zip directory `zipfile` reads in one read, as long as the file says; this limits that read."""

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


def _file_name(file: IO[bytes]) -> str:
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
            raise UnreadableLog(f"it has an unknown entry {entry.filename[:100]!r}")
        # Blobs are stored as they are, so all of them together are not larger than the file.
        if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableLog(f"{entry.filename} is compressed in an unsupported way")
        if is_blob and (entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size):
            raise UnreadableLog(f"{entry.filename} is compressed; blobs must not be")
        limit = MANIFEST_LIMIT if entry.filename == MANIFEST else ENTRY_LIMIT
        if entry.file_size > limit:
            raise UnreadableLog(f"{entry.filename} claims {entry.file_size:,} bytes; at most {limit:,} are allowed")


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
    with archive.open(name) as opened:  # never more than the checked size, whatever is packed inside
        yield from opened


def _check_blobs(archive: zipfile.ZipFile, referenced: Sequence[str], missing: Sequence[str]) -> None:
    present = _blob_names(archive)
    if sorted([*present, *missing]) != list(referenced):
        raise UnreadableLog("its blobs are not those that its log refers to")
    for name in present:
        digest = hashlib.sha256()
        with archive.open(BLOBS + name) as opened:
            while piece := opened.read(_PIECE):
                digest.update(piece)
        if digest.hexdigest() != name:
            raise UnreadableLog(f"the bytes of blob {name} do not match its name")


def _check_trees(archive: zipfile.ZipFile, events: Iterable[Event], names: Sequence[str]) -> None:
    """Trees reference blobs too: a blob that the log does not reference may exist here and belong to another tenant."""
    referenced, present = set(names), set(_blob_names(archive))
    files = [event for event in events if isinstance(event, FilesChanged | RevertStarted | FilesReverted)]
    for tree in {name for event in files if not event.root for name in (event.before, event.after)} & present:
        try:
            leaves = msgspec.json.decode(archive.read(BLOBS + tree), type=dict[str, _FileLeaf])
        except (msgspec.DecodeError, RecursionError):
            continue  # not a tree, and never read as one
        if any(leaf.blob not in referenced for leaf in leaves.values()):
            raise UnreadableLog("a file in its trees is not listed in the manifest")
