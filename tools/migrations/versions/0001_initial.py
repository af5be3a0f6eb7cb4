"""The first migration: the schema of release 0.1."""

from __future__ import annotations

from tools.migrations.initial import search_and_usage, sessions, tenants

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything; the only way back is a backup."""
    sessions.upgrade()
    tenants.upgrade()
    search_and_usage.upgrade()
