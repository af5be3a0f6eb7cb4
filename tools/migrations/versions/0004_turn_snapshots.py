"""Long turns: snapshots of their folds. They only save time, so nothing is filled in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_INSIDE = "current_setting('everturn.tenant', true)"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_table(
        "turn_snapshots",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("fold", sa.Text(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("projection", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("session", "turn"),
    )
    if op.get_context().dialect.name != "sqlite":
        op.execute("ALTER TABLE turn_snapshots ENABLE ROW LEVEL SECURITY")
        whose = "SELECT s.tenant FROM sessions s WHERE s.id = turn_snapshots.session"
        op.execute(f"CREATE POLICY wall ON turn_snapshots FOR SELECT USING (({whose}) = {_INSIDE})")
