"""Session archive: exports a session to a file and imports one, as a caller of the API may, and with what is checked first."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from everturn.access.context.role_redaction import REDACTED_BLOB, redact_event
from everturn.access.context.scope import ScopedAccess
from everturn.core.events import Entry, GateOpened, TurnStarted
from everturn.errors import Forbidden, UnreadableLog
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.export import LOG, MANIFEST, MANIFEST_LIMIT, Manifest, export_session, import_session, open_zip

EXPORT_FORBIDDEN: Final = (
    "this session holds results that a person reviews, or private values; to export it needs the role 'approver'; "
    "yours is {role!r}"
)
IMPORT_EVENTS_LIMIT: Final = 100_000  # of an imported session: a zip of a few kilobytes may hold millions
IMPORT_BYTES_LIMIT: Final = 64 * 1024 * 1024  # bytes of its log, uncompressed


async def export_readable(scope: ScopedAccess, session: str, file: Path) -> None:
    """Write a session to a file.

    Raises:
        Forbidden: it holds something that is hidden from the caller.
    """
    if scope.is_redacted and any(_is_for_approvers(entry) for entry in await scope.readable_events(session)):
        raise Forbidden(EXPORT_FORBIDDEN.format(role=scope.principal.role))
    with scope.tenant_scope():
        await export_session(scope.store, session, file)
    await scope.audit_action("session.export", session)


async def import_archive(scope: ScopedAccess, file: Path) -> str:
    """Import a session from a file under a new id, and return that.

    Raises:
        UnreadableLog: the file is not a whole session, or that of a sub-agent run.
    """
    scope.server_context.meter.count_upload(scope.principal.tenant, (await asyncio.to_thread(file.stat)).st_size)
    await asyncio.to_thread(_refuse_incomplete, file)
    session = await scope.new_session_id("")
    principal, now = scope.principal, scope.server_context.app.clock.now()
    await import_session(scope.store, file, session=session, tenant=principal.tenant, by=principal.user, now=now)
    if any(_is_subagent_turn(entry) for entry in await scope.readable_events(session)):
        # The sub-agents that it names may be any session's, and would be counted and erased with it.
        await scope.store.erase(session)
        raise UnreadableLog(
            "this is the session of a sub-agent run; only the session of its parent turn can be imported"
        )
    await scope.audit_action("session.import", session)
    return session


def _is_for_approvers(entry: Entry) -> bool:
    """Whether an event holds something that is hidden from roles below approver."""
    redacted_event = redact_event(entry.event)
    return (
        isinstance(entry.event, GateOpened) and redacted_event is not entry.event
    ) or REDACTED_BLOB in referenced_blobs(redacted_event)


def _is_subagent_turn(entry: Entry) -> bool:
    """Whether an event starts a turn of a sub-agent."""
    return isinstance(entry.event, TurnStarted) and entry.event.options.lineage is not None


def _refuse_incomplete(file: Path) -> None:
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
