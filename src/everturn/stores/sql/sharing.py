"""SQL `SharingStore`: a row per share, with the columns that queries of sessions compare; the rest is its body.

The conditions here, the function `everturn_is_readable` of the schema and `core.tenants.sharing.level_of` say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from everturn.core.tenants.sharing import Share
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

_COLUMNS = "id, tenant, session, kind, subject, hash, via, created, expires, revoked, seen, body"
_SHARE = "h.body, h.revoked, h.seen"
_ADD = Statement(
    "add share",
    f"""INSERT INTO session_shares ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET expires = excluded.expires, revoked = excluded.revoked,
        created = excluded.created, seen = excluded.seen, body = excluded.body""",
    f"""INSERT INTO session_shares ({_COLUMNS}) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[],
        $5::text[], $6::text[], $7::text[], $8::float8[], $9::float8[], $10::float8[], $11::float8[], $12::bytea[])
    ON CONFLICT (tenant, id) DO UPDATE SET expires = excluded.expires, revoked = excluded.revoked,
        created = excluded.created, seen = excluded.seen, body = excluded.body""",
)
_SHARES = Statement(
    "shares",
    f"""SELECT {_SHARE} FROM json_each(?) j CROSS JOIN session_shares h ON h.session = j.value
    ORDER BY h.created, h.id""",
    f"""SELECT p.n, {_SHARE} FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)
    CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id)
    JOIN session_shares h ON h.session = j.id ORDER BY p.n, h.created, h.id COLLATE "C\"""",
    returns=True,
)
_LINK = Statement(
    "share link",
    f"SELECT {_SHARE} FROM session_shares h WHERE h.tenant = ? AND h.hash = ? AND h.hash != ''",
    f"""SELECT p.n, {_SHARE} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, hash, n)
    JOIN session_shares h ON h.tenant = p.tenant AND h.hash = p.hash AND h.hash != ''""",
    returns=True,
)
_REVOKE = Statement(
    "revoke share",
    """UPDATE session_shares SET revoked = CASE WHEN revoked > 0 THEN revoked ELSE ?4 END
    WHERE tenant = ?1 AND session = ?2 AND (id = ?3 OR via = ?3) RETURNING id""",
    """UPDATE session_shares h SET revoked = CASE WHEN h.revoked > 0 THEN h.revoked ELSE p.now END
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) WITH ORDINALITY AS p(tenant, session, id, now, n)
    WHERE h.tenant = p.tenant AND h.session = p.session AND (h.id = p.id OR h.via = p.id) RETURNING p.n, h.id""",
    returns=True,
)
_NOTICES = Statement(
    "share notices",
    f"""SELECT {_SHARE} FROM session_shares h JOIN sessions s ON s.id = h.session
    WHERE h.tenant = ?1 AND h.kind = 'admin' AND h.seen = 0 AND s.creator = ?2 ORDER BY h.created, h.id""",
    f"""SELECT p.n, {_SHARE} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, author, n)
    JOIN session_shares h ON h.tenant = p.tenant AND h.kind = 'admin' AND h.seen = 0
    JOIN sessions s ON s.id = h.session AND s.creator = p.author ORDER BY p.n, h.created, h.id COLLATE "C\"""",
    returns=True,
)
_DISMISS = Statement(
    "dismiss notice",
    """UPDATE session_shares SET seen = ?4 WHERE tenant = ?1 AND id = ?3 AND kind = 'admin' AND seen = 0
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = session_shares.session AND s.creator = ?2) RETURNING id""",
    """UPDATE session_shares h SET seen = p.now
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) WITH ORDINALITY AS p(tenant, author, id, now, n)
    WHERE h.tenant = p.tenant AND h.id = p.id AND h.kind = 'admin' AND h.seen = 0
        AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = h.session AND s.creator = p.author) RETURNING p.n, h.id""",
    returns=True,
)
_SET_TEMPORARY = Statement(
    "set temporary",
    "INSERT INTO temporary_sessions (session, tenant, until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    """INSERT INTO temporary_sessions (session, tenant, until)
    SELECT * FROM unnest($1::text[], $2::text[], $3::float8[]) ON CONFLICT DO NOTHING""",
)
_TEMPORARY = Statement(
    "temporary",
    "SELECT t.session, t.until FROM json_each(?) j CROSS JOIN temporary_sessions t ON t.session = j.value",
    """SELECT p.n, t.session, t.until FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)
    CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id) JOIN temporary_sessions t ON t.session = j.id""",
    returns=True,
)
_FORGET_TEMPORARY = Statement(
    "forget temporary",
    "DELETE FROM temporary_sessions WHERE session = ?",
    "DELETE FROM temporary_sessions t USING unnest($1::text[]) AS p(session) WHERE t.session = p.session",
)
_EXPIRED = Statement(
    "expired sessions",
    "SELECT session FROM temporary_sessions WHERE until <= ? ORDER BY until LIMIT ?",
    """SELECT p.n, t.session FROM unnest($1::float8[], $2::bigint[]) WITH ORDINALITY AS p(now, most, n)
    CROSS JOIN LATERAL (SELECT session FROM temporary_sessions WHERE until <= p.now ORDER BY until LIMIT p.most) t""",
    returns=True,
)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Share).decode


class SqlSharing:
    """Shares in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, share: Share) -> None:
        """Add a share."""
        await self._database.write(lambda _: _add(share), _queue(share.session))

    async def shares(self, sessions: Sequence[str]) -> list[Share]:
        """Return all shares of these sessions."""
        return await self._database.read(lambda: _find(_SHARES, _ids(sessions))) if sessions else []

    async def link(self, tenant: str, hash: str) -> Share | None:
        """Return the link with a hash."""
        return next(iter(await self._database.read(lambda: _find(_LINK, tenant, hash))), None)

    async def revoke(self, tenant: str, session: str, id: str, now: float) -> bool:
        """Revoke a share, and what was opened by it."""
        return bool(
            await self._database.write(lambda _: _rows(_REVOKE, tenant, session, _text(id), now), _queue(session))
        )

    async def notices(self, tenant: str, author: str) -> list[Share]:
        """Return what administrators opened of an author's sessions."""
        return await self._database.read(lambda: _find(_NOTICES, tenant, author))

    async def dismiss(self, tenant: str, author: str, id: str, now: float) -> bool:
        """Dismiss a notice."""
        operation = self._database.write(lambda again: _dismiss(tenant, author, _text(id), now, again), _queue(tenant))
        return await operation

    async def set_temporary(self, tenant: str, session: str, until: float) -> None:
        """Let a session be temporary."""
        await self._database.write(lambda _: _set_temporary(session, tenant, until), _queue(session))

    async def temporary(self, sessions: Sequence[str]) -> dict[str, float]:
        """Return those that are temporary."""
        rows = await self._database.read(lambda: _rows(_TEMPORARY, _ids(sessions))) if sessions else []
        return {row[0]: row[1] for row in rows}

    async def forget_temporary(self, session: str) -> None:
        """Forget that a session was temporary."""
        await self._database.write(lambda _: _forget_temporary(session), _queue(session))

    async def expired(self, now: float, limit: int = 200) -> list[str]:
        """Return temporary sessions whose time is over."""
        return [row[0] for row in await self._database.read(lambda: _rows(_EXPIRED, now, limit))]


def _queue(name: str) -> str:
    return f"share {name}"


def _text(id: str) -> str:
    return id.replace("\0", "?")  # PostgreSQL rejects NUL in a parameter


def _ids(sessions: Sequence[str]) -> str:
    return msgspec.json.encode([session for session in dict.fromkeys(sessions) if "\0" not in session]).decode()


def _add(share: Share) -> Operation[None]:
    names = (share.id, share.tenant, share.session, share.kind, share.subject, share.hash, share.via)
    times = (share.created, share.expires, share.revoked, share.seen)
    yield Query(_ADD, [(*names, *times, _encode(share))], many=True)


def _find(statement: Statement, *parameters: object) -> Operation[list[Share]]:
    rows = yield Query(statement, parameters)
    return [replace(_decode(body), revoked=revoked, seen=seen) for body, revoked, seen in rows]


def _dismiss(tenant: str, author: str, id: str, now: float, again: bool) -> Operation[bool]:
    return bool((yield Query(_DISMISS, (tenant, author, id, now)))) or again


def _set_temporary(session: str, tenant: str, until: float) -> Operation[None]:
    yield Query(_SET_TEMPORARY, [(session, tenant, until)], many=True)


def _forget_temporary(session: str) -> Operation[None]:
    yield Query(_FORGET_TEMPORARY, [(session,)], many=True)


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))
