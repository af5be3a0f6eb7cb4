"""Wakes and workers of the engine on PostgreSQL (`everturn.engine.postgres`). On SQLite the tables stay empty."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "wakes",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("due", sa.DateTime(timezone=True)),
        sa.Column("later", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.BigInteger()),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("session"),
    )
    is_free, is_driven = sa.text("worker IS NULL"), sa.text("worker IS NOT NULL")
    op.create_index("wakes_due", "wakes", ["due"], sqlite_where=is_free, postgresql_where=is_free)
    op.create_index("wakes_worker", "wakes", ["worker"], sqlite_where=is_driven, postgresql_where=is_driven)
    op.create_table(
        "engine_workers",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("backend", sa.Integer(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("missing_since", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id"),
    )
    if op.get_context().dialect.name != "sqlite":
        # A row is updated in place and deleted soon: room on its page, and vacuums before the table grows.
        op.execute(
            "ALTER TABLE wakes SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, "
            "autovacuum_vacuum_threshold = 500)"
        )
        # Without a policy: only the owner reads them, and no tenant.
        op.execute("ALTER TABLE wakes ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE engine_workers ENABLE ROW LEVEL SECURITY")
