"""Logins of people over time: kept encrypted over restarts, waited for by calls, ended by the person, an owner or an erasure."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn import api
from everturn.config.secret_box import SecretBox
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError, Forbidden
from everturn.mcp.login_store import DeferredLogins, FileLogins, LoginStore, Person, StoredLogins
from everturn.mcp.token_storage import PersonTokens
from everturn.stores.registry import get_store
from everturn.testing import MemoryStore
from tests.helpers import call_records
from tests.helpers.protected_mcp_server import Drive, drive
from tests.helpers.waiting import wait_until
from tests.mcp_login.world import RETURN_TO, answer_of, world

ADA = Person(LOCAL, "ada")


@pytest.fixture
async def served() -> AsyncGenerator[Drive]:
    async with drive() as server:
        yield server


def stored(store: Store, key: bytes = b"k" * 32) -> StoredLogins:
    return StoredLogins(store.user_memory, SecretBox([key]), lambda: 1.0)


async def test_a_call_without_a_login_waits_and_continues_after_the_login(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("bob")
        for text, result in (("whose 1", "ada@drive:1"), ("note 2", "noted for ada@drive: 2")):
            sent = await node.say("ada", text)
            gate = await node.gate("ada", sent.session)
            assert "page MCP servers" in gate.gate.arguments
            assert served.calls == [] or served.calls[-1][0] == "ada@drive"
            await node.log_in("ada")
            assert await node.results("ada", sent) == [result]
            await node.access("ada").mcp_logins.log_out_server("drive")


async def test_who_approves_without_a_login_is_asked_again_and_a_denial_ends_the_call(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("bob")
        sent = await node.say("ada", "whose 1")
        first = await node.gate("ada", sent.session)
        await node.access("ada").gates.resolve(sent.session, first.gate.id, _answer(first, allow="once"))

        async def next_gate() -> api.GateView | None:
            gates = (await node.access("ada").gates.page(sent.session)).gates
            return next((view for view in gates if view.gate.id != first.gate.id), None)

        second = await wait_until(next_gate)
        await node.access("ada").gates.resolve(sent.session, second.gate.id, _answer(second, deny="not now"))
        (result,) = await node.results("ada", sent)
        assert "ada has not logged in to server drive: not now" in result
        assert served.calls == []


def _answer(view: api.GateView, **fields: object) -> api.AnswerGate:
    return api.AnswerGate(hash=view.gate.hash, **fields)  # pyright: ignore[reportArgumentType]


async def test_another_process_continues_a_call_that_waits_with_the_login_of_its_user(served: Drive, tmp_path: Path):
    """The first process is gone; the second has the store alone, and its logins open later than its turns start."""
    store = MemoryStore()
    async with world(served, tmp_path / "one", store, logins=stored(store)) as first:
        await first.log_in("bob")
        sent = await first.say("ada", "note 1")
        await first.gate("ada", sent.session)
    deferred = DeferredLogins()
    async with world(served, tmp_path / "two", store, logins=_opening(deferred, stored(store))) as second:
        assert (await second.view("bob")).tools, "the tools are known before anybody connects"
        await second.log_in("ada")
        assert await second.results("ada", sent) == ["noted for ada@drive: 1"]
        assert await second.ask("bob", "whose 2") == ["bob@drive:2"], "a login is of all processes"
    assert served.calls == [("ada@drive", "1"), ("bob@drive", "2")]


def _opening(deferred: DeferredLogins, logins: LoginStore) -> DeferredLogins:
    asyncio.get_running_loop().call_later(0.05, deferred.open, logins)
    return deferred


async def test_a_process_that_was_killed_leaves_the_login_and_the_waiting_call(served: Drive, tmp_path: Path):
    place = [sys.executable, "-m", "tests.mcp_login.killed_process"]
    arguments = [str(served.port), served.giver.base, str(tmp_path)]
    child = await asyncio.create_subprocess_exec(*place, *arguments, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(120):
        session, turn = (await child.stdout.readline()).decode().split()
    child.kill()
    await child.wait()
    store = get_store(str(tmp_path / "a.db"))
    try:
        async with world(served, tmp_path / "two", store, logins=stored(store)) as node:
            assert not (await node.view("ada")).is_logged_in
            await node.log_in("ada")
            sent = api.MessageReceipt(session=session, turn=turn, message="", is_new=False)
            assert await node.results("ada", sent) == ["noted for ada@drive: 1"]
            assert await node.ask("bob", "whose 2") == ["bob@drive:2"], "bob logged in to the process that was killed"
    finally:
        data = (tmp_path / "a.db").read_bytes()
        assert b"access-" not in data
        assert b"refresh-" not in data
        call_records.forget()  # what another process wrote, they have not seen
    assert served.calls == [("ada@drive", "1"), ("bob@drive", "2")]


async def test_a_login_that_another_process_began_is_completed_by_it(served: Drive, tmp_path: Path):
    store = MemoryStore()
    async with (
        world(served, tmp_path / "one", store, logins=stored(store)) as first,
        world(served, tmp_path / "two", store, logins=stored(store)) as second,
    ):
        begun = await first.access("ada").mcp_logins.log_in_server("drive", RETURN_TO)
        answer = await answer_of(begun.address, "ada@drive")
        assert (await second.access("ada").mcp_logins.finish_login(answer)).server == ""
        await wait_until(lambda: not first.servers.logins.is_waiting("drive", ADA), 20)
        assert (await second.view("ada")).is_logged_in


async def test_a_stored_login_opens_for_its_person_its_server_and_its_key_alone(served: Drive, tmp_path: Path):
    store = MemoryStore()
    logins = stored(store)
    async with world(served, tmp_path, store, logins=logins) as node:
        await node.log_in("ada")
    spec = served.spec()
    assert (await PersonTokens(spec, logins, ADA).load()).tokens is not None
    (info, *_) = [file for file in await store.user_memory.files(LOCAL, "mcp:ada") if file.path.endswith(".json")]
    file = await store.user_memory.file(LOCAL, "mcp:ada", info.path)
    assert file is not None
    assert not [secret for secret in served.giver.secrets if secret in file.text]
    from everturn.core.memory.user_memory import MemoryPut

    await store.user_memory.change(LOCAL, "mcp:bob", MemoryPut(info.path, file.text), at=1.0)
    assert (await PersonTokens(spec, logins, Person(LOCAL, "bob")).load()).tokens is None, "copied to another person"
    assert (await PersonTokens(spec, stored(store, b"x" * 32), ADA).load()).tokens is None, "another key"


async def test_a_token_is_renewed_for_its_person_alone_and_only_once(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("ada")
        await node.log_in("bob")
        mine = {token for token in served.giver.access if served.giver.accounts[token] == "ada@drive"}
        served.giver.access -= mine
        assert await node.ask("ada", "whose " + ",".join("123456")) == [f"ada@drive:{n}" for n in "123456"]
        assert served.giver.seen["refresh_token"] == 1
        assert await node.ask("bob", "whose 7") == ["bob@drive:7"]


async def test_a_login_that_was_revoked_at_the_server_is_asked_for_again(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("ada")
        assert await node.ask("ada", "whose 1") == ["ada@drive:1"]
        served.giver.access.clear()
        served.giver.refresh.clear()
        sent = await node.say("ada", "note 2")
        await node.gate("ada", sent.session)
        await node.log_in("ada")
        assert await node.results("ada", sent) == ["noted for ada@drive: 2"]
        assert served.calls == [("ada@drive", "1"), ("ada@drive", "2")]


async def test_who_logs_out_is_not_used_any_more_and_the_token_is_revoked(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("ada")
        await node.log_in("bob")
        assert await node.ask("ada", "whose 1") == ["ada@drive:1"]
        await node.access("ada").mcp_logins.log_out_server("drive")
        assert served.giver.revoked == ["ada@drive"]
        sent = await node.say("ada", "whose 2")
        await node.gate("ada", sent.session)
        assert await node.ask("bob", "whose 3") == ["bob@drive:3"]
        assert served.calls == [("ada@drive", "1"), ("bob@drive", "3")]


async def test_an_owner_ends_a_login_of_the_tenant(served: Drive, tmp_path: Path):
    async with world(served, tmp_path) as node:
        await node.log_in("ada")
        with pytest.raises(Forbidden):
            await node.access("bob").mcp_logins.revoke_login("drive", "ada")
        await node.access("carol").mcp_logins.revoke_login("drive", "ada")
        assert not (await node.view("ada")).is_logged_in
        assert served.giver.revoked == ["ada@drive"]
        did = [(record.did, record.by) for record in await node.context.accounts.audit(LOCAL)]
        assert ("mcp.revoke", "carol") in did


@pytest.mark.parametrize("how", ["remove", "erase"])
async def test_a_user_who_is_removed_or_erased_leaves_no_token(served: Drive, tmp_path: Path, how: str):
    store = MemoryStore()
    logins = stored(store)
    async with world(served, tmp_path, store, logins=logins) as node:
        await node.log_in("ada")
        await node.log_in("bob")
        with pytest.raises(ConfigError, match="log out first"):
            await node.access("ada").mcp_logins.log_in_server("drive", RETURN_TO)
        carol = node.access("carol")
        await (carol.users.remove("ada") if how == "remove" else carol.memory.erase_user("ada"))
        assert await store.user_memory.files(LOCAL, "mcp:ada") == []
        assert served.giver.revoked == ["ada@drive"]
        late = PersonTokens(served.spec(), logins, ADA)
        await late.save(tokens={"access_token": "late", "token_type": "Bearer"})
        assert await store.user_memory.files(LOCAL, "mcp:ada") == [], "a renewal does not bring a login back"
        assert (await node.view("bob")).is_logged_in


async def test_a_login_that_a_removed_user_began_cannot_be_completed(served: Drive, tmp_path: Path):
    store = MemoryStore()
    async with world(served, tmp_path, store, logins=stored(store)) as node:
        begun = await node.access("ada").mcp_logins.log_in_server("drive", RETURN_TO)
        await node.access("carol").users.remove("ada")
        assert not node.servers.logins.is_waiting("drive", ADA)
        assert (
            await node.access("ada").mcp_logins.finish_login(await answer_of(begun.address, "ada@drive"))
        ).server == ""
        assert not [info for info in await store.user_memory.files(LOCAL, "mcp:ada") if info.path.startswith("drive")]


async def test_an_erased_owner_of_a_database_leaves_no_token_and_no_prompt(tmp_path: Path):
    from everturn.core.memory.user_memory import MemoryPut

    store = get_store(str(tmp_path / "a.db"))
    for owner in ("ada", "mcp:ada", "prompts:ada", "mcp:bob", "adam"):
        await store.user_memory.change(LOCAL, owner, MemoryPut("x.json", "x"), at=1.0)
    await store.erase_owner(LOCAL, "ada")  # pyright: ignore[reportAttributeAccessIssue]
    left = [
        owner
        for owner in ("ada", "mcp:ada", "prompts:ada", "mcp:bob", "adam")
        if await store.user_memory.files(LOCAL, owner)
    ]
    assert left == ["mcp:bob", "adam"]


async def test_a_shared_login_is_of_all_and_an_operator_logs_in(served: Drive, tmp_path: Path):
    async with world(served, tmp_path, login="shared") as node:
        with pytest.raises(Forbidden):
            await node.access("ada").mcp_logins.log_in_server("drive", RETURN_TO)
        await node.log_in("root", "team@drive")
        await wait_until(lambda: node.servers.status()[0].state == "ready", 20)
        assert await node.ask("ada", "whose 1") == ["team@drive:1"]
        assert await node.ask("bob", "whose 2") == ["team@drive:2"]
        ada, root = await node.view("ada"), await node.view("root")
        assert (ada.login, ada.can_log_in, ada.logged_in_as) == ("shared", False, "")
        assert (root.login, root.can_log_in, root.is_logged_in) == ("shared", True, True)
        await node.access("root").mcp_logins.log_out_server("drive")
        await wait_until(lambda: node.servers.status()[0].state == "needs_login", 20)


async def test_files_keep_people_apart_and_are_only_their_owners(tmp_path: Path):
    logins = FileLogins(tmp_path)
    assert await logins.write(ADA, "x.json", b"1")
    assert not await logins.write(Person(LOCAL, "bob"), "x.json", b"2", only_existing=True)
    assert await logins.read(Person(LOCAL, "bob"), "x.json") is None
    assert await logins.read(Person("other", "ada"), "x.json") is None
    found = await asyncio.to_thread(lambda: list(tmp_path.rglob("*.json")))
    modes = {path.stat().st_mode & 0o777 for path in found}
    assert modes == {0o600}
    assert await logins.delete(ADA, "x.json")
    assert not await logins.delete(ADA, "x.json")
