"""Schedules, and the subscriptions and the outbox of webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_INSIDE = "current_setting('everturn.tenant', true)"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "schedules",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("wake_at", sa.Double),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    is_waiting = sa.text("wake_at IS NOT NULL")
    op.create_index("schedules_wake", "schedules", ["wake_at"], sqlite_where=is_waiting, postgresql_where=is_waiting)
    op.create_table(
        "webhooks",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("webhook", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("due", sa.Double),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("status", sa.Integer(), server_default="0", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "webhook", "session", "seq"),
    )
    is_pending = sa.text("due IS NOT NULL")
    op.create_index(
        "webhook_deliveries_due", "webhook_deliveries", ["due"], sqlite_where=is_pending, postgresql_where=is_pending
    )
    op.create_index("webhook_deliveries_state", "webhook_deliveries", ["tenant", "state", "at"])
    if op.get_context().dialect.name != "sqlite":
        for table in ("schedules", "webhooks", "webhook_deliveries"):
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (tenant = {_INSIDE})")
        # Rows that are updated in place: room on their pages, and vacuums before the tables grow.
        op.execute("ALTER TABLE schedules SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)")
        op.execute("ALTER TABLE webhook_deliveries SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)")
