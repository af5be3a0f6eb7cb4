"""What a turn costs on PostgreSQL, counted where a capacity plan needs it: processor, WAL, disk, transactions, connections.

    python benchmarks/capacity.py [--short] [--json FILE]

The turn is that of durable.py: three rounds of one model message and three parallel tool calls, then a closing answer, with the
PostgreSQL engine and bus. A private PostgreSQL counts its own WAL, so nobody else's writes are in it. A turn costs less where
many run at once, because they share transactions: two runs give the costs with 8 and with 32, and a third, with 16, is what the
model of tools/capacity.py is compared with.
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

from durable_side import closed_loop, ours

from everturn.cluster.workers import loop_factory, tune_garbage_collector

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.postgres import PostgresServer, private_postgres

COUNTERS = """SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace), (SELECT sum(xact_commit) FROM pg_stat_database),
(SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname ~ '^events'),
(SELECT coalesce(sum(n_tup_upd), 0) FROM pg_stat_user_tables WHERE relname = 'sessions')"""


_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


async def counters(postgres: PostgresServer) -> list[float]:
    """WAL bytes, bytes of tables, commits, event rows and updates of session rows, so far."""
    await asyncio.sleep(1.2)  # backends report what they did once a second
    text = (await postgres.sql(COUNTERS)).strip()
    return [float(value) for value in text.split("|")]


async def run(postgres: PostgresServer, run_turn: Any, turns: int, at_once: int) -> dict[str, float]:
    """Do turns, and say what each has cost."""
    before, database = await counters(postgres), postgres.cpu()
    mine, began = time.process_time(), time.monotonic()
    await closed_loop(run_turn, turns, at_once)
    seconds, mine = time.monotonic() - began, time.process_time() - mine
    after = await counters(postgres)
    wal, disk, commits, rows, updates = ((b - a) / turns for a, b in zip(before, after, strict=True))
    return {
        "turns": turns,
        "at_once": at_once,
        "turns_per_second": turns / seconds,
        "worker_cpu_ms": mine * 1000 / turns,
        "database_cpu_ms": (postgres.cpu() - database) * 1000 / turns,
        "wal_bytes": wal,
        "disk_bytes": disk,
        "commits": commits,
        "event_rows": rows,
        "session_updates": updates,
    }


async def measure(turns: int) -> dict[str, Any]:
    """The costs of a turn, with few and many at once."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = await stack.enter_async_context(private_postgres(home, full_page_writes="on"))
        run_turn = await ours({"store": postgres.url}, stack)
        await closed_loop(run_turn, turns // 4, 8)
        tune_garbage_collector()
        runs: dict[str, dict[str, float]] = {}
        for name, at_once in (("few", 8), ("many", 32), ("checked", 16)):
            await postgres.sql("CHECKPOINT")
            runs[name] = await run(postgres, run_turn, turns, at_once)
        connections = int(await postgres.sql(_CONNECTIONS)) - 1
    return {**runs, "connections": connections, "load": os.getloadavg()[0]}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a look: 40 turns")
    parser.add_argument("--json", default="", help="where the figures go")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:  # as a worker runs
        found = runner.run(measure(40 if options.short else 300))
    text = json.dumps(found, indent=1)
    print(text)
    if options.json:
        Path(options.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
