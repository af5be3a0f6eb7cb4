"""What the WAL of a turn consists of: bytes and records per turn, by table and index, on a PostgreSQL of its own.

    python benchmarks/wal.py [--short] [--json FILE]

The turn is that of durable.py: three rounds of one model message and three parallel tool calls, then a closing answer. It runs
with the PostgreSQL engine and bus, beside one INSERT per result written by hand. `pg_walinspect` reads the records. Page images
are listed apart: how many there are depends on how often a page is written between two checkpoints, and so on the load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from durable_side import closed_loop, insert, ours

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.postgres import PostgresServer, private_postgres

_RECORDS = """WITH r AS (SELECT resource_manager AS manager, record_type AS type, record_length::bigint AS length,
    fpi_length::bigint AS image, (regexp_match(block_ref, 'rel \\d+/\\d+/(\\d+)'))[1]::oid AS node
    FROM pg_get_wal_records_info('{begin}', '{end}'))
SELECT coalesce(t.relname || ' (' || c.relname || ')', c.relname, 'none'), r.manager || ' ' || r.type, count(*),
    sum(r.length - r.image), sum(r.image)
FROM r LEFT JOIN pg_class c ON pg_relation_filenode(c.oid) = r.node
LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
GROUP BY 1, 2 ORDER BY 4 DESC"""
_COMMITS = "SELECT sum(xact_commit) FROM pg_stat_database"
_SESSION_UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sessions'"


async def _position(postgres: PostgresServer) -> str:
    return await postgres.sql("SELECT pg_current_wal_insert_lsn()")


async def _counted(postgres: PostgresServer) -> list[float]:
    await asyncio.sleep(1.2)  # backends report what they did once a second
    commits, updates = await postgres.sql(_COMMITS), await postgres.sql(_SESSION_UPDATES)
    return [float(commits), *(float(value) for value in (updates or "0|0").split("|"))]


async def run(postgres: PostgresServer, one: Any, turns: int, at_once: int) -> dict[str, Any]:
    """Do turns, and say what each wrote."""
    await postgres.sql("CHECKPOINT")
    before, database, begin = await _counted(postgres), postgres.cpu(), await _position(postgres)
    mine = time.process_time()
    await closed_loop(one, turns, at_once)
    mine, end, database = time.process_time() - mine, await _position(postgres), postgres.cpu() - database
    after = await _counted(postgres)
    commits, updates, hot = ((b - a) / turns for a, b in zip(before, after, strict=True))
    text = await postgres.sql(_RECORDS.format(begin=begin, end=end))
    rows = [line.split("|") for line in text.splitlines()]
    records = [
        {
            "relation": name,
            "record": kind,
            "count": int(n) / turns,
            "bytes": int(size) / turns,
            "images": int(image) / turns,
        }
        for name, kind, n, size, image in rows
    ]
    return {
        "turns": turns,
        "at_once": at_once,
        "wal_bytes": sum(row["bytes"] + row["images"] for row in records),
        "row_bytes": sum(row["bytes"] for row in records),
        "worker_cpu_ms": mine * 1000 / turns,
        "database_cpu_ms": database * 1000 / turns,
        "commits": commits,
        "session_updates": updates,
        "session_hot_updates": hot,
        "records": records,
    }


async def measure(turns: int) -> dict[str, Any]:
    """What a turn writes, of ours with few and many at once, and of INSERTs by hand."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = await stack.enter_async_context(private_postgres(home, full_page_writes="on", autovacuum="off"))
        await postgres.sql("CREATE EXTENSION pg_walinspect")
        turn, bare = await ours({"store": postgres.url}, stack), await insert({"database": postgres.url}, stack)
        for one in (turn, bare):
            await closed_loop(one, turns // 2, 8)
        runs = {
            "few": await run(postgres, turn, turns, 8),
            "many": await run(postgres, turn, turns, 32),
            "insert": await run(postgres, bare, turns, 32),
        }
    return {**runs, "load": os.getloadavg()[0]}


def by_relation(found: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """Records, bytes and bytes of page images of a turn, for each table or index; the largest first."""
    sums: dict[str, list[float]] = {}
    for row in found["records"]:
        name = row["relation"] if row["relation"] != "none" else row["record"]
        total = sums.setdefault(name, [0.0, 0.0, 0.0])
        for at, key in enumerate(("count", "bytes", "images")):
            total[at] += row[key]
    return sorted(((name, *total) for name, total in sums.items()), key=lambda row: -row[2])  # type: ignore[misc]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a look: 40 turns")
    parser.add_argument("--turns", type=int, default=400, help="how many turns a run has")
    parser.add_argument("--records", action="store_true", help="print each kind of record")
    parser.add_argument("--json", default="", help="where the figures go")
    given = parser.parse_args()
    found = asyncio.run(measure(40 if given.short else given.turns))
    for name in ("few", "many", "insert"):
        one = found[name]
        print(name, {key: round(value, 1) for key, value in one.items() if key != "records"})
        for relation, count, size, images in by_relation(one):
            print(f"  {relation:50} {count:7.1f} {size:9.0f} {images:9.0f}")
        if given.records:
            for row in one["records"]:
                print(
                    f"    {row['relation']:45} {row['record']:30} {row['count']:7.2f} {row['bytes']:9.0f} {row['images']:9.0f}"
                )
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
