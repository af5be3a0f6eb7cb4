from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import httpx2
import pytest

from everturn.errors import ConfigError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.oauth import TokenFile, auth_for, is_logged_in, login, logout
from tests.helpers.oauth_server import Authority, authority


@pytest.fixture
async def giver() -> AsyncGenerator[Authority]:
    async with authority() as server:
        yield server


@pytest.fixture
def spec(giver: Authority) -> ServerSpec:
    inside = giver.base.removeprefix("http://")  # it is on this machine, and so the operator has to name it
    return ServerSpec("far", url=f"{giver.resource}/mcp", auth="oauth", login_hosts=(inside,))


async def _browse(url: str) -> int:
    async with aiohttp.ClientSession() as browser, browser.get(url) as page:
        return page.status


class Person:
    """Opens what is shown, in a browser beside us."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.browsing: list[asyncio.Task[int]] = []

    def __call__(self, url: str) -> None:
        self.shown.append(url)
        self.browsing.append(asyncio.ensure_future(_browse(url)))


async def _post(auth: Any, spec: ServerSpec) -> int:
    async with httpx2.AsyncClient(auth=auth, timeout=10) as client:
        return (await client.post(spec.url, json={})).status_code


def _spoil(spec: ServerSpec, folder: Path, **changed: Any) -> None:
    TokenFile(spec, folder).write(**changed)


async def test_a_person_logs_in_once_and_every_process_has_the_token(
    giver: Authority, spec: ServerSpec, tmp_path: Path
):
    person = Person()
    await login(spec, tmp_path, person)
    assert await _post(auth_for(spec, tmp_path), spec) == 200
    assert await _post(auth_for(spec, tmp_path), spec) == 200
    assert (giver.seen["authorize"], giver.seen["proven"]) == (1, 1)
    assert len(person.shown) == 1
    assert [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)] == [0o600]
    logout(spec, tmp_path)
    assert not is_logged_in(spec, tmp_path)


async def test_where_nobody_has_logged_in_nothing_is_begun(giver: Authority, spec: ServerSpec, tmp_path: Path):
    with pytest.raises(NeedsLogin, match="everturn mcp login FILE far"):
        await _post(auth_for(spec, tmp_path), spec)
    assert giver.seen.total() == 0


async def test_a_token_is_for_the_address_it_was_given_for(giver: Authority, spec: ServerSpec, tmp_path: Path):
    await login(spec, tmp_path, Person())
    other = ServerSpec("far", url="http://127.0.0.1:9/mcp", auth="oauth")
    assert not is_logged_in(other, tmp_path)
    TokenFile(other, tmp_path).path.write_bytes(TokenFile(spec, tmp_path).path.read_bytes())
    TokenFile(other, tmp_path).path.chmod(0o600)
    assert not is_logged_in(other, tmp_path)


async def test_a_token_whose_time_is_over_is_renewed_by_whoever_comes_next(
    giver: Authority, spec: ServerSpec, tmp_path: Path
):
    await login(spec, tmp_path, Person())
    giver.access.clear()
    _spoil(spec, tmp_path, expires=1.0)
    before = giver.seen["request"]
    assert await _post(auth_for(spec, tmp_path), spec) == 200
    assert giver.seen["refresh_token"] == 1
    assert giver.seen["request"] == before + 1  # it was not even tried
    assert await _post(auth_for(spec, tmp_path), spec) == 200
    assert giver.seen["refresh_token"] == 1


async def test_a_token_that_is_not_taken_any_more_is_renewed_and_a_revoked_login_needs_another(
    giver: Authority, spec: ServerSpec, tmp_path: Path
):
    await login(spec, tmp_path, Person())
    auth = auth_for(spec, tmp_path)
    giver.access.clear()
    assert await _post(auth, spec) == 200
    giver.access.clear()
    giver.refresh.clear()
    with pytest.raises(NeedsLogin):
        await _post(auth, spec)
    assert giver.seen["authorize"] == 1
    await login(spec, tmp_path, Person())
    assert await _post(auth, spec) == 200  # whoever waits for it need not begin anew


async def test_many_requests_renew_a_token_once(giver: Authority, spec: ServerSpec, tmp_path: Path):
    await login(spec, tmp_path, Person())
    giver.access.clear()
    _spoil(spec, tmp_path, expires=1.0)
    auth = auth_for(spec, tmp_path)
    async with httpx2.AsyncClient(auth=auth, timeout=10) as client:
        answers = await asyncio.gather(*(client.post(spec.url, json={}) for _ in range(20)))
    assert [answer.status_code for answer in answers] == [200] * 20
    assert giver.seen["refresh_token"] == 1


async def test_what_another_process_has_renewed_is_used(giver: Authority, spec: ServerSpec, tmp_path: Path):
    await login(spec, tmp_path, Person())
    first, other = auth_for(spec, tmp_path), auth_for(spec, tmp_path)
    assert await _post(first, spec) == await _post(other, spec) == 200
    giver.access.clear()
    assert await _post(first, spec) == 200
    assert await _post(other, spec) == 200
    assert giver.seen["refresh_token"] == 1


async def test_an_authority_that_is_down_is_no_reason_to_log_in_again(
    giver: Authority, spec: ServerSpec, tmp_path: Path
):
    await login(spec, tmp_path, Person())
    _spoil(spec, tmp_path, expires=1.0)
    giver.is_down = True
    auth = auth_for(spec, tmp_path)
    with pytest.raises(httpx2.HTTPStatusError):
        await _post(auth, spec)
    giver.is_down = False
    assert await _post(auth, spec) == 200


async def test_somebody_elses_code_is_not_taken_and_ours_still_is(giver: Authority, spec: ServerSpec, tmp_path: Path):
    seen: list[int] = []
    beside: list[asyncio.Task[None]] = []

    async def attack_first(url: str) -> None:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        elsewhere = back.replace("/callback", "/other")
        for wrong in (f"{back}?code=theirs&state=guessed", f"{back}?code=theirs", f"{elsewhere}?code=x", back):
            seen.append(await _browse(wrong))
        async with aiohttp.ClientSession() as browser:
            state = parse_qs(urlsplit(url).query)["state"][0]
            async with browser.get(f"{back}?code=x&state={state}", headers={"Host": "evil.example"}) as page:
                seen.append(page.status)
        seen.append(await _browse(url))

    def show(url: str) -> None:
        beside.append(asyncio.ensure_future(attack_first(url)))

    await login(spec, tmp_path, show)
    await asyncio.gather(*beside)
    assert seen == [400, 400, 404, 400, 404, 200]
    assert await _post(auth_for(spec, tmp_path), spec) == 200


async def test_who_does_not_come_back_is_not_waited_for_for_ever(giver: Authority, spec: ServerSpec, tmp_path: Path):
    with pytest.raises(NeedsLogin, match="no one has logged in to far"):
        await login(spec, tmp_path, lambda url: None, max_wait=0.5)
    assert not is_logged_in(spec, tmp_path)


async def test_a_login_that_is_refused_says_so(giver: Authority, spec: ServerSpec, tmp_path: Path):
    giver.refuses = True
    with pytest.raises(NeedsLogin, match=r"it was refused \('access_denied'\)"):
        await login(spec, tmp_path, Person())
    assert not is_logged_in(spec, tmp_path)


async def test_a_second_login_comes_back_the_same_way_or_registers_anew(
    giver: Authority, spec: ServerSpec, tmp_path: Path
):
    await login(spec, tmp_path, Person())
    giver.access.clear()
    giver.refresh.clear()
    _spoil(spec, tmp_path, tokens=None)
    await login(spec, tmp_path, Person())
    assert giver.seen["register"] == 1
    _spoil(spec, tmp_path, tokens=None)
    port = urlsplit(giver.clients["client-0"][0]).port or 0
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        await login(spec, tmp_path, Person())
    assert giver.seen["register"] == 2


async def test_no_token_and_no_code_is_in_any_log_or_error(
    giver: Authority, spec: ServerSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "mcp")
    caplog.set_level(logging.DEBUG, "everturn")
    giver.is_garbled = True
    with pytest.raises(NeedsLogin) as error:
        await login(spec, tmp_path, Person())
    giver.is_garbled = False
    await login(spec, tmp_path, Person())
    giver.access.clear()
    giver.is_garbled = True
    with pytest.raises(NeedsLogin) as other:
        await _post(auth_for(spec, tmp_path), spec)
    text = caplog.text + repr(error.value) + repr(other.value) + repr(spec)
    assert "OAuth flow error" in text
    assert len(giver.secrets) > 4
    assert [secret for secret in giver.secrets if secret in text] == []


async def test_only_a_server_that_wants_a_login_is_logged_in_to(giver: Authority, spec: ServerSpec, tmp_path: Path):
    with pytest.raises(ConfigError, match="has no login"):
        await login(ServerSpec("far", url=spec.url), tmp_path, Person())
    with pytest.raises(ConfigError, match="cannot be reached"):
        await login(ServerSpec("far", url="http://127.0.0.1:9/mcp", auth="oauth"), tmp_path, Person())


async def test_an_answer_without_an_end_ends_a_login(tmp_path: Path):
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while sent < 50_000_000:
                writer.write(b"A" * 100_000)
                sent += 100_000
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    async with server:
        spec = ServerSpec("far", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", auth="oauth")
        with pytest.raises(ConfigError, match="cannot be reached: ReadError"):
            await login(spec, tmp_path, lambda url: None)
    assert sent < 50_000_000
