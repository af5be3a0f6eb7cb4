"""SQL of the PostgreSQL engine. Times are the database's own, and callers send delays: clocks of processes differ.

A row of `wakes` is a session that is wanted (`due`), driven (`worker`), or both: driven, and wanted again. It is deleted
when a drive ends and nothing wants the session any more. Every statement is a transaction of its own.
"""

from __future__ import annotations

from typing import Final

_STILL_LATER: Final = "CASE WHEN w.later > now() THEN w.later END"


class EngineStatements:
    """The statements, for the tables of one schema."""

    def __init__(self, wakes: str, workers: str) -> None:
        # Wake: a session that is due already is as good as woken, and nothing is written. -> whether somebody drives it
        self.wake = f"""
INSERT INTO {wakes} AS w (session, due) VALUES ($1, now())
ON CONFLICT (session) DO UPDATE SET due = now() WHERE w.due IS NULL OR w.due > now()
RETURNING worker IS NOT NULL AS is_driven"""
        # Wake and take: if no worker drives the session, this one does. -> whether it was taken, and its tries. A session
        # that is driven already, here too, is due now afterwards; one that was taken is due later or never.
        self.wake_and_take = f"""
INSERT INTO {wakes} AS w (session, worker) VALUES ($1, $2)
ON CONFLICT (session) DO UPDATE SET worker = coalesce(w.worker, $2), later = {_STILL_LATER},
    due = CASE WHEN w.worker IS NULL THEN {_STILL_LATER} ELSE now() END
WHERE w.worker IS NULL OR w.due IS NULL OR w.due > now()
RETURNING worker = $2 AND (due IS NULL OR due > now()) AS is_taken, tries"""
        # Delayed wake: it has a column of its own, because it outlives an earlier wake. -> whether somebody drives it
        self.wake_later = f"""
INSERT INTO {wakes} AS w (session, due, later)
VALUES ($1, now() + make_interval(secs => $2), now() + make_interval(secs => $2))
ON CONFLICT (session) DO UPDATE SET later = least({_STILL_LATER}, excluded.later), due = least(w.due, excluded.due)
WHERE w.later IS NULL OR w.later <= now() OR w.later > excluded.later
RETURNING worker IS NOT NULL AS is_driven"""
        self.take = f"""
WITH found AS (
    SELECT session FROM {wakes} WHERE worker IS NULL AND due <= now() ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED)
UPDATE {wakes} w SET worker = $1, due = {_STILL_LATER}, later = {_STILL_LATER}
FROM found WHERE w.session = found.session RETURNING w.session, w.tries"""
        self.next_due = f"""
SELECT greatest(extract(epoch FROM due - now()), 0)::float8 AS seconds FROM {wakes}
WHERE worker IS NULL AND due IS NOT NULL ORDER BY due LIMIT 1"""
        # End: fenced by the worker's id. A wake that comes at the same moment is waited for and looked at again, so it is
        # either seen here (the row stays, and is free) or finds no row and inserts one. -> whether one is wanted again
        self.end = f"""
WITH gone AS (
    DELETE FROM {wakes} WHERE session = ANY($1::text[]) AND worker = $2 AND due IS NULL RETURNING session)
UPDATE {wakes} SET worker = NULL, tries = 0
WHERE session = ANY($1::text[]) AND worker = $2 AND session NOT IN (SELECT session FROM gone)
RETURNING due <= now() AS is_due"""
        # A drive that failed is due again after a pause.
        self.retry = f"""
UPDATE {wakes} SET worker = NULL, tries = least(tries + 1, 30), due = now() + make_interval(secs => $3)
WHERE session = $1 AND worker = $2"""

        # Shared by the workers of this engine; a process that drives the database alone holds it exclusively.
        self.share_driver_lock = """
SELECT pg_try_advisory_lock_shared(hashtextextended('everturn.holding.' || coalesce($1::text, current_schema()), 0)) AS is_shared"""
        self.join = f"""
INSERT INTO {workers} (backend, expires) VALUES (pg_backend_pid(), now() + make_interval(secs => $1)) RETURNING id"""
        # Beat: also after a reconnect, with the backend of the new connection. -> nothing, if the worker was given up
        self.beat = f"""
UPDATE {workers} SET backend = pg_backend_pid(), expires = now() + make_interval(secs => $2), missing_since = NULL
WHERE id = $1 RETURNING id"""
        # A backend that is missing may be a connection that is just opened again: it is missed for a moment first.
        self.miss = f"""
UPDATE {workers} k SET missing_since = now()
WHERE missing_since IS NULL AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = k.backend) RETURNING id"""
        self.reap = f"""
WITH dead AS (
    DELETE FROM {workers} WHERE id IN (
        SELECT id FROM {workers} WHERE expires < now() OR missing_since < now() - make_interval(secs => $1)
        FOR UPDATE SKIP LOCKED)
    RETURNING id)
UPDATE {wakes} SET worker = NULL, due = now() WHERE worker IN (SELECT id FROM dead) RETURNING session"""
        # Sessions of a worker whose row is gone: it took them just when it was given up, or a backup was restored.
        self.free_orphans = f"""
UPDATE {wakes} w SET worker = NULL, due = now()
WHERE worker IS NOT NULL AND NOT EXISTS (SELECT FROM {workers} k WHERE k.id = w.worker) RETURNING session"""
        # Sessions that this worker has taken without knowing it, because the answer was lost with its connection.
        self.free_strays = f"""
UPDATE {wakes} SET worker = NULL, due = now() WHERE worker = $1 AND session <> ALL($2::text[]) RETURNING session"""
        self.leave = f"""
WITH me AS (DELETE FROM {workers} WHERE id = $1 RETURNING id)
UPDATE {wakes} SET worker = NULL, due = now() WHERE worker = $1 RETURNING session"""
