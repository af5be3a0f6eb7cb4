"""How people organize sessions: renamed, pinned, archived, labels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add columns with constant defaults, which rewrites no rows; there is no downgrade: restore a backup."""
    for name in ("renamed", "pinned", "archived"):
        op.add_column("sessions", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("sessions", sa.Column("labels", sa.Text(), server_default="", nullable=False))
    op.add_column("sessions", sa.Column("organized", sa.Double(), server_default="0", nullable=False))
    pinned, organized = sa.text("pinned"), sa.text("organized > 0")
    op.create_index("sessions_pinned", "sessions", ["tenant", "moved"], sqlite_where=pinned, postgresql_where=pinned)
    op.create_index(
        "sessions_organized", "sessions", ["tenant", "organized"], sqlite_where=organized, postgresql_where=organized
    )
