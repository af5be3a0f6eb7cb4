"""Shares of private conversations, temporary chats, and row-level security for readers (core/tenants/sharing.py); and how people
organize sessions: renamed, pinned, archived, labels.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_INSIDE = "current_setting('everturn.tenant', true)"
# Set by `restrict_to_tenant` with a reader; empty: a read for the whole tenant, or by the runtime.
_NO_READER = "coalesce(current_setting('everturn.viewer', true), '') = ''"
_READER = "nullif(current_setting('everturn.reader', true), '')::jsonb"

_FUNCTION = f"""CREATE FUNCTION everturn_is_readable(asked text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH RECURSIVE up(id, parent, creator) AS (
        SELECT s.id, s.parent, s.creator FROM sessions s WHERE s.id = asked AND s.tenant = {_INSIDE}
        UNION SELECT p.id, p.parent, p.creator FROM up
        JOIN sessions p ON p.id = up.parent AND up.parent != '' AND p.tenant = {_INSIDE})
    SELECT {_NO_READER} OR EXISTS (SELECT 1 FROM up WHERE up.parent = '' AND (
        jsonb_exists({_READER} -> 'creators', up.creator) OR EXISTS (
            SELECT 1 FROM session_shares h WHERE h.session = up.id AND h.kind != 'link' AND h.revoked = 0
            AND (h.expires = 0 OR h.expires > extract(epoch FROM clock_timestamp()))
            AND jsonb_exists({_READER} -> 'subjects', h.subject))))
$$"""

# As in the first schema, with one more condition: this function reads with the rights of the owner.
_FOUND = f"""CREATE OR REPLACE FUNCTION everturn_found(asked text, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH hits AS MATERIALIZED (
        SELECT l.n, l.session, l.message, l.tenant FROM lookup l WHERE l.words @@ asked::tsquery)
    SELECT h.n, h.session, f.body
    FROM (SELECT * FROM hits WHERE hits.tenant = {_INSIDE} ORDER BY hits.n DESC) h
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = h.session AND m.id = h.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = {_INSIDE}
        AND ({_NO_READER} OR (everturn_is_readable(s.id)
            AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session IN (s.id, split_part(s.id, '-', 1)))))
        OFFSET 0) f
    ORDER BY h.n DESC LIMIT most
$$"""


def _fix_search_path(function: str) -> str:
    return (
        f"DO $$ BEGIN EXECUTE 'ALTER FUNCTION {function} SET search_path = ' "
        "|| quote_ident(current_schema()) || ', pg_temp'; END $$"
    )


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    _organize()
    op.create_table(
        "session_shares",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("via", sa.Text(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("revoked", sa.Double, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("session_shares_session", "session_shares", ["session"])
    op.create_index("session_shares_subject", "session_shares", ["tenant", "subject"])
    is_link, is_notice = sa.text("hash != ''"), sa.text("kind = 'admin' AND seen = 0")
    op.create_index(
        "session_shares_hash", "session_shares", ["tenant", "hash"], sqlite_where=is_link, postgresql_where=is_link
    )
    op.create_index(
        "session_shares_notice", "session_shares", ["tenant"], sqlite_where=is_notice, postgresql_where=is_notice
    )
    op.create_table(
        "temporary_sessions",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("session"),
    )
    op.create_index("temporary_sessions_until", "temporary_sessions", ["until"])
    op.create_index(
        "sessions_creator",
        "sessions",
        ["tenant", "creator", "moved"],
        sqlite_where=sa.text("erased = 0 AND parent = ''"),
        postgresql_where=sa.text("NOT erased AND parent = ''"),
    )
    if op.get_context().dialect.name == "sqlite":
        return
    op.execute(_FUNCTION)
    op.execute(_fix_search_path("everturn_is_readable(text)"))
    op.execute("REVOKE ALL ON FUNCTION everturn_is_readable(text) FROM PUBLIC")
    op.execute(_FOUND)
    op.execute(_fix_search_path("everturn_found(text, bigint)"))
    for table in ("session_shares", "temporary_sessions"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (tenant = {_INSIDE})")
    # The tables without a column for the tenant look a session up in `sessions`, and so follow it.
    op.execute(
        "CREATE POLICY private ON sessions AS RESTRICTIVE FOR SELECT USING "
        f"({_NO_READER} OR (parent = '' AND 'u:' || creator = current_setting('everturn.viewer', true)) "
        "OR everturn_is_readable(id))"
    )
    for table in ("gates", "lookup", "marks", "session_shares", "temporary_sessions"):
        op.execute(
            f"CREATE POLICY private ON {table} AS RESTRICTIVE FOR SELECT USING "
            f"({_NO_READER} OR everturn_is_readable(session))"
        )
    op.execute(
        "CREATE POLICY private ON grants AS RESTRICTIVE FOR SELECT USING "
        f"({_NO_READER} OR session = '' OR everturn_is_readable(session))"
    )


def _organize() -> None:
    """Add columns with constant defaults, which rewrites no rows."""
    for name in ("renamed", "pinned", "archived"):
        op.add_column("sessions", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("sessions", sa.Column("labels", sa.Text(), server_default="", nullable=False))
    op.add_column("sessions", sa.Column("organized", sa.Double(), server_default="0", nullable=False))
    pinned, organized = sa.text("pinned"), sa.text("organized > 0")
    op.create_index("sessions_pinned", "sessions", ["tenant", "moved"], sqlite_where=pinned, postgresql_where=pinned)
    op.create_index(
        "sessions_organized", "sessions", ["tenant", "organized"], sqlite_where=organized, postgresql_where=organized
    )
