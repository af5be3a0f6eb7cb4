"""Memory files of users, and the calls that have changed them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_INSIDE = "current_setting('everturn.tenant', true)"


def upgrade() -> None:
    """Add two tables; the only way back is a backup."""
    op.create_table(
        "memory_files",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.Column("untrusted", sa.Boolean(), nullable=False),
        sa.Column("sensitive", sa.Boolean(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "owner", "path"),
    )
    op.create_table(
        "memory_writes",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("receipt", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("session", "key"),
    )
    if op.get_context().dialect.name != "sqlite":
        for table in ("memory_files", "memory_writes"):
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY wall ON {table} FOR SELECT USING (tenant = {_INSIDE})")
