"""Rotation of signing keys: what the old key signed is accepted during a rotation and refused after it, on every node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from everturn import App
from everturn.access.auth.authentication import Authenticator
from everturn.access.auth.csrf import csrf_of
from everturn.access.conversations.upload_handles import encode_handle
from everturn.cli.args.operations import SIGNED
from everturn.config.build import app_factory, signing_keys
from everturn.config.check import unresolved_references
from everturn.config.load import load_config
from everturn.core.parts import FilePart
from everturn.core.tenants.accounts import Principal
from everturn.core.tenants.signing_keys import KEY_NAMES, KeyName, derive_key
from everturn.core.webhooks import Webhook, sign_payload
from everturn.errors import ConfigError, NotRecognised
from everturn.stores.accounts import MemoryAccounts
from everturn.stores.signing_keys import CACHE_SECONDS, RECHECK_SECONDS, CachedSigningKeys
from everturn.stores.sql.signing_keys import SqlKeyTable
from everturn.stores.sql.store import SqlStore
from everturn.testing import FakeClock, MemoryStore, ScriptedModel
from everturn.testing.contracts.accounts import audit_record
from tests.access.test_oidc import HERE, a_door, an_authority
from tests.helpers.route_matrix import a_world
from tests.helpers.server_app import ask
from tests.server.test_callbacks import Carrier
from tests.stores.test_backup import cli

NOON = 1_700_000_000.0
TIMES = count(NOON)
LOGIN = Principal("ada", "owner-ada", "owner", "login_1", kind="login")


class Nodes:
    """Two nodes on one store, each with keys and a clock of its own."""

    def __init__(self, table: Any) -> None:
        self.time = 100.0
        self.one, self.two = (CachedSigningKeys(table, lambda: self.time) for _ in range(2))


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    store = SqlStore.sqlite(tmp_path / "a.db")
    yield Nodes(SqlKeyTable(store._database))
    await store.aclose()


async def test_a_node_with_old_keys_verifies_what_another_has_signed_with_a_new_one(nodes: Nodes) -> None:
    old = await nodes.two.first("csrf")
    await nodes.one.add("csrf", NOON)
    new = await nodes.one.first("csrf")
    assert await nodes.two.first("csrf") == old  # cached: it signs with the old key, which still verifies
    nodes.time += RECHECK_SECONDS
    assert [key async for key in nodes.two.candidates("csrf")] == [old, new]
    assert await nodes.two.first("csrf") == new


async def test_a_wrong_token_does_not_make_a_node_read_the_keys_each_time(nodes: Nodes) -> None:
    await nodes.two.first("csrf")
    await nodes.one.add("csrf", NOON)
    for _ in range(5):
        assert len([key async for key in nodes.two.candidates("csrf")]) == 1


async def test_every_node_refuses_a_retired_key_after_the_time_of_its_cache(nodes: Nodes) -> None:
    old = await nodes.two.first("csrf")
    await nodes.one.add("csrf", NOON)
    await nodes.one.retire("csrf")
    nodes.time += CACHE_SECONDS
    assert old not in [key async for key in nodes.two.candidates("csrf")]


async def rotate(accounts: Any, name: KeyName) -> None:
    await accounts.keys.add(name, next(TIMES))


async def test_csrf_tokens_of_the_old_key() -> None:
    accounts = MemoryAccounts()
    door = Authenticator(accounts, FakeClock())
    token = await door.csrf(LOGIN)
    await rotate(accounts, "csrf")
    assert await door.is_csrf(LOGIN, token)
    assert await door.is_csrf(LOGIN, await door.csrf(LOGIN))
    assert await door.csrf(LOGIN) != token
    await accounts.keys.retire("csrf")
    assert not await door.is_csrf(LOGIN, token)
    assert await door.csrf(LOGIN) == csrf_of(await accounts.keys.first("csrf"), LOGIN)


async def test_the_state_of_a_login_with_the_old_key(tmp_path: Path) -> None:
    async with an_authority() as authority:
        how = {"issuer": authority.url, "jwks": "", "client_id": "web", "client_secret": "hu/sh"}
        door, accounts, *_ = await a_door(tmp_path, **how)
        flow = await door.begin_oidc(HERE)
        await rotate(accounts, "oidc")
        assert (await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE))[1].tenant == "ada"
        flow = await door.begin_oidc(HERE)
        await rotate(accounts, "oidc")
        await accounts.keys.retire("oidc")
        with pytest.raises(NotRecognised):
            await door.finish_oidc(*authority.log_in(flow.url), flow.cookie, HERE)


async def test_upload_handles_of_the_old_key() -> None:
    async with a_world() as world:
        accounts, key = world.house.accounts, world.key("ours", "owner")
        blob = await world.house.app.store.put_blob(b"x")
        handle = encode_handle(await accounts.keys.first("files"), "ours", FilePart(blob, "text/plain", 1))

        async def send() -> int:
            return (await ask(world.app, "POST", "/api/sessions", key, json={"text": "look", "files": [handle]})).status

        assert await send() == 201
        await rotate(accounts, "files")
        assert await send() == 201
        await accounts.keys.retire("files")
        assert await send() == 404


async def test_callback_tokens_of_the_old_key() -> None:
    carrier = Carrier()
    turn = await carrier.start()
    (token,) = carrier.tokens
    keys = carrier.app.store.accounts.keys
    await keys.add("callbacks", NOON)
    assert (await carrier.post(token, json=7)).status == 204
    assert (await turn).text == "Shipped."
    await keys.retire("callbacks")
    assert (await carrier.post(token, json=7)).status == 404
    await carrier.app.aclose()


async def test_deliveries_are_signed_with_both_keys_until_the_old_one_is_retired() -> None:
    app = App(ScriptedModel(), store=MemoryStore())
    keys, webhook = app.store.accounts.keys, Webhook(id="w", url="https://example.com/", events=("turn.completed",))
    old = await app.webhooks.sender.secret_of(webhook)
    await keys.add("webhooks", NOON)
    new = await app.webhooks.sender.secret_of(webhook)
    signatures = (await app.webhooks.sender.signatures(webhook, "id", 1, b"body")).split()
    assert signatures == [sign_payload(secret, "id", 1, b"body") for secret in (new, old)]
    await keys.retire("webhooks")
    assert (await app.webhooks.sender.signatures(webhook, "id", 1, b"body")).split() == signatures[:1]
    await app.aclose()


# The command and the configuration ---------------------------------------------------------------------------------


async def test_the_command_lists_rotates_and_retires(tmp_path: Path) -> None:
    name = str(tmp_path / "talks.db")
    store = SqlStore.sqlite(name)
    old = await store.accounts.keys.first("csrf")
    await store.accounts.append_audit(audit_record("start", "local"))

    code, out, _ = await cli("admin", "keys", "rotate", "csrf", "--store", name)
    assert (code, "new keys sign: csrf" in out) == (0, True)
    code, out, _ = await cli("admin", "keys", "list", "--store", name)
    assert (code, out.count("csrf "), out.count("signs"), out.count("no stored key")) == (0, 2, 1, 5)
    assert old.hex() not in out
    code, _, errors = await cli("admin", "keys", "retire", "--store", name)
    assert (code, "not yet used by every process" in errors) == (2, True)
    assert (await cli("admin", "keys", "retire", "--all", "--store", name))[0] == 2
    assert (await cli("admin", "keys", "rotate", "cookies", "--store", name))[0] == 2

    await store.accounts.keys.retire("csrf")
    assert old not in [key.value for key in await store.accounts.keys.stored("csrf")]
    await store.accounts.keys.add("files", NOON)
    code, out, _ = await cli("admin", "keys", "retire", "files", "--store", name)
    assert (code, "retired: 1 key;" in out) == (0, True)
    assert [record.did for record in await store.accounts.audit("local")][-2:] == ["keys.rotate", "keys.retire"]
    await store.aclose()


async def test_the_configuration_gives_the_keys(tmp_path: Path) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text('[auth]\nsigning_keys = ["${env:NEW}", "${env:OLD}"]\n', encoding="utf-8")
    loaded = load_config(str(file))
    keys = {"NEW": "n" * 32, "OLD": "o" * 32}
    app = app_factory(loaded, "offline:demo", keys)(store=MemoryStore())
    assert app.store.accounts.keys.configured == ("n" * 32, "o" * 32)
    assert await app.store.accounts.keys.first("csrf") == derive_key("n" * 32, "csrf")
    await app.aclose()
    with pytest.raises(ConfigError, match="key 2 has fewer than 32 characters"):
        signing_keys(loaded, {**keys, "OLD": "short"})
    assert unresolved_references(loaded.config, {"NEW": "x"}) == ["auth.signing_keys[1]: ${env:OLD} is not set"]
    file.write_text('[auth]\nsigning_keys = ["a key in the file, which is 32 characters long"]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="by reference") as refused:
        load_config(str(file))
    assert "32 characters long" not in str(refused.value)


def test_the_help_names_every_key() -> None:
    assert tuple(SIGNED.split(", ")) == KEY_NAMES
