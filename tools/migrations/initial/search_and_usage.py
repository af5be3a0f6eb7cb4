"""Many rows: search terms that are indexed by tenant, usage totals by day, and indexes for counts and pages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_is_asked = sa.and_(sa.column("is_open", sa.Boolean), sa.column("resolution", sa.LargeBinary).is_(None))
_has_tenant = sa.and_(_is_asked, sa.column("tenant", sa.Text) != "")
_is_quarantined = sa.column("quarantined", sa.Text) != ""


def upgrade() -> None:
    """Upgrade from schema 0002. There is no downgrade: restore a backup."""
    is_sqlite = op.get_context().dialect.name == "sqlite"
    _words(is_sqlite)
    op.drop_index("gates_tenant", table_name="gates")
    op.create_index(
        "gates_tenant", "gates", ["tenant", "opened"], sqlite_where=_has_tenant, postgresql_where=_has_tenant
    )
    op.create_index(
        "sessions_quarantined", "sessions", ["id"], sqlite_where=_is_quarantined, postgresql_where=_is_quarantined
    )
    _days(is_sqlite)


# Search ---------------------------------------------------------------------------------------------------------------

_INSIDE = "current_setting('everturn.tenant', true)"
_WHOSE = "UPDATE lookup SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = lookup.session), '')"
# On PostgreSQL every word begins with a hash of its tenant: see stores/sql/search.py.
_WHOSE_WORDS = """
UPDATE lookup SET tenant = s.tenant, words = array_to_tsvector(ARRAY(
    SELECT left(md5(s.tenant), 8) || w.word FROM unnest(tsvector_to_array(lookup.words)) AS w (word)))
FROM sessions s WHERE s.id = lookup.session
"""
_CHANGED = """
CREATE TRIGGER lookup_changed AFTER UPDATE OF words ON lookup BEGIN
    INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
    INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
END
"""
# MATERIALIZED: because of the LIMIT, PostgreSQL would otherwise read all messages from the newest on.
_FOUND = f"""
CREATE OR REPLACE FUNCTION everturn_found(asked text, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH hits AS MATERIALIZED (
        SELECT l.n, l.session, l.message, l.tenant FROM lookup l WHERE l.words @@ asked::tsquery)
    SELECT h.n, h.session, f.body
    FROM (SELECT * FROM hits WHERE hits.tenant = {_INSIDE} ORDER BY hits.n DESC) h
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = h.session AND m.id = h.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = {_INSIDE}
        OFFSET 0) f
    ORDER BY h.n DESC LIMIT most
$$
"""
# It runs with the rights of the owner, so it must not find tables that another role has put into the search path.
_HERE = """
DO $$ BEGIN
    EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = '
        || quote_ident(current_schema()) || ', pg_temp';
END $$
"""


def _words(is_sqlite: bool) -> None:
    op.add_column("lookup", sa.Column("tenant", sa.Text(), server_default="", nullable=False))
    if is_sqlite:
        op.execute("DROP TRIGGER lookup_changed")  # only `words` is indexed
        op.execute(_WHOSE)
        op.execute(_CHANGED)
    else:
        op.execute("DROP INDEX lookup_words")  # faster to rebuild than to change row by row
        op.execute(_WHOSE_WORDS)
        op.execute("CREATE INDEX lookup_words ON lookup USING gin (words)")
        op.execute("DROP POLICY wall ON lookup")
        op.execute(f"CREATE POLICY wall ON lookup FOR SELECT USING (tenant = {_INSIDE})")
        op.execute(_FOUND)
        op.execute(_HERE)
    op.create_index("lookup_tenant", "lookup", ["tenant", "n"])


# Totals by day --------------------------------------------------------------------------------------------------------

_COUNTS = ("steps", "calls", "input", "output", "cached", "reasoning", "written")
_SUMS = (*_COUNTS, "cost", "priced")
_COLUMNS = ", ".join(("tenant", "day", "agent", "part", *_SUMS))
_ADD = "ON CONFLICT (tenant, day, agent, part) DO UPDATE SET " + ", ".join(
    f"{name} = {{old}}.{name} + excluded.{name}" for name in _SUMS
)
_FIRST = f"""
INSERT INTO usage_days ({_COLUMNS}) SELECT tenant, {{day}}, agent, 0, {", ".join(f"sum({name})" for name in _COUNTS)},
    coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3
"""

_DAY = "CAST({row}.at / 86400 AS INTEGER)"


def _values(row: str, sign: str) -> str:
    """Return the SQLite values by which a row of `usage` is added to a day, or subtracted from it."""
    counts = ", ".join(f"{sign}{row}.{name}" for name in _COUNTS)
    cost = f"{sign}coalesce({row}.cost, 0), {sign}({row}.cost IS NOT NULL)"
    return f"VALUES ({row}.tenant, {_DAY.format(row=row)}, {row}.agent, 0, {counts}, {cost})"


def _is_something(row: str) -> str:
    return " OR ".join(f"{row}.{name} != 0" for name in _COUNTS) + f" OR {row}.cost IS NOT NULL"


def _upsert(row: str, sign: str) -> str:
    return f"INSERT INTO usage_days ({_COLUMNS}) {_values(row, sign)} {_ADD.format(old='usage_days')};"


_SQLITE = (
    f"""
    CREATE TRIGGER usage_counted AFTER INSERT ON usage WHEN {_is_something("new")} BEGIN
        {_upsert("new", "")}
    END
    """,
    f"""
    CREATE TRIGGER usage_recounted AFTER UPDATE ON usage BEGIN
        {_upsert("old", "-")}
        {_upsert("new", "")}
    END
    """,
)


def _day(at: str) -> str:
    """Return the day of a time; an imported log may have any time."""
    return f"floor(least(greatest({at}, 0), 1e15) / 86400)::bigint"


# `part` is the connection that counts, so that none waits for another's row, as all would for a single one.
_DIFFERENCES = ", ".join(f"new.{name} - old.{name}" for name in _COUNTS)
_NEW, _OLD = (", ".join(f"{sign}{row}.{name}" for name in _COUNTS) for row, sign in (("new", ""), ("old", "-")))
_POSTGRES = f"""
CREATE FUNCTION everturn_count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine integer := mod(pg_backend_pid(), 1024);
    today bigint := {_day("new.at")};
BEGIN
    IF TG_OP = 'UPDATE' AND {_day("old.at")} = today THEN
        IF (old.steps, old.calls, old.input, old.output, old.cached, old.reasoning, old.written, old.cost)
            IS NOT DISTINCT FROM
            (new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, new.cost) THEN
            RETURN NULL;
        END IF;
        INSERT INTO usage_days AS d ({_COLUMNS}) VALUES (new.tenant, today, new.agent, mine, {_DIFFERENCES},
            coalesce(new.cost, 0) - coalesce(old.cost, 0), (new.cost IS NOT NULL)::int - (old.cost IS NOT NULL)::int)
        {_ADD.format(old="d")};
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO usage_days AS d ({_COLUMNS}) VALUES (old.tenant, {_day("old.at")}, old.agent, mine, {_OLD},
            -coalesce(old.cost, 0), -(old.cost IS NOT NULL)::int)
        {_ADD.format(old="d")};
    END IF;
    IF {_is_something("new")} THEN
        INSERT INTO usage_days AS d ({_COLUMNS}) VALUES (new.tenant, today, new.agent, mine, {_NEW},
            coalesce(new.cost, 0), (new.cost IS NOT NULL)::int)
        {_ADD.format(old="d")};
    END IF;
    RETURN NULL;
END $$
"""
_COUNTED = """
CREATE TRIGGER usage_counted AFTER INSERT OR UPDATE ON usage FOR EACH ROW EXECUTE FUNCTION everturn_count_usage()
"""


def _days(is_sqlite: bool) -> None:
    op.create_table(
        "usage_days",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), server_default="0", nullable=False) for name in _COUNTS),
        sa.Column("cost", sa.Double, server_default="0", nullable=False),
        sa.Column("priced", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day", "agent", "part"),
    )
    if is_sqlite:
        op.execute(_FIRST.format(day=_DAY.format(row="usage")))
        for statement in _SQLITE:
            op.execute(statement)
        return
    op.execute(_FIRST.format(day=_day("at")))
    op.execute(_POSTGRES)
    op.execute(_COUNTED)
    op.execute("ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY wall ON usage_days FOR SELECT USING (tenant = {_INSIDE})")
