"""Ten thousand ids that are nearly ours, in every place where an id may stand: nothing of ours comes out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import Role
from everturn.server.app import make_app
from everturn.server.route import Route
from tests.helpers.route_matrix import CANARY, Things, World, a_world, absent, fitting, may, state_of
from tests.helpers.server_app import ask
from tests.security.test_matrix import OWN

_NOTHING: Any = None  # the routes are looked at, and none is called
WITH_IDS: list[Route] = [
    route
    for route in make_app(_NOTHING, _NOTHING, _NOTHING, ServerOptions()).table.routes
    if "{" in route.path and route.needs is not None and route.name not in OWN
]
"""Every route with an id in its path, but for names that a tenant or the configuration gives."""

ODD = (
    "", ".", "..", "../..", "*", "%", "%%", "_", "' OR '1'='1", "\" OR 1=1 --", "; DROP TABLE sessions", "$ne", "{}", "[]",
    "null", "undefined", "0", "-1", "1e9", "true", "\0", "a\0b", "\n", "\r\nX: y", "\u202e", "\u0000", "\ufeff", "é", "İ",
    "\u017fes", "\U0001d4fc\U0001d4ee\U0001d4fc", "\ud7ff", "￿", "a" * 200, "a" * 201, "a" * 5000, "~", "/", "//", "\\", "..\\..", "file:///etc/passwd",
    "http://127.0.0.1/", "${jndi:x}", "{{7*7}}", "%00", "%2e%2e%2f", "%252e%252e%252f", "\x1b[31m", "<script>", "💥",
)  # fmt: skip


def mutations(value: str, chance: random.Random) -> Iterator[str]:
    """An id of somebody else's, and what is nearly it, without an end."""
    changes: tuple[Callable[[str], str], ...] = (
        lambda it: it,
        lambda it: it.upper(),
        lambda it: it.swapcase(),
        lambda it: it + chance.choice([" ", "\t", "\0", "/", ".", "%", "\u200b", "\u0301", "x"]),
        lambda it: chance.choice([" ", "./", "../", "%2f", "\ufeff", "ours/", "ours:"]) + it,
        lambda it: it[:-1],
        lambda it: it[1:],
        lambda it: it[: chance.randrange(len(it) + 1)] + "%" + it[chance.randrange(len(it) + 1) :],
        lambda it: it[: chance.randrange(len(it))] + chance.choice("*_?%") * chance.randrange(1, 4),
        lambda it: "".join(chr(ord(char) + 0xFEE0) if char.isascii() and char.isprintable() and char != " " else char for char in it),
        lambda it: it.partition("_")[2] or it,
        lambda it: chance.choice(["ses_", "msg_", "turn_", "gate_", ""]) + it.partition("_")[2],
        lambda it: it[:-1] + chance.choice("0123456789abcdef"),
        lambda it: it[::-1],
        lambda it: it + it,
        lambda it: f"{it},{it}",
        lambda it: f"{it}#x",
        lambda it: f"{it};x=1",
    )  # fmt: skip
    while True:
        yield chance.choice(ODD) if chance.random() < 0.15 else chance.choice(changes)(value)


def spell(value: str, chance: random.Random) -> str:
    """An id as it may stand in a path: encoded, encoded twice, every byte of it, or hardly at all."""
    raw = value.encode("utf-8", "replace")
    way = chance.random()
    if way < 0.6:
        return quote(raw, safe="")
    if way < 0.8:
        return "".join(f"%{byte:02x}" for byte in raw)
    return quote(quote(raw, safe=""), safe="") if way < 0.9 else quote(raw, safe="/%.;@:+")


async def fuzz(
    world: World,
    tries: int,
    seed: int,
    *,
    ours: Things | None = None,
    key: str = "",
    role: Role = "owner",
    canary: str = CANARY.format(tenant="ours"),
    shared: Mapping[str, int] | None = None,
) -> dict[int, int]:
    """Ask for what is ours in theirs' name, with ids of ours bent in every way; the statuses that came.

    `shared` has routes to what all who ask here may know of, with the status of their answer.
    """
    chance = random.Random(seed)
    ours, mine = ours or world.things["ours"], world.things["theirs"]
    key = key or world.key("theirs", "owner")
    routes = [route for route in WITH_IDS if may(role, route)]
    found = {name: mutations(value, chance) for name, value in ours.ids().items()}
    private = [getattr(ours, name).encode() for name in ("session", "message", "turn", "gate", "blob", "answer", "key")]
    statuses: dict[int, int] = {}
    for _ in range(tries):
        route = chance.choice(routes)
        is_mine_above = chance.random() < 0.3  # a session of one's own, and what is below it theirs
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
        bent = {name: next(found[name]) for name in names}
        if is_mine_above and len(names) > 1:
            bent[names[0]] = mine.ids()[names[0]]
        path = "/".join(
            spell(bent[part[1:-1]], chance) if part.startswith("{") else part for part in route.path.split("/")
        )
        more: dict[str, Any] = {}
        if route.takes == "json" and route.body is not None:
            ids = {name: next(values) for name, values in found.items()}
            more["json"] = fitting(route, ids)
        elif route.takes == "bytes":
            more = {"body": b"x", "headers": {"content-type": "image/png"}}
        answer = await ask(world.app, route.method, path, key, **more)
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        is_shared = (shared or {}).get(route.name) == answer.status
        assert (
            answer.status in (400, 404, 405, 409, 415, 422) or is_shared or is_harmless(route, answer.status, path)
        ), (
            route.name,
            path,
            answer.status,
            answer.body[:200],
        )
        assert canary.encode() not in answer.body, (route.name, path)
        echoed = msgspec.json.encode(bent) + path.encode()
        for secret in private:
            assert secret not in answer.body or secret in echoed, (route.name, path, answer.body[:200])
    return statuses


def is_harmless(route: Route, status: int, path: str) -> bool:
    """What may be said though nothing is there: chats of the AI SDK are named by their clients, and theirs are their own;
    and a path that was bent into another one of one's own (a list, say) is answered as that.
    """
    if route.tag == "ai-sdk":
        return status in (200, 204)
    if route.name == "erase_memory":  # of a user of one's own tenant who has none: it is erased
        return status == 204
    return status == 200 and path.rstrip("/").count("/") != route.path.count("/")


@pytest.mark.timeout(300)  # ten thousand requests
async def test_ten_thousand_ids_of_others_lead_nowhere() -> None:
    async with a_world() as world:
        before = await state_of(world, "ours")
        statuses = await fuzz(world, 10_000, seed=8)
        assert statuses[404] > 5_000
        assert 500 not in statuses
        assert await state_of(world, "ours") == before


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(20))
async def test_two_hundred_thousand_of_them_neither(seed: int) -> None:
    async with a_world() as world:
        before = await state_of(world, "ours")
        assert 500 not in await fuzz(world, 10_000, seed)
        assert await state_of(world, "ours") == before


async def test_what_fuzzing_relies_on_holds(world_things: World) -> None:
    """The same requests in our own name do find what is there; or ten thousand misses would prove nothing."""
    world, key = world_things, world_things.key("ours", "owner")
    ours = world.things["ours"]
    found = [
        (await world.ask(route, key, ours.ids())).status
        for route in WITH_IDS
        if route.method == "GET"
        and not route.tag.startswith("ai")
        and route.name != "mcp_logins"  # there is no such server
    ]
    missed = [
        (await world.ask(route, key, absent(ours).ids())).status
        for route in WITH_IDS
        if route.method == "GET"
        and not route.tag.startswith("ai")
        and route.name != "mcp_logins"  # there is no such server
    ]
    assert set(found) == {200}
    assert set(missed) == {404}


@pytest.fixture(name="world_things")
async def a_world_of_things() -> Any:
    async with a_world() as world:
        yield world
