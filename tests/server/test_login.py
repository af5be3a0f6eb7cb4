"""From the link to the cookie and out again, with the real door."""

from __future__ import annotations

from tests.helpers.route_matrix import World, a_world
from tests.helpers.server_app import HOST, PORT, Answer, ask

FORM = {"content-type": "application/x-www-form-urlencoded"}


async def logged_in(world: World, user: str = "owner") -> str:
    secret = await world.app.authenticator.login_link("ours", user)
    answer = await ask(world.app, "POST", "/login", body=f"token={secret}".encode(), headers=FORM)
    assert answer.status == 303
    return answer.header("set-cookie").partition(";")[0].partition("=")[2]


async def csrf_of(world: World, cookie: str) -> str:
    return (await ask(world.app, "GET", "/api/me", cookie=cookie)).json["csrf"]


async def change(world: World, cookie: str, token: str, **headers: str) -> Answer:
    request_headers = {"x-csrf-token": token, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await ask(world.app, "POST", "/api/sessions", cookie=cookie, json={"text": "x"}, headers=request_headers)


async def test_a_link_becomes_a_cookie_once() -> None:
    async with a_world() as world:
        secret = await world.app.authenticator.login_link("ours", "owner")
        body = f"token={secret}".encode()
        first = await ask(world.app, "POST", "/login", body=body, headers={**FORM, "origin": f"http://{HOST}"})
        again = await ask(world.app, "POST", "/login", body=body, headers=FORM)
        assert (first.status, again.status) == (303, 401)
        cookie = first.header("set-cookie").partition(";")[0].partition("=")[2]
        me = await ask(world.app, "GET", "/api/me", cookie=cookie)
        assert (me.status, me.json["user"], me.json["role"]) == (200, "owner", "owner")
        assert secret not in str(first.headers)


async def test_a_page_of_somebody_else_cannot_log_a_browser_in() -> None:
    async with a_world() as world:
        secret = await world.app.authenticator.login_link("ours", "owner")
        body = f"token={secret}".encode()
        for origin in ("http://evil.example", "null"):
            answer = await ask(world.app, "POST", "/login", body=body, headers={**FORM, "origin": origin})
            assert answer.status == 403
        assert (await ask(world.app, "POST", "/login", body=body, headers=FORM)).status == 303


async def test_the_token_of_one_login_is_not_that_of_another() -> None:
    async with a_world() as world:
        mine, other = await logged_in(world), await logged_in(world)
        token = await csrf_of(world, mine)
        assert (await change(world, mine, token)).status == 201
        assert (await change(world, other, token)).code == "csrf"
        assert (await change(world, mine, "")).code == "csrf"
        assert (await change(world, mine, token, origin="http://evil.example")).status == 403
        assert (await change(world, mine, token, sec_fetch_site="same-site")).status == 403


async def test_logging_out_ends_this_login_and_no_other() -> None:
    async with a_world() as world:
        mine, other = await logged_in(world), await logged_in(world)
        headers = {"x-csrf-token": await csrf_of(world, mine)}
        assert (await ask(world.app, "POST", "/api/logout", cookie=mine, headers=headers)).status == 204
        assert (await ask(world.app, "GET", "/api/me", cookie=mine)).status == 401
        assert (await ask(world.app, "GET", "/api/me", cookie=other)).status == 200


async def test_a_cookie_is_no_key_and_a_key_no_cookie() -> None:
    async with a_world() as world:
        cookie, key = await logged_in(world), world.key("ours", "owner")
        assert (await ask(world.app, "GET", "/api/me", cookie)).status == 401
        assert (await ask(world.app, "GET", "/api/me", cookie=key)).status == 401
        both = await ask(world.app, "GET", "/api/me", world.key("theirs", "owner"), cookie=cookie)
        assert both.status == 401
        assert PORT


async def test_what_an_unknown_key_costs_is_one_answer_like_any_other() -> None:
    odd = ["evk_" + "x" * 43, "' OR 1=1 --", "evk_'; DROP TABLE users; --", "a.b.c", "\x7f", "é" * 20, "x" * 9000, ""]
    async with a_world() as world:
        answers = [await ask(world.app, "GET", "/api/me", headers={"authorization": f"Bearer {word}"}) for word in odd]
        answers.append(await ask(world.app, "GET", "/api/me"))
        assert {(answer.status, answer.body) for answer in answers} == {(401, answers[0].body)}
