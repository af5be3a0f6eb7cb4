"""Whoever shows nothing may ask so often, and whoever shows something is asked about whatever strangers do."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.errors import TooMuch
from everturn.server import strangers
from everturn.server.strangers import BURST, RATE, Strangers
from tests.server.asking import ask, make, make_house, word


def at(address: str) -> dict[str, Any]:
    return {"client": (address, 5)}


def asks(door: Strangers, address: str) -> bool:
    try:
        door.count(at(address))
    except TooMuch:
        return False
    return True


def test_each_address_has_its_own_number_and_gets_more_with_time() -> None:
    now = [100.0]
    door = Strangers(lambda: now[0])
    assert sum(asks(door, "192.0.2.1") for _ in range(int(BURST) + 50)) == int(BURST)
    assert asks(door, "192.0.2.2")
    now[0] += 2.0
    assert sum(asks(door, "192.0.2.1") for _ in range(200)) == int(2 * RATE)
    assert sum(asks(door, f"2001:db8::{one:x}") for one in range(300)) == int(BURST), "a whole net is one address"


def test_no_more_addresses_are_remembered_than_there_is_place_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "ADDRESSES", 10)
    door = Strangers(lambda: 1.0)
    for one in range(100):
        door.count(at(f"192.0.2.{one}"))
    assert len(door._left) == 10


async def test_strangers_are_refused_and_nobody_else_is() -> None:
    app = make(await make_house())
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
