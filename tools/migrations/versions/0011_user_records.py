"""Passwords, budgets and invitations of users, when credentials were last used, and usage by user and model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_INSIDE = "current_setting('everturn.tenant', true)"
_NO_READER = "coalesce(current_setting('everturn.viewer', true), '') = ''"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "user_records",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("whose", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), server_default="", nullable=False),
        sa.Column("changed", sa.Double, server_default="0", nullable=False),
        sa.Column("budget", sa.Text(), server_default="", nullable=False),
        sa.Column("removed", sa.Double, server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("tenant", "whose"),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("whose", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("creator", sa.Text(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("used", sa.Double, nullable=False),
        sa.Column("revoked", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("invitations_hash", "invitations", ["hash"], unique=True)
    # Columns with constant defaults: no rows are rewritten.
    op.add_column("credentials", sa.Column("used", sa.Double(), server_default="0", nullable=False))
    op.add_column("usage", sa.Column("who", sa.Text(), server_default="", nullable=False))
    op.add_column("usage", sa.Column("model", sa.Text(), server_default="", nullable=False))
    is_known = sa.text("who != ''")
    op.create_index("usage_who", "usage", ["tenant", "who", "at"], sqlite_where=is_known, postgresql_where=is_known)
    if op.get_context().dialect.name == "sqlite":
        return
    for table in ("user_records", "invitations"):
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        # Hashes of passwords and links are for the server alone: no read for one reader returns them.
        op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (tenant = {_INSIDE} AND {_NO_READER})")
