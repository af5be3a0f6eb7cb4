"""The oldest schema whose processes can use a database, so that two releases can run side by side."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
compatible_since = "0013"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.add_column("everturn_schema", sa.Column("compatible_since", sa.String(32)))
