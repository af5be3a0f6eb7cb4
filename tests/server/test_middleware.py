"""The wall: no page of somebody else's reaches us through a browser, and every answer is dressed."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.config.server_options import ServerOptions
from everturn.server.middleware import LOGGED_HOSTS_LIMIT, SECURITY
from tests.helpers.server_app import HOST, PORT, ask, make, make_house, word

EVIL = "http://evil.example"


async def app(**options: Any) -> Any:
    return make(await make_house(), options=ServerOptions(**options))


@pytest.mark.parametrize(
    "host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"], ids=lambda host: host
)
async def test_our_own_names_are_ours(host: str) -> None:
    assert (await ask(await app(), "GET", "/api/me", word("viewer"), host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1:{PORT}.evil.example",
        f"127.0.0.1.evil.example:{PORT}",
        f"127.0.0.1@evil.example:{PORT}",
        f"localhost:{PORT}:1",
        "localhost:",
        f"localhost.:{PORT}",
        f"127.1:{PORT}",
        f"10.0.0.1:{PORT}",
        f"localhost:0{PORT}0",
    ],
)
@pytest.mark.parametrize("path", ["/api/me", "/healthz", "/login?token=x"])
async def test_a_name_that_is_none_of_ours_is_refused_everywhere(host: str, path: str) -> None:
    answer = await ask(await app(), "GET", path, word("viewer"), host=host)
    assert (answer.status, answer.code) == (403, "foreign_page")


async def test_whoever_comes_by_a_wrong_name_is_told_where_it_is_named_and_the_operator_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = await app()
    for number in (1, 1, *range(100)):
        answer = await ask(site, "GET", "/healthz", host=f"chat{number}.example")
        assert "[server] hosts" in answer.json["error"]["message"]
    assert sum("chat1.example" in record.getMessage() for record in caplog.records) == 1
    assert len(caplog.records) == LOGGED_HOSTS_LIMIT


async def test_configured_names_are_ours_as_well() -> None:
    site = await app(hosts=("chat.lan", "other.lan:99"), public_url="https://chat.example")
    for host in ("chat.lan", "chat.lan:1234", "other.lan:99", "chat.example", HOST):
        assert (await ask(site, "GET", "/api/me", word("viewer"), host=host)).status == 200, host
    for host in ("other.lan", "other.lan:98", "x.chat.lan", "chat.example.evil"):
        assert (await ask(site, "GET", "/api/me", word("viewer"), host=host)).status == 403, host


@pytest.mark.parametrize("origin", [EVIL, "null", "", f"https://{HOST}", "http://127.0.0.1:3000", "http://127.0.0.1"])
@pytest.mark.parametrize("carrier", ["nothing", "cookie", "bearer"])
async def test_a_page_that_is_none_of_ours_is_refused_whatever_it_carries(origin: str, carrier: str) -> None:
    credential = word("owner")
    more: dict[str, Any] = (
        {"cookie": credential} if carrier == "cookie" else {"bearer": credential} if carrier == "bearer" else {}
    )
    for method in ("GET", "POST", "OPTIONS"):
        answer = await ask(await app(), method, "/api/sessions", headers={"origin": origin}, **more)
        assert (answer.status, answer.code) == (403, "foreign_page")
        assert answer.header("access-control-allow-origin") == ""


async def test_our_own_page_is_let_in() -> None:
    site = await app()
    answer = await ask(site, "GET", "/api/me", cookie=word("viewer"), headers={"origin": f"http://{HOST}"})
    assert (answer.status, answer.header("access-control-allow-origin")) == (200, "")
    site = await app(public_url="https://chat.example")
    options: dict[str, Any] = {"bearer": word("viewer"), "host": "chat.example"}
    assert (await ask(site, "GET", "/api/me", headers={"origin": "https://chat.example"}, **options)).status == 200
    assert (await ask(site, "GET", "/api/me", headers={"origin": "http://chat.example"}, **options)).status == 403


async def test_a_page_that_was_named_comes_in_with_a_token_and_never_with_a_cookie() -> None:
    site = await app(origins=("https://app.example",))
    origin = {"origin": "https://app.example"}
    fine = await ask(site, "GET", "/api/me", word("viewer"), headers=origin)
    assert (fine.status, fine.header("access-control-allow-origin")) == (200, "https://app.example")
    assert fine.header("vary") == "Origin"
    assert fine.header("access-control-allow-credentials") == ""
    assert (await ask(site, "GET", "/api/me", cookie=word("viewer"), headers=origin)).status == 403
    assert (await ask(site, "GET", "/api/me", word("viewer"), cookie=word("viewer"), headers=origin)).status == 403
    assert (await ask(site, "GET", "/api/me", headers=origin)).status == 403


async def test_a_preflight_is_answered_for_pages_that_were_named() -> None:
    site = await app(origins=("https://app.example",))
    asks = {"access-control-request-method": "POST"}
    fine = await ask(site, "OPTIONS", "/api/sessions", headers={"origin": "https://app.example", **asks})
    assert (fine.status, fine.header("access-control-allow-origin")) == (204, "https://app.example")
    assert "authorization" in fine.header("access-control-allow-headers")
    brings = {"access-control-request-headers": "authorization,x-stainless-os, x-stainless-retry-count"}
    stock = await ask(site, "OPTIONS", "/v1/models", headers={"origin": "https://app.example", **asks, **brings})
    assert "x-stainless-retry-count" in stock.header("access-control-allow-headers")
    for odd in ("*", "a b", "x: y", "a," * 100):
        brings = {"access-control-request-headers": odd}
        answer = await ask(site, "OPTIONS", "/v1/models", headers={"origin": "https://app.example", **asks, **brings})
        assert odd not in answer.header("access-control-allow-headers")
    assert (await ask(site, "OPTIONS", "/api/sessions", headers={"origin": EVIL, **asks})).status == 403
    assert (await ask(site, "OPTIONS", "/api/sessions", headers=asks)).status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
async def test_a_cookie_that_another_site_made_the_browser_send_is_refused(site: str) -> None:
    wall = await app()
    assert (await ask(wall, "GET", "/api/me", cookie=word("viewer"), headers={"sec-fetch-site": site})).status == 403
    for fine in ("same-origin", "none"):
        answer = await ask(wall, "GET", "/api/me", cookie=word("viewer"), headers={"sec-fetch-site": fine})
        assert answer.status == 200


@pytest.mark.parametrize("name", ["authorization", "host", "origin", "content-type", "content-length", "x-csrf-token"])
async def test_what_may_come_once_comes_once(name: str) -> None:
    value = {"host": HOST, "origin": f"http://{HOST}", "content-length": "2", "content-type": "application/json"}
    headers = [(name, value.get(name, f"Bearer {word('viewer')}"))] * 2
    answer = await ask(
        await app(), "POST", "/api/sessions", headers=headers, json={}, host="" if name == "host" else HOST
    )
    assert (answer.status, answer.code) == (400, "bad_request")


async def test_two_cookies_of_a_login_are_one_too_many() -> None:
    cookie = f"everturn-{PORT}={word('viewer')}"
    site = await app()
    for headers in ([("cookie", f"{cookie}; {cookie}")], [("cookie", cookie), ("cookie", f"a=b; {cookie}")]):
        assert (await ask(site, "GET", "/api/me", headers=headers)).status == 400
    assert (await ask(site, "GET", "/api/me", headers=[("cookie", f"a=b; {cookie}; c=d")])).status == 200


async def test_the_cookie_of_another_server_on_this_machine_is_none_of_ours() -> None:
    headers = [("cookie", f"everturn-{PORT + 1}={word('viewer')}; everturn={word('viewer')}")]
    assert (await ask(await app(), "GET", "/api/me", headers=headers)).status == 401


async def test_headers_that_are_too_long_are_refused() -> None:
    answer = await ask(await app(headers=2000), "GET", "/healthz", headers={"x-long": "x" * 2000})
    assert (answer.status, answer.header("connection")) == (431, "close")


async def test_there_are_no_web_sockets() -> None:
    site = await app()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await site({"type": "websocket", "headers": []}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    upgrade = {"upgrade": "websocket", "connection": "upgrade"}
    assert (await ask(site, "GET", "/api/events", word("viewer"), headers=upgrade)).status == 403


async def test_every_answer_is_dressed() -> None:
    site = await app()
    for path, credential in (
        ("/api/me", word("viewer")),
        ("/api/me", ""),
        ("/healthz", ""),
        ("/nothing", word("viewer")),
    ):
        answer = await ask(site, "GET", path, credential)
        for name, value in SECURITY:
            assert answer.header(name.decode()) == value.decode(), (path, name)
    refused = await ask(site, "GET", "/api/me", host="evil.example")
    assert refused.header("x-content-type-options") == "nosniff"
    page = await ask(site, "GET", "/login?token=x")
    assert "form-action 'self'" in page.header("content-security-policy")
    assert page.header("referrer-policy") == "same-origin"


async def test_what_is_left_of_a_body_ends_the_connection() -> None:
    site = await app()
    answer = await ask(site, "POST", "/api/sessions", body=b"x" * 50, headers={"content-type": "application/json"})
    assert (answer.status, answer.header("connection")) == (401, "close")
    assert (await ask(site, "GET", "/healthz")).header("connection") == ""
