"""Search among the newest messages of a tenant under row-level security, and an index of the gates that expire.

A policy on `lookup` asks for each row that is read whether the reader may see its session. The function checks that for matches only.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
compatible_since = "0013"

_INSIDE = "current_setting('everturn.tenant', true)"
_NO_READER = "coalesce(current_setting('everturn.viewer', true), '') = ''"

# A range instead of one value, and the tenant in the order: rows come as the index has them, and the scan ends at the limit.
_NEWEST = f"""CREATE FUNCTION everturn_newest(asked text, newest bigint, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT l.n, l.session, f.body
    FROM (SELECT r.n, r.session, r.message, r.words, r.tenant FROM lookup r
        WHERE r.tenant >= {_INSIDE} AND r.tenant <= {_INSIDE} ORDER BY r.tenant DESC, r.n DESC LIMIT newest) l
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = l.session AND m.id = l.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = {_INSIDE}
        AND ({_NO_READER} OR (everturn_is_readable(s.id)
            AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session IN (s.id, split_part(s.id, '-', 1)))))
        OFFSET 0) f
    WHERE l.words @@ (SELECT asked::tsquery)
    ORDER BY l.tenant DESC, l.n DESC LIMIT most
$$"""


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    op.create_index(
        "gates_expiring",
        "gates",
        ["session"],
        sqlite_where=sa.text("is_open = 1 AND resolution IS NULL AND expires > 0"),
        postgresql_where=sa.text("is_open AND resolution IS NULL AND expires > 0"),
    )
    if op.get_context().dialect.name == "sqlite":
        return
    op.execute(_NEWEST)
    op.execute(
        "DO $$ BEGIN EXECUTE 'ALTER FUNCTION everturn_newest(text, bigint, bigint) SET search_path = ' "
        "|| quote_ident(current_schema()) || ', pg_temp'; END $$"
    )
    op.execute("REVOKE ALL ON FUNCTION everturn_newest(text, bigint, bigint) FROM PUBLIC")
