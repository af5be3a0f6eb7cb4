"""How long the questions of many take when there is much: a million sessions, 12 million events, 10,000 open gates.

    python benchmarks/size.py --json FILE                      (a database of its own is made, filled and dropped)
    python benchmarks/size.py --short                          (10,000 sessions: a look, in a minute)
    python benchmarks/size.py --sessions 2000 --gates 200 --plans-only
    python benchmarks/size.py --database NAME --keep           (one that is there is measured as it is)

size_load.py fills the database by COPY, size_questions.py asks. Plans are read by EXPLAIN. The table is on
docs/deploy/scaling.md: `python benchmarks/publish.py measure size`, then `write`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec
from size_load import fill
from size_questions import Asking, Row, measure

from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.sharing import Reader
from everturn.stores.sql import search, usage
from everturn.stores.sql.group_commit import single_row_sql
from everturn.stores.sql.search import NEWEST
from everturn.stores.sql.statements.conditions import NEVER
from everturn.stores.sql.statements.gates import TENANT_GATE_PAGE
from everturn.stores.sql.statements.sessions import LIST_READABLE
from everturn.stores.sql.store import SqlStore

URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
GOAL = 200.0  # milliseconds

READER = Reader("local", ("local", ""), ("user:local", "role:owner"))
STATEMENTS = (
    (search.SEARCH_NEWEST, "", ("nobodywrotethis", LOCAL, NEWEST, 50)),
    (search.SEARCH_NEWEST, " of a frequent word", ("common", LOCAL, NEWEST, 50)),
    (search.SEARCH_TENANT, "", ("nobodywrotethis", LOCAL, 50)),
    (TENANT_GATE_PAGE, "", (LOCAL, 0.0, "", "", 200)),
    (usage.OF_TENANT, "", (LOCAL, 0.0, -usage.END, 0.0)),
    (usage.BY_DAY, "", (LOCAL, 0.0, -usage.END, 0.0)),
    (LIST_READABLE, "", (LOCAL, NEVER, "", 0.0, 50, False, "", "", READER.as_json(), 0.0)),
)
"""Whose plans are read, with the values they are asked for."""


async def plans(url: str) -> dict[str, str]:
    """How PostgreSQL looks for words, gates, totals and sessions: the plans that the pool's connections have, for any values."""
    connection: Any = await asyncpg.connect(
        url, server_settings={"plan_cache_mode": "force_generic_plan", "jit": "off"}
    )
    plan_texts: dict[str, str] = {}
    try:
        for number, (statement, more, values) in enumerate(STATEMENTS):
            await connection.execute(f"PREPARE statement_{number} AS {single_row_sql(statement)}")
            given = ", ".join(f"'{value}'" for value in values)
            text = f"EXPLAIN (ANALYZE, COSTS off, TIMING off) EXECUTE statement_{number}({given})"
            plan_texts[statement.name + more] = "\n".join(row[0] for row in await connection.fetch(text))
    finally:
        await connection.close()
    return plan_texts


def check(plan_texts: dict[str, str]) -> list[str]:
    """What is wrong with the plans."""
    wrong: list[str] = []
    for name, index in (
        ("search_tenant", "Bitmap Index Scan on lookup_words"),
        ("search_newest", "lookup_tenant"),
        ("search_newest of a frequent word", "lookup_tenant"),
        ("gate page of a tenant", "gates_tenant"),
        ("usage by tenant", "usage_days"),
        ("usage by day", "usage_days"),
        ("listed for a reader", "sessions_creator"),
    ):
        if index not in plan_texts[name]:
            wrong.append(f"{name} does not use {index}:\n{plan_texts[name]}")
        removed = [int(n) for n in re.findall(r"Rows Removed by Filter: (\d+)", plan_texts[name])]
        if removed and max(removed) > 2 * NEWEST:
            wrong.append(f"{name} reads {max(removed)} rows for nothing:\n{plan_texts[name]}")
        read = [int(n) for n in re.findall(r" on sessions \w+ \(actual rows=(\d+)", plan_texts[name])]
        if read and max(read) > 200:  # a page has 50
            wrong.append(f"{name} reads {max(read)} sessions:\n{plan_texts[name]}")
        if name.endswith("of a frequent word") and _rows_read(plan_texts[name]) > 200:  # it ends at the fiftieth match
            wrong.append(f"{name} does not end at its limit:\n{plan_texts[name]}")
        if re.search(r"Seq Scan on (lookup|gates|usage)\b", plan_texts[name]):  # days are few
            wrong.append(f"{name} reads a whole table:\n{plan_texts[name]}")
    return wrong


def _rows_read(plan: str) -> int:
    """Rows of the search index that a plan has read."""
    return max(int(n) for n in re.findall(r" on lookup \(actual rows=(\d+)", plan))


def table(rows: list[Row]) -> str:
    """What is printed; publish.py writes the same for the page."""
    width = max(len(row.what) for row in rows)
    lines = [f"{'':<{width}}  median  slowest      CPU  bytes or lines"]
    for row in rows:
        missed = "" if row.median <= GOAL else "   goal 200 ms: missed"
        lines.append(f"{row.what:<{width}} {row.median:7.1f} {row.slowest:8.1f} {row.cpu:8.1f} {row.size:15,}{missed}")
    return "\n".join(lines)


_SIZES = """SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)::bigint FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 2 DESC"""


async def sizes(url: str) -> dict[str, dict[str, int]]:
    """Bytes and rows of the largest tables, with their indexes."""
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
        rows = await connection.fetch(_SIZES)
    finally:
        await connection.close()
    return {name: {"bytes": size, "rows": count} for name, size, count in rows if count}


async def events(url: str) -> int:
    """Events of all logs: a row of the log has several."""
    connection: Any = await asyncpg.connect(url)
    try:
        return await connection.fetchval("SELECT sum(head)::bigint FROM sessions WHERE NOT erased")
    finally:
        await connection.close()


async def main(options: argparse.Namespace) -> int:
    name = options.database or f"test_everturn_size_{os.getpid()}"
    server: Any = await asyncpg.connect(URL)
    url = urlsplit(URL)._replace(path=f"/{name}").geturl()
    is_new = not await server.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name)
    if is_new:
        await server.execute(f'CREATE DATABASE "{name}"')
    store = SqlStore.postgres(url)
    began = time.monotonic()
    try:
        if is_new:
            await fill(store, url, options.sessions, options.gates, options.turns, options.plans_only)
        filled = time.monotonic() - began
        plan_texts = await plans(url)
        wrong = check(plan_texts)
        if options.explain:
            print("\n\n".join(f"{name}\n{text}" for name, text in plan_texts.items()))
        if not options.plans_only:
            with tempfile.TemporaryDirectory() as folder:
                rows = await measure(Asking(store), Path(folder), options.sessions, options.times)
            print(table(rows))
            if options.json:
                found = {
                    "sessions": options.sessions,
                    "gates": options.gates,
                    "turns": options.sessions * options.turns,
                    "fill_seconds": filled if is_new else 0.0,
                    "events": await events(url),
                    "tables": await sizes(url),
                    "rows": msgspec.to_builtins(rows),
                }
                await asyncio.to_thread(Path(options.json).write_text, json.dumps(found), encoding="utf-8")
        print("\n".join(wrong) or "every plan uses its index")
        return 1 if wrong else 0
    finally:
        await store.aclose()
        if not options.keep:
            await server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await server.close()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=2, help="of a session: six events and two messages each")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--database", default="", help="of this name; one that is there is measured as it is")
    parser.add_argument("--json", default="", help="where the figures go")
    for flag in ("short", "plans-only", "keep", "explain"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args(arguments)
    if options.short:
        options.sessions, options.gates = 10_000, 1_000
    return options


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parse())))
