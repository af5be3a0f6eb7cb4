"""Encryption: nothing that was said is found in the database or in its files, and a key that is destroyed takes it along."""

from __future__ import annotations

import base64
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from msgspec.structs import replace
from tests.helpers.crash_harness import Process, World, check, entries_in, plain, unknown_calls, without_results
from tests.helpers.crash_scenarios import STORIES
from tests.helpers.stores import POSTGRES, URL
from tests.helpers.waiting import wait_until
from tests.stores.test_backup import Stores
from tests.stores.test_owner_erasure import dump

from everturn import App, tool
from everturn.core.memory.user_memory import MemoryPut, MemoryRename
from everturn.core.options import TurnOptions
from everturn.core.parts import TextPart
from everturn.core.schedules import Schedule
from everturn.core.tenants.accounts import ConversationFingerprint, Principal
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.core.tenants.sharing import Share, reader_of, user_subject
from everturn.core.webhooks import Webhook
from everturn.errors import ConfigError, TenantKeyDestroyed, UnknownMessage, UnreadableLog
from everturn.stores import SqlStore, create_backup, get_store, restore_backup, verify_backup
from everturn.stores.encryption.data_keys import CACHE_SECONDS
from everturn.stores.encryption.keyring import Keyring, open_keyring
from everturn.stores.memory import MemoryStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.contracts.samples import send_message

WORD = "quizzicalheron"
MASTER, NEXT = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@tool(approval="ask")
async def book(table: str) -> str:
    """Book a table."""
    return f"booked {table}: " + f"{WORD} " * 20_000  # larger than a row: the whole of it is a blob


@pytest.fixture(params=["sqlite", POSTGRES])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    addresses = Stores(request.param, tmp_path / "stores")
    (tmp_path / "stores").mkdir()
    yield addresses
    await addresses.aclose()


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return open_keyring(str(tmp_path / "keyring"), [MASTER])


def open_encrypted(name: str, keyring: Keyring, **options: Any) -> SqlStore:
    store = get_store(name)
    assert isinstance(store, SqlStore)
    return store.encrypt(keyring, **options)


async def fill(store: SqlStore, tenant: str = "acme", session: str = "talk") -> None:
    """A turn with a tool, a gate and a file, all that a tenant keeps beside it, and one that waits."""
    url = f"https://{WORD}.example/hook"
    hook = Webhook(id="hook", tenant=tenant, url=url, events=("turn.completed", "gate.opened"), description=WORD)
    await store.webhooks.put(hook)
    await store.schedules.add(Schedule(id="daily", tenant=tenant, text=f"Ask {WORD}", cron="0 9 * * *", due=9e9))
    await store.user_memory.change(tenant, "anna", MemoryPut("notes.md", f"likes {WORD}", False), at=1.0)
    await store.user_memory.change(tenant, "anna", MemoryRename("notes.md", "kept.md"), at=2.0)
    await store.accounts.put_fingerprint(tenant, "f" * 64, ConversationFingerprint(session, "m"), 1.0)
    script = [calls(call("book", table=WORD)), say(f"It is {WORD}"), calls(call("book", table=f"{WORD} 2"))]
    app = App(ScriptedModel(*script), tools=[book], store=store)
    async with app:
        chat = app.chat(session, options=TurnOptions(by="anna"), tenant=tenant)
        files = [await chat.attach(WORD.encode(), name=f"{WORD}.txt"), await chat.attach(f"{WORD} ".encode() * 9000)]
        turn = await chat.send([TextPart(f"A table, says {WORD}"), *files])
        (gate,) = await wait_until(chat.gates)
        await chat.answer(gate, allow="once", by="anna")
        await turn
        waits = app.chat(f"{session} waits", options=TurnOptions(by="anna"), tenant=tenant)
        await waits.send(f"Another, says {WORD}")
        await wait_until(waits.gates)
        await waits.send(f"and {WORD} again")  # waits in the inbox


async def read_all(store: SqlStore, tenant: str = "acme", session: str = "talk") -> list[str]:
    """Every text that `fill` wrote, through every verb that returns one."""
    info = await store.info(session)
    texts = [info.title, *(str(entry.event) for entry in await store.events(session))]
    texts += [message.text for message in await store.path(session, info.leaf)]
    texts += [str(gate) for gate in await store.gates(f"{session} waits")]
    texts += [str(command) for command in await store.inbox(f"{session} waits")]
    file = await store.user_memory.file(tenant, "anna", "kept.md")
    assert file is not None
    schedule, hook = await store.schedules.get(tenant, "daily"), await store.webhooks.get(tenant, "hook")
    texts += [file.text, str(schedule), str(hook)]
    texts += [delivery.data for delivery in await store.webhooks.deliveries(tenant, "hook", "pending")]
    texts += [message.text for _, message in await store.search(WORD[:5], tenant)]
    assert await store.accounts.fingerprint(tenant, "f" * 64) == ConversationFingerprint(session, "m")
    return texts


async def test_nothing_that_was_said_is_found_in_any_table_or_file(stores: Stores, keyring: Keyring, tmp_path: Path):
    name = stores.new("talks")
    store = open_encrypted(name, keyring)
    await fill(store)
    with blobs_of_tenant("acme"):
        blob = await store.put_blob(WORD.encode())
        assert await store.blob(blob) == WORD.encode()
    (delivery, *_) = await store.webhooks.deliveries("acme", "hook", "pending")
    await store.webhooks.finish(replace(delivery, problem=f"{WORD} does not answer"))
    (delivery, *_) = await store.webhooks.deliveries("acme", "hook", "pending")
    assert delivery.problem == f"{WORD} does not answer"
    await store.aclose()

    raw = await dump(name, tmp_path / "stores")
    assert WORD.encode() not in raw
    assert base64.b64encode(WORD.encode()).rstrip(b"=")[:16] not in raw
    assert blob.encode() not in raw  # the hash of a short text tells the text
    assert b"f" * 64 not in raw
    assert b"talk waits" in raw  # ids are plain

    again = open_encrypted(name, keyring)
    texts = await read_all(again)
    await again.aclose()
    assert len([text for text in texts if WORD in text]) > 15

    bare = stores.new("bare")
    plain_store = get_store(bare)
    await fill(cast("SqlStore", plain_store))
    await plain_store.aclose()
    assert (await dump(bare, tmp_path / "stores")).count(WORD.encode()) > 20  # what the search would have found


async def test_search_and_lists_show_a_reader_their_own_and_what_is_shared(stores: Stores, keyring: Keyring):
    store = open_encrypted(stores.new("talks"), keyring)
    try:
        app = App(ScriptedModel(*[say("Yes.")] * 3), store=store)
        async with app:
            for name in ("one", "two", "three"):
                await app.chat(name, options=TurnOptions(by="anna"), tenant="acme").run(f"{WORD} {name}")
        await store.sharing.set_temporary("acme", "three", 9e9)
        await store.sharing.add(
            Share(id="h", tenant="acme", session="two", kind="user", subject=user_subject("bo"), by="anna")
        )
        anna, bo = (reader_of(Principal("acme", user, "member", "key"), 5.0) for user in ("anna", "bo"))
        eve = reader_of(Principal("acme", "eve", "operator", "key"), 5.0)
        for reader, sessions in ((anna, {"one", "two"}), (bo, {"two"}), (eve, set[str]())):
            found = await store.search(WORD, "acme", reader=reader)
            assert {session for session, _ in found} == sessions
            listed = await store.session_page("acme", reader=reader)
            assert {(info.id, info.title) for info in listed} == {(name, f"{WORD} {name}") for name in sessions}
    finally:
        await store.aclose()


async def test_a_value_that_is_moved_or_changed_is_refused(stores: Stores, keyring: Keyring):
    name = stores.new("talks")
    store = open_encrypted(name, keyring)
    await fill(store)
    await fill(store, "other", "their talk")
    await store.aclose()

    async def refused(sql: str, verb: str, *args: str) -> None:
        copy = stores.new(f"copy{abs(hash(sql))}")
        await copy_store(name, copy)
        await run_sql(copy, sql)
        moved = open_encrypted(copy, keyring)
        with pytest.raises(UnreadableLog, match="moved here"):
            await getattr(moved, verb)(*args)
        await moved.aclose()

    def to(row: str, source: str) -> str:
        return f"UPDATE events SET body = (SELECT body FROM events WHERE {source}) WHERE {row}"

    def row(session: str, which: str = "min") -> str:
        return f"session = '{session}' AND seq = (SELECT {which}(seq) FROM events WHERE session = '{session}')"

    await refused(to(row("talk"), row("talk", "max")), "events", "talk")
    await refused(to(row("talk"), row("talk waits")), "events", "talk")
    await refused(to(row("talk"), row("their talk")), "events", "talk")
    await refused("UPDATE sessions SET tenant = 'other' WHERE id = 'talk'", "events", "talk")
    title = "(SELECT title FROM sessions WHERE id = 'talk waits')"
    await refused(f"UPDATE sessions SET title = {title} WHERE id = 'talk'", "info", "talk")
    changed = "substr(body, 1, length(body) - 1) || {last}"
    last = "x'00'" if stores.kind == "sqlite" else r"'\x00'::bytea"
    cut = changed.format(last=last)
    if stores.kind == "sqlite":
        cut = f"CAST({cut} AS BLOB)"
    await refused(f"UPDATE events SET body = {cut} WHERE {row('talk', 'max')}", "events", "talk")


async def test_a_text_that_somebody_put_in_plain_is_refused_unless_that_is_allowed(stores: Stores, keyring: Keyring):
    name = stores.new("talks")
    bare = get_store(name)
    await bare.admit(send_message())
    await bare.aclose()
    store = open_encrypted(name, keyring)
    with pytest.raises(UnreadableLog, match="allow_plaintext"):
        await store.inbox("s")
    await store.aclose()
    store = open_encrypted(name, keyring, allow_plaintext=True)
    assert len(await store.inbox("s")) == 1
    await store.aclose()


async def test_two_tenants_with_the_same_file_have_a_blob_each(stores: Stores, keyring: Keyring):
    store = open_encrypted(stores.new("talks"), keyring)
    with blobs_of_tenant("acme"):
        blob = await store.put_blob(b"the same")
    with blobs_of_tenant("other"), pytest.raises(UnknownMessage):
        await store.blob(blob)
    with blobs_of_tenant("other"):
        assert await store.put_blob(b"the same") == blob
    await store.destroy_key("acme")
    with blobs_of_tenant("other"):
        assert await store.blob(blob) == b"the same"
    with blobs_of_tenant("acme"), pytest.raises(TenantKeyDestroyed):
        await store.blob(blob)
    await store.aclose()


# Keys -------------------------------------------------------------------------------------------------------------------


async def test_a_destroyed_key_takes_everything_along_also_from_a_backup_before(
    stores: Stores, keyring: Keyring, tmp_path: Path
):
    name, restored = stores.new("talks"), stores.new("restored")
    store = open_encrypted(name, keyring)
    await fill(store)
    await fill(store, "other", "their talk")
    await create_backup(name, tmp_path / "backup")
    _, problems = await verify_backup(tmp_path / "backup")
    assert problems == []
    backup = b"".join(path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file())
    assert WORD.encode() not in backup

    assert await store.destroy_key("acme")
    assert not await store.destroy_key("acme")
    await restore_backup(tmp_path / "backup", restored)
    await assert_unreadable(store)
    assert await store.erase_owner("acme") is not None  # what is left can be removed without the key
    assert [info.id for info in await store.sessions()] == ["their talk", "their talk waits"]
    await store.aclose()

    old = open_encrypted(restored, open_keyring(str(tmp_path / "keyring"), [MASTER]))
    await assert_unreadable(old)
    assert any(WORD in text for text in await read_all(old, "other", "their talk"))
    await old.aclose()


async def assert_unreadable(store: SqlStore) -> None:
    for read in (
        store.events("talk"),
        store.inbox("talk waits"),
        store.tree("talk"),
        store.claim("talk waits", 9e9),
        store.admit(replace(send_message(session="new"), tenant="acme")),
    ):
        with pytest.raises(TenantKeyDestroyed, match="tenant 'acme' was destroyed"):
            await read
    with pytest.raises(TenantKeyDestroyed):
        await store.user_memory.file("acme", "anna", "kept.md")
    assert await store.search(WORD, "acme") == []
    assert {info.title for info in await store.session_page("acme")} == {""}
    assert [gate.gate for gate in await store.gates(tenant="acme")] == []
    assert len(await store.gates()) == 1  # of the other tenant


async def test_another_process_notices_within_seconds_that_a_key_was_destroyed(
    stores: Stores, keyring: Keyring, tmp_path: Path
):
    name = stores.new("talks")
    local, remote = (
        open_encrypted(name, keyring),
        open_encrypted(name, open_keyring(str(tmp_path / "keyring"), [MASTER])),
    )
    clock = [0.0]
    remote._encrypted.keys._now = lambda: clock[0]  # pyright: ignore[reportOptionalMemberAccess]
    remote._encrypted.keys._checked = 0.0  # pyright: ignore[reportOptionalMemberAccess]
    await local.admit(send_message())
    assert len(await remote.inbox("s")) == 1
    await local.destroy_key("local")
    assert len(await remote.inbox("s")) == 1
    clock[0] += CACHE_SECONDS + 0.1
    with pytest.raises(TenantKeyDestroyed):
        await remote.inbox("s")
    await local.aclose()
    await remote.aclose()


async def test_rotation_of_the_master_key_wraps_the_keys_anew_and_leaves_the_rows(
    stores: Stores, keyring: Keyring, tmp_path: Path
):
    name, place = stores.new("talks"), str(tmp_path / "keyring")
    store = open_encrypted(name, keyring)
    await fill(store)
    await store.aclose()
    raw = await dump(name, tmp_path / "nothing")
    both = open_keyring(place, [NEXT, MASTER])
    assert await both.rewrap() == 2  # the tenant's, and that of the keyring itself
    assert await both.rewrap() == 0
    assert await dump(name, tmp_path / "nothing") == raw
    stale = open_encrypted(name, open_keyring(place, [MASTER]))
    with pytest.raises(ConfigError, match=r"not in \[store.encryption\] master_keys"):
        await stale.check_encryption()
    await stale.aclose()
    rotated = open_encrypted(name, open_keyring(place, [NEXT]))
    assert any(WORD in text for text in await read_all(rotated))
    await rotated.aclose()


async def test_a_wrong_or_missing_key_at_the_start_names_the_setting(stores: Stores, keyring: Keyring, tmp_path: Path):
    name = stores.new("talks")
    store = open_encrypted(name, keyring)
    await store.admit(send_message())
    await store.aclose()

    async def refused(store: Any, match: str) -> None:
        app = App(ScriptedModel(), store=store)
        with pytest.raises(ConfigError, match=match):
            await app.start()
        await app.aclose()
        await store.aclose()

    await refused(get_store(name), r"no \[store.encryption\]")
    bare = get_store(name)
    with pytest.raises(UnreadableLog, match=r"see \[store.encryption\]"):
        await bare.inbox("s")
    await bare.aclose()
    wrong, foreign = open_keyring(str(tmp_path / "keyring"), [NEXT]), open_keyring(str(tmp_path / "other"), [MASTER])
    await refused(open_encrypted(name, wrong), r"not in \[store.encryption\] master_keys")
    await refused(open_encrypted(name, foreign), r"\[store.encryption\] keyring names")
    for keys, problem in (([], "is empty"), (["short"], "key 1 is not 32 bytes"), ([MASTER, "?"], "key 2")):
        with pytest.raises(ConfigError, match=rf"\[store.encryption\] master_keys.*{problem}"):
            open_keyring(str(tmp_path / "keyring"), keys)
    with pytest.raises(ConfigError, match="keyring is missing"):
        open_keyring("", [MASTER])
    with pytest.raises(ConfigError, match="its backups would have the keys"):
        open_keyring(f"{URL}?schema=keys", [MASTER], f"{URL}?schema=talks")


# Stories --------------------------------------------------------------------------------------------------------------


async def test_an_encrypted_story_stopped_after_any_event_ends_as_if_it_had_not_been(
    stores: Stores, keyring: Keyring
) -> None:
    story = next(story for story in STORIES if story.name == "two gates")

    async def tell(name: str, lives: int | None = None) -> World:
        store = open_encrypted(stores.new(name), keyring)
        world = World(store=cast("MemoryStore", store))
        if not await Process(story, world, lives).tell():
            assert await Process(story, world).tell()
        return world

    whole = await tell("whole")
    await check(whole)
    expected, length = plain(await entries_in(whole)), len(await entries_in(whole))
    await cast("SqlStore", whole.store).aclose()
    for stop in range(length):
        world = await tell(f"stop{stop}", stop)
        await check(world)
        log = plain(await entries_in(world))
        unknown = unknown_calls(log)
        await cast("SqlStore", world.store).aclose()
        assert without_results(log, unknown) == without_results(expected, unknown), f"stopped after {stop}"


# The raw database --------------------------------------------------------------------------------------------------------


async def copy_store(name: str, target: str) -> None:
    if "://" not in name:
        shutil.copy(name, target)  # it is closed, and so all in one file
        return
    backup = Path(os.environ.get("TMPDIR", "/tmp")) / f"everturn-copy-{os.urandom(8).hex()}"
    await create_backup(name, backup)
    await restore_backup(backup, target)
    shutil.rmtree(backup)


async def run_sql(name: str, sql: str) -> None:
    if "://" not in name:
        connection = sqlite3.connect(name)
        with connection:
            assert connection.execute(sql).rowcount == 1
        connection.close()
        return
    url, _, schema = name.partition("?schema=")
    postgres: Any = await asyncpg.connect(url, server_settings={"search_path": schema})
    assert (await postgres.execute(sql)).endswith(" 1")
    await postgres.close()
