"""Partitions of the log on PostgreSQL: a log is whole wherever it is, and goes with its partition when nobody needs it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from msgspec.structs import replace
from tests.stores.test_postgres import Place

from everturn.core.events import CommandDropped, Entry
from everturn.errors import UnknownSession
from everturn.stores.backup import commands as backup
from everturn.stores.sql import event_partitions
from everturn.stores.sql.database import Statement
from everturn.stores.sql.event_packs import unpack_body
from everturn.stores.sql.group_commit import single_row_sql
from everturn.stores.sql.postgres_pool import _READING
from everturn.stores.sql.statements.log import EVENTS, KEYED_EVENTS, LIVE_EVENTS, LIVE_TAILS, TURN_EVENTS
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)

pytestmark = pytest.mark.live
DAY = 86_400.0
NOW = 4e9  # after every partition was opened


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run of the maintenance opens a partition."""
    monkeypatch.setattr(event_partitions, "OPEN_SECONDS", 0.0)
    monkeypatch.setattr(event_partitions, "OPEN_BYTES", 0)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    await place.aclose()


async def talk(store: SqlStore, session: str, turn: str = "t", tenant: str = "local") -> None:
    """A turn from its beginning to its end."""
    await store.admit(replace(send_message(f"{turn}.k", session, turn), tenant=tenant))
    parent = (await store.info(session)).leaf
    begun = turn_started_events(turn, parent, command=f"{turn}.k")
    head = await store.append(session, await store.head(session), begun)
    await store.append(session, head, turn_ended_events(turn))


async def partitions(place: Place) -> dict[str, int]:
    """The partitions, and how many events each has."""
    names = await place.sql(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'events'::regclass ORDER BY 1"
    )
    bodies = {row["name"]: await place.sql(f"SELECT body FROM {row['name']}") for row in names}
    return {name: sum(len(unpack_body(row["body"])) for row in rows) for name, rows in bodies.items()}


async def test_new_sessions_are_in_the_open_partition_and_each_log_stays_where_it_began(place: Place) -> None:
    store = place.store()
    await talk(store, "old")
    await store.run_maintenance(NOW)
    await talk(store, "new")
    await talk(store, "old", "t2")

    assert await partitions(place) == {"events_0": 8, "events_1": 4}
    for name, length in (("old", 8), ("new", 4)):
        log = await store.events(name)
        assert [entry.seq for entry in log] == list(range(1, length + 1))
        assert await store.events(name, turn="t") == log[:4]
        await store.append(name, length, [CommandDropped(command="odd", reason="")])
        assert [entry.seq for entry in await store.indexed_events(name, "command", "odd")] == [length + 1]


async def test_a_turn_in_an_older_partition_is_taken_over(place: Place) -> None:
    store = place.store()
    await store.admit(send_message())
    await store.append("s", 0, turn_started_events())
    await store.run_maintenance(NOW)

    claim = await place.store().claim("s", NOON)

    assert claim is not None
    assert [len(turn) for turn in claim.turns] == [2]


async def test_a_partition_goes_with_its_idle_sessions_and_the_logs_of_others_stay(place: Place) -> None:
    store = place.store()
    for session in ("idle", "idle2", "used"):
        await talk(store, session)
    oid = await place.sql("SELECT 'events_0'::regclass::oid")
    await store.admit(send_message("w", "waits", "w"))
    await store.append("waits", 0, [*turn_started_events("w", command="w"), *gate_opened_events("w")])
    await store.run_maintenance(NOW)
    await talk(store, "used", "t2")
    await place.run(f"UPDATE sessions SET touched = {NOW - DAY / 2} WHERE id = 'used'")
    await talk(store, "newer")
    await place.run(f"UPDATE sessions SET touched = {NOW} WHERE id = 'newer'")
    logs = {name: await store.events(name) for name in ("used", "waits", "newer")}

    result = await store.run_maintenance(NOW, idle=DAY)

    assert (result.sessions, result.partitions) == (2, 1)
    assert (await place.sql("SELECT obj_description('events_0'::regclass)"))[0][0] == "compacted"
    assert await place.sql("SELECT 'events_0'::regclass::oid") != oid
    assert await partitions(place) == {"events_0": 14, "events_1": 4, "events_2": 0}
    assert {name: await store.events(name) for name in logs} == logs
    for name in ("idle", "idle2"):
        with pytest.raises(UnknownSession):
            await store.events(name)
    await talk(store, "used", "t3")
    assert len(await store.events("used")) == 12
    with pytest.raises(asyncpg.UniqueViolationError):
        await place.run("INSERT INTO events (session, seq, turn, body) VALUES ('used', 2, '', '')")


async def test_a_partition_without_sessions_goes_as_a_whole(place: Place) -> None:
    store = place.store()
    await talk(store, "idle")
    await store.run_maintenance(NOW)

    await store.run_maintenance(NOW, idle=DAY)

    assert await partitions(place) == {"events_2": 0}
    with pytest.raises(UnknownSession):
        await store.events("idle")


async def test_the_log_of_an_erased_session_is_not_read_while_its_partition_is_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place.store()
    await talk(store, "idle")
    await store.run_maintenance(NOW)

    async def die(*_: object) -> bool:
        raise RuntimeError("the process dies")

    with monkeypatch.context() as patch:
        patch.setattr(event_partitions, "compact", die)
        with pytest.raises(RuntimeError, match="the process dies"):
            await store.run_maintenance(NOW, idle=DAY)
    assert (await partitions(place))["events_0"] == 4
    with pytest.raises(UnknownSession):
        await store.events("idle")

    await store.run_maintenance(NOW, idle=DAY)  # the next process
    assert "events_0" not in await partitions(place)


async def test_where_much_has_to_stay_logs_are_deleted_one_by_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_partitions, "COPIED_EVENTS", 3)
    store = place.store()
    await talk(store, "idle")
    await talk(store, "used")
    await place.run(f"UPDATE sessions SET touched = {NOW} WHERE id = 'used'")
    await store.run_maintenance(NOW)

    before = await place.sql("SELECT 'events_0'::regclass::oid")

    assert (await store.run_maintenance(NOW, idle=DAY)).sessions == 1

    assert (await partitions(place))["events_0"] == 4
    assert await place.sql("SELECT 'events_0'::regclass::oid") == before
    assert len(await store.events("used")) == 4


async def test_a_session_erased_by_somebody_leaves_no_event_in_any_partition(place: Place) -> None:
    store = place.store()
    await talk(store, "s")
    await store.run_maintenance(NOW)
    await store.erase("s")

    assert set((await partitions(place)).values()) == {0}


async def test_appends_go_on_while_partitions_are_opened_and_compacted(place: Place) -> None:
    store, other = place.store(), place.store()
    await talk(store, "s", "t0")
    done = asyncio.Event()

    async def work() -> None:
        for n in range(1, 40):
            await talk(store, "s", f"t{n}")
            await talk(store, f"s{n}")
            await talk(store, f"gone{n}")
            await store.erase(f"gone{n}")
        done.set()

    async def open_partitions() -> None:
        while not done.is_set():
            await other.run_maintenance(NOW)
            await asyncio.sleep(0.05)

    await asyncio.gather(work(), open_partitions())

    names = ["s", *(f"s{n}" for n in range(1, 40))]
    lengths = {name: [entry.seq for entry in await store.events(name)] for name in names}
    assert lengths["s"] == list(range(1, 161))
    assert all(lengths[name] == [1, 2, 3, 4] for name in names[1:])
    assert len(await partitions(place)) > 2


async def test_a_tenant_sees_its_events_in_every_partition_and_nobody_elses(place: Place) -> None:
    postgres = place.postgres()
    store = SqlStore(postgres)
    for tenant in ("a", "b"):
        await talk(store, f"old_{tenant}", tenant=tenant)
    await store.run_maintenance(NOW)
    for tenant in ("a", "b"):
        await talk(store, f"new_{tenant}", tenant=tenant)

    with store.restrict_to_tenant("a"):
        assert len(await store.events("old_a")) == len(await store.events("new_a")) == 4
        for name in ("old_b", "new_b"):
            with pytest.raises(UnknownSession):
                await store.events(name)
    connection = await asyncpg.connect(place.url, server_settings={"search_path": place.schema})
    try:
        await connection.execute(f"SET ROLE \"{postgres.tenant_role}\"; SET everturn.tenant = 'a'")
        assert {row[0] for row in await connection.fetch("SELECT session FROM events")} == {"old_a", "new_a"}
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT session FROM events_1")
    finally:
        await connection.close()


async def test_a_backup_of_several_partitions_is_restored(place: Place, tmp_path: Path) -> None:
    store = place.store()
    await talk(store, "old")
    await store.run_maintenance(NOW)
    await talk(store, "new")
    logs: dict[str, list[Entry]] = {name: await store.events(name) for name in ("old", "new")}
    other = Place()
    try:
        await backup.create_backup(f"{place.url}?schema={place.schema}", tmp_path / "backup")
        await backup.restore_backup(tmp_path / "backup", f"{other.url}?schema={other.schema}")
        restored = other.store()
        assert {name: await restored.events(name) for name in logs} == logs
        await talk(restored, "new", "t2")
        assert len(await restored.events("new")) == 8
    finally:
        await other.aclose()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (EVENTS, ("new", 0, 10)),
        (TURN_EVENTS, ("new", "t", 0)),
        (KEYED_EVENTS, ("new", "command", "odd", 10)),
        (LIVE_EVENTS, ("new",)),
        (LIVE_TAILS, ("new",)),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
async def test_a_statement_looks_into_the_partition_of_its_session_alone(
    place: Place, statement: Statement, values: tuple[object, ...]
) -> None:
    store = place.store()
    await talk(store, "old")
    await store.run_maintenance(NOW)
    await talk(store, "new")
    await store.append("new", 4, [CommandDropped(command="odd", reason="")])
    await store.admit(send_message("l", "new", "l"))
    await store.append("new", 5, turn_started_events("l", "t.out", command="l"))
    text = single_row_sql(statement) or statement.postgres
    connection = await asyncpg.connect(place.url, server_settings={"search_path": place.schema, **_READING})
    try:
        lines = [row[0] for row in await connection.fetch(f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {text}", *values)]
    finally:
        await connection.close()

    scans = {name: [line for line in lines if f" on {name} " in line] for name in ("events_0", "events_1")}
    assert scans["events_1"], lines
    assert any("never executed" not in line for line in scans["events_1"])
    assert all("never executed" in line for line in scans["events_0"]), lines
