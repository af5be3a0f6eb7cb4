"""Statements that read sessions: one, many, pages of lists, and counts over all."""

from __future__ import annotations

import re

from everturn.stores.sql.database import Statement
from everturn.stores.sql.statements.conditions import AWAKE, DUE_LITE, DUE_PG, LIVE_LITE, LIVE_PG

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
INFO_LITE, INFO_PG = _INFO.format(awake=AWAKE, due=DUE_LITE), _INFO.format(awake=AWAKE, due=DUE_PG)

RETURNED_LITE = re.sub(r"\bs[.]", "sessions.", INFO_LITE)  # SQLite does not allow the table alias in RETURNING

INFO = Statement(
    "info",
    f"SELECT {INFO_LITE} FROM sessions s WHERE s.id = ? AND NOT s.erased",
    f"""SELECT p.n, {INFO_PG}
    FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n) JOIN sessions s ON s.id = p.id AND NOT s.erased""",
    returns=True,
)


def _sessions(name: str, lite: str, pg: str) -> Statement:
    """Return a statement for a page of sessions by (created, id), oldest first."""
    return Statement(
        name,
        f"""SELECT {INFO_LITE} FROM sessions s WHERE {lite} AND NOT s.erased AND s.created >= ?1
            AND (s.created > ?1 OR s.id > ?2) ORDER BY s.created, s.id LIMIT ?3""",
        f"""SELECT p.n, {INFO_PG} FROM unnest($1::float8[], $2::text[], $3::bigint[]) WITH ORDINALITY AS p(at, id, most, n)
        CROSS JOIN LATERAL (SELECT * FROM sessions l WHERE {pg} AND NOT l.erased AND l.created >= p.at
            AND (l.created > p.at OR l.id COLLATE "C" > p.id) ORDER BY l.created, l.id COLLATE "C" LIMIT p.most) s
        ORDER BY p.n, s.created, s.id COLLATE "C\"""",
        returns=True,
    )


SESSIONS = _sessions("sessions", "1", "true")
AWAKE_SESSIONS = _sessions("awake sessions", f"s.id IN ({LIVE_LITE})", f"l.id IN ({LIVE_PG})")
STUCK_SESSIONS = _sessions("quarantined sessions", "s.quarantined != ''", "l.quarantined != ''")
# Many at once: `ids` is a JSON list, because a parameter is one value.
INFOS = Statement(
    "infos",
    f"""SELECT {INFO_LITE} FROM json_each(?) j CROSS JOIN sessions s ON s.id = j.value AND NOT s.erased""",
    f"""SELECT p.n, {INFO_PG} FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)
    CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id) JOIN sessions s ON s.id = j.id AND NOT s.erased""",
    returns=True,
)


# By (moved, id), the newest first; ids in code point order, whatever the collation of the database.
# PostgreSQL would sort all of a tenant's sessions to order the ids of a page: it returns all ties of the last row.
def _listed(name: str, lite: str, pg: str) -> Statement:
    """Return a statement for a page of a tenant's sessions that fit a filter."""
    return Statement(
        name,
        f"""SELECT {INFO_LITE} FROM sessions s WHERE s.tenant = ?1 AND s.erased = 0 AND s.parent = ''
        AND s.moved <= ?2 AND (s.moved < ?2 OR s.id < ?3) AND s.moved >= ?4 AND (?6 IS NULL OR s.archived = ?6)
        AND (?7 = '' OR instr(s.labels, ?7)) AND ?8 IN ('', s.agent) AND {lite}
        ORDER BY s.moved DESC, s.id DESC LIMIT ?5""",
        f"""SELECT p.n, {INFO_PG}
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
        f"""SELECT {INFO_LITE} FROM sessions s WHERE s.tenant = ?1 AND s.erased = 0 AND s.parent = ''
        AND s.moved <= ?2 AND (s.moved < ?2 OR s.id < ?3) AND s.moved >= ?4 AND (?6 IS NULL OR s.archived = ?6)
        AND (?7 = '' OR instr(s.labels, ?7)) AND ?8 IN ('', s.agent) AND {lite}
        AND (s.creator IN (SELECT value FROM json_each(?9, '$.creators')) OR s.id IN (
            SELECT h.session FROM session_shares h WHERE h.tenant = ?1 AND h.kind != 'link' AND h.revoked = 0
            AND (h.expires = 0 OR h.expires > ?10) AND h.subject IN (SELECT value FROM json_each(?9, '$.subjects'))))
        AND NOT {_IS_TEMPORARY.format(id="s.id")}
        ORDER BY s.moved DESC, s.id DESC LIMIT ?5""",
        f"""SELECT p.n, {INFO_PG}
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
    f"SELECT {_TALLY.format(is_open='g.is_open = 1', live=LIVE_LITE)}",
    f"SELECT 1, {_TALLY.format(is_open='g.is_open', live=LIVE_PG)}",
    returns=True,
)
ROOTS = Statement(
    "roots",
    "SELECT root, tree FROM files WHERE session = ? ORDER BY root",
    """SELECT p.n, f.root, f.tree FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN files f ON f.session = p.session ORDER BY p.n, f.root""",
    returns=True,
)
