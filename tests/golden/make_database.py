"""Sessions → tests/golden/databases/{schema}.*: a database as this schema keeps it, for every later one to open.

    python tests/golden/make_database.py       (needs PostgreSQL: EVERTURN_POSTGRES says where, a schema of it is used)

One that is there is never made again, and `fill` is never changed: they stand for the databases people have.
"""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from msgspec.structs import replace

from everturn import wire
from everturn.core.events import FilesReverted, MessageDeleted
from everturn.core.options import Budget, Lineage, TurnOptions
from everturn.core.parts import Usage
from everturn.core.ports import Store
from everturn.stores.sql.migrating import HEAD, SCRIPTS
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    answer,
    asked,
    called,
    granted,
    offered,
    over,
    ran,
    send,
    started,
    take,
)

FOLDER = Path(__file__).parent
URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
SCHEMA = "everturn_golden"
BYTES = (b"a small one", bytes(range(256)) * 300)


async def fill(store: Store) -> None:
    """Everything a database of 0001 can hold: the golden logs, a gate that waits, grants, commands nobody has acted on."""
    for path in sorted((FOLDER / "v1").glob("*.jsonl")):
        events = [entry.event for entry in wire.load_log(path.read_bytes())]
        await store.restore(path.stem, "local", events)
    await store.admit(send(text="Shall we meet for lunch?"))
    await store.append("s", 0, [*started(text="Shall we meet for lunch?"), *asked()])
    await store.admit(send("k2", "waiting", text="你好"))
    await store.admit(send("k3", "gone", text="never mind"))
    await store.append("gone", 0, [*started(command="k3"), *over(), MessageDeleted(message="t.in")])
    await store.admit(send("k4", "erased", text="forget this"))
    await store.append("erased", 0, [*started(command="k4"), *over()])
    await store.erase("erased")
    await store.admit(send("k5", "below", "t5", text="help me"))
    below = TurnOptions(above=Lineage("s", "t"), budget=Budget(seconds=3600))
    await store.append("below", 0, [*started("t5", command="k5", options=below), *asked("t5"), granted("s", "t5")])
    await store.admit(send("k6", "generous", "t6", text="always"))
    used = called("t6", Usage(10, 2, cost=0.5), step=2)
    answered = [*asked("t6"), granted("", "t6"), *ran("t6")]
    await store.append("generous", 0, [*started("t6", command="k6"), *answered, *used, *over("t6")])
    await store.admit(send("k7", "client", "t7", text="in the browser"))
    await store.append("client", 0, [*started("t7", command="k7"), *offered("t7", expires=NOON + 600)])
    await store.admit(replace(take("c7", gate="t7.gate", hash="t7.hash"), session="client"))
    await store.append("gone", 5, [FilesReverted(at=NOON, root="/home/ada", before="c" * 40, after="d" * 40)])
    for data in BYTES:
        await store.put_blob(data)


async def read(store: Store) -> dict[str, Any]:
    """What can be seen of all that, through the port."""
    infos = sorted(await store.sessions(), key=lambda info: info.id)
    seen: dict[str, Any] = {"sessions": infos, "lunch": await store.search("lunch"), "你": await store.search("你好")}
    seen["spent"] = await store.spent(tenant="local"), await store.spent(top="t")
    for session in (info.id for info in infos):
        tree = await store.tree(session)
        seen[session] = {
            "log": await store.events(session),
            "tree": tree,
            "path": await store.path(session, tree.leaf),
            "gates": await store.gates(session),
            "inbox": await store.inbox(session),
            "open": await store.open_turns(session),
            "grants": await store.grants(session, NOON),
            "spent": await store.spent(session=session),
            "roots": await store.roots(session),
        }
    return seen


async def go_on(store: Store) -> dict[str, Any]:
    """A day later: the gate is answered, the turn ends, another begins."""
    receipt = await store.admit(answer("late answer"))
    assert receipt.is_new
    claim = await store.claim("s", 2_000_000_000.0)
    assert claim is not None
    await store.append("s", claim.head, [*over(command="late answer"), *started("t2", "t.out")], claim.epoch)
    again = await store.admit(send(text="Shall we meet for lunch?"))
    assert not again.is_new
    return await read(store)


async def dump_postgres() -> str:
    """The rows of a schema as INSERTs; the tables are what the scripts of that time made."""
    connection = await asyncpg.connect(URL, server_settings={"search_path": SCHEMA})
    lines = list[str]()
    names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", SCHEMA)
    for table in [row[0] for row in names if row[0] != "everturn_version"]:
        columns = [a.name for a in (await connection.prepare(f"SELECT * FROM {table}")).get_attributes()]
        quoted = ", ".join(f"quote_nullable({column}::text)" for column in columns)
        for row in await connection.fetch(f"SELECT {quoted} FROM {table} ORDER BY 1, 2"):
            lines.append(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)});\n")
        if columns[0] == "n" and lines:
            lines.append(f"SELECT setval(pg_get_serial_sequence('{table}', 'n'), max(n)) FROM {table};\n")
    await connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    await connection.close()
    return "".join(lines)


async def main() -> None:
    path = FOLDER / "databases" / f"{HEAD}.sqlite"
    if path.exists():
        sys.exit(f"{path.name} is there already; a golden database is never made again")
    store = SqlStore.sqlite(path)
    await fill(store)
    await store.aclose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()
    store = SqlStore(Postgres(URL, SCHEMA))
    await fill(store)
    await store.aclose()
    script = (SCRIPTS / f"{HEAD}.postgresql.sql").read_text(encoding="utf-8")
    path.with_suffix(".postgresql.sql").write_text(script + await dump_postgres(), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
