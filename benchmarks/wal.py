"""What the WAL of a turn consists of: bytes and records per turn, by table and index, on a PostgreSQL of its own.

    python benchmarks/wal.py [--short] [--turns N] [--inline] [--json FILE]

The turn is that of durable.py: three rounds of one model message and three parallel tool calls, then a closing answer. It runs
with the PostgreSQL engine and bus (`--inline`: without them, for a machine on which a worker is not scheduled for seconds), beside
one INSERT per result written by hand. Its texts repeat a sentence, and compress better than what models write: a second run
(`prose`) has pieces of the docs instead. `pg_walinspect` reads the records. Page images are counted apart: how many there are
depends on how often a page is written between two checkpoints, and so on the load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import durable_side
from durable_side import closed_loop, insert, ours

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.postgres import PostgresServer, private_postgres

GOAL = 16_000  # bytes a turn
DOCS = Path(__file__).resolve().parent.parent / "docs" / "concepts"

_RECORDS = """WITH r AS (SELECT resource_manager AS manager, record_type AS type, record_length::bigint AS length,
    fpi_length::bigint AS image, (regexp_match(block_ref, 'rel \\d+/\\d+/(\\d+)'))[1]::oid AS node
    FROM pg_get_wal_records_info('{begin}', '{end}'))
SELECT coalesce(o.relname || ' (' || c.relname || ')', t.relname || ' (' || c.relname || ')', c.relname, 'none'), r.manager || ' ' || r.type, count(*),
    sum(r.length - r.image), sum(r.image)
FROM r LEFT JOIN pg_class c ON pg_relation_filenode(c.oid) = r.node
LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
LEFT JOIN pg_class o ON o.reltoastrelid = coalesce(t.oid, c.oid) AND o.reltoastrelid != 0
GROUP BY 1, 2 ORDER BY 4 DESC"""
_COUNTERS = """SELECT (SELECT sum(xact_commit) FROM pg_stat_database), (SELECT coalesce(sum(head), 0) FROM sessions),
(SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname ~ '^events'), n_tup_upd, n_tup_hot_upd
FROM pg_stat_user_tables WHERE relname = 'sessions'"""


async def _counters(postgres: PostgresServer) -> list[float]:
    await asyncio.sleep(1.2)  # backends report what they did once a second
    return [float(value) for value in (await postgres.sql(_COUNTERS)).split("|")]


async def _position(postgres: PostgresServer) -> str:
    return await postgres.sql("SELECT pg_current_wal_insert_lsn()")


async def run(postgres: PostgresServer, run_turn: Any, turns: int, at_once: int) -> dict[str, Any]:
    """Do turns, and say what each wrote."""
    await postgres.sql("CHECKPOINT")
    before, database, begin = await _counters(postgres), postgres.cpu(), await _position(postgres)
    mine = time.process_time()
    await closed_loop(run_turn, turns, at_once)
    mine, end, database = time.process_time() - mine, await _position(postgres), postgres.cpu() - database
    after = await _counters(postgres)
    commits, events, rows, updates, hot = ((b - a) / turns for a, b in zip(before, after, strict=True))
    lines = (await postgres.sql(_RECORDS.format(begin=begin, end=end))).splitlines()
    records: list[dict[str, Any]] = [
        {
            "relation": name,
            "record": kind,
            "count": int(n) / turns,
            "bytes": int(size) / turns,
            "images": int(image) / turns,
        }
        for name, kind, n, size, image in (line.split("|") for line in lines)
    ]
    return {
        "turns": turns,
        "at_once": at_once,
        "wal_bytes": sum(row["bytes"] + row["images"] for row in records),
        "row_bytes": sum(row["bytes"] for row in records),
        "worker_cpu_ms": mine * 1000 / turns,
        "database_cpu_ms": database * 1000 / turns,
        "commits": commits,
        "events": events,
        "event_rows": rows,
        "session_updates": updates,
        "session_hot_updates": hot,
        "records": records,
    }


def prose(seed: int = 1) -> Any:
    """Pieces of the docs, of a wanted length; each call returns another one."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))]
    text = " ".join(" ".join(pages).split())
    choice = random.Random(seed)

    def piece(length: int) -> str:
        at = choice.randrange(len(text) - length)
        return text[at : at + length]

    return piece


async def measure(turns: int, is_inline: bool = False, settings: dict[str, str] | None = None) -> dict[str, Any]:
    """What a turn writes, of ours with both kinds of text, and of INSERTs by hand."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = await stack.enter_async_context(private_postgres(home, autovacuum="off", **(settings or {})))
        await postgres.sql("CREATE EXTENSION pg_walinspect")
        config = {"store": postgres.url, "is_inline": is_inline}
        turn, bare = await ours(config, stack), await insert({"database": postgres.url}, stack)
        for run_turn in (turn, bare):
            await closed_loop(run_turn, max(turns // 4, 8), 8)
        runs = {"many": await run(postgres, turn, turns, 32)}
        durable_side.text = prose()
        runs["prose"] = await run(postgres, turn, turns, 32)
        runs["insert"] = await run(postgres, bare, turns, 32)
    return {**runs, "load": os.getloadavg()[0], "is_inline": is_inline}


def by_table(records: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Records and bytes of a turn, for each table with its indexes; partitions of the log are one table."""
    sums: dict[str, tuple[float, float]] = {}
    for row in records:
        name = (
            row["relation"].partition(" ")[0] if row["relation"] != "none" else row["record"].partition(" ")[0].lower()
        )
        name = "events" if name.startswith("events_") else name
        count, size = sums.get(name, (0.0, 0.0))
        sums[name] = count + row["count"], size + row["bytes"]
    return sums


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a look: 40 turns")
    parser.add_argument("--turns", type=int, default=400, help="how many turns a run has")
    parser.add_argument("--inline", action="store_true", help="without the PostgreSQL engine and bus")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of PostgreSQL")
    parser.add_argument("--records", action="store_true", help="print each kind of record")
    parser.add_argument("--json", default="", help="where the figures go")
    options = parser.parse_args()
    found = asyncio.run(
        measure(
            40 if options.short else options.turns, options.inline, dict(pair.split("=", 1) for pair in options.set)
        )
    )
    for name in ("many", "prose", "insert"):
        figures = found[name]
        print(name, {key: round(value, 1) for key, value in figures.items() if key != "records"})
        for table, (count, size) in sorted(by_table(figures["records"]).items(), key=lambda row: -row[1][1]):
            print(f"  {table:20} {count:7.1f} {size:9.0f}")
        for row in figures["records"] if options.records else ():
            print(
                f"    {row['relation']:45} {row['record']:28} {row['count']:7.2f} {row['bytes']:8.0f} {row['images']:8.0f}"
            )
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
