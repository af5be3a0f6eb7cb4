"""Statements that admit a command: its checks, its row in the inbox, and answers and claims of gates."""

from __future__ import annotations

from everturn.stores.sql.database import Statement

# PostgreSQL must lock the row before it reads anything else: a statement sees the data as of its start.
LOCK = Statement(
    "lock",
    "SELECT tenant, erased FROM sessions WHERE id = ?",
    """SELECT p.n, s.tenant, s.erased FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n)
    JOIN sessions s ON s.id = p.id ORDER BY s.id FOR UPDATE OF s""",
    returns=True,
)
ADMISSION_STATE = Statement(
    "look",
    """SELECT (SELECT body FROM inbox WHERE session = ?1 AND key = ?2),
        EXISTS (SELECT 1 FROM inbox WHERE session = ?1 AND turn = ?3 AND kind != 'Cancel'),
        EXISTS (SELECT 1 FROM turns WHERE session = ?1 AND turn = ?3),
        EXISTS (SELECT 1 FROM messages WHERE session = ?1 AND id = ?4),
        EXISTS (SELECT 1 FROM messages WHERE session = ?1 AND id = ?5 AND NOT is_deleted)""",
    """SELECT p.n, (SELECT body FROM inbox WHERE session = p.session AND key = p.key),
        EXISTS (SELECT 1 FROM inbox WHERE session = p.session AND turn = p.turn AND kind != 'Cancel'),
        EXISTS (SELECT 1 FROM turns WHERE session = p.session AND turn = p.turn),
        EXISTS (SELECT 1 FROM messages WHERE session = p.session AND id = p.message),
        EXISTS (SELECT 1 FROM messages WHERE session = p.session AND id = p.place AND NOT is_deleted)
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY
        AS p(session, key, turn, message, place, n)""",
    returns=True,
)
GATE = Statement(
    "gate",
    """SELECT g.body, g.opened, g.resolution, g.is_open, g.claim,
        EXISTS (SELECT 1 FROM inbox WHERE session = g.session AND turn = g.turn AND kind = 'Cancel' AND is_open)
    FROM gates g WHERE g.session = ? AND g.gate = ?""",
    """SELECT p.n, g.body, g.opened, g.resolution, g.is_open, g.claim,
        EXISTS (SELECT 1 FROM inbox WHERE session = g.session AND turn = g.turn AND kind = 'Cancel' AND is_open)
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, gate, n)
    JOIN gates g ON g.session = p.session AND g.gate = p.gate""",
    returns=True,
)
NEW_SESSION = Statement(
    "new session",
    """INSERT INTO sessions (id, tenant, created, touched, moved, head, token, agent, creator, parent)
    VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING RETURNING id""",
    """WITH p AS (SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::bigint[], $6::text[],
        $7::text[], $8::text[], $9::text[]) WITH ORDINALITY
        AS p(id, tenant, created, touched, head, token, agent, creator, parent, n)),
    made AS (INSERT INTO sessions (id, tenant, created, touched, moved, head, token, agent, creator, parent)
        SELECT id, tenant, created, touched, touched, head, token, agent, creator, parent FROM p ORDER BY id
        ON CONFLICT (id) DO NOTHING RETURNING id)
    SELECT p.n, p.id FROM p JOIN made ON made.id = p.id""",
    returns=True,
)
ADD_COMMAND = Statement(
    "keep",
    "INSERT INTO inbox (session, key, turn, kind, body) VALUES (?, ?, ?, ?, ?)",
    """INSERT INTO inbox (session, key, turn, kind, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[])""",
)
TOUCH = Statement(
    "touch",
    """UPDATE sessions SET touched = max(touched, ?1), moved = max(moved, ?1), tries = 0, quarantined = '',
        awaited_agent = '' WHERE id = ?2""",
    """UPDATE sessions s SET touched = greatest(s.touched, p.at), moved = greatest(s.moved, p.at), tries = 0, quarantined = '',
        awaited_agent = ''
    FROM unnest($1::float8[], $2::text[]) AS p(at, id) WHERE s.id = p.id""",
)
TOUCH_UNLISTED = Statement(  # for a command that does not change the place of a session in a list
    "touch unlisted",
    "UPDATE sessions SET touched = max(touched, ?1), tries = 0, quarantined = '', awaited_agent = '' WHERE id = ?2",
    """UPDATE sessions s SET touched = greatest(s.touched, p.at), tries = 0, quarantined = '', awaited_agent = ''
    FROM unnest($1::float8[], $2::text[]) AS p(at, id) WHERE s.id = p.id""",
)
RECORD_ANSWER = Statement(
    "resolution",
    "UPDATE gates SET resolution = ? WHERE session = ? AND gate = ?",
    """UPDATE gates g SET resolution = p.resolution FROM unnest($1::bytea[], $2::text[], $3::text[])
        AS p(resolution, session, gate) WHERE g.session = p.session AND g.gate = p.gate""",
)
RECORD_CLAIM = Statement(
    "take",
    "UPDATE gates SET claim = ?, expires = ?, taken = ? WHERE session = ? AND gate = ?",
    """UPDATE gates g SET claim = p.claim, expires = p.expires, taken = p.taken
    FROM unnest($1::bytea[], $2::float8[], $3::text[], $4::text[], $5::text[]) AS p(claim, expires, taken, session, gate)
    WHERE g.session = p.session AND g.gate = p.gate""",
)
IS_BUSY = Statement(
    "is busy",
    """SELECT EXISTS (SELECT 1 FROM turns WHERE session = ?1 AND (state != 'over' OR out > 0) AND state != 'over')
        OR EXISTS (SELECT 1 FROM inbox WHERE session = ?1 AND is_open AND kind = 'Send')""",
    """SELECT p.n, EXISTS (SELECT 1 FROM turns t WHERE t.session = p.session AND (t.state != 'over' OR t.out > 0)
            AND t.state != 'over')
        OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = p.session AND i.is_open AND i.kind = 'Send')
    FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)""",
    returns=True,
)
HAS_OPEN_TURN = Statement(
    "has open turn",
    "SELECT EXISTS (SELECT 1 FROM turns WHERE session = ? AND (state != 'over' OR out > 0) AND state != 'over')",
    """SELECT p.n, EXISTS (SELECT 1 FROM turns t WHERE t.session = p.session AND (t.state != 'over' OR t.out > 0)
            AND t.state != 'over')
    FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)""",
    returns=True,
)
