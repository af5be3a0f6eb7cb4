"""The first schema: all tables of `schema.py` when sessions were first stored in databases, and the full-text index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

_Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_is_open = sa.column("is_open", sa.Boolean)
_is_asked = sa.and_(_is_open, sa.column("resolution", sa.LargeBinary).is_(None))
_is_below = sa.column("top", sa.Text) != ""
_is_live = sa.or_(sa.column("state", sa.Text) != "over", sa.column("out", sa.Integer) > 0)


def upgrade() -> None:
    """Create the first schema in an empty database."""
    _sessions()
    _rest()
    _words()


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("head", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("token", sa.Text(), server_default="", nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("quarantined", sa.Text(), server_default="", nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("leaf", sa.Text(), nullable=True),
        sa.Column("created", sa.Double, server_default="0", nullable=False),
        sa.Column("touched", sa.Double, server_default="0", nullable=False),
        sa.Column("erased", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "inbox",
        sa.Column("n", _Serial, autoincrement=True, nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("is_open", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.PrimaryKeyConstraint("n"),
        sa.UniqueConstraint("session", "key", name="inbox_key"),
    )
    op.create_index("inbox_open", "inbox", ["session"], sqlite_where=_is_open, postgresql_where=_is_open)
    op.create_index("inbox_turn", "inbox", ["session", "turn"])
    op.create_table(
        "events",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("session", "seq"),
    )
    op.create_table(
        "turns",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("started", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("out", sa.Integer(), server_default="0", nullable=False),
        sa.Column("deadline", sa.Double, server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("session", "turn"),
    )
    op.create_index("turns_live", "turns", ["session"], sqlite_where=_is_live, postgresql_where=_is_live)
    op.create_table(
        "messages",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("session", "id"),
    )
    op.create_index("messages_parent", "messages", ["session", "parent"])
    op.create_index("messages_turn", "messages", ["session", "turn"])
    op.create_table(
        "gates",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("gate", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("expires", sa.Double, server_default="0", nullable=False),
        sa.Column("opened", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("claim", sa.LargeBinary(), nullable=True),
        sa.Column("taken", sa.Text(), server_default="", nullable=False),
        sa.Column("resolution", sa.LargeBinary(), nullable=True),
        sa.Column("is_open", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.PrimaryKeyConstraint("session", "gate"),
    )
    op.create_index("gates_asked", "gates", ["session"], sqlite_where=_is_asked, postgresql_where=_is_asked)


def _rest() -> None:
    op.create_table(
        "grants",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, server_default="0", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", "origin"),
    )
    op.create_index("grants_tenant", "grants", ["tenant", "session"])
    op.create_index("grants_origin", "grants", ["origin"])
    op.create_table(
        "usage",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("input", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reasoning", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("written", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost", sa.Double, nullable=True),
        sa.Column("steps", sa.Integer(), server_default="0", nullable=False),
        sa.Column("calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("top", sa.Text(), server_default="", nullable=False),
        sa.Column("home", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("session", "turn"),
    )
    op.create_index("usage_tenant", "usage", ["tenant", "at"])
    op.create_index("usage_home", "usage", ["home"])
    op.create_index("usage_top", "usage", ["top"], sqlite_where=_is_below, postgresql_where=_is_below)
    op.create_table(
        "files",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("tree", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session", "root"),
    )
    op.create_table(
        "blobs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("touched", sa.Double, nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "chunks",
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("blob", "n"),
    )
    op.create_table(
        "mentions",
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("blob", "session"),
    )
    op.create_index("mentions_session", "mentions", ["session"])
    op.create_table(
        "lookup",
        sa.Column("n", _Serial, autoincrement=True, nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("words", sa.Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("n"),
        sa.UniqueConstraint("session", "message", name="lookup_message"),
    )


_POSTGRES = "CREATE INDEX lookup_words ON lookup USING gin (words)"

# The searched table holds no text of its own: triggers feed it from `lookup`. `ascii` keeps every letter beyond ASCII
# in its word, also those that are newer than SQLite's own Unicode tables.
_SQLITE = (
    """
    CREATE VIRTUAL TABLE lookup_words USING fts5(
        words, content='lookup', content_rowid='n', detail=none, columnsize=0, tokenize="ascii tokenchars '_'"
    )
    """,
    """
    CREATE TRIGGER lookup_added AFTER INSERT ON lookup BEGIN
        INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
    END
    """,
    """
    CREATE TRIGGER lookup_removed AFTER DELETE ON lookup BEGIN
        INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
    END
    """,
    """
    CREATE TRIGGER lookup_changed AFTER UPDATE ON lookup BEGIN
        INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
        INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
    END
    """,
)


def _words() -> None:
    """Create the search index: it differs between the databases, so it is SQL and not a model."""
    for statement in _SQLITE if op.get_context().dialect.name == "sqlite" else (_POSTGRES,):
        op.execute(statement)
