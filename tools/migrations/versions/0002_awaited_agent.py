"""The agent that a session waits for: its last driver did not know it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column; the only way back is a backup."""
    op.add_column("sessions", sa.Column("awaited_agent", sa.Text(), server_default="", nullable=False))
