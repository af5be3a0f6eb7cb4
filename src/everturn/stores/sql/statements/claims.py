"""Statements that claim a session for a driver, release it, and find the sessions that no driver has touched."""

from __future__ import annotations

from everturn.core.session_claims import MAX_QUICK_CLAIMS, QUARANTINE_SECONDS, RETRY_PAUSES
from everturn.stores.sql.database import Statement
from everturn.stores.sql.statements.conditions import AWAKE, DUE_LITE, DUE_PG, LIVE_LITE, LIVE_PG
from everturn.stores.sql.statements.sessions import INFO_PG, RETURNED_LITE

# `touched` may come from a clock that was ahead: then it is ignored.
_PAUSES = " ".join(f"WHEN {tries} THEN {pause}" for tries, pause in enumerate(RETRY_PAUSES, MAX_QUICK_CLAIMS))
_PAUSE = f"(CASE s.tries {_PAUSES} ELSE {QUARANTINE_SECONDS} END)"  # `core.session_claims.retry_pause`
_MAY_TRY = (
    f"(s.tries < {MAX_QUICK_CLAIMS} OR s.touched <= {{now}} - {_PAUSE} OR s.touched >= {{now}} + {QUARANTINE_SECONDS})"
)

CLAIM = Statement(
    "claim",
    f"""UPDATE sessions AS s SET epoch = s.epoch + 1, tries = s.tries + 1, touched = ?2, quarantined = ''
    WHERE s.id = ?1 AND NOT s.erased AND {_MAY_TRY.format(now="?2")} AND ({AWAKE} OR {DUE_LITE} <= ?2)
    RETURNING epoch, head, tries, {RETURNED_LITE}""",
    f"""UPDATE sessions s SET epoch = s.epoch + 1, tries = s.tries + 1, touched = p.now, quarantined = ''
    FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS p(id, now, n)
    WHERE s.id = p.id AND NOT s.erased AND {_MAY_TRY.format(now="p.now")} AND ({AWAKE} OR {DUE_PG} <= p.now)
    RETURNING p.n, s.epoch, s.head, s.tries, {INFO_PG}""",
    returns=True,
)
UNCLAIMED = Statement(
    "unclaimed",
    f"""SELECT s.erased, {AWAKE} OR {DUE_LITE} <= ?2, {_MAY_TRY.format(now="?2")}, s.tries, s.touched
    FROM sessions s WHERE s.id = ?1""",
    f"""SELECT p.n, s.erased, {AWAKE} OR {DUE_PG} <= p.now, {_MAY_TRY.format(now="p.now")}, s.tries, s.touched
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
        SELECT s.id FROM sessions s WHERE s.id IN ({LIVE_LITE}) AND NOT s.erased
        AND (s.touched < ?1 OR s.touched > ?2 + {QUARANTINE_SECONDS})
        AND {_MAY_TRY.format(now="?2")} AND ({AWAKE} OR {DUE_LITE} <= ?2) ORDER BY s.touched LIMIT ?3)
    RETURNING id""",
    f"""WITH late AS (
        SELECT p.n, p.now, l.id FROM unnest($1::float8[], $2::float8[], $3::bigint[]) WITH ORDINALITY
            AS p(before, now, most, n)
        CROSS JOIN LATERAL (
            SELECT s.id FROM sessions s WHERE s.id IN ({LIVE_PG}) AND NOT s.erased
            AND (s.touched < p.before OR s.touched > p.now + {QUARANTINE_SECONDS})
            AND {_MAY_TRY.format(now="p.now")} AND ({AWAKE} OR {DUE_PG} <= p.now)
            ORDER BY s.touched LIMIT p.most FOR UPDATE OF s SKIP LOCKED) l)
    UPDATE sessions s SET touched = {_TOLD_PG} FROM late WHERE s.id = late.id
    RETURNING late.n, s.id""",
    returns=True,
)
