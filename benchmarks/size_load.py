"""Fill a database with very many sessions: the store makes two of them, COPY adds their like under other names.

Every row is one that the store would write; only names, owners, times and words differ. The text of each table's rows is
read once per template, with marks where a session differs, and repeated.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.core.events import Event
from everturn.core.options import TurnOptions
from everturn.core.parts import Usage
from everturn.core.tenants.accounts import LOCAL, Tenant, User
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)

AGENT = "writer"
DAYS = 100  # over which turns are spread
OTHER = "other"  # the tenant of every tenth session
BLOCK = 2000  # sessions that are sent at once

# Marks in the text of rows: the session, its number, its tenant, the tenant's hash, a time in seconds, and a day.
# None of them occurs in what the store writes.
SESSION, NUMBER, TENANT, PREFIX, SECONDS, GROUP = "@S@", "@N@", "@T@", "@P@", "@C@", "@G@"

TABLES: dict[str, tuple[str, str]] = {
    "sessions": (
        "id, tenant, title, created, touched, moved, head, leaf, agent, creator",
        f"SELECT '{SESSION}', '{TENANT}', 'Session {NUMBER}', '{SECONDS}', '{SECONDS}', '{SECONDS}', head, leaf, agent, "
        "creator FROM sessions WHERE id = $1",
    ),
    "turns": (
        "session, turn, started, last, state, out, deadline",
        f"SELECT '{SESSION}', turn, started, last, state, out, deadline FROM turns WHERE session = $1",
    ),
    "messages": (
        "session, id, parent, turn, seq, body",
        f"SELECT '{SESSION}', id, parent, turn, seq, body FROM messages WHERE session = $1",
    ),
    "events": (
        "session, seq, turn, body",
        f"SELECT '{SESSION}', seq, turn, body FROM events WHERE session = $1 ORDER BY seq",
    ),
    "inbox": (
        "session, key, turn, kind, body, is_open",
        f"SELECT '{SESSION}', key, turn, kind, body, is_open FROM inbox WHERE session = $1",
    ),
    "lookup": (
        "session, message, tenant, words",
        f"SELECT '{SESSION}', message, '{TENANT}', '''{PREFIX}common'' ''{PREFIX}rare{NUMBER}'' ''{PREFIX}some{GROUP}'' ' "
        f"|| (SELECT string_agg('''{PREFIX}' || substr(w, 9) || '''', ' ') FROM unnest(tsvector_to_array(words)) AS w) "
        "FROM lookup WHERE session = $1",
    ),
    "usage": (
        "session, turn, tenant, at, outcome, input, output, cost, steps, calls, home, agent",
        f"SELECT '{SESSION}', turn, '{TENANT}', '{SECONDS}', outcome, input, output, cost, steps, calls, '{SESSION}', agent "
        "FROM usage WHERE session = $1",
    ),
    "gates": (
        "session, gate, turn, call, opened, body, tenant",
        f"SELECT '{SESSION}', gate || '{NUMBER}', turn, call, '{SECONDS}', body, '{TENANT}' FROM gates WHERE session = $1",
    ),
}

TOTALS = """TRUNCATE usage_days; INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cost, priced)
    SELECT tenant, floor(at / 86400)::bigint, agent, 0, sum(steps), sum(calls), sum(input), sum(output),
        coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3"""

_INDEXES = """SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename = ANY ($1)
    AND indexname NOT IN (SELECT conname FROM pg_constraint)"""


def session_name(is_parked: bool, number: int) -> str:
    """The name of a copied session."""
    return f"{'parked' if is_parked else 'calm'}_{number:09d}"


async def make(store: SqlStore, name: str, turns: int, is_parked: bool) -> None:
    """A session with turns of a step each; the last of one that is parked waits for an answer."""
    options = TurnOptions(agent=AGENT, by="ada")
    parent: str | None = None
    for n in range(turns):
        turn = f"t{n}"
        await store.admit(send_message(turn, name, turn, "When is lunch today?"))
        begun = turn_started_events(turn, parent, "When is lunch today?", turn, options)
        rest: list[Event] = gate_opened_events(turn) if is_parked and n == turns - 1 else []
        rest = rest or [*call_requested_events(turn, Usage(1200, 80, cost=0.01)), *turn_ended_events(turn)]
        await store.append(name, await store.head(name), [*begun, *rest])
        parent = f"{turn}.out"


async def fill(store: SqlStore, url: str, sessions: int, gates: int, turns: int, is_quiet: bool) -> None:
    """Two sessions, and many copies of each."""
    await store.accounts.put_tenant(Tenant(LOCAL, created=NOON))
    await store.accounts.put_user(User(LOCAL, LOCAL, role="operator", created=NOON))
    await make(store, "calm", turns, is_parked=False)
    await make(store, "asks", turns, is_parked=True)
    connection: Any = await asyncpg.connect(url)
    try:
        hashes = {
            tenant: await connection.fetchval("SELECT left(md5($1::text), 8)", tenant) for tenant in (LOCAL, OTHER)
        }
        # In one transaction a row that is changed a thousand times is a thousand rows: totals are added up in the end.
        await connection.execute("ALTER TABLE usage DISABLE TRIGGER usage_counted")
        indexes = await connection.fetch(_INDEXES, list(TABLES))  # faster to build than to maintain
        for name, _ in indexes:
            await connection.execute(f"DROP INDEX {name}")
        for table, (columns, query) in TABLES.items():
            began = time.monotonic()
            for template, count in (("calm", sessions - gates), ("asks", gates)):
                text = await _template(connection, query.replace("$1", f"'{template}'"))
                if text:
                    source = _copies(text, template == "asks", count, hashes)
                    await connection.copy_to_table(table, source=source, columns=columns.split(", "))
            if not is_quiet:
                print(f"  {table:<10} {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        await connection.execute("SET maintenance_work_mem = '512MB'")
        for _, text in indexes:
            await connection.execute(text, timeout=3600)
        await connection.execute(TOTALS, timeout=3600)
        await connection.execute("ALTER TABLE usage ENABLE TRIGGER usage_counted")
        await connection.execute("VACUUM ANALYZE", timeout=3600)
    finally:
        await connection.close()


async def _template(connection: Any, query: str) -> str:
    """The rows of a template, as COPY writes them."""
    pieces: list[bytes] = []

    async def keep(data: bytes) -> None:
        pieces.append(data)

    await connection.copy_from_query(query, output=keep)
    return b"".join(pieces).decode()


async def _copies(text: str, is_parked: bool, count: int, hashes: dict[str, str]) -> AsyncIterator[bytes]:
    """The rows of many sessions, a block at a time."""
    texts = {tenant: _format_of(text.replace(TENANT, tenant).replace(PREFIX, hash)) for tenant, hash in hashes.items()}
    step = DAYS * 86_400 / max(count, 1)
    for first in range(1, count + 1, BLOCK):
        rows: list[str] = []
        for n in range(first, min(first + BLOCK, count + 1)):
            tenant = OTHER if n % 10 == 9 else LOCAL
            rows.append(texts[tenant] % {"s": session_name(is_parked, n), "n": n, "c": NOON + n * step, "g": n % 1000})
        yield "".join(rows).encode()


def _format_of(text: str) -> str:
    """The text as a format of `%`: nothing else has to be escaped in it."""
    escaped = text.replace("%", "%%")
    for mark, name in ((SESSION, "s"), (NUMBER, "n"), (SECONDS, "c"), (GROUP, "g")):
        escaped = escaped.replace(mark, f"%({name})s")
    return escaped
