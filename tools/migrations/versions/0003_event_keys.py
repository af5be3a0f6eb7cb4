"""Long logs: events that are looked for by a name, and the last turns, are found without reading the log."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

# Each event type, with its index and the path to its key.
_KEYS = (
    ("CommandDropped", "command", ("command",)),
    ("MessageAdded", "command", ("command",)),
    ("FilesChanged", "files", ("root",)),
    ("FilesReverted", "files", ("root",)),
    ("RevertStarted", "files", ("root",)),
    ("GateOpened", "gate", ("gate", "id")),
    ("CallFinished", "result", ("call",)),
    ("LateResultReceived", "late", ("call",)),
    ("SubagentStarted", "subagent", ("session",)),
)
_TYPES = "|".join(name for name, _, _ in _KEYS)
_INSIDE = "current_setting('everturn.tenant', true)"


def upgrade() -> None:
    """Upgrade from the schema before. There is no downgrade: restore a backup."""
    is_sqlite = op.get_context().dialect.name == "sqlite"
    op.create_table(
        "event_keys",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", "kind", "key", "seq"),
    )
    op.create_index("turns_started", "turns", ["session", "started"])
    op.execute(_fill_sqlite() if is_sqlite else _fill_postgres())
    if not is_sqlite:
        op.execute("ALTER TABLE event_keys ENABLE ROW LEVEL SECURITY")
        whose = "SELECT s.tenant FROM sessions s WHERE s.id = event_keys.session"
        op.execute(f"CREATE POLICY wall ON event_keys FOR SELECT USING (({whose}) = {_INSIDE})")


def _fill_sqlite() -> str:
    def read(*path: str) -> str:
        return f"json_extract(e.body, '$.event.{'.'.join(path)}')"

    return _fill(read, "CAST(body AS TEXT)", f"({' OR '.join(_sqlite_types())})")


def _sqlite_types() -> list[str]:
    return [f"""CAST(body AS TEXT) LIKE '%"type":"{name}"%'""" for name, _, _ in _KEYS]


def _fill_postgres() -> str:
    def read(*path: str) -> str:
        return f"e.body #>> '{{event,{','.join(path)}}}'"

    # Without escaped NULs, which PostgreSQL refuses to read.
    text = r"regexp_replace(convert_from(body, 'UTF8'), '(?<!\\)((\\\\)*)\\u0000', '\1', 'g')::json"
    return _fill(read, text, f"""convert_from(body, 'UTF8') ~ '"type":"({_TYPES})"'""")


def _fill(read: Callable[..., str], body: str, condition: str) -> str:
    kinds = " ".join(f"WHEN '{name}' THEN '{kind}'" for name, kind, _ in _KEYS)
    keys = " ".join(f"WHEN '{name}' THEN {read(*path)}" for name, _, path in _KEYS)
    is_wanted = f"""CASE {read("type")} WHEN 'MessageAdded' THEN coalesce({read("command")}, '') != ''
        WHEN 'CallFinished' THEN coalesce({read("output", "blob")}, {read("output", "private")}, '') != ''
        ELSE {read("type")} IN ({", ".join(f"'{name}'" for name, _, _ in _KEYS)}) END"""
    return f"""
INSERT INTO event_keys (session, kind, key, seq)
SELECT e.session, CASE {read("type")} {kinds} END, substr(coalesce(CASE {read("type")} {keys} END, ''), 1, 200), e.seq
FROM (SELECT session, seq, {body} AS body FROM events WHERE {condition}) e WHERE {is_wanted}
"""
