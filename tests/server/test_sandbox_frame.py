"""The frame in which a page runs code: one file for anybody, with a policy that knows its script by its hash."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from everturn.server.routes.js_sandbox import PATH, PREVIEW_PATH, sandbox_csp
from tests.helpers.server_app import ask, make, make_house

SCRIPT = b"onmessage = () => {}"
PAGE = b"<!doctype html><script>" + SCRIPT + b"</script>"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sandbox").mkdir()
    for name in ("frame.html", "preview.html"):
        (tmp_path / "sandbox" / name).write_bytes(PAGE)
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path))
    return tmp_path


async def test_the_frame_has_no_origin_no_network_and_one_script(built: Path) -> None:
    answer = await ask(make(await make_house()), "GET", PATH)
    assert (answer.status, answer.body) == (200, PAGE)
    header = answer.header("content-security-policy")
    directives = dict((f"{part} ").split(" ", 1) for part in header.split("; "))
    policy = {name: value.split() for name, value in directives.items()}
    digest = base64.b64encode(hashlib.sha256(SCRIPT).digest()).decode()
    assert policy["sandbox"] == ["allow-scripts"]  # and not its origin
    assert policy["default-src"] == policy["connect-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["script-src"] == [f"'sha256-{digest}'", "blob:", "'unsafe-eval'"]
    assert policy["frame-ancestors"] == ["'self'"]
    assert (answer.header("x-frame-options"), answer.header("cache-control")) == ("SAMEORIGIN", "no-store")


async def test_the_preview_runs_no_script_but_its_own_and_asks_nobody(built: Path) -> None:
    answer = await ask(make(await make_house()), "GET", PREVIEW_PATH)
    assert (answer.status, answer.body) == (200, PAGE)
    header = answer.header("content-security-policy")
    policy = {name: value.split() for name, _, value in (part.partition(" ") for part in header.split("; "))}
    digest = base64.b64encode(hashlib.sha256(SCRIPT).digest()).decode()
    assert policy["sandbox"] == ["allow-scripts"]
    assert policy["default-src"] == policy["connect-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["script-src"] == [f"'sha256-{digest}'", "blob:"]
    assert policy["img-src"] == policy["font-src"] == ["data:"]
    assert policy["frame-ancestors"] == ["'self'"]
    assert (answer.header("x-frame-options"), answer.header("cache-control")) == ("SAMEORIGIN", "no-store")


def test_each_script_counts_and_a_page_without_one_runs_none() -> None:
    assert sandbox_csp(PAGE + b"<script>\nalert(1)\n</script>").count("sha256-") == 2
    assert "sha256-" not in sandbox_csp(b"<p>nothing</p>")


async def test_where_it_was_not_built_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path))
    assert (await ask(make(await make_house()), "GET", PATH)).status == 404
