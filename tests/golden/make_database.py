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
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import AuditRecord, ConversationFingerprint, Credential, Tenant, User
from everturn.stores.sql.migrate import HEAD, upgrade_script
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    call_requested_events,
    call_started_events,
    claim_call,
    client_call_events,
    gate_opened_events,
    gate_resolved_with_grant,
    send_message,
    turn_ended_events,
    turn_started_events,
)

FOLDER = Path(__file__).parent
URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
SCHEMA = "everturn_golden"
LOGS = (  # that there were when the first of them was made
    *("cancelled", "denied", "error", "fork", "gate_edited", "granted", "late", "limited", "max_steps", "plain"),
    *("reached_out", "reasoning", "restarted"),
)
BYTES = (b"a small one", bytes(range(256)) * 300)


async def fill(store: Store) -> None:
    """Sessions: the golden logs, a gate that waits, grants, commands nobody has acted on."""
    for name in LOGS:
        events = [entry.event for entry in wire.load_log((FOLDER / "v1" / f"{name}.jsonl").read_bytes())]
        await store.restore(name, "local", events)
    await store.admit(send_message(text="Shall we meet for lunch?"))
    await store.append("s", 0, [*turn_started_events(text="Shall we meet for lunch?"), *gate_opened_events()])
    await store.admit(send_message("k2", "waiting", text="你好"))
    await store.admit(send_message("k3", "gone", text="never mind"))
    await store.append(
        "gone", 0, [*turn_started_events(command="k3"), *turn_ended_events(), MessageDeleted(message="t.in")]
    )
    await store.admit(send_message("k4", "erased", text="forget this"))
    await store.append("erased", 0, [*turn_started_events(command="k4"), *turn_ended_events()])
    await store.erase("erased")
    await store.admit(send_message("k5", "below", "t5", text="help me"))
    below = TurnOptions(lineage=Lineage("s", "t"), budget=Budget(seconds=3600))
    await store.append(
        "below",
        0,
        [
            *turn_started_events("t5", command="k5", options=below),
            *gate_opened_events("t5"),
            gate_resolved_with_grant("s", "t5"),
        ],
    )
    await store.admit(send_message("k6", "generous", "t6", text="always"))
    used = call_requested_events("t6", Usage(10, 2, cost=0.5), step=2)
    answered = [*gate_opened_events("t6"), gate_resolved_with_grant("", "t6"), *call_started_events("t6")]
    await store.append(
        "generous", 0, [*turn_started_events("t6", command="k6"), *answered, *used, *turn_ended_events("t6")]
    )
    await store.admit(send_message("k7", "client", "t7", text="in the browser"))
    await store.append(
        "client", 0, [*turn_started_events("t7", command="k7"), *client_call_events("t7", expires=NOON + 600)]
    )
    await store.admit(replace(claim_call("c7", gate="t7.gate", hash="t7.hash"), session="client"))
    await store.append("gone", 5, [FilesReverted(at=NOON, root="/home/ada", before="c" * 40, after="d" * 40)])
    for data in BYTES:
        await store.put_blob(data)


async def furnish(store: Store) -> None:
    """Accounts: agents and users of turns, a sub-agent run, who may come in, what they did."""
    asked_for = TurnOptions(agent="writer", by="ada")
    first = replace(send_message("k8", "ours", "t8", text="our own"), tenant="acme", options=asked_for)
    await store.admit(first)
    await store.append(
        "ours",
        0,
        [
            *turn_started_events("t8", command="k8", options=asked_for),
            *call_requested_events("t8", Usage(5, 1)),
            *turn_ended_events("t8"),
        ],
    )
    below = TurnOptions(lineage=Lineage("ours", "t8", by=("ours", "t8", "t8.call")), by="ada")
    await store.admit(replace(send_message("k9", "ours-t8.call", "t9", text="ask them"), tenant="acme", options=below))
    accounts = store.accounts
    await accounts.put_tenant(Tenant("acme", "Acme", created=NOON))
    await accounts.put_user(User("acme", "ada", "Ada", "owner", created=NOON, origin="https://login.example"))
    await accounts.put_credential(Credential("key1", "acme", "ada", "key", "0" * 64, "laptop", "member", NOON))
    await accounts.put_credential(Credential("link1", "acme", "ada", "link", "1" * 64, expires=NOON + 60))
    await accounts.use_link("1" * 64, NOON + 1)
    await accounts.secret("cookies")
    for did in ("key.create", "session.erase"):
        await accounts.append_audit(AuditRecord("acme", NOON, "ada", "key1", did, detail='{"why":"é"}'))
    await accounts.put_fingerprint("acme", "2" * 64, ConversationFingerprint("ours", "t8.out"), NOON)


async def read_accounts(store: Store) -> dict[str, Any]:
    """What can be seen of that, but for the secret."""
    accounts = store.accounts
    return {
        "listed": await store.session_page("acme"),
        "below": await store.info("ours-t8.call"),
        "used": await store.usage_by_day("acme"),
        "tenants": await accounts.tenants(),
        "user": await accounts.user("acme", "ada"),
        "credentials": await accounts.credentials("acme"),
        "known": await accounts.find_credential("0" * 64),
        "audit": await accounts.audit("acme"),
        "mark": await accounts.fingerprint("acme", "2" * 64),
    }


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
            "roots": await store.recorded_trees(session),
        }
    return seen


async def go_on(store: Store) -> dict[str, Any]:
    """A day later: the gate is answered, the turn ends, another begins."""
    receipt = await store.admit(answer_gate("late answer"))
    assert receipt.is_new
    claim = await store.claim("s", 2_000_000_000.0)
    assert claim is not None
    await store.append(
        "s", claim.head, [*turn_ended_events(command="late answer"), *turn_started_events("t2", "t.out")], claim.epoch
    )
    again = await store.admit(send_message(text="Shall we meet for lunch?"))
    assert not again.is_new
    return await read(store)


async def dump_postgres() -> str:
    """The rows of a schema as INSERTs; the tables are what the scripts of that time made."""
    connection = await asyncpg.connect(URL, server_settings={"search_path": SCHEMA})
    lines = list[str]()
    # A partition is left out: its rows are those of its table.
    names = await connection.fetch(
        "SELECT c.relname AS tablename FROM pg_class c WHERE c.relnamespace = $1::regnamespace "
        "AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1",
        SCHEMA,
    )
    # The totals of usage are made by its triggers, as they were.
    for table in [row[0] for row in names if row[0] not in ("everturn_schema", "usage_days")]:
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
    await furnish(store)
    await store.aclose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()
    store = SqlStore(Postgres(URL, SCHEMA))
    await fill(store)
    await furnish(store)
    await store.aclose()
    path.with_suffix(".postgresql.sql").write_text(
        upgrade_script("postgresql") + await dump_postgres(), encoding="utf-8"
    )


if __name__ == "__main__":
    asyncio.run(main())
