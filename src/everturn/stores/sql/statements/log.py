"""Statements that read the log, the inbox, the turns and the message tree of a session."""

from __future__ import annotations

from everturn.stores.sql.database import Statement
from everturn.stores.sql.event_packs import PACK_EVENTS
from everturn.stores.sql.statements.conditions import END

# The events of a turn are between its first and its last, mixed with those of other turns.
_OF_TURN = f"""e.session = t.session AND e.turn = t.turn AND e.seq >= t.started
    AND e.seq <= CASE WHEN t.last > 0 THEN t.last ELSE {END} END"""

# On PostgreSQL the log is in partitions, and the row of a session says in which one it is: a statement that did not ask
# for it first would look into each (event_partitions.py). OFFSET 0 keeps the planner from joining in another order.
_LOG_OF_TURN = f"""JOIN sessions o ON o.id = t.session CROSS JOIN LATERAL (
        SELECT e.seq, e.body FROM events e WHERE e.cohort = o.cohort AND {_OF_TURN} {{and_also}} OFFSET 0) e"""

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
