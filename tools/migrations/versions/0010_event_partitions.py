"""The log in partitions on PostgreSQL: a partition has the events of all sessions that were created while it was open.

What is there becomes partition 0, without a copy; the key of a log (session, seq) is a key of each partition, because a
session is in one partition as long as it exists. On SQLite nothing changes.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

_INSIDE = "current_setting('everturn.tenant', true)"
_TABLES = (
    "ALTER TABLE sessions ADD COLUMN cohort integer NOT NULL DEFAULT 0",
    # Sessions of a partition were created one after another: a few bytes per megabyte find them.
    "CREATE INDEX sessions_cohort ON sessions USING brin (cohort) WITH (pages_per_range = 32)",
    "ALTER TABLE events RENAME TO events_0",
    "ALTER INDEX events_pkey RENAME TO events_0_pkey",
    "ALTER TABLE events_0 ADD COLUMN cohort integer NOT NULL DEFAULT 0",
    """CREATE TABLE events (session text NOT NULL, seq bigint NOT NULL, turn text NOT NULL, body bytea NOT NULL,
    cohort integer NOT NULL DEFAULT 0) PARTITION BY LIST (cohort)""",
    "ALTER TABLE events ATTACH PARTITION events_0 FOR VALUES IN (0)",
    "ALTER TABLE events ENABLE ROW LEVEL SECURITY",
    f"""CREATE POLICY wall ON events FOR SELECT
    USING ((SELECT s.tenant FROM sessions s WHERE s.id = events.session) = {_INSIDE})""",
    """DO $$ BEGIN
    EXECUTE 'COMMENT ON TABLE events_0 IS ''opened ' || extract(epoch FROM now())::bigint || '''';
END $$""",
)

# The open partition is the default of `sessions.cohort`; the comment of a partition says since when it is open, or that
# it was compacted.
_OPEN = """
CREATE FUNCTION everturn_open_events() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT pg_get_expr(d.adbin, d.adrelid)::integer FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a
        ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE a.attrelid = 'sessions'::regclass AND a.attname = 'cohort'
$$
"""
_CLOSED = """
CREATE FUNCTION everturn_closed_events() RETURNS TABLE (cohort integer, is_compacted boolean) LANGUAGE sql STABLE AS $$
    SELECT substring(c.relname FROM '^events_(\\d+)$')::integer,
        coalesce(obj_description(c.oid, 'pg_class') = 'compacted', false)
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'events'::regclass AND c.relname <> 'events_' || everturn_open_events()
$$
"""
_ADD = """
CREATE FUNCTION everturn_add_events(added integer, comment text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER TABLE events_' || added || ' ENABLE ROW LEVEL SECURITY';
    EXECUTE 'COMMENT ON TABLE events_' || added || ' IS ' || quote_literal(comment);
    EXECUTE 'ALTER TABLE events ATTACH PARTITION events_' || added || ' FOR VALUES IN (' || added || ')';
END $$
"""
_ROTATE = """
CREATE FUNCTION everturn_rotate_events(before double precision, smallest bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    is_open integer;
    since double precision;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('everturn.events.' || current_schema(), 0));
    is_open := everturn_open_events();
    since := substring(obj_description(('events_' || is_open)::regclass, 'pg_class') FROM '^opened (\\d+)$');
    IF since IS NULL OR since >= before OR pg_table_size(('events_' || is_open)::regclass) < smallest THEN
        RETURN is_open;
    END IF;
    is_open := is_open + 1;
    EXECUTE 'CREATE TABLE events_' || is_open || ' (LIKE events INCLUDING DEFAULTS, PRIMARY KEY (session, seq))';
    PERFORM everturn_add_events(is_open, 'opened ' || extract(epoch FROM now())::bigint);
    EXECUTE 'ALTER TABLE sessions ALTER COLUMN cohort SET DEFAULT ' || is_open;
    RETURN is_open;
END $$
"""
# A closed partition gets no more sessions, and an erased session does not come back: the sessions that are read before
# the lock can only become fewer.
_COMPACT = """
CREATE FUNCTION everturn_compact_events(given integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old text := 'events_' || given;
    live text[];
    stayed bigint := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('everturn.events.' || current_schema(), 0));
    IF NOT EXISTS (SELECT 1 FROM everturn_closed_events() c WHERE c.cohort = given) THEN
        RETURN -1;
    END IF;
    SELECT coalesce(array_agg(s.id), '{}') INTO live FROM sessions s WHERE s.cohort = given AND NOT s.erased;
    IF live <> '{}' AND (SELECT c.is_compacted FROM everturn_closed_events() c WHERE c.cohort = given) THEN
        RETURN -1;
    END IF;
    IF live <> '{}' THEN
        -- Only appends to sessions of this partition wait while what stays is copied.
        EXECUTE 'LOCK TABLE ONLY ' || old || ' IN SHARE MODE';
        EXECUTE 'CREATE TABLE events_staying (LIKE events INCLUDING DEFAULTS, CHECK (cohort = ' || given || '))';
        EXECUTE 'INSERT INTO events_staying SELECT e.* FROM unnest($1) AS l(id) JOIN ' || old || ' e ON e.session = l.id'
            USING live;
        GET DIAGNOSTICS stayed = ROW_COUNT;
        EXECUTE 'ALTER TABLE events_staying ADD CONSTRAINT ' || old || '_kept PRIMARY KEY (session, seq)';
    END IF;
    LOCK TABLE events IN ACCESS EXCLUSIVE MODE;
    EXECUTE 'ALTER TABLE ' || old || ' RENAME TO events_removed';
    ALTER TABLE events DETACH PARTITION events_removed;
    IF live <> '{}' THEN
        EXECUTE 'ALTER TABLE events_staying RENAME TO ' || old;
        PERFORM everturn_add_events(given, 'compacted');
    END IF;
    DROP TABLE events_removed;
    RETURN stayed;
END $$
"""


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    if op.get_context().dialect.name == "sqlite":
        return
    for statement in (*_TABLES, _OPEN, _CLOSED, _ADD, _ROTATE, _COMPACT):
        op.execute(statement)
