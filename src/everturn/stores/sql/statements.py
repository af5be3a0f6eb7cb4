"""SQL statements about sessions, in the dialects of SQLite and PostgreSQL.

The conditions of partial indexes are written exactly as the schema writes them: SQLite uses such an index only for a
query with the very same condition.
"""

from __future__ import annotations

import re

from everturn.core.session_claims import MAX_QUICK_CLAIMS, QUARANTINE_SECONDS, RETRY_PAUSES
from everturn.stores.sql.database import Statement
from everturn.stores.sql.event_packs import PACK_EVENTS

END = 2**62  # a position that is behind every other
SECOND = 1.0
NEVER = 9e99  # a time that is later than every other: SQLite has no infinity to write down

# A session with work: commands to handle, a turn that is not suspended, or calls whose tools still run.
_AWAKE = """(EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id AND i.is_open)
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)
               AND (t.state = 'busy' OR t.out > 0)))"""


def _due(least: str, is_open: str) -> str:
    """Return when a session is due: the first expiry of an unanswered gate, or the deadline of an open turn."""
    return f"""{least}(
        coalesce((SELECT min(g.expires) FROM gates g
                  WHERE g.session = s.id AND {is_open} AND g.resolution IS NULL AND g.expires > 0), {NEVER}),
        coalesce((SELECT min(t.deadline) FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)
                  AND t.state != 'over' AND t.deadline > 0), {NEVER}))"""


_DUE_LITE, _DUE_PG = _due("min", "g.is_open = 1"), _due("least", "g.is_open")

# Sessions that could be awake or due, found by the small indexes of what is live.
_LIVE = """SELECT session FROM inbox WHERE is_open
    UNION SELECT session FROM turns WHERE (state != 'over' OR out > 0) AND (state = 'busy' OR out > 0 OR deadline > 0)
    UNION SELECT session FROM gates WHERE {is_open} AND resolution IS NULL AND expires > 0"""
_LIVE_LITE, _LIVE_PG = _LIVE.format(is_open="is_open = 1"), _LIVE.format(is_open="is_open")

# The events of a turn are between its first and its last, mixed with those of other turns.
_OF_TURN = f"""e.session = t.session AND e.turn = t.turn AND e.seq >= t.started
    AND e.seq <= CASE WHEN t.last > 0 THEN t.last ELSE {END} END"""

# On PostgreSQL the log is in partitions, and the row of a session says in which one it is: a statement that did not ask
# for it first would look into each (event_partitions.py). OFFSET 0 keeps the planner from joining in another order.
_LOG_OF_TURN = f"""JOIN sessions o ON o.id = t.session CROSS JOIN LATERAL (
        SELECT e.seq, e.body FROM events e WHERE e.cohort = o.cohort AND {_OF_TURN} {{and_also}} OFFSET 0) e"""

# Reading --------------------------------------------------------------------------------------------------------------

SESSION = Statement(
    "session",
    "SELECT head, leaf, title, token, epoch, erased, tenant, agent, renamed FROM sessions WHERE id = ?",
    """SELECT p.n, s.head, s.leaf, s.title, s.token, s.epoch, s.erased, s.tenant, s.agent, s.renamed
    FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n) JOIN sessions s ON s.id = p.id""",
    returns=True,
)

# The ids are a JSON list, because a row of parameters is one operation; each is looked up by the primary key.
HEADS = Statement(
    "heads",
    "SELECT s.id, s.head FROM json_each(?) w JOIN sessions s ON s.id = w.value AND NOT s.erased",
    """SELECT p.n, s.id, s.head FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)
    CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS w(id) JOIN sessions s ON s.id = w.id AND NOT s.erased""",
    returns=True,
)

_INFO = (
    "s.id, s.title, s.leaf, {awake}, {due}, s.quarantined, s.tenant, s.agent, s.creator, s.parent, s.created, s.moved, "
    "s.awaited_agent, s.renamed, s.pinned, s.archived, s.labels, s.organized"
)
_INFO_LITE, _INFO_PG = _INFO.format(awake=_AWAKE, due=_DUE_LITE), _INFO.format(awake=_AWAKE, due=_DUE_PG)

_RETURNED_LITE = re.sub(r"\bs[.]", "sessions.", _INFO_LITE)  # SQLite does not allow the table alias in RETURNING

INFO = Statement(
    "info",
    f"SELECT {_INFO_LITE} FROM sessions s WHERE s.id = ? AND NOT s.erased",
    f"""SELECT p.n, {_INFO_PG}
    FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n) JOIN sessions s ON s.id = p.id AND NOT s.erased""",
    returns=True,
)


def _sessions(name: str, lite: str, pg: str) -> Statement:
    """Return a statement for a page of sessions by (created, id), oldest first."""
    return Statement(
        name,
        f"""SELECT {_INFO_LITE} FROM sessions s WHERE {lite} AND NOT s.erased AND s.created >= ?1
            AND (s.created > ?1 OR s.id > ?2) ORDER BY s.created, s.id LIMIT ?3""",
        f"""SELECT p.n, {_INFO_PG} FROM unnest($1::float8[], $2::text[], $3::bigint[]) WITH ORDINALITY AS p(at, id, most, n)
        CROSS JOIN LATERAL (SELECT * FROM sessions l WHERE {pg} AND NOT l.erased AND l.created >= p.at
            AND (l.created > p.at OR l.id COLLATE "C" > p.id) ORDER BY l.created, l.id COLLATE "C" LIMIT p.most) s
        ORDER BY p.n, s.created, s.id COLLATE "C\"""",
        returns=True,
    )


SESSIONS = _sessions("sessions", "1", "true")
AWAKE_SESSIONS = _sessions("awake sessions", f"s.id IN ({_LIVE_LITE})", f"l.id IN ({_LIVE_PG})")
STUCK_SESSIONS = _sessions("quarantined sessions", "s.quarantined != ''", "l.quarantined != ''")
# Many at once: `ids` is a JSON list, because a parameter is one value.
INFOS = Statement(
    "infos",
    f"""SELECT {_INFO_LITE} FROM json_each(?) j CROSS JOIN sessions s ON s.id = j.value AND NOT s.erased""",
    f"""SELECT p.n, {_INFO_PG} FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)
    CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id) JOIN sessions s ON s.id = j.id AND NOT s.erased""",
    returns=True,
)


# By (moved, id), the newest first; ids in code point order, whatever the collation of the database.
# PostgreSQL would sort all of a tenant's sessions to order the ids of a page: it returns all ties of the last row.
def _listed(name: str, lite: str, pg: str) -> Statement:
    """Return a statement for a page of a tenant's sessions that fit a filter."""
    return Statement(
        name,
        f"""SELECT {_INFO_LITE} FROM sessions s WHERE s.tenant = ?1 AND s.erased = 0 AND s.parent = ''
        AND s.moved <= ?2 AND (s.moved < ?2 OR s.id < ?3) AND s.moved >= ?4 AND (?6 IS NULL OR s.archived = ?6)
        AND (?7 = '' OR instr(s.labels, ?7)) AND ?8 IN ('', s.agent) AND {lite}
        ORDER BY s.moved DESC, s.id DESC LIMIT ?5""",
        f"""SELECT p.n, {_INFO_PG}
    FROM unnest($1::text[], $2::float8[], $3::text[], $4::float8[], $5::bigint[], $6::boolean[], $7::text[], $8::text[],
        $9::float8[]) WITH ORDINALITY AS p(tenant, at, id, since, most, archived, label, agent, organized, n)
    CROSS JOIN LATERAL (
        SELECT * FROM sessions l WHERE l.tenant = p.tenant AND NOT l.erased AND l.parent = '' AND l.moved <= p.at
            AND (l.moved < p.at OR l.id COLLATE "C" < p.id) AND l.moved >= p.since
            AND (p.archived IS NULL OR l.archived = p.archived) AND strpos(l.labels, p.label) > 0
            AND p.agent IN ('', l.agent) AND {pg}
        ORDER BY l.moved DESC FETCH FIRST (p.most) ROWS WITH TIES) s""",
        returns=True,
    )


LIST_SESSIONS = _listed("listed", "?9 = ?9", "true")
LIST_PINNED = _listed("listed pinned", "s.pinned AND ?9 = ?9", "l.pinned")
LIST_NOT_PINNED = _listed("listed not pinned", "NOT s.pinned AND ?9 = ?9", "NOT l.pinned")
LIST_ORGANIZED = _listed(
    "listed organized",
    "s.organized > 0 AND s.organized >= ?9",
    "l.organized > 0 AND l.organized >= p.organized",
)
# The same for one reader: their own sessions, by an index of authors, and those that are shared with them. The temporary
# ones are in no list. `reader` is JSON (core.tenants.sharing.Reader). PostgreSQL looks each candidate up (OFFSET 0): a join by its own
# choice reads all sessions of the tenant, newest first, because a page is always at the beginning of that index.
_IS_TEMPORARY = "EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session = {id})"


def _readable(name: str, lite: str, pg: str) -> Statement:
    """Return a statement for a page of a reader's sessions that fit a filter; `pg` has {t} for the table."""

    def fits(table: str) -> str:
        return f"""{table}.tenant = p.tenant AND NOT {table}.erased AND {table}.parent = '' AND {table}.moved <= p.at
                AND ({table}.moved < p.at OR {table}.id COLLATE "C" < p.id) AND {table}.moved >= p.since
                AND (p.archived IS NULL OR {table}.archived = p.archived) AND strpos({table}.labels, p.label) > 0
                AND p.agent IN ('', {table}.agent) AND {pg.format(t=table)}
                AND NOT {_IS_TEMPORARY.format(id=f"{table}.id")}"""

    return Statement(
        name,
        f"""SELECT {_INFO_LITE} FROM sessions s WHERE s.tenant = ?1 AND s.erased = 0 AND s.parent = ''
        AND s.moved <= ?2 AND (s.moved < ?2 OR s.id < ?3) AND s.moved >= ?4 AND (?6 IS NULL OR s.archived = ?6)
        AND (?7 = '' OR instr(s.labels, ?7)) AND ?8 IN ('', s.agent) AND {lite}
        AND (s.creator IN (SELECT value FROM json_each(?9, '$.creators')) OR s.id IN (
            SELECT h.session FROM session_shares h WHERE h.tenant = ?1 AND h.kind != 'link' AND h.revoked = 0
            AND (h.expires = 0 OR h.expires > ?10) AND h.subject IN (SELECT value FROM json_each(?9, '$.subjects'))))
        AND NOT {_IS_TEMPORARY.format(id="s.id")}
        ORDER BY s.moved DESC, s.id DESC LIMIT ?5""",
        f"""SELECT p.n, {_INFO_PG}
    FROM unnest($1::text[], $2::float8[], $3::text[], $4::float8[], $5::bigint[], $6::boolean[], $7::text[], $8::text[],
        $9::text[], $10::float8[])
        WITH ORDINALITY AS p(tenant, at, id, since, most, archived, label, agent, reader, now, n)
    CROSS JOIN LATERAL (
        SELECT l.* FROM (
            SELECT o.id FROM json_array_elements_text(p.reader::json -> 'creators') AS c(creator) CROSS JOIN LATERAL (
                SELECT m.id FROM sessions m WHERE m.creator = c.creator AND {fits("m")}
                ORDER BY m.moved DESC FETCH FIRST (p.most) ROWS WITH TIES) o
            UNION SELECT h.session FROM session_shares h WHERE h.tenant = p.tenant AND h.kind != 'link'
                AND h.revoked = 0 AND (h.expires = 0 OR h.expires > p.now)
                AND h.subject IN (SELECT json_array_elements_text(p.reader::json -> 'subjects'))) AS f(id)
        CROSS JOIN LATERAL (SELECT * FROM sessions r WHERE r.id = f.id OFFSET 0) l WHERE {fits("l")}
        ORDER BY l.moved DESC FETCH FIRST (p.most) ROWS WITH TIES) s""",
        returns=True,
    )


LIST_READABLE = _readable("listed for a reader", "true", "true")
LIST_READABLE_PINNED = _readable("listed pinned for a reader", "s.pinned", "{t}.pinned")
LIST_READABLE_NOT_PINNED = _readable("listed not pinned for a reader", "NOT s.pinned", "NOT {t}.pinned")
# Whether a session exists; whether it, or a session of its sub-agent runs, references a blob.
MENTIONS = Statement(
    "mentions",
    """WITH RECURSIVE subtree(id, tenant) AS (
        SELECT id, tenant FROM sessions WHERE id = ?1 AND NOT erased
        UNION SELECT s.id, s.tenant FROM subtree b JOIN sessions s ON s.parent = b.id AND s.parent != ''
            AND s.tenant = b.tenant)
    SELECT EXISTS (SELECT 1 FROM subtree), EXISTS (
        SELECT 1 FROM subtree b JOIN mentions m ON m.blob = ?2 AND m.session = b.id)""",
    """WITH RECURSIVE p AS (SELECT * FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, blob, n)),
    subtree(n, blob, id, tenant) AS (
        SELECT p.n, p.blob, s.id, s.tenant FROM p JOIN sessions s ON s.id = p.session AND NOT s.erased
        UNION SELECT b.n, b.blob, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)
    SELECT p.n, EXISTS (SELECT 1 FROM subtree b WHERE b.n = p.n), EXISTS (
        SELECT 1 FROM subtree b JOIN mentions m ON m.blob = b.blob AND m.session = b.id WHERE b.n = p.n) FROM p""",
    returns=True,
)
# One row without a body for a session with an empty inbox: that saves a query for its existence.
INBOX = Statement(
    "inbox",
    """SELECT i.body, i.key FROM sessions s LEFT JOIN inbox i ON i.session = s.id AND i.is_open
    WHERE s.id = ? AND NOT s.erased ORDER BY i.n""",
    """SELECT p.n, i.body, i.key FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN sessions s ON s.id = p.session AND NOT s.erased
    LEFT JOIN inbox i ON i.session = p.session AND i.is_open ORDER BY i.n""",
    returns=True,
)
# A row has the position of the last of its events (event_packs.py): the last of `most` events is in a row a little behind.
EVENTS = Statement(
    "events",
    f"SELECT seq, body FROM events WHERE session = ?1 AND seq > ?2 AND seq < ?2 + ?3 + {PACK_EVENTS} ORDER BY seq LIMIT ?3",
    f"""SELECT p.n, e.seq, e.body FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
        AS p(session, after, most, n)
    JOIN sessions s ON s.id = p.session AND NOT s.erased
    CROSS JOIN LATERAL (SELECT l.seq, l.body FROM events l WHERE l.cohort = s.cohort AND l.session = p.session
                        AND l.seq > p.after AND l.seq < p.after + p.most + {PACK_EVENTS} ORDER BY l.seq LIMIT p.most) e
    ORDER BY p.n, e.seq""",
    returns=True,
)
TURN_EVENTS = Statement(
    "events of a turn",
    f"""SELECT e.seq, e.body FROM turns t JOIN events e ON {_OF_TURN} AND e.seq > ?3
    WHERE t.session = ?1 AND t.turn = ?2 ORDER BY e.seq""",
    f"""SELECT p.n, e.seq, e.body FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY
        AS p(session, turn, after, n)
    JOIN turns t ON t.session = p.session AND t.turn = p.turn
    {_LOG_OF_TURN.format(and_also="AND e.seq > p.after")} ORDER BY p.n, e.seq""",
    returns=True,
)
# One row without a body for a session without such events: that saves a query for its existence.
KEYED_EVENTS = Statement(
    "events by key",
    """SELECT e.seq, e.body, k.seq FROM sessions s
    LEFT JOIN event_keys k ON k.session = s.id AND k.kind = ?2 AND k.key = coalesce(?3, k.key)
    LEFT JOIN events e ON e.session = k.session
        AND e.seq = (SELECT min(f.seq) FROM events f WHERE f.session = k.session AND f.seq >= k.seq)
    WHERE s.id = ?1 AND NOT s.erased ORDER BY k.seq LIMIT ?4""",
    """SELECT p.n, e.seq, e.body, k.seq FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
        AS p(session, kind, key, most, n)
    JOIN sessions s ON s.id = p.session AND NOT s.erased
    LEFT JOIN LATERAL (SELECT k.session, k.seq FROM event_keys k WHERE k.session = p.session AND k.kind = p.kind
        AND (p.key IS NULL OR k.key = p.key) ORDER BY k.seq LIMIT p.most) k ON true
    LEFT JOIN LATERAL (SELECT l.seq, l.body FROM events l WHERE l.cohort = s.cohort AND l.session = k.session
                       AND l.seq >= k.seq ORDER BY l.seq LIMIT 1) e ON true
    ORDER BY p.n, k.seq""",
    returns=True,
)
LIVE_EVENTS = Statement(
    "events of live turns",
    f"""SELECT e.seq, e.body FROM turns t JOIN events e ON {_OF_TURN}
    WHERE t.session = ? AND (t.state != 'over' OR t.out > 0) ORDER BY e.seq""",
    f"""SELECT p.n, e.seq, e.body FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN turns t ON t.session = p.session AND (t.state != 'over' OR t.out > 0)
    {_LOG_OF_TURN.format(and_also="")} ORDER BY p.n, e.seq""",
    returns=True,
)
# The same without the events that a snapshot of their turn covers; the snapshots come first, with the name of the turn.
LIVE_TAILS = Statement(
    "snapshots and events of live turns",
    f"""SELECT 0 AS part, s.seq, s.state, s.turn, s.fold, s.projection
    FROM turns t JOIN turn_snapshots s ON s.session = t.session AND s.turn = t.turn
    WHERE t.session = ?1 AND (t.state != 'over' OR t.out > 0)
    UNION ALL
    SELECT 1, e.seq, e.body, NULL, NULL, NULL
    FROM turns t LEFT JOIN turn_snapshots s ON s.session = t.session AND s.turn = t.turn
    CROSS JOIN events e ON e.session = t.session AND e.turn = t.turn AND e.seq >= max(t.started, coalesce(s.seq, 0) + 1)
        AND e.seq <= CASE WHEN t.last > 0 THEN t.last ELSE {END} END
    WHERE t.session = ?1 AND (t.state != 'over' OR t.out > 0) ORDER BY 1, 2""",
    f"""SELECT p.n, 0 AS part, s.seq, s.state, s.turn, s.fold, s.projection
    FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN turns t ON t.session = p.session AND (t.state != 'over' OR t.out > 0)
    JOIN turn_snapshots s ON s.session = t.session AND s.turn = t.turn
    UNION ALL
    SELECT p.n, 1, e.seq, e.body, NULL, NULL, NULL FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN turns t ON t.session = p.session AND (t.state != 'over' OR t.out > 0)
    LEFT JOIN turn_snapshots s ON s.session = t.session AND s.turn = t.turn
    {_LOG_OF_TURN.format(and_also="AND e.seq > coalesce(s.seq, 0)")}
    ORDER BY 1, 2, 3""",
    returns=True,
)
OPEN_TURNS = Statement(
    "open turns",
    """SELECT turn FROM turns WHERE session = ? AND (state != 'over' OR out > 0) AND state != 'over' ORDER BY started""",
    """SELECT p.n, t.turn FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN turns t ON t.session = p.session AND (t.state != 'over' OR t.out > 0) AND t.state != 'over'
    ORDER BY p.n, t.started""",
    returns=True,
)
IS_TURN_REQUESTED = Statement(
    "asked for",
    "SELECT 1 FROM inbox WHERE session = ? AND turn = ? AND kind = 'Send' LIMIT 1",
    """SELECT p.n, 1 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, turn, n)
    WHERE EXISTS (SELECT 1 FROM inbox i WHERE i.session = p.session AND i.turn = p.turn AND i.kind = 'Send')""",
    returns=True,
)
TURN_STARTS = Statement(
    "turn starts",
    "SELECT started, turn FROM turns WHERE session = ? AND started < ? ORDER BY started DESC LIMIT ?",
    """SELECT p.n, t.started, t.turn FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
        AS p(session, before, most, n)
    CROSS JOIN LATERAL (SELECT started, turn FROM turns WHERE session = p.session AND started < p.before
                        ORDER BY started DESC LIMIT p.most) t
    ORDER BY p.n, t.started DESC""",
    returns=True,
)
TURN_OF_COMMAND = Statement(
    "turn of a command",
    "SELECT turn FROM inbox WHERE session = ? AND key = ?",
    """SELECT p.n, i.turn FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, key, n)
    JOIN inbox i ON i.session = p.session AND i.key = p.key""",
    returns=True,
)
# The live turns of all tenants are few, and indexed; the sessions of one tenant may be many.
COUNT_ACTIVE_TURNS = Statement(
    "turns under way",
    """SELECT (SELECT count(*) FROM turns t CROSS JOIN sessions s ON s.id = t.session
            WHERE (t.state != 'over' OR t.out > 0) AND t.state = 'busy' AND s.tenant = ?1)
        + (SELECT count(*) FROM inbox i CROSS JOIN sessions s ON s.id = i.session
            WHERE i.is_open AND i.kind = 'Send' AND s.tenant = ?1)""",
    """SELECT p.n, (SELECT count(*) FROM turns t JOIN sessions s ON s.id = t.session
            WHERE (t.state != 'over' OR t.out > 0) AND t.state = 'busy' AND s.tenant = p.tenant)
        + (SELECT count(*) FROM inbox i JOIN sessions s ON s.id = i.session
            WHERE i.is_open AND i.kind = 'Send' AND s.tenant = p.tenant)
    FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)""",
    returns=True,
)
# All messages, as PATH has them. Messages of one import share a position, and each but the first has the one before it
# as its parent.
ALL_MESSAGES = Statement(
    "all messages",
    """SELECT m.id, m.parent, m.seq, m.body, m.is_deleted,
        (SELECT t.turn FROM turns t WHERE t.session = m.session AND t.turn = m.turn AND t.state != 'over')
    FROM messages m WHERE m.session = ? ORDER BY m.seq""",
    """SELECT p.n, m.id, m.parent, m.seq, m.body, m.is_deleted,
        (SELECT t.turn FROM turns t WHERE t.session = m.session AND t.turn = m.turn AND t.state != 'over')
    FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n) JOIN messages m ON m.session = p.session
    ORDER BY p.n, m.seq""",
    returns=True,
)
# From the leaf to the root; a message of a turn that is still being written comes with the name of that turn.
PATH = Statement(
    "path",
    """WITH RECURSIVE up(id, parent, turn, body, is_deleted, depth) AS (
        SELECT id, parent, turn, body, is_deleted, 0 FROM messages WHERE session = ?1 AND id = ?2
        UNION ALL
        SELECT m.id, m.parent, m.turn, m.body, m.is_deleted, up.depth + 1
        FROM up JOIN messages m ON m.session = ?1 AND m.id = up.parent WHERE up.depth + 1 < ?3)
    SELECT up.id, up.parent, up.body, up.is_deleted,
        (SELECT t.turn FROM turns t WHERE t.session = ?1 AND t.turn = up.turn AND t.state != 'over')
    FROM up ORDER BY up.depth""",
    """WITH RECURSIVE up(n, session, id, parent, turn, body, is_deleted, depth, most) AS (
        SELECT p.n, m.session, m.id, m.parent, m.turn, m.body, m.is_deleted, 0, p.most
        FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS p(session, leaf, most, n)
        JOIN messages m ON m.session = p.session AND m.id = p.leaf
        UNION ALL
        SELECT up.n, m.session, m.id, m.parent, m.turn, m.body, m.is_deleted, up.depth + 1, up.most
        FROM up JOIN messages m ON m.session = up.session AND m.id = up.parent WHERE up.depth + 1 < up.most)
    SELECT up.n, up.id, up.parent, up.body, up.is_deleted,
        (SELECT t.turn FROM turns t WHERE t.session = up.session AND t.turn = up.turn AND t.state != 'over')
    FROM up ORDER BY up.n, up.depth""",
    returns=True,
)
GATES = Statement(
    "gates",
    """SELECT body, opened, claim, session, gate, tenant FROM gates WHERE session = ? AND is_open = 1 AND resolution IS NULL
    ORDER BY opened, gate""",
    """SELECT p.n, g.body, g.opened, g.claim, g.session, g.gate, g.tenant FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN gates g ON g.session = p.session AND g.is_open AND g.resolution IS NULL ORDER BY p.n, g.opened, g.gate""",
    returns=True,
)
ALL_GATES = Statement(
    "all gates",
    """SELECT body, opened, claim, session, gate, tenant FROM gates WHERE is_open = 1 AND resolution IS NULL
    ORDER BY opened, gate""",
    """SELECT 1, body, opened, claim, session, gate, tenant FROM gates WHERE is_open AND resolution IS NULL
    ORDER BY opened, gate""",
    returns=True,
)
TENANT_GATES = Statement(
    "gates of a tenant",
    """SELECT body, opened, claim, session, gate, tenant FROM gates
    WHERE tenant = ? AND tenant != '' AND is_open = 1 AND resolution IS NULL ORDER BY opened, gate""",
    """SELECT p.n, g.body, g.opened, g.claim, g.session, g.gate, g.tenant FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN gates g ON g.tenant = p.tenant AND g.tenant != '' AND g.is_open AND g.resolution IS NULL ORDER BY p.n, g.opened, g.gate""",
    returns=True,
)

# Pages of open gates, by (opened, session, gate), the oldest first.
_SHOWN_GATE = "g.session, g.body, g.opened, g.claim, g.gate, g.tenant"
_BEHIND_LITE = """g.is_open = 1 AND g.resolution IS NULL AND g.opened >= ?2
    AND (g.opened > ?2 OR g.session > ?3 OR (g.session = ?3 AND g.gate > ?4)) ORDER BY g.opened, g.session, g.gate LIMIT ?5"""
_BEHIND_PG = """g.is_open AND g.resolution IS NULL AND g.opened >= p.at
    AND (g.opened > p.at OR g.session COLLATE "C" > p.session OR (g.session = p.session AND g.gate COLLATE "C" > p.gate))
    ORDER BY g.opened, g.session COLLATE "C", g.gate COLLATE "C" LIMIT p.most"""
_GATES_GIVEN = """unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS p(whose, at, session, gate, most, n)"""


def _gate_page(name: str, lite: str, pg: str) -> Statement:
    return Statement(
        name,
        f"{lite} AND {_BEHIND_LITE}",
        f"""SELECT p.n, {_SHOWN_GATE} FROM {_GATES_GIVEN} CROSS JOIN LATERAL ({pg} AND {_BEHIND_PG}) g
        ORDER BY p.n, g.opened, g.session COLLATE "C", g.gate COLLATE "C\"""",
        returns=True,
    )


GATE_PAGE = _gate_page(
    "gate page",
    f"SELECT {_SHOWN_GATE} FROM gates g WHERE ?1 = ''",
    "SELECT * FROM gates g WHERE p.whose = ''",
)
TENANT_GATE_PAGE = _gate_page(
    "gate page of a tenant",
    f"SELECT {_SHOWN_GATE} FROM gates g WHERE g.tenant = ?1 AND g.tenant != ''",
    "SELECT * FROM gates g WHERE g.tenant = p.whose AND g.tenant != ''",
)
_SUBTREE = """WITH RECURSIVE subtree(id, tenant) AS (
    SELECT id, tenant FROM sessions WHERE id = {session} AND NOT erased
    UNION SELECT s.id, s.tenant FROM subtree b JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)"""
SESSION_GATE_PAGE = _gate_page(
    "gate page of a session",  # with its sub-agent runs
    f"{_SUBTREE.format(session='?1')} SELECT {_SHOWN_GATE} FROM subtree b CROSS JOIN gates g ON g.session = b.id WHERE true",
    f"{_SUBTREE.format(session='p.whose')} SELECT g.* FROM subtree b JOIN gates g ON g.session = b.id WHERE true",
)
# Those of the sessions that have an open gate, in them or in a sub-agent run of theirs.
WAITING = Statement(
    "waiting",
    """WITH RECURSIVE subtree(top, id, tenant) AS (
        SELECT s.id, s.id, s.tenant FROM json_each(?) j CROSS JOIN sessions s ON s.id = j.value AND NOT s.erased
        UNION SELECT b.top, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)
    SELECT DISTINCT b.top FROM subtree b
    WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id AND g.is_open = 1 AND g.resolution IS NULL)""",
    """WITH RECURSIVE p AS (SELECT * FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)),
    subtree(n, top, id, tenant) AS (
        SELECT p.n, s.id, s.id, s.tenant FROM p CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id)
        JOIN sessions s ON s.id = j.id AND NOT s.erased
        UNION SELECT b.n, b.top, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)
    SELECT DISTINCT b.n, b.top FROM subtree b
    WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id AND g.is_open AND g.resolution IS NULL)""",
    returns=True,
)
WITH_EVENTS = Statement(
    "sessions with events",
    """WITH RECURSIVE subtree(id, tenant) AS (
        SELECT s.id, s.tenant FROM json_each(?1) j CROSS JOIN sessions s ON s.id = j.value AND NOT s.erased
        UNION SELECT s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant AND NOT s.erased)
    SELECT b.id FROM subtree b WHERE EXISTS (SELECT 1 FROM event_keys k WHERE k.session = b.id AND k.kind = ?2)""",
    """WITH RECURSIVE p AS (SELECT * FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(ids, kind, n)),
    subtree(n, kind, id, tenant) AS (
        SELECT p.n, p.kind, s.id, s.tenant FROM p CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id)
        JOIN sessions s ON s.id = j.id AND NOT s.erased
        UNION SELECT b.n, b.kind, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant AND NOT s.erased)
    SELECT b.n, b.id FROM subtree b
    WHERE EXISTS (SELECT 1 FROM event_keys k WHERE k.session = b.id AND k.kind = b.kind)""",
    returns=True,
)
# Counts over the whole store, by small indexes: open gates, sessions with work, quarantined sessions, and the time
# since when a command has waited longest in a session without a running turn.
_TALLY = """(SELECT count(*) FROM gates g WHERE {is_open} AND g.resolution IS NULL),
    (SELECT count(*) FROM sessions s WHERE s.id IN ({live}) AND NOT s.erased),
    (SELECT count(*) FROM sessions s WHERE s.quarantined != '' AND NOT s.erased),
    (SELECT min(s.touched) FROM sessions s WHERE s.id IN (SELECT session FROM inbox WHERE is_open) AND NOT s.erased
        AND s.quarantined = '' AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id
            AND (t.state != 'over' OR t.out > 0) AND t.state = 'busy'))"""
COUNT_ALL = Statement(
    "tally",
    f"SELECT {_TALLY.format(is_open='g.is_open = 1', live=_LIVE_LITE)}",
    f"SELECT 1, {_TALLY.format(is_open='g.is_open', live=_LIVE_PG)}",
    returns=True,
)
ROOTS = Statement(
    "roots",
    "SELECT root, tree FROM files WHERE session = ? ORDER BY root",
    """SELECT p.n, f.root, f.tree FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN files f ON f.session = p.session ORDER BY p.n, f.root""",
    returns=True,
)

# Admission ---------------------------------------------------------------------------------------------------------

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

# Claims --------------------------------------------------------------------------------------------------------------

# `touched` may come from a clock that was ahead: then it is ignored.
_PAUSES = " ".join(f"WHEN {tries} THEN {pause}" for tries, pause in enumerate(RETRY_PAUSES, MAX_QUICK_CLAIMS))
_PAUSE = f"(CASE s.tries {_PAUSES} ELSE {QUARANTINE_SECONDS} END)"  # `ports.retry_pause`
_MAY_TRY = (
    f"(s.tries < {MAX_QUICK_CLAIMS} OR s.touched <= {{now}} - {_PAUSE} OR s.touched >= {{now}} + {QUARANTINE_SECONDS})"
)

CLAIM = Statement(
    "claim",
    f"""UPDATE sessions AS s SET epoch = s.epoch + 1, tries = s.tries + 1, touched = ?2, quarantined = ''
    WHERE s.id = ?1 AND NOT s.erased AND {_MAY_TRY.format(now="?2")} AND ({_AWAKE} OR {_DUE_LITE} <= ?2)
    RETURNING epoch, head, tries, {_RETURNED_LITE}""",
    f"""UPDATE sessions s SET epoch = s.epoch + 1, tries = s.tries + 1, touched = p.now, quarantined = ''
    FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS p(id, now, n)
    WHERE s.id = p.id AND NOT s.erased AND {_MAY_TRY.format(now="p.now")} AND ({_AWAKE} OR {_DUE_PG} <= p.now)
    RETURNING p.n, s.epoch, s.head, s.tries, {_INFO_PG}""",
    returns=True,
)
UNCLAIMED = Statement(
    "unclaimed",
    f"""SELECT s.erased, {_AWAKE} OR {_DUE_LITE} <= ?2, {_MAY_TRY.format(now="?2")}, s.tries, s.touched
    FROM sessions s WHERE s.id = ?1""",
    f"""SELECT p.n, s.erased, {_AWAKE} OR {_DUE_PG} <= p.now, {_MAY_TRY.format(now="p.now")}, s.tries, s.touched
    FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS p(id, now, n) JOIN sessions s ON s.id = p.id""",
    returns=True,
)
QUARANTINE = Statement(
    "stick",
    "UPDATE sessions SET quarantined = ? WHERE id = ?",
    "UPDATE sessions s SET quarantined = p.why FROM unnest($1::text[], $2::text[]) AS p(why, id) WHERE s.id = p.id",
)
FAILED_TRIES = Statement(
    "failed_tries",
    "SELECT erased, tries, quarantined FROM sessions WHERE id = ?",
    """SELECT p.n, s.erased, s.tries, s.quarantined FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n)
    JOIN sessions s ON s.id = p.id""",
    returns=True,
)
RETRY = Statement(
    "retry",
    "UPDATE sessions SET tries = 0, quarantined = '' WHERE id = ?",
    "UPDATE sessions s SET tries = 0, quarantined = '' FROM unnest($1::text[]) AS p(id) WHERE s.id = p.id",
)
RELEASE = Statement(
    "release",
    "UPDATE sessions SET tries = ?, awaited_agent = ? WHERE id = ? AND epoch = ?",
    """UPDATE sessions s SET tries = p.tries, awaited_agent = p.awaited_agent
    FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) AS p(tries, awaited_agent, id, epoch)
    WHERE s.id = p.id AND s.epoch = p.epoch""",
)
# A resting session is returned when its next try is due, and its tries still count: if that try fails as well, it rests
# again.
_TOLD_LITE = (
    f"CASE WHEN sessions.tries < {MAX_QUICK_CLAIMS} THEN ?2 ELSE ?2 - {_PAUSE.replace('s.tries', 'sessions.tries')} END"
)
_TOLD_PG = f"CASE WHEN s.tries < {MAX_QUICK_CLAIMS} THEN late.now ELSE late.now - {_PAUSE} END"
OVERDUE = Statement(
    "overdue",
    f"""UPDATE sessions SET touched = {_TOLD_LITE} WHERE id IN (
        SELECT s.id FROM sessions s WHERE s.id IN ({_LIVE_LITE}) AND NOT s.erased
        AND (s.touched < ?1 OR s.touched > ?2 + {QUARANTINE_SECONDS})
        AND {_MAY_TRY.format(now="?2")} AND ({_AWAKE} OR {_DUE_LITE} <= ?2) ORDER BY s.touched LIMIT ?3)
    RETURNING id""",
    f"""WITH late AS (
        SELECT p.n, p.now, l.id FROM unnest($1::float8[], $2::float8[], $3::bigint[]) WITH ORDINALITY
            AS p(before, now, most, n)
        CROSS JOIN LATERAL (
            SELECT s.id FROM sessions s WHERE s.id IN ({_LIVE_PG}) AND NOT s.erased
            AND (s.touched < p.before OR s.touched > p.now + {QUARANTINE_SECONDS})
            AND {_MAY_TRY.format(now="p.now")} AND ({_AWAKE} OR {_DUE_PG} <= p.now)
            ORDER BY s.touched LIMIT p.most FOR UPDATE OF s SKIP LOCKED) l)
    UPDATE sessions s SET touched = {_TOLD_PG} FROM late WHERE s.id = late.id
    RETURNING late.n, s.id""",
    returns=True,
)

# Appending ----------------------------------------------------------------------------------------------------------------

# A session that made progress counts one try: that of its current driver.
# On PostgreSQL, `touched` moves by seconds: the WAL of an update has the bytes between the first and the last that change.
# `moved` is in indexes: the start of a turn (`starts`) leaves it as it is if its command has just moved it.
FENCE = Statement(
    "fence",
    f"""UPDATE sessions SET head = ?1, token = ?2, leaf = ?3, title = ?4, agent = ?5, touched = max(touched, ?6),
        moved = iif(?7 >= moved + iif(?8, {SECOND}, 0), ?7, moved), tries = iif(?9, 1, tries), quarantined = '',
        awaited_agent = ''
    WHERE id = ?10 AND head = ?11 AND epoch = coalesce(?12, epoch) AND NOT erased""",
    f"""UPDATE sessions s SET head = p.head, token = p.token, leaf = p.leaf, title = p.title, agent = p.agent,
        touched = CASE WHEN p.at >= s.touched + {SECOND} THEN p.at ELSE s.touched END,
        moved = CASE WHEN p.shown >= s.moved + CASE WHEN p.starts THEN {SECOND} ELSE 0 END THEN p.shown ELSE s.moved END,
        tries = CASE WHEN p.has_moved THEN 1 ELSE s.tries END, quarantined = '', awaited_agent = ''
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[], $8::boolean[],
        $9::boolean[], $10::text[], $11::bigint[], $12::bigint[]) WITH ORDINALITY
        AS p(head, token, leaf, title, agent, at, shown, starts, has_moved, id, after, epoch, n)
    WHERE s.id = p.id AND s.head = p.after AND s.epoch = coalesce(p.epoch, s.epoch) AND NOT s.erased
    RETURNING p.n""",
    returns=True,
    is_predictable=True,
)
LEAF = Statement(
    "leaf",
    "UPDATE sessions SET leaf = ?, title = ?, agent = ? WHERE id = ?",
    """UPDATE sessions s SET leaf = p.leaf, title = p.title, agent = p.agent
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS p(leaf, title, agent, id) WHERE s.id = p.id""",
)
ORGANIZE = Statement(
    "organize",
    """UPDATE sessions SET renamed = max(renamed, ?), pinned = coalesce(?, pinned), archived = coalesce(?, archived),
        labels = coalesce(?, labels), organized = max(organized, ?) WHERE id = ?""",
    """UPDATE sessions s SET renamed = s.renamed OR p.renamed, pinned = coalesce(p.pinned, s.pinned),
        archived = coalesce(p.archived, s.archived), labels = coalesce(p.labels, s.labels),
        organized = greatest(s.organized, p.at)
    FROM unnest($1::boolean[], $2::boolean[], $3::boolean[], $4::text[], $5::float8[], $6::text[])
        AS p(renamed, pinned, archived, labels, at, id) WHERE s.id = p.id""",
)
ADD_EVENTS = Statement(
    "add events",
    "INSERT INTO events (session, seq, turn, body) VALUES (?, ?, ?, ?)",
    """INSERT INTO events (session, seq, turn, body, cohort)
    SELECT p.session, p.seq, p.turn, p.body, s.cohort
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[]) AS p(session, seq, turn, body)
    JOIN sessions s ON s.id = p.session""",
)
ADD_EVENT_KEYS = Statement(
    "add event keys",
    "INSERT INTO event_keys (session, kind, key, seq) VALUES (?, ?, ?, ?)",
    """INSERT INTO event_keys (session, kind, key, seq)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])""",
)
ADD_MESSAGES = Statement(
    "add messages",
    """INSERT INTO messages (session, id, parent, turn, seq, body) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, id) DO NOTHING""",
    """INSERT INTO messages (session, id, parent, turn, seq, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
    ON CONFLICT (session, id) DO NOTHING""",
)
FINISH_MESSAGES = Statement(
    "finish messages",
    "UPDATE messages SET body = ? WHERE session = ? AND id = ?",
    """UPDATE messages m SET body = p.body FROM unnest($1::bytea[], $2::text[], $3::text[]) AS p(body, session, id)
    WHERE m.session = p.session AND m.id = p.id""",
)
DELETE_MESSAGES = Statement(
    "delete messages",
    """UPDATE messages SET is_deleted = 1 WHERE session = ?1 AND id IN (
        WITH RECURSIVE subtree(id) AS (
            SELECT ?2 UNION SELECT m.id FROM subtree b JOIN messages m ON m.session = ?1 AND m.parent = b.id)
        SELECT id FROM subtree)
    RETURNING id, parent""",
    """WITH RECURSIVE subtree(n, session, id) AS (
        SELECT p.n, p.session, p.id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, id, n)
        UNION SELECT b.n, b.session, m.id FROM subtree b JOIN messages m ON m.session = b.session AND m.parent = b.id)
    UPDATE messages m SET is_deleted = true FROM subtree b WHERE m.session = b.session AND m.id = b.id
    RETURNING b.n, m.id, m.parent""",
    returns=True,
)
UPSERT_TURNS = Statement(
    "move turns",
    """INSERT INTO turns (session, turn, started, last, state, out, deadline) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, turn) DO UPDATE SET last = excluded.last, state = excluded.state, out = excluded.out,
        deadline = excluded.deadline""",
    """INSERT INTO turns (session, turn, started, last, state, out, deadline)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::float8[])
    ON CONFLICT (session, turn) DO UPDATE SET last = excluded.last, state = excluded.state, out = excluded.out,
        deadline = excluded.deadline""",
)
KEEP_SNAPSHOTS = Statement(
    "keep snapshots",
    """INSERT INTO turn_snapshots (session, turn, seq, fold, state, projection) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, turn) DO UPDATE SET seq = excluded.seq, fold = excluded.fold, state = excluded.state,
        projection = excluded.projection""",
    """INSERT INTO turn_snapshots (session, turn, seq, fold, state, projection)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bytea[], $6::bytea[])
    ON CONFLICT (session, turn) DO UPDATE SET seq = excluded.seq, fold = excluded.fold, state = excluded.state,
        projection = excluded.projection""",
)
DROP_SNAPSHOTS = Statement(
    "drop snapshots",
    "DELETE FROM turn_snapshots WHERE session = ? AND turn = ?",
    """DELETE FROM turn_snapshots s USING unnest($1::text[], $2::text[]) AS p(session, turn)
    WHERE s.session = p.session AND s.turn = p.turn""",
)
OPEN_GATES = Statement(
    "open gates",
    """INSERT INTO gates (session, tenant, gate, turn, call, expires, opened, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, gate) DO NOTHING""",
    """INSERT INTO gates (session, tenant, gate, turn, call, expires, opened, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[],
        $8::bytea[])
    ON CONFLICT (session, gate) DO NOTHING""",
)
# A claim that was admitted since takes precedence over the one that the log records now.
CLAIM_GATES = Statement(
    "claim gates",
    "UPDATE gates SET claim = ?, expires = ?, taken = '' WHERE session = ? AND gate = ? AND taken IN ('', ?)",
    """UPDATE gates g SET claim = p.claim, expires = p.expires, taken = ''
    FROM unnest($1::bytea[], $2::float8[], $3::text[], $4::text[], $5::text[]) AS p(claim, expires, session, gate, taken)
    WHERE g.session = p.session AND g.gate = p.gate AND g.taken IN ('', p.taken)""",
)
ANSWER_GATES = Statement(
    "answer gates",
    "UPDATE gates SET resolution = ?, is_open = 0 WHERE session = ? AND gate = ?",
    """UPDATE gates g SET resolution = p.resolution, is_open = false FROM unnest($1::bytea[], $2::text[], $3::text[])
        AS p(resolution, session, gate) WHERE g.session = p.session AND g.gate = p.gate""",
)
CLOSE_GATES = Statement(
    "close gates",
    "UPDATE gates SET is_open = 0 WHERE session = ? AND gate = ?",
    """UPDATE gates g SET is_open = false FROM unnest($1::text[], $2::text[]) AS p(session, gate)
    WHERE g.session = p.session AND g.gate = p.gate""",
)
RECORD_TREES = Statement(
    "record trees",
    """INSERT INTO files (session, root, tree) VALUES (?, ?, ?)
    ON CONFLICT (session, root) DO UPDATE SET tree = excluded.tree""",
    """INSERT INTO files (session, root, tree) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
    ON CONFLICT (session, root) DO UPDATE SET tree = excluded.tree""",
)
CLOSE_COMMANDS = Statement(
    "act on",
    "UPDATE inbox SET is_open = 0 WHERE session = ? AND key = ?",
    """UPDATE inbox i SET is_open = false FROM unnest($1::text[], $2::text[]) AS p(session, key)
    WHERE i.session = p.session AND i.key = p.key""",
)
