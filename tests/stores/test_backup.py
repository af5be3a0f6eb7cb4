"""Backups: taken while turns run and gates are open, restored elsewhere, and everything there goes on."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.golden.make_database import FOLDER
from tests.helpers.stores import POSTGRES, URL
from tests.helpers.waiting import wait_until

from everturn import App
from everturn.cli import main
from everturn.core.events import CallStarted
from everturn.errors import ConfigError, UnreadableLog
from everturn.stores import create_backup, get_store, restore_backup, verify_backup
from everturn.stores.backup import sqlite_backup
from everturn.stores.backup.tables import NOT_COPIED, copied_tables
from everturn.stores.sql.migrate import HEAD
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.ledger import EffectLedger, LedgerLine, read_ledger
from tools.chaos.scenario import ScenarioModel, ask, make_tools
from tools.environment import child_environment
from tools.migrations.schema import meta

LARGE = os.urandom(100_000)  # larger than a row of SQLite may be: it is a file


class Stores:
    """Addresses of stores of one kind, each without a store yet."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._folder, self._schemas = kind, folder, list[str]()

    def new(self, name: str) -> str:
        if self.kind == "sqlite":
            return str(self._folder / f"{name}.db")
        self._schemas.append(f"everturn_{uuid.uuid4().hex[:16]}")
        return f"{URL}?schema={self._schemas[-1]}"

    async def aclose(self) -> None:
        if self._schemas:
            connection: Any = await asyncpg.connect(URL)
            for schema in self._schemas:
                await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            await connection.close()


@pytest.fixture(params=["sqlite", POSTGRES])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    addresses = Stores(request.param, tmp_path)
    yield addresses
    await addresses.aclose()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def app_on(store: str, ledger: EffectLedger) -> App:
    return App(ScenarioModel(ledger, pace=0.001), tools=make_tools(ledger), store=store)


def everturn(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "everturn", *words]
    return subprocess.run(line, env=child_environment(), capture_output=True, text=True, timeout=60, check=False)


async def cli(*words: str) -> tuple[int, str, str]:
    """The command line in this process: its exit code, what it printed, and its errors."""
    out, errors = io.StringIO(), io.StringIO()

    def run() -> int:
        with redirect_stdout(out), redirect_stderr(errors):
            return main(words)

    return await asyncio.to_thread(run), out.getvalue(), errors.getvalue()


def exists(path: str | Path) -> bool:
    return os.path.exists(path)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def seed(store: str, sessions: int = 2) -> None:
    """A store at rest, with a file in it."""
    app = App(ScenarioModel(), store=store)
    async with app:
        await app.store.put_blob(LARGE)
        await app.store.put_blob(b"small")
        for number in range(sessions):
            await (await app.chat(f"rest{number}").send(ask("echo", f"rest{number}")))


# The rehearsal ----------------------------------------------------------------------------------------------------


@pytest.mark.timeout(120)
async def test_a_store_that_was_copied_under_load_goes_on_where_it_is_restored(stores: Stores, tmp_path: Path):
    """Turns run, calls are in the middle, gates are open and a message waits while the command line takes the backup."""
    source, target, folder = stores.new("source"), stores.new("target"), str(tmp_path / "backup")
    before, after = EffectLedger(tmp_path / "before"), EffectLedger(tmp_path / "after")
    lanes = [f"busy{number}" for number in range(6)]
    asking, lingering = [f"asks{number}" for number in range(4)], [f"lingers{number}" for number in range(3)]
    async with app_on(source, before) as app:
        for session in asking:
            await app.chat(session).send(ask("asks", session))
        for session in lingering:
            await app.chat(session).send(ask("lingers", session, seconds=30))
            await app.chat(session).send(ask("echo", session, 1))  # waits for the turn before it
        await app.store.put_blob(LARGE)

        async def keep_busy(session: str) -> None:
            for number in range(1000):
                await (await app.chat(session).send(ask("four_steps", session, number)))

        tasks = [asyncio.create_task(keep_busy(session)) for session in lanes]
        await wait_until(lambda: _effects(tmp_path / "before", "linger") == len(lingering))
        await wait_until(lambda: _effects(tmp_path / "before", "pay") >= 2 * len(lanes))
        for session in asking:
            await wait_until(lambda session=session: app.chat(session).gates())
        done = _effects(tmp_path / "before", "pay")
        copied = await asyncio.to_thread(everturn, "backup", "create", folder, "--store", source)
        assert (copied.returncode, copied.stderr) == (0, "")
        assert _effects(tmp_path / "before", "pay") > done, "nothing went on while the backup was taken"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    restored = await asyncio.to_thread(everturn, "backup", "restore", folder, "--store", target)
    assert (restored.returncode, restored.stderr) == (0, "")

    store = get_store(target)
    logs = {session: await store.events(session) for session in (*lanes, *asking, *lingering)}
    known = {entry.event.call for log in logs.values() for entry in log if isinstance(entry.event, CallStarted)}
    open_turns = [turn for session in logs for turn in await store.open_turns(session)]
    assert len(open_turns) >= len(asking) + len(lingering)
    await store.aclose()

    async with app_on(target, after) as app:
        for session in asking:
            (gate,) = await app.chat(session).gates()
            await app.chat(session).answer(gate, allow="once", by="ada")
        await wait_until(lambda: _is_at_rest(app, list(logs)), seconds=90)
        # What the old store did after the backup is not part of this history.
        earlier = [line for line in read_ledger(tmp_path / "before").lines if line.call in known]
        ledger: list[LedgerLine] = [*earlier, *read_ledger(tmp_path / "after").lines]
        for session in logs:
            entries = await app.store.events(session)
            assert entries[: len(logs[session])] == logs[session]
            evidence = Evidence(session, entries, ledger, kills=1)
            found = [violation for violation in check(evidence) if violation.invariant != "requests"]
            assert found == []
        assert _effects(tmp_path / "after", "mail") == len(asking)
        assert _effects(tmp_path / "after", "linger") == 0, "what may be done once was done again"
        assert await app.store.blob(await app.store.put_blob(LARGE)) == LARGE


async def _is_at_rest(app: App, sessions: list[str]) -> bool:
    infos = await app.store.infos(sessions)
    open_turns = [await app.store.open_turns(session) for session in sessions]
    return not any(open_turns) and not any(info.is_awake for info in infos.values())


def _effects(path: Path, name: str) -> int:
    return sum(line.kind == "effect" and line.name == name for line in read_ledger(path).lines)


async def test_a_restored_store_has_the_same_rows_in_every_table(stores: Stores, folder: Path):
    source, target = stores.new("source"), stores.new("target")
    await seed(source)
    await create_backup(source, folder)
    await restore_backup(folder, target)
    assert await _rows(source) == await _rows(target)
    if stores.kind == "postgres":
        url, _, schema = target.partition("?schema=")
        connection: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
        for table in ("inbox", "lookup"):
            number = f"SELECT nextval(pg_get_serial_sequence('{table}', 'n')) - max(n) FROM {table}"
            assert await connection.fetchval(number) == 1
        await connection.close()
    async with App(ScenarioModel(), store=target) as app:  # numbers that the database gives go on, too
        await (await app.chat("rest0").send(ask("echo", "rest0", 1)))
        assert len(await app.store.search("rest0")) == 4


async def _rows(store: str) -> dict[str, list[str]]:
    tables = [table for table in copied_tables() if table not in ("wakes", "marks")]
    if "://" not in store:
        connection = sqlite3.connect(store)
        found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in _sqlite_tables(connection)}
        connection.close()
    else:
        url, _, schema = store.partition("?schema=")
        connection: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
        found = {table: [tuple(row) for row in await connection.fetch(f"SELECT * FROM {table}")] for table in tables}
        await connection.close()
    assert found["events"]
    return {table: sorted(map(repr, rows)) for table, rows in found.items()}


def _sqlite_tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'lookup_words%'")
    return [name for (name,) in rows]


def test_a_backup_copies_every_table_of_the_schema():
    assert set(copied_tables()) | NOT_COPIED >= set(meta.tables)
    assert set(copied_tables("0001")) < set(copied_tables(HEAD))


# Damage -----------------------------------------------------------------------------------------------------------


async def test_a_changed_byte_a_short_file_and_a_missing_file_are_found_and_nothing_is_restored(
    stores: Stores, folder: Path
):
    source = stores.new("source")
    await seed(source)
    manifest = await create_backup(source, folder)
    assert await verify_backup(folder) == (manifest, [])
    for name in manifest.files:
        path = folder / name
        data = path.read_bytes()
        for damaged in (data[:-1], bytes([data[0] ^ 1]) + data[1:], None):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            _, problems = await verify_backup(folder)
            assert [problem.partition(":")[0] for problem in problems] == [name]
            path.write_bytes(data)
    path = folder / next(iter(manifest.files))
    path.unlink()
    target = stores.new("target")
    with pytest.raises(UnreadableLog, match="nothing was restored"):
        await restore_backup(folder, target)
    assert "://" in target or not exists(target)


async def test_a_log_with_a_gap_is_found_although_every_file_is_as_it_was_written(stores: Stores, folder: Path):
    source = stores.new("source")
    await seed(source)
    gap = "DELETE FROM events WHERE session = 'rest0' AND seq = (SELECT min(seq) FROM events WHERE session = 'rest0')"
    if stores.kind == "sqlite":
        connection = sqlite3.connect(source)
        connection.execute(gap)
        connection.commit()
        connection.close()
    else:
        url, _, schema = source.partition("?schema=")
        postgres: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
        await postgres.execute(gap)
        await postgres.close()
    await create_backup(source, folder)
    _, problems = await verify_backup(folder)
    [problem] = problems
    found = re.fullmatch(r"session 'rest0': after position (\d+) comes (\d+)", problem)
    assert found is not None, problem
    assert int(found[1]) + 1 < int(found[2])


async def test_a_blob_that_is_damaged_in_the_store_is_reported_and_the_rest_is_copied(tmp_path: Path, folder: Path):
    source = str(tmp_path / "source.db")
    await seed(source)
    (file,) = files_below(Path(f"{source}-blobs"))
    file.write_bytes(b"rust")
    code, _, errors = await cli("backup", "create", str(folder), "--store", source)
    assert code == 1
    assert "its bytes were damaged in the store" in errors
    assert (await verify_backup(folder))[1] == []


async def test_blobs_that_are_removed_while_the_backup_is_taken_are_not_missing_from_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    source = str(tmp_path / "source.db")
    await seed(source)
    copy, tries = sqlite_backup._copy_database, list[int]()

    def then_remove(store: Path, target: Path) -> None:
        copy(store, target)
        tries.append(1)
        if len(tries) == 1:  # as the retention job does, just after the snapshot
            connection = sqlite3.connect(store)
            connection.execute("DELETE FROM blobs WHERE place = 'folder'")
            connection.commit()
            connection.close()
            shutil.rmtree(f"{store}-blobs")

    monkeypatch.setattr(sqlite_backup, "_copy_database", then_remove)
    manifest = await create_backup(source, folder)
    assert (len(tries), manifest.problems, list(manifest.files)) == (2, (), ["store.db"])
    assert (await verify_backup(folder))[1] == []


# Places -----------------------------------------------------------------------------------------------------------


async def test_a_restore_overwrites_no_store(stores: Stores, folder: Path):
    source, target = stores.new("source"), stores.new("target")
    await seed(source)
    await seed(target, sessions=1)
    await create_backup(source, folder)
    before = await _rows(target)
    with pytest.raises(ConfigError, match="overwrites nothing"):
        await restore_backup(folder, target)
    assert await _rows(target) == before


async def test_a_backup_overwrites_nothing_and_leaves_no_half_of_itself(stores: Stores, folder: Path):
    source = stores.new("source")
    with pytest.raises(ConfigError, match="no store"):
        await create_backup(source, folder)
    await seed(source)
    await create_backup(source, folder)
    with pytest.raises(ConfigError, match="already exists"):
        await create_backup(source, folder)
    assert [path.name for path in folder.parent.iterdir() if "partial" in path.name] == []
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder, *files_below(folder)))


async def test_a_backup_is_restored_to_its_own_kind_of_store(stores: Stores, folder: Path):
    source = stores.new("source")
    await seed(source)
    await create_backup(source, folder)
    other = "postgresql://postgres@127.0.0.1/none" if stores.kind == "sqlite" else "other.db"
    with pytest.raises(ConfigError, match="restore it to one"):
        await restore_backup(folder, other)
    with pytest.raises(ConfigError, match="neither"):
        await create_backup("memory", folder.parent / "other")


async def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path):
    code, _, errors = await cli("backup", "verify", str(tmp_path))
    assert code == 2
    assert "is not a backup" in errors
    (tmp_path / "manifest.json").write_text(
        '{"format": 99, "kind": "sqlite", "schema": "0001", "created": 0, "contents": {}}'
    )
    assert "knows formats up to 1" in (await cli("backup", "verify", str(tmp_path)))[2]


async def test_nothing_of_an_erased_session_is_in_a_backup_that_was_taken_before_the_file_was_rewritten(
    tmp_path: Path, folder: Path
):
    source, word = str(tmp_path / "source.db"), b"xylophonecanary"
    async with App(ScenarioModel(), store=source) as app:
        for number in range(12):  # neighbours, so that pages are shared and split
            topic = "xylophonecanary" if number % 2 else "neighbour"
            await (await app.chat(f"s{number}").send(ask("echo", f"s{number}", about=f"{topic} " * 20)))
        for number in range(1, 12, 2):
            await app.store.erase(f"s{number}")
    assert word in (tmp_path / "source.db").read_bytes(), "nothing was left in the file: this proves nothing"
    await create_backup(source, folder)
    assert not any(word in path.read_bytes() for path in files_below(folder))
    assert b"neighbour" in (folder / "store.db").read_bytes()


# Older schemas ----------------------------------------------------------------------------------------------------


async def check_golden(folder: Path) -> None:
    """Its logs were written by hand, and some turns in them cannot have happened: that is reported, and not hidden."""
    _, problems = await verify_backup(folder)
    assert {problem.partition(":")[0] for problem in problems} <= {"session 'generous'", "session 'ours'"}


@pytest.mark.parametrize("schema", sorted(path.stem for path in (FOLDER / "databases").glob("*.sqlite"))[:-1])
async def test_a_backup_of_an_older_schema_is_restored_and_upgraded(schema: str, tmp_path: Path, folder: Path):
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    shutil.copy(FOLDER / "databases" / f"{schema}.sqlite", source)
    shutil.copytree(FOLDER / "databases" / f"{schema}.sqlite-blobs", f"{source}-blobs")
    manifest = await create_backup(str(source), folder)
    assert manifest.schema == schema
    await check_golden(folder)
    await restore_backup(folder, str(target))
    opened = get_store(str(target))
    assert len(await opened.sessions()) > 0
    await opened.aclose()
    connection = sqlite3.connect(target)
    assert connection.execute("SELECT version_num FROM everturn_schema").fetchone() == (HEAD,)
    connection.close()


@pytest.mark.live
async def test_a_backup_of_an_older_postgres_is_restored_and_upgraded(tmp_path: Path, folder: Path):
    stores = Stores("postgres", tmp_path)
    source, target = stores.new("source"), stores.new("target")
    _, _, schema = source.partition("?schema=")
    connection: Any = await asyncpg.connect(URL)
    await connection.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
    await connection.execute((FOLDER / "databases" / "0003.postgresql.sql").read_text(encoding="utf-8"))
    await connection.close()
    manifest = await create_backup(source, folder)
    assert manifest.schema == "0003"
    await check_golden(folder)
    await restore_backup(folder, target)
    opened = get_store(target)
    assert len(await opened.sessions()) == manifest.contents.sessions > 0
    await opened.aclose()
    await stores.aclose()


@pytest.mark.live
async def test_a_role_that_does_not_see_all_rows_is_refused_a_backup(tmp_path: Path, folder: Path):
    """Row-level security would give it a part of them, and the backup would look whole."""
    stores = Stores("postgres", tmp_path)
    source = stores.new("source")
    await seed(source)
    schema, role = source.partition("?schema=")[2], f"reader_{uuid.uuid4().hex[:8]}"
    connection: Any = await asyncpg.connect(URL)
    await connection.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}")
    await connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    try:
        with pytest.raises(Exception, match="row-level security"):
            await create_backup(source.replace("//postgres@", f"//{role}@"), folder)
    finally:
        await stores.aclose()
        await connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        await connection.close()
    assert not exists(folder)


def test_a_copy_file_that_is_not_one_is_said_to_be_damaged(tmp_path: Path):
    from everturn.stores.backup.copy_format import read_rows

    for name, data in {"short": gzip.compress(b"PGCOPY"), "other": gzip.compress(b"x" * 40), "plain": b"text"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UnreadableLog, match=name):
            list(read_rows(tmp_path / name))
