"""Schema: the tables, the same for SQLite and PostgreSQL; the steps in versions/ upgrade an older schema to this one.

Every row belongs to a session and is found by it, so a cluster may shard by session without a change. `events` is the
source of truth; the other tables are projections of it, written in the same transaction, or commands that are not
handled yet (the inbox). The last tables are the accounts and the audit log. On PostgreSQL the steps also add
row-level security by tenant (row_security.py).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSVECTOR

meta = sa.MetaData()

# SQLite autoincrements only where the type is exactly INTEGER.
Serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")

sessions = sa.Table(
    "sessions",
    meta,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("head", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("token", sa.Text, nullable=False, server_default=""),  # of the last append: how a lost COMMIT is resolved
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),  # claims since it last made progress
    sa.Column("quarantined", sa.Text, nullable=False, server_default=""),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    sa.Column("leaf", sa.Text),
    sa.Column("created", sa.Double, nullable=False, server_default="0"),
    sa.Column("touched", sa.Double, nullable=False, server_default="0"),
    sa.Column("erased", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("agent", sa.Text, nullable=False, server_default=""),  # that has the session
    sa.Column("creator", sa.Text, nullable=False, server_default=""),  # the user who created it
    sa.Column("parent", sa.Text, nullable=False, server_default=""),  # the parent session of a sub-agent run
    # When something last happened that a list shows. Unlike `touched` it is indexed, and so it does not change with
    # every append: PostgreSQL would have to write to all indexes of the row then.
    sa.Column("moved", sa.Double, nullable=False, server_default="0"),
    sa.Column("awaited_agent", sa.Text, nullable=False, server_default=""),  # that its last driver did not know
    # How people organize it: the fold of the `SessionUpdated` events.
    sa.Column("renamed", sa.Boolean, nullable=False, server_default=sa.false()),  # a person gave the title
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("labels", sa.Text, nullable=False, server_default=""),  # each between two line ends
    sa.Column("organized", sa.Double, nullable=False, server_default="0"),  # the time of the last of these events
)
_is_listed = sa.and_(~sessions.c.erased, sessions.c.parent == "")
sa.Index("sessions_listed", sessions.c.tenant, sessions.c.moved, sqlite_where=_is_listed, postgresql_where=_is_listed)
sa.Index(
    "sessions_pinned",
    sessions.c.tenant,
    sessions.c.moved,
    sqlite_where=sessions.c.pinned,
    postgresql_where=sessions.c.pinned,
)
_is_organized = sessions.c.organized > 0
sa.Index(
    "sessions_organized",
    sessions.c.tenant,
    sessions.c.organized,
    sqlite_where=_is_organized,
    postgresql_where=_is_organized,
)
sa.Index(
    "sessions_creator",
    sessions.c.tenant,
    sessions.c.creator,
    sessions.c.moved,
    sqlite_where=_is_listed,
    postgresql_where=_is_listed,
)  # for the list of one user
_has_parent = sessions.c.parent != ""
sa.Index("sessions_parent", sessions.c.parent, sqlite_where=_has_parent, postgresql_where=_has_parent)

_is_quarantined = sessions.c.quarantined != ""
sa.Index(
    "sessions_quarantined", sessions.c.id, sqlite_where=_is_quarantined, postgresql_where=_is_quarantined
)  # for the count

# Every command that was ever admitted: its key makes a repeated request idempotent.
inbox = sa.Table(
    "inbox",
    meta,
    sa.Column("n", Serial, primary_key=True, autoincrement=True),  # the order of admission
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("turn", sa.Text, nullable=False, server_default=""),  # that a Send requests, or a Cancel ends
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("is_open", sa.Boolean, nullable=False, server_default=sa.true()),  # no event has handled it
    sa.UniqueConstraint("session", "key", name="inbox_key"),
)
sa.Index("inbox_open", inbox.c.session, sqlite_where=inbox.c.is_open, postgresql_where=inbox.c.is_open)
sa.Index("inbox_turn", inbox.c.session, inbox.c.turn)

events = sa.Table(
    "events",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("turn", sa.Text, nullable=False),  # "" for an event of the session itself
    sa.Column("body", sa.LargeBinary, nullable=False),  # as `wire` writes it
)

# Where the few events are that are looked for by a name: see core/projections/event_index.py. The reader compares the whole name.
event_keys = sa.Table(
    "event_keys",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),  # its first 200 characters
    sa.Column("seq", sa.BigInteger, primary_key=True),
)

turns = sa.Table(
    "turns",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("turn", sa.Text, primary_key=True),
    # Its events are those of the log from `started` to `last` that name it: an index for that would cost every event
    # a third of what it costs to write.
    sa.Column("started", sa.BigInteger, nullable=False),  # the position of its first event
    sa.Column("last", sa.BigInteger, nullable=False, server_default="0"),  # of its last, once it is over
    sa.Column("state", sa.Text, nullable=False),  # busy | suspended | over
    sa.Column("out", sa.Integer, nullable=False, server_default="0"),  # calls whose tools still run
    sa.Column("deadline", sa.Double, nullable=False, server_default="0"),
)
_is_live = sa.or_(turns.c.state != "over", turns.c.out > 0)
sa.Index("turns_live", turns.c.session, sqlite_where=_is_live, postgresql_where=_is_live)
sa.Index("turns_started", turns.c.session, turns.c.started)

# Folds of long turns that are open; see turn_snapshot.py. They only save time.
turn_snapshots = sa.Table(
    "turn_snapshots",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("turn", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),  # the position up to which the turn is folded
    sa.Column("fold", sa.Text, nullable=False),  # the fingerprint of the code that folded it
    sa.Column("state", sa.LargeBinary, nullable=False),
    sa.Column("projection", sa.LargeBinary, nullable=False),  # of this store
)

# A message is written when it is added to the tree and once more when its turn is over: in between the turn's own
# events complete it, or an answer with many calls would be written again with each of them.
messages = sa.Table(
    "messages",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("parent", sa.Text),
    sa.Column("turn", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),  # where it was added
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("is_deleted", sa.Boolean, nullable=False, server_default=sa.false()),
)
sa.Index("messages_parent", messages.c.session, messages.c.parent)
sa.Index("messages_turn", messages.c.session, messages.c.turn)

gates = sa.Table(
    "gates",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("gate", sa.Text, primary_key=True),
    sa.Column("turn", sa.Text, nullable=False),
    sa.Column("call", sa.Text, nullable=False),
    sa.Column("expires", sa.Double, nullable=False, server_default="0"),  # or the end of a final claim
    sa.Column("opened", sa.Double, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("claim", sa.LargeBinary),  # the last admitted claim of a client
    sa.Column("taken", sa.Text, nullable=False, server_default=""),  # the key of its command, until that is handled
    sa.Column("resolution", sa.LargeBinary),  # recorded at admission, before the driver handles it
    sa.Column("is_open", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("tenant", sa.Text, nullable=False, server_default=""),
)
_is_asked = sa.and_(gates.c.is_open, gates.c.resolution.is_(None))
sa.Index("gates_asked", gates.c.session, sqlite_where=_is_asked, postgresql_where=_is_asked)
_expires = sa.and_(_is_asked, gates.c.expires > sa.text("0"))
sa.Index("gates_expiring", gates.c.session, sqlite_where=_expires, postgresql_where=_expires)
# With a condition that other queries do not have: they would scan this index from end to end while it is small.
_has_tenant = sa.and_(_is_asked, gates.c.tenant != "")
sa.Index("gates_tenant", gates.c.tenant, gates.c.opened, sqlite_where=_has_tenant, postgresql_where=_has_tenant)

# Remembered answers that were not revoked. One may be valid in another session than the one in which it was made.
grants = sa.Table(
    "grants",
    meta,
    sa.Column("id", sa.Text, primary_key=True),  # of the gate
    sa.Column("origin", sa.Text, primary_key=True),  # the session whose log has it
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("session", sa.Text, nullable=False),  # in which it is valid; "": in all of the tenant's
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False, server_default="0"),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
sa.Index("grants_tenant", grants.c.tenant, grants.c.session)
sa.Index("grants_origin", grants.c.origin)

usage = sa.Table(
    "usage",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("turn", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),  # when its last step, or the turn itself, ended
    sa.Column("outcome", sa.Text, nullable=False),  # "" while it runs
    sa.Column("input", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("output", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cached", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("reasoning", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("written", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cost", sa.Double),
    sa.Column("steps", sa.Integer, nullable=False, server_default="0"),
    sa.Column("calls", sa.Integer, nullable=False, server_default="0"),
    sa.Column("top", sa.Text, nullable=False, server_default=""),  # of a sub-agent run: the root turn
    sa.Column("home", sa.Text, nullable=False, server_default=""),  # the root session, or its own
    sa.Column("agent", sa.Text, nullable=False, server_default=""),
    sa.Column("who", sa.Text, nullable=False, server_default=""),  # the user who started the root turn
    sa.Column("model", sa.Text, nullable=False, server_default=""),  # of the last step
)
sa.Index("usage_tenant", usage.c.tenant, usage.c.at)
sa.Index("usage_home", usage.c.home)
_is_below = usage.c.top != ""
sa.Index("usage_top", usage.c.top, sqlite_where=_is_below, postgresql_where=_is_below)
_is_known = usage.c.who != ""
sa.Index("usage_who", usage.c.tenant, usage.c.who, usage.c.at, sqlite_where=_is_known, postgresql_where=_is_known)

# Totals of `usage` by day, updated by triggers that the steps create: sums of months read this and not every turn.
# A turn counts on the day of its last step, so its sums may move from one day to the next. `part` separates the writers
# (on PostgreSQL, the connections): none waits for another's row. `priced` is how many turns have a cost.
usage_days = sa.Table(
    "usage_days",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("day", sa.BigInteger, primary_key=True),  # since 1970, UTC
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("part", sa.Integer, primary_key=True),
    *(
        sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        for name in ("steps", "calls", "input", "output", "cached", "reasoning", "written")
    ),
    sa.Column("cost", sa.Double, nullable=False, server_default="0"),
    sa.Column("priced", sa.BigInteger, nullable=False, server_default="0"),
)

# The tree that was last recorded for each root; "" is the session's own, whose trees are blobs.
files = sa.Table(
    "files",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("root", sa.Text, primary_key=True),
    sa.Column("tree", sa.Text, nullable=False),
)

# Small blobs are whole in `data`; large ones in a folder beside the database, or in `chunks`, so that no row is large.
blobs = sa.Table(
    "blobs",
    meta,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("touched", sa.Double, nullable=False),
    sa.Column("place", sa.Text, nullable=False),  # row | chunks | folder
    sa.Column("data", sa.LargeBinary),
)

chunks = sa.Table(
    "chunks",
    meta,
    sa.Column("blob", sa.Text, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

# Which sessions reference a blob: an unreferenced one may be removed.
mentions = sa.Table(
    "mentions",
    meta,
    sa.Column("blob", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, primary_key=True),
)
sa.Index("mentions_session", mentions.c.session)

# A row per searchable message; `words` are the terms of its text (core/memory/search_terms.py, search.py). The index over
# them differs between the databases, and SQLAlchemy cannot model it: the steps create it.
lookup = sa.Table(
    "lookup",
    meta,
    sa.Column("n", Serial, primary_key=True, autoincrement=True),  # newest last
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("words", sa.Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    sa.Column("tenant", sa.Text, nullable=False, server_default=""),
    sa.UniqueConstraint("session", "message", name="lookup_message"),
)
sa.Index("lookup_tenant", lookup.c.tenant, lookup.c.n)  # a tenant's newest messages

# The engine on PostgreSQL (everturn.engine.postgres); with SQLite these stay empty. A row of `wakes` is a session that is
# wanted, driven, or both; `engine_workers` are the processes that drive.
wakes = sa.Table(
    "wakes",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("due", sa.DateTime(timezone=True)),  # when it is wanted; of one that is driven: wanted again
    sa.Column("later", sa.DateTime(timezone=True)),  # the first delayed wake
    sa.Column("worker", sa.BigInteger),  # that drives it
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),  # drives that failed in a row
)
_is_free, _is_driven = wakes.c.worker.is_(None), wakes.c.worker.is_not(None)
sa.Index("wakes_due", wakes.c.due, sqlite_where=_is_free, postgresql_where=_is_free)
sa.Index("wakes_worker", wakes.c.worker, sqlite_where=_is_driven, postgresql_where=_is_driven)

engine_workers = sa.Table(
    "engine_workers",
    meta,
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("backend", sa.Integer, nullable=False),  # the process id of the server's end of its connection
    sa.Column("expires", sa.DateTime(timezone=True), nullable=False),  # the end of its lease
    sa.Column("missing_since", sa.DateTime(timezone=True)),  # when another worker first missed that backend
)

# Schedules (core/schedules.py): a row each; a process looks at it when `wake_at` has passed.
schedules = sa.Table(
    "schedules",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("wake_at", sa.Double),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_is_waiting = schedules.c.wake_at.is_not(None)
sa.Index("schedules_wake", schedules.c.wake_at, sqlite_where=_is_waiting, postgresql_where=_is_waiting)

# Settings that administrators change at run time (core/tenants/settings.py): a row per version.
settings = sa.Table(
    "settings",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),  # "*": of the installation
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),  # encrypted; of the newest version only
    sa.Column("is_deleted", sa.Boolean, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)

# Outbound webhooks (core/webhooks.py): who is told of which events, and the outbox, which an append writes.
webhooks = sa.Table(
    "webhooks",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("events", sa.Text, nullable=False),  # ",turn.completed,gate.opened,"; "": it is disabled
    sa.Column("body", sa.LargeBinary, nullable=False),
)

webhook_deliveries = sa.Table(
    "webhook_deliveries",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("webhook", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),  # the position of the event
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("data", sa.Text, nullable=False),  # JSON
    sa.Column("state", sa.Text, nullable=False),  # pending, delivered or dead
    sa.Column("due", sa.Double),  # of a pending one
    sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("status", sa.Integer, nullable=False, server_default="0"),  # of the last response; 0: none
    sa.Column("problem", sa.Text, nullable=False, server_default=""),
    sa.Column("updated", sa.Double, nullable=False),
)
_is_pending = webhook_deliveries.c.due.is_not(None)
sa.Index("webhook_deliveries_due", webhook_deliveries.c.due, sqlite_where=_is_pending, postgresql_where=_is_pending)
sa.Index("webhook_deliveries_state", *(webhook_deliveries.c[name] for name in ("tenant", "state", "at")))

# Accounts -------------------------------------------------------------------------------------------------------------

tenants = sa.Table(
    "tenants",
    meta,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)

users = sa.Table(
    "users",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("origin", sa.Text, nullable=False, server_default=""),  # the issuer of their tokens
)

credentials = sa.Table(
    "credentials",
    meta,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("whose", sa.Text, nullable=False),  # the user
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double, nullable=False),
    sa.Column("used", sa.Double, nullable=False, server_default="0"),
    sa.UniqueConstraint("hash", name="credentials_hash"),
)
sa.Index("credentials_tenant", credentials.c.tenant, credentials.c.whose)

user_records = sa.Table(
    "user_records",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("whose", sa.Text, primary_key=True),  # the user
    sa.Column("password", sa.Text, nullable=False, server_default=""),  # argon2id; "": none
    sa.Column("changed", sa.Double, nullable=False, server_default="0"),
    sa.Column("budget", sa.Text, nullable=False, server_default=""),  # JSON
    sa.Column("removed", sa.Double, nullable=False, server_default="0"),
)

invitations = sa.Table(
    "invitations",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("whose", sa.Text, nullable=False),  # the user that it creates
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("creator", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("used", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double, nullable=False),
)
sa.Index("invitations_hash", invitations.c.hash, unique=True)

secrets = sa.Table(
    "secrets",
    meta,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)

# Each record holds a hash of itself and of the one before it. Triggers refuse to change or delete one.
audit = sa.Table(
    "audit",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("n", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("credential", sa.Text, nullable=False),
    sa.Column("did", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),  # the object of the action
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)

marks = sa.Table(
    "marks",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)
sa.Index("marks_age", marks.c.tenant, marks.c.at)
sa.Index("marks_session", marks.c.session)

# Text files of a user, which outlive sessions (core/memory/user_memory.py).
memory_files = sa.Table(
    "memory_files",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, primary_key=True),  # the user
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),  # bytes
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
    sa.Column("untrusted", sa.Boolean, nullable=False),
    sa.Column("sensitive", sa.Boolean, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)

# The calls that have changed memory files: one that is run again after a crash changes nothing a second time.
memory_writes = sa.Table(
    "memory_writes",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("receipt", sa.LargeBinary, nullable=False),
)

# The shared state of the rate limits of model providers (core/rate_limits.py), by the hash of an API key and a model.
rate_limits = sa.Table(
    "rate_limits",
    meta,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),  # a writer names the one that it has read
    sa.Column("state", sa.LargeBinary, nullable=False),
)

# Who may see a private conversation beside its author (core/tenants/sharing.py).
session_shares = sa.Table(
    "session_shares",
    meta,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),  # `user:ada` or `role:member`; "" for a link
    sa.Column("hash", sa.Text, nullable=False),  # of the secret of a link
    sa.Column("via", sa.Text, nullable=False),  # the link that was opened
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),  # when the author dismissed the notice
    sa.Column("body", sa.LargeBinary, nullable=False),
)
sa.Index("session_shares_session", session_shares.c.session)
sa.Index("session_shares_subject", session_shares.c.tenant, session_shares.c.subject)
_is_link = session_shares.c.hash != ""
sa.Index(
    "session_shares_hash",
    session_shares.c.tenant,
    session_shares.c.hash,
    sqlite_where=_is_link,
    postgresql_where=_is_link,
)
_is_notice = sa.and_(session_shares.c.kind == "admin", session_shares.c.seen == 0)
sa.Index("session_shares_notice", session_shares.c.tenant, sqlite_where=_is_notice, postgresql_where=_is_notice)

# Temporary chats, which are in no list, and when they are erased.
temporary_sessions = sa.Table(
    "temporary_sessions",
    meta,
    sa.Column("session", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
)
sa.Index("temporary_sessions_until", temporary_sessions.c.until)
