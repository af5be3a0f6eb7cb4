"""The page: served as it was built, packed, strict, and nothing else of the machine with it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from everturn.config.server_options import ServerOptions
from everturn.server.app import Application
from tests.helpers.server_app import Answer, ask, make, make_house

SCRIPT = b"console.log('a page of some length');" * 40


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "web"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_bytes(b"<!doctype html><html><head><title>Everturn</title></head><body></body></html>")
    (root / "assets" / "index-abc.js").write_bytes(SCRIPT)
    (root / "assets" / "notes.txt").write_bytes(b"not for anybody")
    (tmp_path / "secret.js").write_bytes(b"secret")
    (root / "assets" / "link.js").symlink_to(tmp_path / "secret.js")
    monkeypatch.setenv("EVERTURN_WEB", str(root))
    return root


@pytest.fixture
async def app(built: Path) -> Application:
    return make(await make_house())


async def test_the_page_is_for_anybody_and_strict(app: Application) -> None:
    answer = await ask(app, "GET", "/")
    policy = dict(part.split(" ", 1) for part in answer.header("content-security-policy").split("; "))
    assert (answer.status, b"<title>Everturn" in answer.body) == (200, True)
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'",) * 2
    assert policy["trusted-types"] == "everturn-push"
    assert "unsafe" not in answer.header("content-security-policy")
    assert answer.header("cache-control") == "no-store"
    assert b"oidc" not in answer.body


async def test_whoever_has_a_provider_is_shown_the_way(built: Path) -> None:
    from everturn.access.auth.options import OidcOptions

    oidc = OidcOptions(issuer="https://id.example", audience="everturn", client_id="everturn")
    app = make(await make_house(), options=ServerOptions(oidc=oidc))
    assert b'<meta name="everturn-oidc" content="yes">' in (await ask(app, "GET", "/")).body


async def test_a_browser_without_a_login_is_told_so_where_its_cookie_would_have_come(app: Application) -> None:
    async def is_anonymous(site: str, bearer: str = "", cookie: str = "") -> bool:
        answer = await ask(app, "GET", "/", bearer, cookie=cookie, headers={"sec-fetch-site": site} if site else {})
        return b'<meta name="everturn-anonymous" content="yes">' in answer.body

    assert await is_anonymous("none")
    assert await is_anonymous("same-origin")
    assert not await is_anonymous("cross-site"), "a strict cookie does not come with it"
    assert not await is_anonymous(""), "an old browser does not say"
    assert not await is_anonymous("none", cookie="anything")
    assert not await is_anonymous("none", bearer="anything")


async def test_what_it_is_made_of_is_packed_and_kept_for_ever(app: Application) -> None:
    plain = await ask(app, "GET", "/assets/index-abc.js")
    packed = await ask(app, "GET", "/assets/index-abc.js", headers={"accept-encoding": "br, gzip"})
    assert (plain.body, plain.header("content-encoding")) == (SCRIPT, "")
    assert (gzip.decompress(packed.body), packed.header("content-encoding")) == (SCRIPT, "gzip")
    assert len(packed.body) < len(SCRIPT) / 4
    for answer in (plain, packed):
        assert answer.header("content-type") == "text/javascript; charset=utf-8"
        assert "immutable" in answer.header("cache-control")
        assert answer.header("vary") == "accept-encoding"
        assert answer.header("x-content-type-options") == "nosniff"


@pytest.mark.parametrize(
    "name",
    [
        "gone.js",
        "notes.txt",
        "link.js",
        "..%2Findex.html",
        "%2e%2e%2findex.html",
        "..%5cindex.html",
        "..",
        "%00.js",
        "index-abc.js%00",
        "%2Fetc%2Fpasswd",
        "a" * 3000 + ".js",
    ],
)
async def test_nothing_else_is_served(app: Application, name: str) -> None:
    answer: Answer = await ask(app, "GET", f"/assets/{name}")
    assert answer.status == 404
    assert b"secret" not in answer.body


async def test_where_it_was_not_built_a_notice_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path))
    answer = await ask(make(await make_house()), "GET", "/")
    assert (answer.status, b"scripts/web" in answer.body, b"<script" in answer.body) == (200, True, False)
