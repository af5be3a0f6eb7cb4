"""How long retention takes on PostgreSQL, and how much disk it gives back: rows deleted, and a partition dropped.

    python benchmarks/retention.py [--short] [--json FILE]
    python benchmarks/retention.py --database NAME --sessions 1000000     (one that size.py has kept; it is used up)

The sessions are those of size.py. Some are erased with their logs, row by row; as many are erased and their logs left to the
partition; the rest, but for 500 and those that wait for a person, are marked as erased by SQL. Then the partition is compacted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from size_load import DAYS, fill

from everturn.stores.sql import event_partitions
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import NOON, send_message, turn_started_events

URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
STAY = 500  # sessions that are in use
_EVENTS = "SELECT pg_total_relation_size('events_0')"
_MARK = """UPDATE sessions SET erased = true WHERE NOT erased AND cohort = 0 AND id LIKE 'calm%' AND id NOT IN (
    SELECT id FROM sessions WHERE id LIKE 'calm%' AND NOT erased ORDER BY id DESC LIMIT $1)"""


async def measure(url: str, sessions: int, gates: int, some: int) -> dict[str, Any]:
    """Erase, compact, and say how long each took."""
    postgres = Postgres(url)
    store = SqlStore(postgres)
    connection: Any = await asyncpg.connect(url, timeout=60, command_timeout=1800)
    step = DAYS * 86_400 / (sessions - gates)
    rows: list[dict[str, str]] = []

    def tell(label: str, seen: str) -> None:
        rows.append({"what": label, "seen": seen})
        print(f"{label:<70} {seen}", flush=True)

    try:
        await store.sessions(limit=1)
        count = await connection.fetchval("SELECT sum(head)::bigint FROM sessions WHERE NOT erased")
        disk = await connection.fetchval(_EVENTS)
        tell("events in the partition", f"{count / 1e6:.3g} M, {disk / 1e9:.2f} GB with the index")
        began = time.monotonic()
        await connection.execute("SELECT everturn_rotate_events($1, 0)", time.time() + 10)
        tell("the next partition is opened", f"{(time.monotonic() - began) * 1000:.0f} ms")

        compact = event_partitions.compact
        event_partitions.compact = _not_yet
        for n, (limit, label) in enumerate(
            (
                (-1, "sessions erased with their logs, row by row"),
                (2**60, "sessions erased, logs left to the partition"),
            ),
            1,
        ):
            event_partitions.COPIED_EVENTS = limit
            began = time.monotonic()
            result = await store.run_maintenance(NOON + n * some * step, idle=0.0)
            took = time.monotonic() - began
            tell(f"{label}, each", f"{took * 1000 / max(result.sessions, 1):.2f} ms ({result.sessions:,} sessions)")
        event_partitions.compact = compact

        await connection.execute(_MARK, STAY)
        await connection.execute("CHECKPOINT")  # what marking has written is not what is measured
        waited, done = [0.0], asyncio.Event()
        reading = asyncio.create_task(_read(store, waited, done))
        began = time.monotonic()
        assert await event_partitions.compact(postgres, 0)
        took = time.monotonic() - began
        done.set()
        await reading
        stayed = await connection.fetchval("SELECT sum(head)::bigint FROM sessions WHERE NOT erased AND cohort = 0")
        tell(f"the partition is dropped, and the {stayed:,} events of sessions in use stay", f"{took * 1000:.0f} ms")
        tell("a turn in another session meanwhile, the slowest", f"{max(waited) * 1000:.0f} ms")
        tell("disk of the partition after it", f"{await connection.fetchval(_EVENTS) / 1e9:.3f} GB")
    finally:
        await connection.close()
        await store.aclose()
    return {"sessions": sessions, "rows": rows}


async def _read(store: SqlStore, waited: list[float], done: asyncio.Event) -> None:
    """Write and read in a new session, again and again."""
    while not done.is_set():
        began, name = time.monotonic(), f"new_{time.time_ns()}"
        await store.admit(send_message(name, name, name))
        await store.append(name, 0, turn_started_events(name, command=name))
        await store.events(name, turn=name)
        waited.append(time.monotonic() - began)
        await asyncio.sleep(0.01)


async def _not_yet(*_: object) -> bool:
    return False


async def main(options: argparse.Namespace) -> None:
    name = options.database or f"test_everturn_retention_{os.getpid()}"
    url = urlsplit(URL)._replace(path=f"/{name}").geturl()
    gates = 10_000 if options.database else options.sessions // 100
    server: Any = await asyncpg.connect(URL)
    try:
        if not options.database:
            await server.execute(f'CREATE DATABASE "{name}"')
            store = SqlStore.postgres(url)
            await fill(store, url, options.sessions, gates, 2, is_quiet=True)
            await store.aclose()
        found = await measure(url, options.sessions, gates, min(2000, options.sessions // 10))
        if options.json:
            await asyncio.to_thread(Path(options.json).write_text, json.dumps(found), encoding="utf-8")
    finally:
        if not options.database:
            await server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        await server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--database", default="")
    parser.add_argument("--json", default="", help="where the figures go")
    parser.add_argument("--short", action="store_true", help="a look: 5,000 sessions")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.sessions = 5_000
    sys.exit(asyncio.run(main(arguments)))
