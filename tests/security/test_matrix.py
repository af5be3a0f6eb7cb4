"""Every route, asked by everybody: who may is what the route says, and what is another tenant's is not there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from everturn import api
from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import ROLES
from everturn.server.protocols import ag_ui
from everturn.server.protocols.a2a import a2a_routes
from everturn.server.protocols.ai_sdk import routes as ai_sdk_routes
from everturn.server.protocols.openai import routes as openai_routes
from everturn.server.route import Route
from everturn.server.routes import (
    accounts,
    admin,
    audio,
    hooks,
    presence,
    push,
    schedules,
    settings,
    sharing,
    traces,
    users,
    webhooks,
)
from everturn.server.routes import api as api_routes
from tests.helpers.route_matrix import CANARY, Things, World, a_world, absent, may, state_of
from tests.helpers.server_app import Answer, ask

ROUTES: list[Route] = [
    *api_routes.ROUTES,
    *admin.ROUTES,
    *accounts.ROUTES,
    *sharing.ROUTES,
    *traces.ROUTES,
    *audio.ROUTES,
    *presence.ROUTES,
    *push.ROUTES,
    *schedules.ROUTES,
    *webhooks.ROUTES,
    *users.ROUTES,
    *settings.ROUTES,
    *(route for route in hooks.ROUTES if route.needs is not None),
    *openai_routes.ROUTES,
    *ai_sdk_routes.ROUTES,
    *ag_ui.ROUTES,
    *a2a_routes(ServerOptions()),
]
OTHERS = {"openapi", "metrics", "log_out", "change_password"}
"""Routes of the application itself that take a credential."""

OWN = {
    *("put_model_key", "delete_model_key", "test_model_key", "put_model", "delete_model"),
    *("put_agent", "delete_agent", "agent_versions", "restore_agent"),
    *("put_mcp", "delete_mcp", "trust_mcp", "retry_mcp"),
    *("put_hook", "rotate_hook_secret", "delete_hook", "hook_calls"),
    *("put_user", "put_tenant", "erase_memory", "a2a_card", "a2a_call"),
    *("remove_user", "set_user_budget", "reset_password"),
}
"""Routes whose ids are names that a tenant or the configuration gives, so that two may have the same."""

by_name = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)

ELSE: dict[str, set[int]] = {
    "answer": {204, 403},  # a gate for a call takes an approver: see below
    "ai_sdk_answer": {204, 403, 404},
    "claim": {422, 409},  # it is no client's
    "revert": {404, 422, 409},  # no files were changed
    "import_session": {422},  # that was no session
    "ai_sdk_resume": {204, 404},  # nobody talks to us so
    "ai_sdk_stop": {204, 404},
    "openai_create": {200, 400, 409},
    "openai_retrieve": {200},
    "delete": {204, 409},  # a turn is under way
    "select": {204, 409},
    "fork": {409},  # it is no answer
    "switch_agent": {409},  # a turn waits
    "compact": {409},
    "trust_server": {404},  # there is none
    "reset_password": {422},  # passwords are off
    "log_in_server": {404},
    "log_out_server": {404},
    "finish_mcp_login": {200},  # no login of theirs waits for it
    "mcp_logins": {404},
    "revoke_mcp_login": {404},
    "retry_server": {404},
    "transcribe": {422},  # not configured
    "speak": {422},
    "mcp_prompt": {404},
    "mcp_resource": {404},
    "erase": {204, 403, 409},  # of another user's session: an owner may
    "create_schedule": {422},  # the agent is not one of the app
    "replace_schedule": {422, 403},  # it is nobody's: an owner may
    "pause_schedule": {200, 403},
    "resume_schedule": {200, 403},
    "run_schedule": {200, 403},
    "delete_schedule": {204, 403},
    "share": {201, 403},  # only the author: the owner
    "create_link": {201, 403},
    "revoke_share": {204, 403},
    "open_link": {404},  # that was no link
    "dismiss_notice": {204, 404},  # only the author has it
    "rate": {204, 422},  # the message is one of a person
    "unsubscribe_push": {204, 404},  # the one of the owner
    "subscribe_push": {403},  # only a browser in which somebody is logged in subscribes
    "settings": {200, 403},  # with several tenants only an operator; and this server changes none
    **{
        name: {403, 422}
        for name in ("put_model_key", "delete_model_key", "test_model_key", "put_model", "delete_model")
    },
    **{name: {403, 422} for name in ("put_agent", "delete_agent", "agent_versions", "restore_agent")},
    "stored_rules": {200, 403},
    **{name: {403, 422} for name in ("put_rules", "rule_versions", "restore_rules", "dry_run_rules", "explain_draft")},
    **{name: {403, 422} for name in ("put_hook", "rotate_hook_secret", "delete_hook")},
    **{name: {403, 422} for name in ("put_mcp", "delete_mcp", "trust_mcp", "retry_mcp")},
}
"""What else may come of being let in, where it is not just as the route says."""


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as world:
        yield world


def same(first: Answer, other: Answer) -> None:
    assert (first.status, first.body, first.headers) == (other.status, other.body, other.headers)


async def test_the_matrix_has_every_route_that_takes_a_credential(world: World) -> None:
    names = {route.name for route in world.routes if route.needs is not None}
    assert names == {route.name for route in ROUTES} | OTHERS


async def test_nobody_without_a_credential_learns_anything() -> None:
    seen: dict[bool, set[Any]] = {}
    for is_there in (True, False):  # in a world each: an address may ask only so often
        async with a_world() as world:
            ours, before = world.things["ours"], await state_of(world, "ours")
            for route in world.routes:
                if route.needs is None:
                    continue
                answer = await world.ask(route, "", (ours if is_there else absent(ours)).ids())
                assert answer.status == 401, route.name
                headers = [pair for pair in answer.headers if pair != ("connection", "close")]
                seen.setdefault(route.tag == "openai", set()).add((answer.body, str(headers)))
            assert await state_of(world, "ours") == before
    assert {len(answers) for answers in seen.values()} == {1}


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_that_is_not_enough_is_refused_and_nothing_happens(role: str, world: World) -> None:
    ours, before = world.things["ours"], await state_of(world, "ours")
    refused = 0
    for route in world.routes:
        if may(role, route):  # pyright: ignore[reportArgumentType]
            continue
        for ids in (ours.ids(), absent(ours).ids()):
            answer = await world.ask(route, world.key("ours", role), ids)
            assert answer.status == 403, route.name
            assert b"role" in answer.body
            refused += 1
    assert (refused > 0) == (role != "operator")
    assert await state_of(world, "ours") == before


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_that_is_enough_is_let_in(role: str) -> None:
    allowed = [route for route in ROUTES if may(role, route)]  # pyright: ignore[reportArgumentType]
    changing = [route for route in allowed if route.method != "GET"]
    async with a_world() as world:
        for route in allowed:
            if route.method == "GET":
                await let_in(world, route, role)
    for route in changing:
        async with a_world() as world:
            await let_in(world, route, role)


async def let_in(world: World, route: Route, role: str) -> None:
    answer = await world.ask(route, world.key("ours", role), world.things["ours"].ids())
    expected = ELSE.get(route.name, {route.status, 200 if route.gives == "events" else route.status})
    assert answer.status in expected, (route.name, role, answer.status, answer.body[:300])


@pytest.mark.parametrize("role", ["owner", "operator"])
@by_name
async def test_what_is_theirs_is_as_if_it_were_not_there(route: Route, role: str, world: World) -> None:
    ours, key = world.things["ours"], world.key("theirs", role)
    if not may(role, route):  # pyright: ignore[reportArgumentType]
        return
    before = await state_of(world, "ours")
    answer = await world.ask(route, key, ours.ids())
    if route.name == "put_tenant":
        assert role == "operator"
        return
    assert await state_of(world, "ours") == before
    assert CANARY.format(tenant="ours").encode() not in answer.body
    if "{" in route.path and route.name not in OWN:
        other = await world.ask(route, key, absent(ours).ids())
        same(answer, other)
        assert answer.status in (404, 204 if route.tag == "ai-sdk" else 404)


@by_name
async def test_what_is_theirs_is_not_below_what_is_mine_either(route: Route, world: World) -> None:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    if len(names) < 2:
        return
    ours, mine, key = world.things["ours"], world.things["theirs"], world.key("theirs", "owner")
    before = await state_of(world, "ours")
    child = names[-1]
    foreign = await world.ask(route, key, {**mine.ids(), "hash": ours.hash, child: ours.ids()[child]})
    nothing = await world.ask(route, key, {**mine.ids(), "hash": ours.hash, child: absent(ours).ids()[child]})
    same(foreign, nothing)
    assert foreign.status == 404
    assert await state_of(world, "ours") == before


async def test_ids_in_bodies_are_checked_like_those_in_paths(world: World) -> None:
    ours, mine, key = world.things["ours"], world.things["theirs"], world.key("theirs", "owner")
    none, before = absent(ours), await state_of(world, "ours")
    routes = {route.name: route for route in ROUTES}

    async def both(name: str, body: Any) -> Answer:
        """Ask for something of my own, with an id of theirs inside, and with one that nobody has."""
        foreign = await world.ask(routes[name], key, mine.ids(), body(ours))
        other = await world.ask(routes[name], key, mine.ids(), body(none))
        same(foreign, other)
        return foreign

    assert (await both("send", lambda it: {"text": "x", "after": it.answer})).code == "unknown_message"
    assert (await both("send", lambda it: {"text": "x", "after": it.message})).status == 404
    assert (await both("send", lambda it: {"text": "x", "files": [it.file]})).code == "unknown_file"
    assert (await both("start", lambda it: {"text": "x", "files": [it.file]})).code == "unknown_file"
    assert (await both("edit", lambda it: {"text": "x", "files": [it.file]})).code == "unknown_file"
    assert (await both("select", lambda it: {"message": it.message})).code == "unknown_message"
    assert (await both("answer", lambda it: {"hash": it.hash, "allow": "once"})).code == "hash_mismatch"
    assert (await both("claim", lambda it: {"hash": it.hash, "claim": "c" * 16})).status in (404, 409, 422)
    assert (await both("openai_create", lambda it: _response(it))).status == 404
    assert await state_of(world, "ours") == before


def _response(things: Things) -> dict[str, Any]:
    return {"model": "assistant", "input": "x", "previous_response_id": things.response}


async def test_a_gate_takes_an_approver_and_everywhere_takes_an_owner(world: World) -> None:
    ours = world.things["ours"]
    route = next(route for route in ROUTES if route.name == "answer")
    allow, everywhere = {"hash": ours.hash, "allow": "once"}, {"hash": ours.hash, "allow": "always", "everywhere": True}
    for role, body in (("viewer", allow), ("member", allow), ("member", everywhere), ("approver", everywhere)):
        answer = await world.ask(route, world.key("ours", role), ours.ids(), body)
        assert (answer.status, answer.code) == (403, "forbidden"), role
    assert (await world.ask(route, world.key("ours", "approver"), ours.ids(), allow)).status == 204


async def test_lists_have_nothing_of_anybody_else(world: World) -> None:
    word = CANARY.format(tenant="ours").encode()
    secrets = [getattr(world.things["ours"], name).encode() for name in ("session", "turn", "gate", "key", "message")]
    for route in world.routes:
        if route.method != "GET" or "{" in route.path or route.needs is None:
            continue
        answer = await world.ask(route, world.key("theirs", "owner"), {})
        assert word not in answer.body
        assert not any(secret in answer.body for secret in secrets), route.name


async def test_a_key_that_was_revoked_and_a_user_who_left_are_nobody(world: World) -> None:
    key = world.key("ours", "member")
    assert (await ask(world.app, "GET", "/api/me", key)).status == 200
    put = api.PutUser(role="member", is_active=False)
    body = msgspec.to_builtins(put)
    assert (await ask(world.app, "PUT", "/api/users/member", world.key("ours", "owner"), json=body)).status == 200
    world.app.authenticator.clear_cache()  # it remembers for two seconds
    anonymous = await ask(world.app, "GET", "/api/me")
    same(await ask(world.app, "GET", "/api/me", key), anonymous)


async def test_the_same_key_is_the_same_person_whatever_carries_it(world: World) -> None:
    key = world.key("ours", "viewer")
    for headers in (
        {"x-api-key": key},
        {"authorization": key},
        {"authorization": f"Basic {key}"},
        {"authorization": f"Token {key}"},
        {"cookie": f"everturn-8000={key}"},
        {"cookie": f"token={key}"},
        {"proxy-authorization": f"Bearer {key}"},
    ):
        assert (await ask(world.app, "GET", "/api/me", headers=headers)).status == 401, headers
    for path in (f"/api/me?token={key}", f"/api/me?access_token={key}", f"/api/me?api_key={key}"):
        assert (await ask(world.app, "GET", path)).status == 401
