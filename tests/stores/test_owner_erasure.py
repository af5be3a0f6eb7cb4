"""Erasure of a user or a tenant: none of their text is left in any table, index, blob or file."""

from __future__ import annotations

import logging
import os
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
import sqlalchemy as sa
from tests.helpers.stored_values import readable
from tests.helpers.stores import POSTGRES
from tests.helpers.waiting import wait_until
from tests.stores.test_backup import Stores, cli, files_below

from everturn import App, tool
from everturn.core.memory.user_memory import LOGIN_OWNER_PREFIX, PROMPT_OWNER_PREFIX, MemoryPut
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart, TextPart
from everturn.core.schedules import Schedule
from everturn.core.tenants.accounts import Credential, Tenant, User
from everturn.core.tenants.settings import Setting
from everturn.core.tenants.sharing import Share, user_subject
from everturn.core.tenants.user_records import Invitation
from everturn.core.webhooks import PushTarget, Webhook
from everturn.errors import SessionQuarantined, UnknownSession
from everturn.stores import SqlStore, get_store
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.contracts.samples import send_message
from tools.migrations.schema import meta

WORD = "quizzicalheron"  # in all that anna says, keeps and is shown
OTHER = "placidbadger"  # the same for bob
COMMON = "sturdyotter"  # in what administrators configure for the whole tenant

# Columns that hold no text of people; of each other text or binary column of the schema, `fill` must write one.
IDS = {
    *(
        "agent",
        "awaited_agent",
        "by",
        "call",
        "creator",
        "credential",
        "gate",
        "id",
        "message",
        "model",
        "owner",
        "parent",
    ),
    *(
        "session",
        "tenant",
        "turn",
        "user",
        "whose",
        "who",
        "author",
        "webhook",
        "blob",
        "top",
        "home",
        "origin",
        "leaf",
    ),
}
KINDS = {"kind", "state", "outcome", "place", "role", "type", "events", "fold", "token", "taken", "quarantined"}
WITHOUT_TEXT = {
    "audit": "stays: who did what, and no content",
    "secrets": "keys of the installation",
    "rate_limits": "hashes and numbers, of no user",
    "marks": "hashes and ids",
    "temporary_sessions": "ids and a time",
    "wakes": "ids and times",
    "engine_workers": "numbers",
    "usage_days": "numbers by tenant and agent",
    "mentions": "names of blobs, which are hashes, and ids",
    "tenants": "its name is not of one user",
}
COLUMNS_WITHOUT_TEXT = {
    "inbox.key": "an id",
    "event_keys.key": "ids, and the path of a folder that the operator has configured",
    "files.root": "the path of a folder that the operator has configured",
    "files.tree": "the name of a blob",
    "blobs.name": "a hash",
    "credentials.hash": "a hash of the key",
    "invitations.hash": "a hash of the secret",
    "session_shares.hash": "a hash of the secret",
    "session_shares.via": "an id",
    "session_shares.subject": "an id",
    "memory_files.hash": "a hash",
    "memory_writes.key": "an id",
    "webhook_deliveries.data": "ids, see `webhook_event`",
    "webhook_deliveries.problem": "the error of a receiver",
    "settings.name": "an administrator's, of the tenant and not of a user",
    "settings.body": "the same",
    "settings.secret": "the same",
    "user_records.budget": "numbers",
    "turn_snapshots.projection": "ids of messages and calls",
}


# What takes a long story to come about otherwise. Erasure deletes these rows without reading them.
ROWS = (
    "INSERT INTO grants (id, origin, tenant, session, created, body) "
    "VALUES ('always', 'of {user}', 'local', 'of {user}', 1, '{word}')",
    "INSERT INTO memory_writes (session, key, tenant, owner, receipt) "
    "VALUES ('of {user}', 'call', 'local', '{user}', '{word}')",
    "UPDATE gates SET claim = '{word}' WHERE session = 'waits' AND '{user}' = 'anna'",
    "UPDATE sessions SET labels = '{word}' WHERE id = 'of {user}'",
)


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
            for owner in (user, f"{PROMPT_OWNER_PREFIX}{user}", f"{LOGIN_OWNER_PREFIX}{user}"):
                await store.user_memory.change("local", owner, MemoryPut(f"{word}.md", f"likes {word}", False), at=1.0)
            await store.schedules.add(
                Schedule(id=f"daily_{user}", text=f"Remind me of {word}", cron="0 8 * * *", by=user)
            )
            push = PushTarget(
                user=user, credential=f"key_{user}", p256dh="p", auth="a", key="k", label=f"{word}'s phone"
            )
            url = f"https://push.example/{word}"
            await store.webhooks.put(Webhook(id=f"push_{user}", url=url, events=("gate.opened",), push=push))
            records = store.accounts.records
            await records.set_password("local", user, f"$argon2id${word}", 1.0)
            await records.add_invitation(Invitation(f"inv_{user}", "local", "invitation", user, user, name=word))
        told = Webhook(id="told", url="https://hooks.example", events=("turn.failed",), description=COMMON, by="anna")
        await store.webhooks.put(told)
        body = b'{"instructions": "%s"}' % COMMON.encode()
        agent = Setting(scope="local", kind="agent", name=COMMON, version=1, body=body, secret=body, by="anna")
        await store.settings.add(agent)
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
        sharing: Any = app.store.sharing
        for user, word, session in (("bob", OTHER, "of anna"), ("anna", WORD, "of bob")):
            subject, reason = user_subject(user), f"has to do with {word}"
            share = Share(
                id=f"to_{user}", tenant="local", session=session, kind="admin", subject=subject, by=user, reason=reason
            )
            await sharing.add(share)
    for user, word in (("bob", OTHER), ("anna", WORD)):
        await execute(name, *(row.format(user=user, word=word) for row in ROWS))


async def execute(name: str, *statements: str) -> None:
    if "://" not in name:
        connection = sqlite3.connect(name)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        url, _, schema = name.partition("?schema=")
        postgres: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
        for statement in statements:
            await postgres.execute(statement)
        await postgres.close()


async def tables_of(name: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, those that are not in the schema (the index of words) included."""
    if "://" not in name:
        connection = sqlite3.connect(name)
        connection.row_factory = sqlite3.Row
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {table: [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')] for table in tables}
        connection.close()
        return found
    url, _, schema = name.partition("?schema=")
    postgres: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
    named = "SELECT c.relname FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p')"
    tables = [row[0] for row in await postgres.fetch(named, schema)]
    found = {table: [dict(row) for row in await postgres.fetch(f'SELECT * FROM "{table}"')] for table in tables}
    await postgres.close()
    return found


async def dump(name: str, folder: Path) -> bytes:
    """Every row of every table, the index of words included; on SQLite every byte of every file as well."""
    rows = [row for rows in (await tables_of(name)).values() for row in rows]
    files = [path.read_bytes() for path in files_below(folder)] if "://" not in name else []
    return b"\n".join([*(readable(value) for row in rows for value in row.values()), *files])


def may_have_text(column: str) -> bool:
    table, _, name = column.partition(".")
    return not (table in WITHOUT_TEXT or name in IDS | KINDS or column in COLUMNS_WITHOUT_TEXT)


async def columns_with(name: str, word: str) -> tuple[set[str], set[str]]:
    """All text and binary columns of the schema as `table.column`, and those in which a row has a word."""
    columns = {
        f"{table.name}.{column.name}"
        for table in meta.sorted_tables
        for column in table.columns
        if isinstance(column.type, sa.Text | sa.LargeBinary)
    }
    tables = await tables_of(name)
    found = {
        f"{table}.{column}"
        for table, rows in tables.items()
        for row in rows
        for column, value in row.items()
        if word.encode() in readable(value)
    }
    return columns, found & columns


async def test_an_erased_user_leaves_none_of_their_text_and_others_keep_theirs(
    stores: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    name = stores.new("talks")
    caplog.set_level(logging.DEBUG)
    await fill(name)
    assert WORD not in caplog.text
    columns, found = await columns_with(name, WORD)
    assert COLUMNS_WITHOUT_TEXT.keys() <= columns
    if stores.kind == "sqlite":
        columns.remove("chunks.data")  # large blobs are files there
    # A column that is new in the schema is in neither of these, and nobody has thought of its erasure.
    assert {column for column in columns if may_have_text(column)} == found, (
        "fill it in `fill`, or list it with a reason"
    )
    code, out, errors = await cli("admin", "erase", "--user", "anna", "--store", name, "--yes")
    assert (code, errors) == (0, "")
    assert (await columns_with(name, WORD))[1] == set()
    assert "erased: 3 sessions, 2 files, 1 memory file, 1 credential, 1 user, 1 schedule" in out
    after = await dump(name, tmp_path)
    assert WORD.encode() not in after
    assert OTHER.encode() in after
    assert COMMON.encode() in after
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
    assert "4 sessions, 4 files, 6 memory files, 2 credentials, 2 users, 2 schedules" in out
    after = await dump(name, tmp_path)
    for word in (WORD, OTHER, COMMON):
        assert word.encode() not in after


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
        f"{WORD}.md",
    ]
    assert all(zipfile.is_zipfile(path) for path in written if path.suffix == ".zip")
    assert (await cli("admin", "export", "anna", "--output", str(tmp_path / "anna"), "--store", name))[0] == 2

    code, _, error = await cli("admin", "export", "ana", "--output", str(tmp_path / "ana"), "--store", name)
    assert (code, "there is no user 'ana' in 'local'" in error, (tmp_path / "ana").exists()) == (2, True, False)


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
