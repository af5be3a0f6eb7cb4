"""Schemas: the steps, their scripts and the model are one; old databases open, newer ones are refused."""

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from tests.golden.make_database import BYTES, FOLDER, fill, furnish, go_on, read, read_accounts
from tests.stores.test_postgres import URL, Place

from everturn.core.events import CommandDropped
from everturn.core.projections.event_index import index_key
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import check_chain
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore
from everturn.stores.migration import schema_status
from everturn.stores.sql import migrate
from everturn.stores.sql.migrate import HEAD, SCRIPTS, VERSION_TABLE, upgrade_script, upgrade_sqlite, upgrade_steps
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import send_message
from everturn.wire import dump_event
from tools.migrations.generate import DIALECTS, scripts, steps
from tools.migrations.schema import meta

DATABASES = FOLDER / "databases"
OLD = sorted(path.stem for path in DATABASES.glob("*.sqlite"))


def ddl(dialect: str) -> list[str]:
    """What SQLAlchemy would say to make the tables of the model."""
    statements = list[str]()

    def note(statement: Any, *_: Any, **__: Any) -> None:
        statements.append(str(statement.compile(dialect=engine.dialect)))

    engine = sa.create_mock_engine(f"{dialect}://", note)
    meta.create_all(engine, checkfirst=False)
    return statements


def opened(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


# The steps ------------------------------------------------------------------------------------------------------------


def test_every_step_has_its_scripts_and_the_last_one_is_the_schema_this_code_knows():
    assert {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS.iterdir()} == scripts()
    assert steps().get_heads() == [HEAD]
    assert OLD == sorted(step.revision for step in steps().walk_revisions())


def test_the_steps_lead_to_the_model_on_sqlite(tmp_path: Path):
    stepped, modelled = opened(tmp_path / "stepped.db"), opened(tmp_path / "modelled.db")
    upgrade_sqlite(stepped)
    for statement in ddl("sqlite"):
        modelled.execute(statement)

    def objects(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        found = set[tuple[Any, ...]]()
        for kind, name, sql in rows:
            if (
                name == VERSION_TABLE or kind == "trigger" or name.startswith("lookup_words")
            ):  # what the model does not have
                continue
            if kind == "table":  # a column that came later stands behind the constraints
                found |= {(name, *column[1:]) for column in connection.execute(f"PRAGMA table_xinfo({name})")}
                found |= {(name, *index[2:]) for index in connection.execute(f"PRAGMA index_list({name})")}
            else:
                found.add((name, " ".join(sql.split())))
        return found

    assert objects(stepped) == objects(modelled)
    with sa.create_engine(f"sqlite:///{tmp_path / 'stepped.db'}").connect() as connection:
        theirs = MigrationContext.configure(
            connection,
            opts={
                "version_table": VERSION_TABLE,
                "include_name": lambda name, *_: not str(name).startswith("lookup_words"),
            },
        )
        assert compare_metadata(theirs, meta) == []
        connection.close()
        connection.engine.dispose()
    stepped.close()
    modelled.close()


_SHAPE = """
SELECT 'column', table_name, column_name, data_type, is_nullable, regexp_replace(column_default, '^.*nextval.*$', 'nextval')
FROM information_schema.columns WHERE table_schema = current_schema()
UNION ALL
SELECT 'index', tablename, indexname, regexp_replace(indexdef, ' ON [^.]+\\.', ' ON '), '', ''
FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', ''
FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
"""


@pytest.fixture
async def places() -> AsyncIterator[tuple[Place, Place]]:
    both = Place(), Place()
    yield both
    for place in both:
        await place.aclose()


@pytest.mark.live
async def test_the_steps_lead_to_the_model_on_postgres(places: tuple[Place, Place]):
    stepped, modelled = places
    assert await stepped.store().sessions() == []
    await modelled.sql(f"CREATE SCHEMA {modelled.schema}")
    for statement in ddl("postgresql"):
        await modelled.sql(statement)

    async def shape(place: Place) -> set[tuple[Any, ...]]:
        # The model has no partitions, which SQLite does not know: on PostgreSQL the log is in `events_0` and those after it.
        rows = [
            tuple(str(value).replace("events_0", "events") for value in row)
            for row in await place.sql(_SHAPE)
            if row[2] not in ("cohort", "sessions_cohort")
        ]
        return {row for row in rows if not row[2].startswith(VERSION_TABLE) and row[1] != VERSION_TABLE}

    migrated, wanted = await shape(stepped), await shape(modelled)
    assert {row for row in migrated if row[2] != "lookup_words"} == wanted
    assert len(migrated) == len(wanted) + 1


# Starting -------------------------------------------------------------------------------------------------------------


def test_a_current_database_is_left_alone_and_a_step_that_fails_leaves_nothing(tmp_path: Path):
    connection = opened(tmp_path / "a.db")
    connection.execute("CREATE TABLE usage (mine)")

    with pytest.raises(sqlite3.OperationalError, match="usage"):
        upgrade_sqlite(connection)
    assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["usage"]

    connection.execute("DROP TABLE usage")
    upgrade_sqlite(connection)
    before = connection.total_changes
    upgrade_sqlite(connection)
    assert connection.total_changes == before
    assert not connection.in_transaction
    connection.close()


async def test_a_database_of_a_newer_schema_is_refused(tmp_path: Path):
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.admit(send_message())
    await store.aclose()
    connection = opened(tmp_path / "a.db")
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999', compatible_since = '9998'")
    connection.close()

    newer = SqlStore.sqlite(tmp_path / "a.db")
    for verb in (newer.head("s"), newer.admit(send_message("k2", turn="t2"))):
        with pytest.raises(ConfigError, match="9999"):
            await verb
    await newer.aclose()


@pytest.mark.live
async def test_a_database_of_a_newer_schema_is_refused_on_postgres(places: tuple[Place, Place]):
    place = places[0]
    await place.store().admit(send_message())
    await place.sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999', compatible_since = '9998'")

    newer = place.store()
    for verb in (newer.head("s"), newer.admit(send_message("k2", turn="t2")), newer.lock_for_process()):
        with pytest.raises(ConfigError, match="9999"):
            await verb


@pytest.mark.parametrize("compatible", ["0013", HEAD])
async def test_a_newer_schema_that_names_this_one_as_compatible_is_used(tmp_path: Path, compatible: str):
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.admit(send_message())
    await store.aclose()
    connection = opened(tmp_path / "a.db")
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999', compatible_since = '{compatible}'")
    connection.close()

    older = SqlStore.sqlite(tmp_path / "a.db")
    assert (await older.admit(send_message("k2", turn="t2"))).is_new
    await older.aclose()
    assert (await schema_status(str(tmp_path / "a.db"))).is_current
    connection = opened(tmp_path / "a.db")
    assert connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [("9999",)]
    connection.close()


@pytest.mark.live
async def test_a_newer_schema_that_names_this_one_as_compatible_is_used_on_postgres(places: tuple[Place, Place]):
    place = places[0]
    await place.store().admit(send_message())
    await place.sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999', compatible_since = '{HEAD}'")
    assert (await place.store().admit(send_message("k2", turn="t2"))).is_new


def test_every_step_names_the_oldest_schema_that_it_is_compatible_with():
    for version in (version for version in upgrade_steps() if version >= "0013"):
        for dialect in ("sqlite", "postgresql"):
            text = (SCRIPTS / f"{version}.{dialect}.sql").read_text(encoding="utf-8")
            assert re.search(r"UPDATE everturn_schema SET compatible_since='\d{4}';", text), version


_START = """
import asyncio, sys
from pathlib import Path
from everturn.stores.sql import migrate
from everturn.stores.sql.store import SqlStore
from everturn.core.commands import Send

async def main(where, schema, name, scripts, head):
    migrate.SCRIPTS, migrate.HEAD = Path(scripts), head
    if schema:
        from everturn.stores.sql.postgres import Postgres
        store = SqlStore(Postgres(where, schema))
    else:
        store = SqlStore.sqlite(where)
    print("ready", flush=True)
    sys.stdin.readline()
    await store.admit(Send(key="k", session=name, turn="t", message="m"))
    await store.aclose()
    assert not {"alembic", "sqlalchemy"} & set(sys.modules), "nobody needs these to open a database"

asyncio.run(main(*sys.argv[1:]))
"""


async def start_eight(where: str, schema: str) -> None:
    await asyncio.to_thread(_start_eight, where, schema)


def _start_eight(where: str, schema: str) -> None:
    """Eight processes that open a database at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _START, where, schema, f"s{n}", str(migrate.SCRIPTS), migrate.HEAD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for n in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")


@pytest.mark.long
async def test_eight_processes_may_start_at_once_on_an_empty_database(tmp_path: Path):
    await start_eight(str(tmp_path / "a.db"), "")

    store = SqlStore.sqlite(tmp_path / "a.db")
    assert {info.id for info in await store.sessions()} == {f"s{n}" for n in range(8)}
    await store.aclose()


@pytest.mark.long
@pytest.mark.live
async def test_eight_processes_may_start_at_once_on_an_empty_postgres(places: tuple[Place, Place]):
    await start_eight(URL, places[0].schema)

    assert {info.id for info in await places[0].store().sessions()} == {f"s{n}" for n in range(8)}


@pytest.mark.long
@pytest.mark.live
async def test_eight_processes_may_start_at_once_on_an_older_postgres_and_one_brings_it_up_to_date(
    places: tuple[Place, Place], request: pytest.FixtureRequest
):
    place = places[0]
    old = (DATABASES / f"{OLD[0]}.postgresql.sql").read_text(encoding="utf-8")
    await place.run(
        f"CREATE SCHEMA {place.schema}; {old}; CREATE TABLE steps (pid int, version text); "
        "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO steps VALUES (pg_backend_pid(), new.version_num); RETURN new; END'; "
        f"CREATE TRIGGER noted AFTER UPDATE OF version_num ON {VERSION_TABLE} FOR EACH ROW EXECUTE FUNCTION noted()"
    )
    request.getfixturevalue("next_schema")

    await start_eight(URL, place.schema)

    assert [row["version"] for row in await place.sql("SELECT * FROM steps")] == [*OLD[1:], migrate.HEAD]
    assert {f"s{n}" for n in range(8)} < {info.id for info in await place.store().sessions()}


# Databases that people have -------------------------------------------------------------------------------------------


async def check(store: Store) -> None:
    """It reads as what was written into it reads now, and goes on as that does."""
    reference = MemoryStore()
    await fill(reference)
    await furnish(reference)
    assert await read_accounts(store) == await read_accounts(reference)
    assert check_chain(await store.accounts.audit("acme")) == []
    assert len(await store.accounts.secret("cookies")) == 32
    assert await read(store) == await read(reference)
    for data in BYTES:
        assert await store.blob(await reference.put_blob(data)) == data
    assert await go_on(store) == await go_on(reference)


@pytest.mark.parametrize("schema", OLD)
async def test_a_golden_database_opens_reads_as_it_was_written_and_goes_on(tmp_path: Path, schema: str):
    shutil.copy(DATABASES / f"{schema}.sqlite", tmp_path / "a.db")
    if (blobs := DATABASES / f"{schema}.sqlite-blobs").exists():
        shutil.copytree(blobs, tmp_path / "a.db-blobs")

    store = SqlStore.sqlite(tmp_path / "a.db")
    await check(store)
    await store.aclose()


# An upgrade from the oldest one takes every step; from those in between, the steps are tried on SQLite.
SOME_OLD = [name if name in (OLD[0], OLD[-1]) else pytest.param(name, marks=pytest.mark.long) for name in OLD]


@pytest.mark.live
@pytest.mark.parametrize("schema", SOME_OLD)
async def test_a_golden_postgres_opens_reads_as_it_was_written_and_goes_on(places: tuple[Place, Place], schema: str):
    place = places[0]
    await place.run(
        f"CREATE SCHEMA {place.schema}; " + (DATABASES / f"{schema}.postgresql.sql").read_text(encoding="utf-8")
    )

    await check(place.store())


@pytest.fixture
def next_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of tomorrow, which knows one step more."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    for dialect in DIALECTS:
        (tmp_path / "scripts" / f"9998.{dialect}.sql").write_text(
            "-- Running upgrade\n\nALTER TABLE sessions ADD COLUMN mood TEXT DEFAULT 'fine; really';\n\n"
            f"UPDATE {VERSION_TABLE} SET version_num='9998';\n",
            encoding="utf-8",
        )
    monkeypatch.setattr(migrate, "SCRIPTS", tmp_path / "scripts")
    monkeypatch.setattr(migrate, "HEAD", "9998")


@pytest.mark.usefixtures("next_schema")
def test_an_older_database_is_brought_up_to_date_with_what_is_in_it(tmp_path: Path):
    shutil.copy(DATABASES / "0001.sqlite", tmp_path / "a.db")
    connection = opened(tmp_path / "a.db")

    upgrade_sqlite(connection)

    assert connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [("9998",)]
    assert connection.execute("SELECT mood FROM sessions WHERE id = 's'").fetchall() == [("fine; really",)]
    connection.close()


async def check_event_keys(store: SqlStore) -> None:
    """Every event of an upgraded store is found by its key."""
    found = 0
    for session in await store.sessions():
        for entry in await store.events(session.id):
            if (indexed := index_key(entry.event)) is not None:
                assert entry in await store.indexed_events(session.id, *indexed)
                found += 1
    assert found > 10


async def test_the_events_of_an_older_database_are_found_by_their_keys(tmp_path: Path):
    shutil.copy(DATABASES / "0001.sqlite", tmp_path / "a.db")
    store = SqlStore.sqlite(tmp_path / "a.db")
    await check_event_keys(store)
    await store.aclose()


@pytest.mark.live
async def test_the_events_of_an_older_postgres_are_found_by_their_keys(places: tuple[Place, Place]):
    place = places[0]
    old = (DATABASES / "0001.postgresql.sql").read_text(encoding="utf-8")
    await place.run(f"CREATE SCHEMA {place.schema}; {old}")
    # A NUL in a body, and what only looks like one: PostgreSQL refuses to read the first.
    body = dump_event(CommandDropped(command="odd", reason="a \0 and \\\\u0000"))
    await place.run(f"INSERT INTO events VALUES ('plain', 999, '', '\\x{body.hex()}'::bytea)")
    store = place.store()
    await check_event_keys(store)
    assert [entry.seq for entry in await store.indexed_events("plain", "command", "odd")] == [999]


@pytest.mark.live
async def test_an_older_postgres_is_brought_up_to_date_with_what_is_in_it(
    places: tuple[Place, Place], request: pytest.FixtureRequest
):
    place = places[0]
    await place.store().admit(send_message())
    request.getfixturevalue("next_schema")

    assert [info.id for info in await place.store().sessions()] == ["s"]

    assert [tuple(row) for row in await place.sql("SELECT id, mood FROM sessions")] == [("s", "fine; really")]


def test_an_upgrade_says_only_what_is_missing():
    assert upgrade_script("sqlite", HEAD) == upgrade_script("postgresql", HEAD) == ""
    assert upgrade_script("sqlite").startswith(f"CREATE TABLE {VERSION_TABLE}")
