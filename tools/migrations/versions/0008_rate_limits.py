"""The shared state of the rate limits of model providers (core/rate_limits.py)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "rate_limits",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    if op.get_context().dialect.name != "sqlite":
        # A row is updated in place, several times a second: room on its page, and vacuums before the table grows.
        op.execute(
            "ALTER TABLE rate_limits SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, "
            "autovacuum_vacuum_threshold = 500)"
        )
        # Without a policy: only the owner reads it, and no tenant.
        op.execute("ALTER TABLE rate_limits ENABLE ROW LEVEL SECURITY")
