"""Erasure of a user or a tenant: none of their text is left in any table, index, blob or file."""

from __future__ import annotations

import os
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.helpers.stored_values import readable
from tests.helpers.stores import POSTGRES
from tests.helpers.waiting import wait_until
from tests.stores.test_backup import Stores, cli, files_below

from everturn import App, tool
from everturn.core.memory.user_memory import MemoryPut
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart, TextPart
from everturn.core.tenants.accounts import Credential, Tenant, User
from everturn.errors import SessionQuarantined, UnknownSession
from everturn.stores import SqlStore, get_store
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.contracts.samples import send_message

WORD = "quizzicalheron"  # in all that anna says, keeps and is shown
OTHER = "placidbadger"  # the same for bob


@tool(approval="always")
async def book(table: str) -> str:
    """Book a table."""
    return f"booked {table}"


@pytest.fixture(params=["sqlite", POSTGRES])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    addresses = Stores(request.param, tmp_path)
    yield addresses
    await addresses.aclose()


async def fill(name: str) -> None:
    """Two users with all that users leave behind: anna takes part in a session of bob's, too."""
    scripts = [calls(call("book", table=WORD)), say(f"{WORD} is booked")]
    async with App(ScriptedModel(*scripts, *scripts), tools=[book], store=name) as app:
        store: Any = app.store
        await store.accounts.put_tenant(Tenant("local"))
        for user, word in (("anna", WORD), ("bob", OTHER)):
            await store.accounts.put_user(User("local", user, f"{user} {word}", "approver"))
            await store.accounts.put_credential(Credential(f"key_{user}", "local", user, "key", user * 8, name=word))
            await store.user_memory.change("local", user, MemoryPut("notes.md", f"likes {word}", False), at=1.0)
        waits = app.chat("waits", options=TurnOptions(by="anna"))
        await waits.send(f"A table, says {WORD}")  # its gate stays open
        await wait_until(waits.gates)
        await waits.send(f"and {WORD} again")  # waits in the inbox
        shared = app.chat("shared", options=TurnOptions(by="bob"))
        turn = await shared.send(f"For {OTHER}")
        (gate,) = await wait_until(shared.gates)
        await shared.answer(gate, deny=f"no, says {WORD}", by="anna")
        await turn
    async with App(ScriptedModel(say(f"Hello {OTHER}"), say(f"Bye {WORD}")), store=name) as app:
        for user, word in (("bob", OTHER), ("anna", WORD)):
            large = await app.store.put_blob(f"{word} ".encode() * 8000)
            small = await app.store.put_blob(f"small {word}".encode())
            files = [FilePart(large, "text/plain", 9, f"{word}.txt"), FilePart(small, "text/plain", 9)]
            parts = [TextPart(word), *files]
            await (await app.chat(f"of {user}", options=TurnOptions(by=user)).send(parts))


async def dump(name: str, folder: Path) -> bytes:
    """Every row of every table, the index of words included; on SQLite every byte of every file as well."""
    if "://" not in name:
        connection = sqlite3.connect(name)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for table in tables for row in connection.execute(f'SELECT * FROM "{table}"')]
        connection.close()
        files = [path.read_bytes() for path in files_below(folder)]
    else:
        url, _, schema = name.partition("?schema=")
        postgres: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
        named = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p')"
        tables = [row[0] for row in await postgres.fetch(named, schema)]
        rows = [tuple(row) for table in tables for row in await postgres.fetch(f'SELECT * FROM "{table}"')]
        await postgres.close()
        files = []
    values = [readable(value) for row in rows for value in row]
    return b"\n".join([*values, *files])


async def test_an_erased_user_leaves_none_of_their_text_and_others_keep_theirs(stores: Stores, tmp_path: Path):
    name = stores.new("talks")
    await fill(name)
    before = await dump(name, tmp_path)
    assert before.count(WORD.encode()) > 20
    code, out, errors = await cli("admin", "erase", "--user", "anna", "--store", name, "--yes")
    assert (code, errors) == (0, "")
    assert "erased: 3 sessions, 2 files, 1 memory file, 1 credential, 1 user" in out

    after = await dump(name, tmp_path)
    assert WORD.encode() not in after
    assert OTHER.encode() in after
    store: Any = get_store(name)
    assert [info.id for info in await store.sessions()] == ["of bob"]
    assert {session for session, _ in await store.search(OTHER)} == {"of bob"}
    assert await store.blob(await store.put_blob(f"small {OTHER}".encode())) == f"small {OTHER}".encode()
    assert [user.id for user in await store.accounts.users("local")] == ["bob"]
    assert len(await store.user_memory.files("local", "bob")) == 1
    (record,) = await store.accounts.audit("local")
    assert (record.did, record.on, record.by) == ("user.erase", "anna", "operator")
    for session in ("waits", "shared", "of anna"):
        with pytest.raises(UnknownSession, match="was erased"):
            await store.events(session)
    assert (await store.count_all()).gates == 0
    await store.aclose()


async def test_an_erased_tenant_leaves_none_of_its_text(stores: Stores, tmp_path: Path):
    name = stores.new("talks")
    await fill(name)
    code, out, _ = await cli("admin", "erase", "--all-users", "--store", name, "--yes")
    assert code == 0
    assert "4 sessions, 4 files, 2 memory files, 2 credentials, 2 users" in out
    after = await dump(name, tmp_path)
    assert WORD.encode() not in after
    assert OTHER.encode() not in after


async def test_files_of_two_users_stay_for_the_other_one(stores: Stores):
    name = stores.new("talks")
    store = get_store(name)
    assert isinstance(store, SqlStore)
    data = os.urandom(70_000)
    async with App(ScriptedModel(say("a"), say("b")), store=store) as app:
        blob = await store.put_blob(data)
        for user in ("anna", "bob"):
            chat = app.chat(f"of {user}", options=TurnOptions(by=user))
            await (await chat.send([FilePart(blob, "image/png", len(data))]))
        report = await store.erase_owner("local", "anna")
        assert (report.sessions, report.blobs) == (1, 0)
        assert await store.blob(blob) == data
        report = await store.erase_owner("local", "bob")
        assert (report.sessions, report.blobs) == (1, 1)
    await store.aclose()


async def test_what_a_user_took_part_in_is_exported(stores: Stores, tmp_path: Path):
    name = stores.new("talks")
    await fill(name)
    code, out, _ = await cli("admin", "export", "anna", "--output", str(tmp_path / "anna"), "--store", name)
    assert (code, "3 sessions, 1 memory file" in out) == (0, True)
    written = files_below(tmp_path / "anna")
    assert sorted(path.name for path in written) == [
        "0001-of_anna.zip",
        "0002-shared.zip",
        "0003-waits.zip",
        "notes.md",
    ]
    assert all(zipfile.is_zipfile(path) for path in written if path.suffix == ".zip")
    assert (await cli("admin", "export", "anna", "--output", str(tmp_path / "anna"), "--store", name))[0] == 2


async def test_a_file_in_use_is_not_erased_below_the_process_that_has_it_in_memory(tmp_path: Path):
    name = str(tmp_path / "talks.db")
    async with App(ScriptedModel(say("a")), store=name) as app:
        await (await app.chat("talk", options=TurnOptions(by="anna")).send(WORD))
        code, _, errors = await cli("admin", "erase", "--user", "anna", "--store", name, "--yes")
        assert code == 2
        assert "stop it first" in errors
        assert len(await app.store.events("talk")) > 0


async def test_a_quarantined_session_is_driven_again(stores: Stores):
    name = stores.new("talks")
    store = get_store(name)
    assert isinstance(store, SqlStore)
    async with App(ScriptedModel(say("a")), store=store) as app:
        await (await app.chat("talk").send("one"))
    await store.admit(send_message("again", turn="t9", session="talk"))
    now = 1e9
    with suppress(SessionQuarantined):
        while await store.claim("talk", now) is not None:  # and its driver dies each time
            pass
    with pytest.raises(SessionQuarantined):
        await store.claim("talk", now)
    code, out, _ = await cli("admin", "retry", "talk", "--store", name)
    assert (code, "is driven again" in out) == (0, True)
    assert await store.claim("talk", now) is not None
    assert await store.retry("talk")
    assert not await store.retry("talk")
    await store.aclose()


async def test_open_turns_are_cancelled_by_the_process_that_drives_the_store(stores: Stores):
    name = stores.new("talks")
    async with App(ScriptedModel(calls(call("book", table="four")), say("done")), tools=[book], store=name) as app:
        chat = app.chat("waits")
        turn = await chat.send("A table")
        await wait_until(chat.gates)
        assert (await cli("admin", "cancel", "waits", "--turn", "other", "--store", name))[0] == 2
        code, out, _ = await cli("admin", "cancel", "waits", "--store", name)
        assert (code, "cancel" in out) == (0, True)
        if stores.kind == "postgres":  # woken at once; a process with a file looks for what is overdue
            assert (await turn).status == "cancelled"
    if stores.kind == "sqlite":
        async with App(ScriptedModel(say("done")), tools=[book], store=name) as app:
            await wait_until(lambda: _has_ended(app, "waits"))


async def _has_ended(app: App, session: str) -> bool:
    return not await app.store.open_turns(session)
