"""Erasure of a user or of a whole tenant: their sessions, blobs, memory files, schedules, credentials and account.

The sessions of a user are those that they began, and those that they wrote in or answered in: a log cannot lose a part.
Open turns do not keep a session: the next epoch fences their drivers. Each session is erased in its own transaction, so
the work can be stopped and run again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from everturn.core.memory.user_memory import OWNER_PREFIXES
from everturn.core.tenants.sharing import user_subject
from everturn.errors import UnknownSession
from everturn.stores.sql.blobs import SqlBlobs
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.erasure import erase_now
from everturn.stores.sql.event_packs import unpack
from everturn.stores.sql.schedules import SqlSchedules
from everturn.stores.sql.statements.log import EVENTS
from everturn.stores.sql.webhooks import SqlWebhooks

BATCH = 100
QUEUE = "erasure"


class ErasureReport(Struct, frozen=True):
    """What an erasure removed."""

    sessions: int = 0
    blobs: int = 0
    memory_files: int = 0
    credentials: int = 0
    users: int = 0
    schedules: int = 0


_PAGE = Statement(
    "erasable_sessions",
    "SELECT id FROM sessions WHERE tenant = ? AND id > ? AND NOT erased ORDER BY id LIMIT ?",
    "SELECT given.row, s.id FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS given (tenant, id, most, row) "
    "CROSS JOIN LATERAL (SELECT id FROM sessions WHERE tenant = given.tenant AND id > given.id AND NOT erased "
    "ORDER BY id LIMIT given.most) s ORDER BY 1, 2",
    returns=True,
)
# A log names its users as `"by":"anna"`, and one who answered for others as `"by":"anna,…"`. A packed row of the log has
# these names in plain text.
_OF_USER = Statement(
    "sessions_of_user",
    "SELECT s.id FROM sessions s WHERE s.id IN (SELECT value FROM json_each(?1)) AND (s.creator = ?2 "
    "OR EXISTS (SELECT 1 FROM events e WHERE e.session = s.id AND (instr(e.body, ?3) OR instr(e.body, ?4))) "
    "OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id AND (instr(i.body, ?3) OR instr(i.body, ?4)))) ORDER BY s.id",
    "SELECT given.row, s.id FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) "
    "WITH ORDINALITY AS given (ids, creator, one, two, row) "
    "CROSS JOIN LATERAL json_array_elements_text(given.ids::json) AS named(id) JOIN sessions s ON s.id = named.id "
    "WHERE s.creator = given.creator OR EXISTS (SELECT 1 FROM events e WHERE e.cohort = s.cohort AND e.session = s.id "
    "AND (position(given.one in e.body) > 0 OR position(given.two in e.body) > 0)) "
    "OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id "
    "AND (position(given.one in i.body) > 0 OR position(given.two in i.body) > 0)) ORDER BY 1, 2",
    returns=True,
)
_CREATOR = Statement(
    "creator_of_session",
    "SELECT creator FROM sessions WHERE id = ?",
    "SELECT given.row, s.creator FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN sessions s ON s.id = given.id",
    returns=True,
)
_COMMANDS = Statement(
    "commands_of_session",
    "SELECT body, key FROM inbox WHERE session = ?",
    "SELECT given.row, i.body, i.key FROM unnest($1::text[]) WITH ORDINALITY AS given (session, row) "
    "JOIN inbox i ON i.session = given.session",
    returns=True,
)
# A blob that was put again since then is somebody else's.
_SWEEP = Statement(
    "erase_blob",
    "DELETE FROM blobs WHERE name = ? AND touched <= ? AND NOT EXISTS (SELECT 1 FROM mentions m WHERE m.blob = blobs.name) "
    "RETURNING place, data",
    "DELETE FROM blobs b USING unnest($1::text[], $2::double precision[]) WITH ORDINALITY AS given (name, before, row) "
    "WHERE b.name = given.name AND b.touched <= given.before AND NOT EXISTS (SELECT 1 FROM mentions m WHERE m.blob = b.name) "
    "RETURNING given.row, b.place, b.data",
    returns=True,
)
_SWEEP_CHUNKS = Statement(
    "erase_chunks",
    "DELETE FROM chunks WHERE blob = ?",
    "DELETE FROM chunks c USING unnest($1::text[]) AS given (blob) WHERE c.blob = given.blob",
)


def _deleted(table: str, owner: str) -> Statement:
    """Delete the rows of a user, or (None) of all users of a tenant."""
    return Statement(
        f"erase_owner_{table}",
        f"DELETE FROM {table} WHERE tenant = ?1 AND (?2 IS NULL OR {owner} = ?2) RETURNING 1",
        f"DELETE FROM {table} t USING unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (tenant, owner, row) "
        f"WHERE t.tenant = given.tenant AND (given.owner IS NULL OR t.{owner} = given.owner) RETURNING given.row, 1",
        returns=True,
    )


_MEMORY_FILES = _deleted("memory_files", "owner")
_MEMORY_WRITES = _deleted("memory_writes", "owner")
_CREDENTIALS = _deleted("credentials", "whose")
_USERS = _deleted("users", "id")
_RECORDS = [_deleted("user_records", "whose"), _deleted("invitations", "whose")]
_SHARES = _deleted("session_shares", "subject")  # conversations of others that the user may see


def _of_tenant(table: str) -> Statement:
    return Statement(
        f"erase_tenant_{table}",
        f"DELETE FROM {table} WHERE tenant = ?",
        f"DELETE FROM {table} t USING unnest($1::text[]) AS given (tenant) WHERE t.tenant = given.tenant",
    )


_TENANT_WORK = [_of_tenant(table) for table in ("schedules", "webhooks", "webhook_deliveries")]
_TENANT_SETTINGS = _of_tenant("settings")
_TENANT_TEXT = Statement(
    "erase_tenant_name",
    "UPDATE tenants SET name = '', is_active = false WHERE id = ?",
    "UPDATE tenants t SET name = '', is_active = false FROM unnest($1::text[]) AS given (id) WHERE t.id = given.id",
)


async def erase_owner(
    database: Database, blobs: SqlBlobs, tenant: str, user: str | None
) -> tuple[list[str], ErasureReport]:
    """Erase a user, or (None) a whole tenant; return the erased sessions and what was removed."""
    started = time.time()
    schedules = await SqlSchedules(database).count(tenant) if user is None else 0
    # First, so that nobody goes on writing under this name.
    account = await database.write(lambda _: _erase_account(tenant, user), QUEUE, is_long=True)
    if user is not None:
        schedules = await _erase_work_of_user(database, tenant, user)
    erased, names = list[str](), set[str]()
    async for session in sessions_of(database, tenant, user):
        found, mentioned = await database.write(lambda _, s=session: _erase_session(s), session, is_long=True)
        erased += found
        names |= mentioned
    removed = 0
    for name in sorted(names):
        rows = await database.write(lambda _, n=name: _erase_blob(n, started), name, is_long=True)
        removed += len(rows)
        files = [bytes(data).decode() for place, data in rows if place == "folder"]
        if files and blobs.folder is not None:
            await asyncio.to_thread(blobs.folder.remove, files)
    return erased, ErasureReport(len(erased), removed, *account, schedules)


async def _erase_work_of_user(database: Database, tenant: str, user: str) -> int:
    """Erase the schedules that a user made and the browsers that were told for them; return how many schedules.

    A schedule that stayed would go on sending the text of the user, with their authority.
    """
    schedules, webhooks = SqlSchedules(database), SqlWebhooks(database)
    found, last = list[str](), ""
    while page := await schedules.list(tenant, BATCH, last):
        last = page[-1].id
        found += [schedule.id for schedule in page if schedule.by == user]
    for schedule in found:
        await schedules.delete(tenant, schedule)
    for webhook in await webhooks.list(tenant):
        if webhook.push is not None and webhook.push.user == user:
            await webhooks.delete(tenant, webhook.id)
    return len(found)


async def sessions_of(database: Database, tenant: str, user: str | None) -> AsyncIterator[str]:
    """Yield the sessions of a user, those that they only took part in included, or (None) of a whole tenant."""
    last = ""
    while page := await database.read(lambda at=last: _rows(_PAGE, tenant, at, BATCH), is_long=True):
        ids = [row[0] for row in page]
        last = ids[-1]
        for session in ids if user is None else await _of_user(database, ids, user):
            yield session


async def _of_user(database: Database, ids: list[str], user: str) -> list[str]:
    quoted, listed = msgspec.json.encode(user)[1:-1], msgspec.json.encode(ids).decode()
    marks = (b'"by":"' + quoted + b'"', b'"by":"' + quoted + b",")
    if getattr(database, "is_encrypted", False):  # only we can look into the bodies
        return [id for id in ids if await database.read(lambda id=id: _names_user(id, user, marks), is_long=True)]
    return [row[0] for row in await database.read(lambda: _rows(_OF_USER, listed, user, *marks), is_long=True)]


def _names_user(session: str, user: str, marks: tuple[bytes, bytes]) -> Operation[bool]:
    if (yield Query(_CREATOR, (session,)))[0][0] == user:
        return True
    after = 0
    while rows := (yield Query(EVENTS, (session, after, BATCH))):
        if any(mark in body for _, body in unpack(rows) for mark in marks):
            return True
        after = rows[-1][0]
    rows = yield Query(_COMMANDS, (session,))
    return any(mark in body for body, _ in rows for mark in marks)


def _erase_session(session: str) -> Operation[tuple[list[str], set[str]]]:
    try:
        names, mentioned = yield from erase_now(session)
    except UnknownSession:
        return [], set()
    return names, mentioned


def _erase_blob(name: str, before: float) -> Operation[list[Row]]:
    rows = yield Query(_SWEEP, (name, before))
    if any(place in ("chunks", "writing") for place, _ in rows):
        yield Query(_SWEEP_CHUNKS, [(name,)], many=True)
    return rows


def _erase_account(tenant: str, user: str | None) -> Operation[tuple[int, int, int]]:
    counts = list[int]()
    for statement in (_MEMORY_FILES, _MEMORY_WRITES, _CREDENTIALS, _USERS, *_RECORDS):
        counts.append(len((yield Query(statement, (tenant, user)))))
    for prefix in OWNER_PREFIXES if user is not None else ():  # saved prompts, and logins to MCP servers
        yield Query(_MEMORY_FILES, (tenant, f"{prefix}{user}"))
    yield Query(_SHARES, (tenant, None if user is None else user_subject(user)))
    if user is None:
        yield from erase_tenant_work(tenant)
        for statement in (_TENANT_SETTINGS, _TENANT_TEXT):
            yield Query(statement, [(tenant,)], many=True)
    return counts[0], counts[2], counts[3]


def erase_tenant_work(tenant: str) -> Operation[None]:
    """Erase what would still run for a tenant, or be sent: schedules, webhooks and their deliveries."""
    for statement in _TENANT_WORK:
        yield Query(statement, [(tenant,)], many=True)


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))
