"""The guides on the server: every command and program in them runs against `everturn serve`, as a reader would start it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from docs_src.guides.client_first import talk as client_talk
from docs_src.guides.client_resume import two_halves
from docs_src.guides.client_share import share as client_share
from docs_src.guides.protocols_a2a import talk as a2a_talk
from docs_src.guides.protocols_chat import talk as chat_talk
from docs_src.guides.protocols_responses import talk as responses_talk
from tests.helpers.recorded_streams import CLIENTS, with_clients

ROOT = Path(__file__).parent.parent.parent
GUIDES = ROOT / "docs_src" / "guides"
WIDTH = 87
THAT = "I am the offline demo, and I only repeat what a tool returns."
UNSURE = [
    (r"\b(session|turn|msg|key)_[0-9a-f]{16,}", r"\1_…"),
    (r'"version":"[^"]*"', '"version":"…"'),
    (r"since \d{4}-\d\d-\d\d", "since …"),
]


class Serving:
    """A server as it is without any configuration, with a home of its own."""

    def __init__(self, home: Path, *options: str) -> None:
        plain = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        folder = str(Path(sys.executable).parent)
        self.env = {**plain, "HOME": str(home), "PATH": f"{folder}:{plain['PATH']}", "PYTHONUTF8": "1"}
        words = [sys.executable, "-m", "everturn", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )
        assert self.process.stdout is not None
        self.said = [self.process.stdout.readline()]
        last = "answer  replace" if options else "No model is named"
        while self.said[-1] and last not in self.said[-1]:
            self.said.append(self.process.stdout.readline())
        assert self.said[-1], f"it did not start: {''.join(self.said)[-2000:]}"
        self.said = [line for line in self.said if not re.match(r"\d{4}-", line)]  # without its log
        self.url = self.said[0].removeprefix("Everturn serves at ").strip()
        self.token = (home / ".local/share/everturn/operator.token").read_text(encoding="utf-8").strip()

    def shell(self, script: str) -> str:
        line = ["sh", str(GUIDES / script)]
        done = subprocess.run(
            line, env={**self.env, "URL": self.url}, capture_output=True, encoding="utf-8", timeout=50, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def node(self, script: str, example: str, folder: Path, **more: str) -> Any:
        (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
        shutil.copy(Path(__file__).parent / "node" / script, folder / script)
        shutil.copy(GUIDES / example, folder / example)
        done = subprocess.run(
            ["node", str(folder / script)],
            input=json.dumps({"address": self.url, "key": self.token, **more}),
            env={**os.environ, "NODE_ENV": "production"},
            capture_output=True,
            encoding="utf-8",
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    server = Serving(tmp_path_factory.mktemp("home"))
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The server of the page on protocols, with the agent `support`."""
    server = Serving(tmp_path_factory.mktemp("home"), "--config", str(GUIDES / "protocols_agent.toml"))
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=30)


def shown(name: str) -> list[str]:
    """What a page shows of an output, without the marks of its sections."""
    lines = (GUIDES / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("# --8<--")]


def plain(output: str) -> list[str]:
    """An output without what is another one each time; what is too wide for a page is cut there, too."""
    for pattern, instead in UNSURE:
        output = re.sub(pattern, instead, output)
    return [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in output.splitlines()]


with_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


@with_curl
def test_a_turn_by_curl_does_what_the_page_says(serving: Serving) -> None:
    assert plain(serving.shell("server_first.sh")) == shown("server_first.txt")


@with_curl
def test_keys_are_made_refused_and_revoked_as_the_page_says(serving: Serving) -> None:
    assert plain(serving.shell("identity_first.sh")) == shown("identity_first.txt")


def test_the_welcome_on_the_page_is_what_is_printed(serving: Serving) -> None:
    page = (ROOT / "docs" / "deploy" / "server.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(Everturn serves at .*?)```", page, re.DOTALL)

    def bare(text: str) -> list[str]:
        text = re.sub(r"http://127\.0\.0\.1:\d+", "URL", text)
        text = re.sub(r"evn_[\w…-]+", "evn_…", text)
        return re.sub(r"/\S+/\.local", "HOME/.local", text).splitlines()

    assert bare(block) == bare("".join(serving.said))


async def test_the_first_program_of_the_client(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await client_talk(serving.url, serving.token)
    assert capsys.readouterr().out.splitlines() == shown("client_first.txt")


async def test_a_session_is_shared_and_no_longer(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await client_share(serving.url, serving.token)
    assert capsys.readouterr().out.splitlines() == shown("client_share.txt")


async def test_a_stream_that_is_left_goes_on_elsewhere(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await two_halves(serving.url, serving.token)
    first, bar, rest = capsys.readouterr().out.partition("|")
    assert first
    assert bar
    assert (first + rest).startswith("I am the offline demo of Everturn: no model was asked. You said: “Hello”.\n")
    assert rest.endswith("which asks for your approval first.\n")


async def test_chat_completions_with_the_stock_client(shop: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await chat_talk(shop.url, shop.token)
    assert capsys.readouterr().out.splitlines() == shown("protocols_chat.txt")


async def test_responses_with_the_stock_client(shop: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await responses_talk(shop.url, shop.token)
    assert capsys.readouterr().out.splitlines() == shown("protocols_responses.txt")


async def test_a2a_with_the_stock_client(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    await a2a_talk(serving.url, serving.token)
    assert capsys.readouterr().out == f"take_note says: noted: lunch is at noon\n\n{THAT}"


@pytest.mark.live
@with_clients[1]
@with_clients[2]
async def test_the_page_of_the_guide_asks_and_is_asked(serving: Serving, tmp_path: Path) -> None:
    report = await asyncio.to_thread(serving.node, "use_chat.mjs", "protocols_use_chat.mjs", tmp_path)
    assert report["asked"] == 1
    assert [text.split(".")[0].split(":")[0] for text in report["texts"]] == [
        "Note that lunch is at noon",
        "take_note says",
        "Hello",
        "I am the offline demo of Everturn",
    ]


@pytest.mark.live
@with_clients[1]
@with_clients[2]
async def test_the_ag_ui_client_of_the_guide_allows_what_it_is_asked(serving: Serving, tmp_path: Path) -> None:
    fields = {"text": "Note that lunch is at noon"}
    messages = await asyncio.to_thread(serving.node, "ag_ui.mjs", "protocols_ag_ui.mjs", tmp_path, **fields)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "activity", "assistant"]
    assert messages[-1]["content"] == f"take_note says: noted: lunch is at noon\n\n{THAT}"


async def test_requests_are_refused_as_the_pages_say(serving: Serving) -> None:
    bearer = {"Authorization": f"Bearer {serving.token}"}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:

        async def status(path: str, headers: dict[str, str] = bearer, **more: Any) -> int:
            method = "POST" if more else "GET"
            async with http.request(method, serving.url + path, headers=headers, **more) as answer:
                return answer.status

        assert await status("/api/me", {}) == 401
        assert await status("/api/me?colour=red") == 422
        assert await status("/api/sessions", json={"text": "Hi", "colour": "red"}) == 422
        assert await status("/api/sessions", data={"text": "Hi"}) == 415
        assert await status("/api/me", {**bearer, "Host": "evil.example"}) == 403
        assert await status("/api/me", {**bearer, "Origin": "https://evil.example"}) == 403
        assert await status("/api/sessions/nobody") == 404


async def test_a_login_changes_something_only_with_its_token(serving: Serving) -> None:
    link = re.findall(r"evn_[\w-]+", "".join(serving.said))[0]
    headers = {"Origin": serving.url}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        login = http.post(f"{serving.url}/login", data={"token": link}, headers=headers, allow_redirects=False)
        async with login as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly; SameSite=Strict" in cookie
        headers["Cookie"] = cookie.partition(";")[0]
        async with http.get(f"{serving.url}/api/me", headers=headers) as answer:
            me = await answer.json()
        assert (me["user"], me["role"]) == ("local", "operator")
        for token, status in (("", 403), (me["csrf"], 201)):
            more = {**headers, "X-CSRF-Token": token}
            async with http.post(f"{serving.url}/api/sessions", json={"text": "Hi"}, headers=more) as answer:
                assert answer.status == status
        async with http.post(f"{serving.url}/login", data={"token": link}, headers=headers) as answer:
            assert answer.status == 401  # it opens once
