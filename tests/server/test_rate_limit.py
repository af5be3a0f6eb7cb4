"""Whoever shows nothing may ask so often, and whoever shows something is asked about whatever strangers do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn.access.administration.accounts import KEY_PREFIX, new_secret
from everturn.access.auth.authentication import Authenticator
from everturn.access.context.server_context import ServerContext
from everturn.core.tenants.accounts import Credential, Role
from everturn.errors import NotRecognised, TooMuch
from everturn.server import rate_limit
from everturn.server.app import Application
from everturn.server.rate_limit import (
    BURST,
    RATE,
    UNKNOWN_CREDENTIAL_BURST,
    UNKNOWN_CREDENTIAL_RATE,
    AnonymousRateLimit,
)
from tests.helpers.server_app import ask, make, make_house, word


def at(address: str) -> dict[str, Any]:
    return {"client": (address, 5)}


def asks(door: AnonymousRateLimit, address: str) -> bool:
    try:
        door.take(at(address))
    except TooMuch:
        return False
    return True


def test_each_address_has_its_own_number_and_gets_more_with_time() -> None:
    now = [100.0]
    door = AnonymousRateLimit(lambda: now[0])
    assert sum(asks(door, "192.0.2.1") for _ in range(int(BURST) + 50)) == int(BURST)
    assert asks(door, "192.0.2.2")
    now[0] += 2.0
    assert sum(asks(door, "192.0.2.1") for _ in range(200)) == int(2 * RATE)
    assert sum(asks(door, f"2001:db8::{suffix:x}") for suffix in range(300)) == int(BURST), "a whole net is one address"


def test_no_more_addresses_are_remembered_than_there_is_place_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "ADDRESS_LIMIT", 10)
    door = AnonymousRateLimit(lambda: 1.0)
    for suffix in range(100):
        door.take(at(f"192.0.2.{suffix}"))
    assert len(door._buckets) == 10


async def test_unknown_clients_are_refused_and_nobody_else_is() -> None:
    app = make(await make_house())
    app._anonymous_limit._now = lambda: 1.0
    for _ in range(int(BURST)):
        assert (await ask(app, "GET", "/api/me")).status == 401
    for path in ("/api/me", "/", "/login?token=x", "/oidc/login"):
        answer = await ask(app, "GET", path)
        assert (answer.status, answer.code) == (429, "too_much"), path
        assert answer.header("retry-after")
    assert (await ask(app, "GET", "/healthz")).status == 200
    assert (await ask(app, "GET", "/readyz")).status == 200
    assert (await ask(app, "GET", "/api/me", word("viewer"))).status == 200
    assert (await ask(app, "GET", "/api/me", "nobody")).status == 401


async def a_door(*roles: Role) -> tuple[Application, ServerContext, list[str], dict[Role, str]]:
    """An application with the real door, all questions that were put to the store, and a key of each role."""
    house = await make_house()
    app = make(house, Authenticator(house.accounts, house.app.clock))
    app._unknown_credential_limit._now = lambda: 1.0
    keys: dict[Role, str] = {}
    for role in roles:
        keys[role], secret_hash = new_secret(KEY_PREFIX)
        await house.accounts.put_credential(Credential(f"k-{role}", "ours", role, "key", secret_hash, role=role))
    queries: list[str] = []
    known = house.accounts.find_credential

    async def counted(hash: str) -> Any:
        queries.append(hash)
        return await known(hash)

    house.accounts.find_credential = counted
    return app, house, queries, keys


async def test_wrong_keys_are_refused_without_a_question_to_the_store_and_right_ones_go_on() -> None:
    app, _, queries, keys = await a_door("viewer", "owner")
    assert (await ask(app, "GET", "/api/me", keys["viewer"])).status == 200
    statuses = [
        (await ask(app, "GET", "/api/me", f"evk_{number:040}")).status
        for number in range(int(UNKNOWN_CREDENTIAL_BURST) + 60)
    ]
    assert statuses == [401] * int(UNKNOWN_CREDENTIAL_BURST) + [429] * 60
    assert len(queries) == 1 + int(UNKNOWN_CREDENTIAL_BURST)
    assert (await ask(app, "GET", "/api/me", keys["viewer"])).status == 200, "who was recognised before is let in"
    assert (await ask(app, "GET", "/api/me", keys["owner"])).status == 429, "who comes for the first time tries again"
    app._unknown_credential_limit._now = lambda: 2.0
    assert (await ask(app, "GET", "/api/me", keys["owner"])).status == 200
    statuses = [(await ask(app, "GET", "/api/me", f"evk_{number:039}x")).status for number in range(50)]
    assert statuses == [401] * int(UNKNOWN_CREDENTIAL_RATE) + [429] * (50 - int(UNKNOWN_CREDENTIAL_RATE)), (
        "a right one took nothing"
    )


async def test_many_wrong_keys_at_once_are_as_few_questions() -> None:
    app, _, queries, _ = await a_door()
    answers = await asyncio.gather(*(ask(app, "GET", "/api/me", f"evk_{number:040}") for number in range(300)))
    assert sum(answer.status == 401 for answer in answers) == len(queries) == int(UNKNOWN_CREDENTIAL_BURST)


async def test_what_holds_no_more_is_not_remembered() -> None:
    app, house, _, keys = await a_door("viewer")
    shown = f"Bearer {keys['viewer']}"
    await app.authenticator.authenticate(shown)
    assert app.authenticator.was_recently_valid(shown)
    assert not app.authenticator.was_recently_valid(shown, "evl_" + "x" * 40)
    assert not app.authenticator.was_recently_valid(None, None)
    await house.accounts.revoke("ours", "k-viewer", 1.0)
    app.authenticator.clear_cache()
    with pytest.raises(NotRecognised):
        await app.authenticator.authenticate(shown)
    assert not app.authenticator.was_recently_valid(shown)
