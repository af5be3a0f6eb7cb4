"""Statements that append events: the fence, the events, and the rows that change beside them."""

from __future__ import annotations

from everturn.stores.sql.database import Statement
from everturn.stores.sql.statements.conditions import SECOND

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
