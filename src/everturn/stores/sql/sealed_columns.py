"""Sealed columns: which values of which statements are encrypted, and what identifies their rows.

What is sealed is content: what people, models and tools wrote, and what was made from it. What stays plain is what the
database searches, sorts or counts by: ids, kinds, positions, times, sizes and usage. A test compares this list with the
SQL of every statement.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Kind = Literal["bytes", "text", "hash", "empty"]


class Ref(NamedTuple):
    """Where a value is: a position in the parameters of a statement (`p`), or in a row it returns (`r`)."""

    of: Literal["p", "r"]
    at: int


class SealedColumn(NamedTuple):
    """A sealed value: its position, its column, and what identifies its row.

    `hash`: a keyed hash takes the place of the value, which is only compared. `empty`: nothing is stored.
    `when` restricts a returned column to rows with a value at a position.
    """

    at: int
    table: str
    column: str
    ids: tuple[Ref, ...]
    kind: Kind = "bytes"
    when: tuple[int, object] | None = None


class SealedStatement(NamedTuple):
    """The sealed values of a statement: parameters that it writes, and columns that it returns.

    The tenant is given by a reference, or by that of a session. A list over many tenants leaves out the rows of those
    whose key was destroyed (`skips`); a title of theirs is empty (`blanks`).
    """

    tenant: Ref | None = None
    session: Ref | None = None
    writes: tuple[SealedColumn, ...] = ()
    reads: tuple[SealedColumn, ...] = ()
    skips: bool = False
    blanks: bool = False
    is_lookup: bool = False  # it only reads, and its session may not exist


def _p(*at: int) -> tuple[Ref, ...]:
    return tuple(Ref("p", index) for index in at)


def _r(*at: int) -> tuple[Ref, ...]:
    return tuple(Ref("r", index) for index in at)


_P0, _P1 = _p(0, 1)
_EVENTS: Final = SealedStatement(
    session=_P0, reads=(SealedColumn(1, "events", "body", (_P0, Ref("r", 0))),)
)  # seq, body of the session in the first parameter


def _info(first: int = 0, *, blanks: bool = True) -> SealedStatement:
    """Rows of `statements._INFO`: id, title, leaf, awake, due, quarantined, tenant, …."""
    title = SealedColumn(first + 1, "sessions", "title", _r(first), "text")
    return SealedStatement(tenant=Ref("r", first + 6), reads=(title,), blanks=blanks)


def _gates(body: int, claim: int, session: int, gate: int, tenant: int) -> SealedStatement:
    ids = _r(session, gate)
    columns = (SealedColumn(body, "gates", "body", ids), SealedColumn(claim, "gates", "claim", ids))
    return SealedStatement(tenant=Ref("r", tenant), reads=columns, skips=True)


def _write(session: int, *columns: SealedColumn) -> SealedStatement:
    return SealedStatement(session=Ref("p", session), writes=columns)


def _messages(at: int) -> SealedStatement:
    return SealedStatement(session=_P0, reads=(SealedColumn(at, "messages", "body", (_P0, Ref("r", 0))),))


_DELIVERY: Final = SealedStatement(
    tenant=Ref("r", 0),
    reads=(
        SealedColumn(6, "webhook_deliveries", "data", _r(2, 3), "text"),
        SealedColumn(11, "webhook_deliveries", "problem", _r(2, 3, 1), "text"),  # it may name the URL
    ),
    skips=True,
)
_SNAPSHOT_IDS: Final = (_P0, *_r(3, 1))  # session, turn, position

SEALED: Final[dict[str, SealedStatement]] = {
    # Sessions: their titles
    "session": SealedStatement(
        tenant=Ref("r", 6), reads=(SealedColumn(2, "sessions", "title", _p(0), "text"),), blanks=True
    ),
    **{name: _info() for name in ("info", "infos", "sessions", "awake sessions", "quarantined sessions")},
    **{name: _info() for name in ("listed", "listed pinned", "listed not pinned", "listed organized")},
    **{f"listed{which} for a reader": _info() for which in ("", " pinned", " not pinned")},
    "claim": _info(3, blanks=False),
    "fence": _write(9, SealedColumn(3, "sessions", "title", _p(9), "text")),
    "leaf": _write(3, SealedColumn(1, "sessions", "title", _p(3), "text")),
    # Commands
    "inbox": SealedStatement(session=_P0, reads=(SealedColumn(0, "inbox", "body", (_P0, Ref("r", 1))),)),
    "commands_of_session": SealedStatement(session=_P0, reads=(SealedColumn(0, "inbox", "body", (_P0, Ref("r", 1))),)),
    "look": SealedStatement(session=_P0, reads=(SealedColumn(0, "inbox", "body", _p(0, 1)),)),
    "keep": _write(0, SealedColumn(4, "inbox", "body", _p(0, 1))),
    "acted_on_commands": SealedStatement(
        session=Ref("r", 2), reads=(SealedColumn(1, "inbox", "body", _r(2, 3)),), skips=True
    ),
    "cut_command": _write(1, SealedColumn(0, "inbox", "body", _p(1, 2))),
    "erase_asked_below": SealedStatement(
        session=Ref("r", 1), reads=(SealedColumn(0, "inbox", "body", _r(1, 2)),), skips=True
    ),
    # The log
    **dict.fromkeys(("events", "events of a turn", "events by key", "events of live turns"), _EVENTS),
    "snapshots and events of live turns": SealedStatement(
        session=_P0,
        reads=(
            SealedColumn(2, "turn_snapshots", "state", _SNAPSHOT_IDS, when=(0, 0)),
            SealedColumn(5, "turn_snapshots", "projection", _SNAPSHOT_IDS, when=(0, 0)),
            SealedColumn(2, "events", "body", (_P0, Ref("r", 1)), when=(0, 1)),
        ),
    ),
    "erase_begun_below": SealedStatement(
        session=Ref("r", 1), reads=(SealedColumn(0, "events", "body", _r(1, 2)),), skips=True
    ),
    "add events": _write(0, SealedColumn(3, "events", "body", _p(0, 1))),
    "keep snapshots": _write(
        0,
        SealedColumn(4, "turn_snapshots", "state", _p(0, 1, 2)),
        SealedColumn(5, "turn_snapshots", "projection", _p(0, 1, 2)),
    ),
    # Messages, and the terms of the search index
    "all messages": _messages(3),
    "path": _messages(2),
    "add messages": _write(0, SealedColumn(5, "messages", "body", _p(0, 1))),
    "finish messages": _write(1, SealedColumn(0, "messages", "body", _p(1, 2))),
    **dict.fromkeys(
        ("newest_messages", "newest_messages_reader"),
        SealedStatement(tenant=Ref("r", 3), reads=(SealedColumn(2, "messages", "body", _r(0, 1)),), skips=True),
    ),
    "index": SealedStatement(tenant=Ref("p", 3), writes=(SealedColumn(2, "lookup", "words", (), "empty"),)),
    # Gates and grants
    **dict.fromkeys(("gates", "all gates", "gates of a tenant"), _gates(0, 2, 3, 4, 5)),
    **dict.fromkeys(("gate page", "gate page of a tenant", "gate page of a session"), _gates(1, 3, 0, 4, 5)),
    "gate": SealedStatement(
        session=_P0,
        reads=(
            SealedColumn(0, "gates", "body", _p(0, 1)),
            SealedColumn(2, "gates", "resolution", _p(0, 1)),
            SealedColumn(4, "gates", "claim", _p(0, 1)),
        ),
    ),
    "open gates": _write(0, SealedColumn(7, "gates", "body", _p(0, 2))),
    "resolution": _write(1, SealedColumn(0, "gates", "resolution", _p(1, 2))),
    "answer gates": _write(1, SealedColumn(0, "gates", "resolution", _p(1, 2))),
    "take": _write(3, SealedColumn(0, "gates", "claim", _p(3, 4))),
    "claim gates": _write(2, SealedColumn(0, "gates", "claim", _p(2, 3))),
    "add grants": SealedStatement(tenant=Ref("p", 2), writes=(SealedColumn(6, "grants", "body", _p(0, 1)),)),
    "grants that hold": SealedStatement(tenant=_P0, reads=(SealedColumn(0, "grants", "body", _r(1, 2)),)),
    "grants of a tenant": SealedStatement(tenant=_P0, reads=(SealedColumn(1, "grants", "body", _r(2, 0)),)),
    # Files: names that are hashes of their content
    "roots": SealedStatement(session=_P0, reads=(SealedColumn(1, "files", "tree", (_P0, Ref("r", 0)), "text"),)),
    "record trees": _write(0, SealedColumn(2, "files", "tree", _p(0, 1), "text")),
    "mention": _write(1, SealedColumn(0, "mentions", "blob", (), "hash")),
    "mentions": SealedStatement(session=_P0, writes=(SealedColumn(1, "mentions", "blob", (), "hash"),), is_lookup=True),
    "touch_referenced_blob": _write(2, SealedColumn(1, "blobs", "name", (), "hash")),
    "put mark": SealedStatement(tenant=_P0, writes=(SealedColumn(1, "marks", "hash", (), "hash"),)),
    "mark": SealedStatement(tenant=_P0, writes=(SealedColumn(1, "marks", "hash", (), "hash"),)),
    # Memory of users
    "memory files": SealedStatement(
        tenant=_P0, reads=(SealedColumn(2, "memory_files", "hash", (*_p(1), *_r(0)), "text"),)
    ),
    "memory file": SealedStatement(
        tenant=_P0,
        reads=(
            SealedColumn(2, "memory_files", "hash", (*_p(1), *_r(0)), "text"),
            SealedColumn(6, "memory_files", "text", (*_p(1), *_r(0)), "text"),
        ),
    ),
    "put memory file": SealedStatement(
        tenant=_P0,
        writes=(
            SealedColumn(4, "memory_files", "hash", _p(1, 2), "text"),
            SealedColumn(8, "memory_files", "text", _p(1, 2), "text"),
        ),
    ),
    "rewrite memory file": SealedStatement(
        tenant=Ref("p", 2),
        writes=(
            SealedColumn(0, "memory_files", "hash", _p(3, 4), "text"),
            SealedColumn(1, "memory_files", "text", _p(3, 4), "text"),
        ),
    ),
    "memory write": SealedStatement(tenant=Ref("r", 1), reads=(SealedColumn(0, "memory_writes", "receipt", _p(0, 1)),)),
    "put memory write": SealedStatement(
        tenant=Ref("p", 2), writes=(SealedColumn(4, "memory_writes", "receipt", _p(0, 1)),)
    ),
    # Schedules and webhooks
    "add schedule": SealedStatement(tenant=_P0, writes=(SealedColumn(3, "schedules", "body", _p(1)),)),
    "put schedule": SealedStatement(tenant=Ref("p", 2), writes=(SealedColumn(1, "schedules", "body", _p(3)),)),
    **dict.fromkeys(
        ("schedule", "lock schedule"),
        SealedStatement(tenant=_P0, reads=(SealedColumn(0, "schedules", "body", _p(1)),)),
    ),
    "schedules": SealedStatement(tenant=_P0, reads=(SealedColumn(0, "schedules", "body", _r(1)),)),
    "due schedules": SealedStatement(
        tenant=Ref("r", 1), reads=(SealedColumn(0, "schedules", "body", _r(2)),), skips=True
    ),
    # Settings: a secret is encrypted before it gets here, with the same keys or others (decision 0219)
    "add setting": SealedStatement(tenant=_P0, writes=(SealedColumn(4, "settings", "body", _p(1, 2, 3)),)),
    **dict.fromkeys(
        ("current settings", "setting versions"),
        SealedStatement(tenant=Ref("r", 0), reads=(SealedColumn(4, "settings", "body", _r(1, 2, 3)),)),
    ),
    "settings of tenants": SealedStatement(
        tenant=Ref("r", 0), reads=(SealedColumn(4, "settings", "body", _r(1, 2, 3)),), skips=True
    ),
    "put webhook": SealedStatement(tenant=_P0, writes=(SealedColumn(3, "webhooks", "body", _p(1)),)),
    "webhook": SealedStatement(tenant=_P0, reads=(SealedColumn(0, "webhooks", "body", _p(1)),)),
    "webhooks": SealedStatement(tenant=_P0, reads=(SealedColumn(0, "webhooks", "body", _r(1)),)),
    "outbox": SealedStatement(tenant=_P0, writes=(SealedColumn(5, "webhook_deliveries", "data", _p(1, 2), "text"),)),
    "finish delivery": SealedStatement(
        tenant=_P0, writes=(SealedColumn(7, "webhook_deliveries", "problem", _p(2, 3, 1), "text"),)
    ),
    **dict.fromkeys(("claim deliveries", "deliveries"), _DELIVERY),
}

SESSION_TENANTS: Final[dict[str, tuple[Ref, Ref]]] = {
    "lock": (_P0, Ref("r", 0)),
    "new session": (_P0, _P1),
    "session": (_P0, Ref("r", 6)),
    "claim": (_P0, Ref("r", 9)),
}
"""Statements whose rows tell the tenant of a session: the session, and the tenant."""
