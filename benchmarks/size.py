"""How long the questions of many take when there is much: 100,000 sessions, a million messages, 10,000 open gates.

    .venv/bin/python benchmarks/size.py                        (a database of its own is made, filled and dropped)
    .venv/bin/python benchmarks/size.py --sessions 2000 --gates 200 --plans-only
    .venv/bin/python benchmarks/size.py --keep --write         (keeps the database, and writes docs/performance.md)

Two sessions are made by the store itself and copied by SQL under other names, so that every row is one that the store
would write. Then each question is asked through the ASGI application in this process, as a client would ask it, and the
medians are told: what a request takes inside the server. Plans are read by EXPLAIN.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Struct

from everturn.access.agents import Agents, AgentSpec, TenantLimits
from everturn.access.authentication import Authenticator
from everturn.access.server_context import ServerContext
from everturn.app import App
from everturn.cluster.ps import list_open_store
from everturn.config.server_options import ServerOptions
from everturn.core.accounts import LOCAL, Tenant, User
from everturn.core.events import Event
from everturn.core.options import TurnOptions
from everturn.core.parts import Usage
from everturn.models.scripted import ScriptedModel
from everturn.server.app import make_app
from everturn.server.streams.open import StreamEndpoints
from everturn.stores.sql import search, usage
from everturn.stores.sql import statements as say
from everturn.stores.sql.group_commit import single_row_sql
from everturn.stores.sql.search import NEWEST
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)

URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
ROOT = Path(__file__).parent.parent
TURNS = 5  # of a session; two messages each
AGENT = "writer"
DAYS = 100  # over which turns are spread
GOAL = 200.0  # milliseconds

# From a session that the store has made to many like it. Every tenth session is somebody else's.
_OTHER = "CASE WHEN g.i % 10 = 9 THEN 'other' ELSE 'local' END"
COPIES = (
    """INSERT INTO sessions (id, tenant, head, title, leaf, created, touched, moved, agent, creator)
    SELECT '{to}' || g.i, {whose}, s.head, 'Session ' || g.i, s.leaf, s.created + g.i, s.touched + g.i, s.moved + g.i,
        s.agent, s.creator FROM generate_series(1, {count}) AS g (i), sessions s WHERE s.id = '{template}'""",
    """INSERT INTO turns (session, turn, started, last, state, out, deadline)
    SELECT '{to}' || g.i, t.turn, t.started, t.last, t.state, t.out, t.deadline
    FROM generate_series(1, {count}) AS g (i), turns t WHERE t.session = '{template}'""",
    """INSERT INTO messages (session, id, parent, turn, seq, body)
    SELECT '{to}' || g.i, m.id, m.parent, m.turn, m.seq, m.body
    FROM generate_series(1, {count}) AS g (i), messages m WHERE m.session = '{template}'""",
    """INSERT INTO lookup (session, message, tenant, words)
    SELECT '{to}' || g.i, l.message, {whose}, array_to_tsvector(ARRAY[
        left(md5({whose}), 8) || 'common', left(md5({whose}), 8) || 'rare' || g.i,
        left(md5({whose}), 8) || 'some' || (g.i % 1000)] || ARRAY(
        SELECT left(md5({whose}), 8) || substr(w, 9) FROM unnest(tsvector_to_array(l.words)) AS w))
    FROM generate_series(1, {count}) AS g (i), lookup l WHERE l.session = '{template}'""",
    """INSERT INTO usage (session, turn, tenant, at, outcome, input, output, cost, steps, calls, home, agent)
    SELECT '{to}' || g.i, u.turn, {whose}, u.at + (g.i % {days}) * 86400, u.outcome, u.input, u.output, u.cost, u.steps,
        u.calls, '{to}' || g.i, u.agent FROM generate_series(1, {count}) AS g (i), usage u WHERE u.session = '{template}'""",
    """INSERT INTO gates (session, gate, turn, call, opened, body, tenant)
    SELECT '{to}' || g.i, q.gate || g.i, q.turn, q.call, q.opened + g.i, q.body, {whose}
    FROM generate_series(1, {count}) AS g (i), gates q WHERE q.session = '{template}'""",
)
COPY_EVENTS = """INSERT INTO events (session, seq, turn, body)
    SELECT '{to}' || g.i, e.seq, e.turn, e.body
    FROM generate_series(1, {count}) AS g (i), events e WHERE e.session = '{template}'"""

TOTALS = """TRUNCATE usage_days; INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cost, priced)
    SELECT tenant, floor(at / 86400)::bigint, agent, 0, sum(steps), sum(calls), sum(input), sum(output),
        coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3"""


async def make(store: SqlStore, name: str, is_parked: bool) -> None:
    """A session with turns of a step each; the last of one that is parked waits for an answer."""
    options = TurnOptions(agent=AGENT, by="ada")
    parent: str | None = None
    for n in range(TURNS):
        turn = f"t{n}"
        await store.admit(send_message(turn, name, turn, "When is lunch today?"))
        begun = turn_started_events(turn, parent, "When is lunch today?", turn, options)
        rest: list[Event] = gate_opened_events(turn) if is_parked and n == TURNS - 1 else []
        rest = rest or [*call_requested_events(turn, Usage(1200, 80, cost=0.01)), *turn_ended_events(turn)]
        await store.append(name, await store.head(name), [*begun, *rest])
        parent = f"{turn}.out"


async def fill(store: SqlStore, url: str, sessions: int, gates: int, is_quiet: bool) -> None:
    """Two sessions, and many copies of each."""
    await store.accounts.put_tenant(Tenant(LOCAL, created=NOON))
    await store.accounts.put_user(User(LOCAL, LOCAL, role="operator", created=NOON))
    await make(store, "calm", is_parked=False)
    await make(store, "asks", is_parked=True)
    connection: Any = await asyncpg.connect(url)
    try:
        # In one transaction a row that is changed a thousand times is a thousand rows: totals are added up in the end.
        await connection.execute("ALTER TABLE usage DISABLE TRIGGER usage_counted")
        for template, to, count in (("calm", "c", sessions - gates), ("asks", "p", gates)):
            few = max(1, count // 50)  # events are read by session: how many others have does not matter here
            for text in (*COPIES, COPY_EVENTS):
                began = time.monotonic()
                many = few if text is COPY_EVENTS else count
                await connection.execute(text.format(to=to, count=many, template=template, whose=_OTHER, days=DAYS))
                if not is_quiet:
                    print(f"  {text.split()[2]:<10} {to} {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        await connection.execute(TOTALS)
        await connection.execute("ALTER TABLE usage ENABLE TRIGGER usage_counted")
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


class Row(Struct, frozen=True):
    """A question, how long it took in the middle of many tries, and how much came back."""

    what: str
    before: str  # as review/operations.md 4.2 had it
    median: float  # milliseconds
    cpu: float  # milliseconds of this process
    size: int


class Asking:
    """A server in this process, and somebody who asks it."""

    def __init__(self, store: SqlStore, url: str) -> None:
        self.store, self.url = store, url
        self.app = App(ScriptedModel([]), store=store)
        self.house = ServerContext(
            self.app,
            store.accounts,
            Agents([AgentSpec("default", TurnOptions())], default_limits=TenantLimits(requests=0)),
        )
        self.entrance = Authenticator(store.accounts, self.app.clock)
        options = ServerOptions()
        self.application = make_app(self.house, self.entrance, StreamEndpoints(self.house, options), options)

    async def open(self, folder: Path) -> None:
        """Have something to show at the door."""
        self.token = await self.entrance.local_token(folder / "token")

    async def get(self, path: str) -> bytes:
        """Ask the application, as a server would that has read a request."""
        route, _, query = path.partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {self.token}".encode())],
            "client": ("127.0.0.1", 40_000),
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "http_version": "1.1",
        }
        statuses, body = list[int](), list[bytes]()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append(message["status"])
            body.append(message.get("body", b""))

        await self.application(scope, receive, send)
        if statuses != [200]:
            raise SystemExit(f"{path}: {statuses} {b''.join(body)[:300]!r}")
        return b"".join(body)


async def timed(what: str, before: str, ask: Callable[[], Awaitable[int]], times: int) -> Row:
    """Ask a few times; the first is not counted, which also connects and prepares."""
    size = await ask()
    took, cpu = list[float](), list[float]()
    for _ in range(times):
        began, used = time.perf_counter(), time.process_time()
        size = await ask()
        took.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    return Row(what, before, statistics.median(took), statistics.median(cpu), size)


async def measure(asking: Asking, folder: Path, sessions: int, times: int) -> list[Row]:
    """Every row of review/operations.md 4.2, and what is new beside them."""
    await asking.open(folder)

    def get(path: str) -> Callable[[], Awaitable[int]]:
        async def ask() -> int:
            return len(await asking.get(path))

        return ask

    async def ps() -> int:
        lines, _ = await list_open_store(asking.store, 100)
        return len(lines)

    async def listed() -> int:
        infos = await asking.store.session_page(LOCAL, limit=20)
        await asking.store.sessions_with_open_gates([info.id for info in infos])
        return len(infos)

    async def spent() -> int:
        await asking.store.spent(tenant=LOCAL)
        return 1

    async def scrape() -> int:
        asking.application.gauges_polled_at = 0.0
        return await get("/metrics")()

    rare = sessions // 3 * 2
    questions = (
        ("search, no match", "1.9–4.5 s", get("/api/search?q=nobodywrotethis")),
        ("search, rare word", "0.4–1.0 s", get(f"/api/search?q=rare{rare}")),
        ("search, a word in one message of a thousand", "", get("/api/search?q=some77")),
        ("search, a word in every message", "", get("/api/search?q=common")),
        ("GET /api/gates", "6–12 s, 5.6 MB", get("/api/gates")),
        ("GET /api/sessions", "2.5–8 ms", get("/api/sessions?limit=50")),
        ("GET …/messages", "", get("/api/sessions/p1/messages")),
        ("`everturn ps`", "12–26 s", ps),
        ("`everturn sessions`", "6–12 s", listed),
        ("GET /api/usage", "0.5–2.3 s", get("/api/usage")),
        ("spent(tenant)", "0.6–1.2 s", spent),
        ("GET /metrics", "all gates decoded", scrape),
    )
    return [await timed(what, before, ask, times) for what, before, ask in questions]


STATEMENTS = {
    search.SEARCH_NEWEST: ("nobodywrotethis", LOCAL, NEWEST, 50),
    search.SEARCH_TENANT: ("nobodywrotethis", LOCAL, 50),
    say.TENANT_GATE_PAGE: (LOCAL, 0.0, "", "", 200),
    usage.OF_TENANT: (LOCAL, 0.0, -usage.END, 0.0),
    usage.BY_DAY: (LOCAL, 0.0, -usage.END, 0.0),
}
"""Whose plans are read, with the values they are asked for."""


async def plans(url: str) -> dict[str, str]:
    """What PostgreSQL says of how it looks for words, for gates and for totals."""
    connection: Any = await asyncpg.connect(url)
    said: dict[str, str] = {}
    try:
        for statement, values in STATEMENTS.items():
            text = f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {single_row_sql(statement)}"
            rows = await connection.fetch(text, *values)
            said[statement.name] = "\n".join(row[0] for row in rows)
    finally:
        await connection.close()
    return said


def check(said: dict[str, str]) -> list[str]:
    """What is wrong with the plans."""
    wrong: list[str] = []
    for name, index in (
        ("search_tenant", "Bitmap Index Scan on lookup_words"),
        ("search_newest", "lookup_tenant"),
        ("gate page of a tenant", "gates_tenant"),
        ("usage by tenant", "usage_days"),
        ("usage by day", "usage_days"),
    ):
        if index not in said[name]:
            wrong.append(f"{name} does not use {index}:\n{said[name]}")
        removed = [int(n) for n in re.findall(r"Rows Removed by Filter: (\d+)", said[name])]
        if removed and max(removed) > 2 * NEWEST:
            wrong.append(f"{name} reads {max(removed)} rows for nothing:\n{said[name]}")
        if re.search(r"Seq Scan on (lookup|gates|usage)\b", said[name]):  # days are few
            wrong.append(f"{name} reads a whole table:\n{said[name]}")
    return wrong


def table(rows: list[Row], sessions: int, gates: int) -> str:
    """What goes into docs/performance.md."""
    load = os.getloadavg()[0]
    lines = [
        f"{sessions:,} sessions, {sessions * TURNS * 2:,} messages, {gates:,} open gates on PostgreSQL with its default "
        f"settings; medians inside the server, on {os.cpu_count()} cores at a load of {load:.0f}.",
        "",
        "| | before | median, ms | CPU of the server, ms | bytes or lines |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        missed = "" if row.median <= GOAL else " (goal 200: missed)"
        lines.append(f"| {row.what} | {row.before} | {row.median:.1f}{missed} | {row.cpu:.1f} | {row.size:,} |")
    return "\n".join(lines)


def write(text: str) -> None:
    """Put the table between its marks."""
    page = ROOT / "docs/performance.md"
    begin, end = "<!-- size: begin -->\n", "<!-- size: end -->"
    old = page.read_text(encoding="utf-8")
    head, _, rest = old.partition(begin)
    _, _, tail = rest.partition(end)
    page.write_text(f"{head}{begin}{text}\n{end}{tail}", encoding="utf-8")


async def main(options: argparse.Namespace) -> int:
    import tempfile

    name = options.database or f"test_everturn_size_{os.getpid()}"
    server: Any = await asyncpg.connect(URL)
    url = urlsplit(URL)._replace(path=f"/{name}").geturl()
    is_new = not await server.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name)
    if is_new:
        await server.execute(f'CREATE DATABASE "{name}"')
    store = SqlStore.postgres(url)
    try:
        if is_new:
            await fill(store, url, options.sessions, options.gates, options.plans_only)
        said = await plans(url)
        wrong = check(said)
        if options.explain:
            print("\n\n".join(f"{name}\n{text}" for name, text in said.items()))
        if not options.plans_only:
            with tempfile.TemporaryDirectory() as folder:
                rows = await measure(Asking(store, url), Path(folder), options.sessions, options.times)
            print(text := table(rows, options.sessions, options.gates))
            if options.write:
                write(text)
            if options.json:
                print(json.dumps([{"what": row.what, "ms": row.median} for row in rows]))
        print("\n".join(wrong) or "every plan uses its index")
        return 1 if wrong else 0
    finally:
        await store.aclose()
        if not options.keep:
            await server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await server.close()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--database", default="", help="of this name; one that is there is measured as it is")
    for flag in ("plans-only", "keep", "write", "json", "explain"):
        parser.add_argument(f"--{flag}", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(parse())))
