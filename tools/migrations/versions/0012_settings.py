"""Settings that administrators change at run time, with all their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_INSIDE = "current_setting('everturn.tenant', true)"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "settings",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "kind", "name", "version"),
    )
    if op.get_context().dialect.name != "sqlite":
        op.execute("ALTER TABLE settings ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY wall ON settings FOR SELECT USING (tenant = {_INSIDE})")
