"""JSON answers are compressed for those who accept it; nothing with a token in it is, and no stream."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest

from everturn.server.compression import MIN_COMPRESS_BYTES, accepts_gzip
from everturn.server.route import HttpRequestContext, Route
from everturn.server.routes import api
from tests.helpers.server_app import ask, make, make_house, word

GZIP = {"accept-encoding": "gzip, deflate, br"}
LONG = [f"a line of many, number {number}" for number in range(200)]


def route(name: str, method: Any = "GET", lines: Any = LONG, **more: Any) -> Route:
    async def handler(request: HttpRequestContext) -> Any:
        return lines

    return Route(
        method=method,
        path=f"/test/{name}",
        name=name,
        needs="viewer",
        about="A test.",
        handler=handler,
        answer=list[str],
        **more,
    )


EXTRA = [route("long"), route("short", lines=["a"]), route("post", "POST"), route("token", is_secret=True)]


async def test_a_long_answer_is_compressed_for_who_accepts_it_and_plain_for_who_does_not() -> None:
    app = make(await make_house(), extra=EXTRA)
    plain = await ask(app, "GET", "/test/long", word("viewer"))
    packed = await ask(app, "GET", "/test/long", word("viewer"), headers=GZIP)
    assert (plain.json, plain.header("content-encoding")) == (LONG, "")
    assert (msgspec.json.decode(gzip.decompress(packed.body)), packed.header("content-encoding")) == (LONG, "gzip")
    assert len(packed.body) < len(plain.body) / 4
    for answer in (plain, packed):
        assert answer.header("vary") == "accept-encoding"
        assert answer.header("content-type") == "application/json"
        assert int(answer.header("content-length")) == len(answer.body)


@pytest.mark.parametrize(("method", "name"), [("GET", "short"), ("POST", "post"), ("GET", "token")])
async def test_what_is_short_was_changed_or_has_a_token_is_never_compressed(method: Any, name: str) -> None:
    app = make(await make_house(), extra=EXTRA)
    answer = await ask(app, method, f"/test/{name}", word("viewer"), headers=GZIP)
    assert (answer.status, answer.header("content-encoding")) == (200, "")


def test_who_is_asking_has_a_token_and_is_never_compressed() -> None:
    [me] = [route for route in api.ROUTES if route.path == "/api/me"]
    assert me.is_secret
    assert MIN_COMPRESS_BYTES >= 1024  # nor is anything as short as what a login is told


@pytest.mark.parametrize(
    ("header", "accepts"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("x-gzip", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("*", False),
        ("br", False),
        ("", False),
        ("identity, notgzip", False),
    ],
)
def test_gzip_is_accepted_by_name(header: str, accepts: bool) -> None:
    assert accepts_gzip(header) is accepts


VISIT = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("credential", ["", word("viewer")])
@pytest.mark.parametrize("path", ["/nope", "/chats/1", "/assets.html"])
async def test_a_browser_at_an_address_where_nothing_is_finds_a_page_that_says_so(credential: str, path: str) -> None:
    app = make(await make_house())
    answer = await ask(app, "GET", path, credential, headers=VISIT)
    assert (answer.status, answer.header("content-type")) == (404, "text/html; charset=utf-8")
    assert b"Page not found" in answer.body
    assert b'href="/"' in answer.body
    assert "default-src 'none'" in answer.header("content-security-policy")
    other = await ask(app, "GET", path, credential, headers={**VISIT, "accept-language": "zh-CN,zh;q=0.9"})
    assert "找不到页面" in other.body.decode()
    assert b'lang="zh"' in other.body


@pytest.mark.parametrize("path", ["/api/nope", "/v1/nope", "/api"])
async def test_programs_are_told_in_json_whatever_they_accept(path: str) -> None:
    app = make(await make_house())
    answer = await ask(app, "GET", path, word("viewer"), headers=VISIT)
    assert (answer.status, answer.header("content-type")) == (404, "application/json")
    nobody = await ask(app, "GET", path, headers=VISIT)
    assert (nobody.status, nobody.header("content-type")) == (401, "application/json")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html"])
async def test_what_does_not_ask_for_a_page_is_told_in_json(accept: str) -> None:
    app = make(await make_house())
    answer = await ask(app, "GET", "/nope", word("viewer"), headers={"accept": accept})
    assert (answer.status, answer.header("content-type")) == (404, "application/json")
