"""Many tenants: columns for session lists, accounts, the audit log, and row-level security on PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_is_listed = sa.and_(~sa.column("erased", sa.Boolean), sa.column("parent", sa.Text) == "")
_has_parent = sa.column("parent", sa.Text) != ""
_is_asked = sa.and_(sa.column("is_open", sa.Boolean), sa.column("resolution", sa.LargeBinary).is_(None))

_has_tenant = sa.and_(_is_asked, sa.column("tenant", sa.Text) != "")


def upgrade() -> None:
    """Upgrade from the first schema. There is no downgrade: restore a backup."""
    _lists()
    _accounts()
    if op.get_context().dialect.name == "sqlite":
        for statement in _KEPT_SQLITE:
            op.execute(statement)
    else:
        op.execute(_KEEP)
        op.execute(_KEPT)
        _walls()


def _lists() -> None:
    for name in ("agent", "creator", "parent"):
        op.add_column("sessions", sa.Column(name, sa.Text(), server_default="", nullable=False))
    op.add_column("sessions", sa.Column("moved", sa.Double, server_default="0", nullable=False))
    # Existing rows: the time of the last touch, and the parent session, which so far only the usage account has.
    op.execute("UPDATE sessions SET moved = touched")
    op.execute(
        "UPDATE sessions SET parent = (SELECT min(u.home) FROM usage u WHERE u.session = sessions.id AND u.top != '') "
        "WHERE id IN (SELECT session FROM usage WHERE top != '')"
    )
    op.create_index(
        "sessions_listed", "sessions", ["tenant", "moved"], sqlite_where=_is_listed, postgresql_where=_is_listed
    )
    op.create_index("sessions_parent", "sessions", ["parent"], sqlite_where=_has_parent, postgresql_where=_has_parent)
    op.add_column("gates", sa.Column("tenant", sa.Text(), server_default="", nullable=False))
    op.execute("UPDATE gates SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = gates.session), '')")
    op.create_index("gates_tenant", "gates", ["tenant"], sqlite_where=_has_tenant, postgresql_where=_has_tenant)
    op.add_column("usage", sa.Column("agent", sa.Text(), server_default="", nullable=False))


def _accounts() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "users",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("origin", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_table(
        "credentials",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("whose", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("revoked", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash", name="credentials_hash"),
    )
    op.create_index("credentials_tenant", "credentials", ["tenant", "whose"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "audit",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("did", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "n"),
    )
    op.create_table(
        "marks",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "hash"),
    )
    op.create_index("marks_age", "marks", ["tenant", "at"])
    op.create_index("marks_session", "marks", ["session"])


# The audit log is append-only, also for the owner of the tables, unless the owner drops the trigger first.
_KEEP = """
CREATE FUNCTION everturn_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END $$
"""
_KEPT = """
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION everturn_keep_audit()
"""
_KEPT_SQLITE = [
    f"""
    CREATE TRIGGER audit_is_kept_{operation.lower()} BEFORE {operation} ON audit BEGIN
        SELECT RAISE(ABORT, 'the audit log is only ever added to');
    END
    """
    for operation in ("UPDATE", "DELETE")
]

# Row-level security: a role that does not own the tables sees the rows of the tenant that is set in its connection. The
# owner sees all rows, as a worker has to. row_security.py creates the role that reads for one tenant, which may fail.
_INSIDE = "current_setting('everturn.tenant', true)"
_BY_TENANT = ("sessions", "gates", "grants", "usage", "users", "credentials", "audit", "marks")
_BY_SESSION = ("inbox", "events", "turns", "messages", "files", "mentions", "lookup")

# PostgreSQL checks a row's policy before any condition that might leak the row, as a full-text match might. So it
# cannot use the text index under row-level security, and such reads search by this function; its last condition is
# the policy.
_FOUND = f"""
CREATE FUNCTION everturn_found(asked text, most bigint) RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT l.n, l.session, m.body FROM lookup l
    JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session
    WHERE l.words @@ asked::tsquery AND NOT m.is_deleted AND NOT s.erased AND s.tenant = {_INSIDE}
    ORDER BY l.n DESC LIMIT most
$$
"""
# It runs with the rights of the owner, so it must not find tables that another role has put into the search path.
_HERE = """
DO $$ BEGIN
    EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = '
        || quote_ident(current_schema()) || ', pg_temp';
END $$
"""


def _walls() -> None:
    for table in (*_BY_TENANT, *_BY_SESSION, "tenants", "secrets"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    for table in _BY_TENANT:
        op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (tenant = {_INSIDE})")
    # Not EXISTS: PostgreSQL might evaluate that by reading all sessions of the tenant first.
    for table in _BY_SESSION:
        whose = f"SELECT s.tenant FROM sessions s WHERE s.id = {table}.session"
        op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (({whose}) = {_INSIDE})")
    op.execute(f"CREATE POLICY wall ON tenants FOR SELECT USING (id = {_INSIDE})")
    op.execute(_FOUND)
    op.execute(_HERE)
    op.execute("REVOKE ALL ON FUNCTION everturn_found(text, bigint) FROM PUBLIC")
