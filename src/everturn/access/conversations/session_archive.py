"""Session archive: what is checked before a session is exported to a file, or imported from one, through the API."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from everturn.access.context.role_redaction import REDACTED_BLOB, redact_event
from everturn.core.events import Entry, GateOpened, TurnStarted
from everturn.errors import UnreadableLog
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.export import LOG, MANIFEST, MANIFEST_LIMIT, Manifest, open_zip

IMPORT_EVENTS_LIMIT: Final = 100_000  # of an imported session: a zip of a few kilobytes may hold millions
IMPORT_BYTES_LIMIT: Final = 64 * 1024 * 1024  # bytes of its log, uncompressed


def is_for_approvers(entry: Entry) -> bool:
    """Whether an event holds something that is hidden from roles below approver."""
    redacted_event = redact_event(entry.event)
    return (
        isinstance(entry.event, GateOpened) and redacted_event is not entry.event
    ) or REDACTED_BLOB in referenced_blobs(redacted_event)


def is_subagent_turn(entry: Entry) -> bool:
    """Whether an event starts a turn of a sub-agent."""
    return isinstance(entry.event, TurnStarted) and entry.event.options.lineage is not None


def refuse_incomplete(file: Path) -> None:
    """Refuse a file that refers to blobs it does not contain.

    Such a blob may be in the store, and another tenant's: blobs are stored by hash, and a session may read those that it
    refers to.

    Raises:
        UnreadableLog: the file is incomplete, too large, or no exported session.
    """
    try:
        with file.open("rb") as opened, open_zip(opened) as archive:
            if archive.getinfo(MANIFEST).file_size > MANIFEST_LIMIT:
                raise UnreadableLog("its manifest is too large")
            if archive.getinfo(LOG).file_size > IMPORT_BYTES_LIMIT:
                raise UnreadableLog(f"its log is too long: {IMPORT_BYTES_LIMIT:,} bytes are allowed")
            manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    except UnreadableLog:
        raise
    except Exception as error:  # a broken zip fails in many ways
        raise UnreadableLog(f"this is not an exported session: {type(error).__name__}") from None
    if manifest.head > IMPORT_EVENTS_LIMIT:
        raise UnreadableLog(f"its log is too long: {IMPORT_EVENTS_LIMIT:,} events are allowed")
    if manifest.missing:
        raise UnreadableLog(
            "it refers to files that it does not contain; export the session again where they are stored"
        )
