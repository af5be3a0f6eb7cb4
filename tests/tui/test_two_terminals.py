"""Two terminals and a browser on one machine at once: one process has the store, and when it is killed nothing is lost."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.tui.terminal_emulator import PATIENCE, Terminal, environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(420)]
BEGUN = r"Ask anything"


class Watched(Terminal):
    """A terminal that takes what is drawn at any time, as real ones do: a program must not wait for this test to look."""

    def __init__(self, home: Path, *words: str, folder: Path | None = None) -> None:
        super().__init__(list(words), environment(home), (100, 30), folder)
        self._is_open = threading.Event()
        self._is_open.set()
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while self._is_open.is_set() and super().read(0.05):
            pass
        self._is_open.clear()

    def read(self, seconds: float = 0.1) -> bool:
        """Give the other thread a moment."""
        time.sleep(min(seconds, 0.05))
        return self._is_open.is_set()

    def close(self) -> None:
        """Look no more."""
        self._is_open.clear()
        super().close()


@contextmanager
def watched(home: Path, *words: str, folder: Path | None = None) -> Generator[Watched]:
    """`everturn` in a terminal."""
    watched_terminal = Watched(home, *words, folder=folder)
    try:
        yield watched_terminal
    finally:
        watched_terminal.close()


class Browser:
    """What a browser does, without the drawing: it logs in by a link, keeps its cookie, and tries again."""

    def __init__(self, link: str) -> None:
        where = urlsplit(link)
        self.port = where.port or 0
        token = parse_qs(where.query)["token"][0]
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer, _ = self._once("POST", "/login", urlencode({"token": token}), form)
        assert answer.status == 303, answer.status
        self._cookie = answer.headers["set-cookie"].partition(";")[0]
        self._csrf = str(self.ask("GET", "/api/me")["csrf"])

    def _once(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            link.request(method, path, body, headers)
            answer = link.getresponse()
            return answer, answer.read()
        finally:
            link.close()

    def ask(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        """Ask until somebody answers: at the same address, with the same cookie."""
        headers = {"cookie": self._cookie, "content-type": "application/json"}
        if method != "GET":
            headers |= {"x-csrf-token": self._csrf, "idempotency-key": key}
        end = time.monotonic() + PATIENCE
        while True:
            try:
                answer, read = self._once(method, path, None if body is None else json.dumps(body), headers)
                if answer.status != 503:
                    break
            except (OSError, http.client.HTTPException):
                pass
            assert time.monotonic() < end, f"nobody answers {method} {path}"
            time.sleep(0.2)
        assert answer.status < 300, (answer.status, read)
        return json.loads(read) if read else None

    def begin(self, text: str) -> str:
        return str(self.ask("POST", "/api/sessions", {"text": text}, key=f"begin {text}")["session"])

    def send(self, session: str, text: str) -> None:
        self.ask("POST", f"/api/sessions/{session}/messages", {"text": text}, key=f"send {text}")

    def gate(self, session: str) -> dict[str, Any]:
        """The question that stands there, once it does."""
        end = time.monotonic() + PATIENCE
        while not (found := self.ask("GET", f"/api/sessions/{session}/gates")["gates"]):
            assert time.monotonic() < end, "nothing is asked"
            time.sleep(0.2)
        return found[0]["gate"]

    def said(self, session: str) -> list[str]:
        """What a person has said there, once all of it has an answer."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.ask("GET", f"/api/sessions/{session}/messages")["messages"]
            view = self.ask("GET", f"/api/sessions/{session}")
            if found and found[-1]["role"] == "assistant" and not view["is_awake"]:
                return [
                    "".join(part.get("text", "") for part in message["parts"])
                    for message in found
                    if message["role"] == "user"
                ]
            assert time.monotonic() < end, found
            time.sleep(0.2)


def command(home: Path, *words: str) -> str:
    """A command beside all that; what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "everturn", *words],
        env=environment(home),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def listed(home: Path) -> dict[str, str]:
    """The sessions in the store: their states, by their ids."""
    rows = [json.loads(line) for line in command(home, "sessions", "--json").splitlines()]
    return {row["id"]: row["state"] for row in rows}


def test_nothing_is_lost_when_the_process_that_has_the_store_is_killed(tmp_path: Path) -> None:
    store = tmp_path / "data" / "everturn" / "everturn.db"
    with watched(tmp_path, "chat") as first, watched(tmp_path, "chat") as second:
        first.sees(BEGUN)
        second.sees(BEGUN)
        owner, other = (first, second) if owner_of(store) == first.pid else (second, first)
        other.sees("connected to it")
        owner.types("alpha is mine\r")
        owner.sees(r"alpha is mine[\s\S]*real model")
        other.types("beta is mine\r")
        other.sees(r"beta is mine[\s\S]*real model")
        browser = Browser(command(tmp_path, "login").strip())
        own = browser.begin("gamma is mine")
        assert browser.said(own) == ["gamma is mine"]
        shared = browser.begin("take a note: milk")
        browser.gate(shared)
        other.types("\x0f")  # the shared one was touched last
        other.sees(r"take a note|no title")
        other.types("\r")
        other.sees("take_note")

        os.kill(owner.pid, signal.SIGKILL)
        other.sees("The other everturn process")
        assert owner_of(store) == other.pid
        gate = browser.gate(shared)  # at the same address, with the same cookie
        answer = {"allow": "once", "hash": gate["hash"]}
        browser.ask("POST", f"/api/sessions/{shared}/gates/{gate['id']}/answer", answer)
        other.sees("noted: milk")
        assert browser.said(shared) == ["take a note: milk"]
        browser.send(shared, "delta from the browser")
        other.sees("delta from the browser")
        assert browser.said(shared)[-1] == "delta from the browser"
        other.types("epsilon from the terminal\r")
        other.sees("epsilon from the terminal")
        end = time.monotonic() + PATIENCE
        while browser.said(shared)[-1] != "epsilon from the terminal":
            assert time.monotonic() < end
        assert browser.said(shared) == [
            "take a note: milk",
            "delta from the browser",
            "epsilon from the terminal",
        ]
        with watched(tmp_path, "chat") as third:  # and whoever comes now attaches to the one that has it now
            third.sees(BEGUN)
            third.sees("connected to it")
            other.types("\x11")
            assert other.ends() == 0
            third.sees("The other everturn process")
            browser.send(own, "zeta from the browser")
            assert browser.said(own) == ["gamma is mine", "zeta from the browser"]
            found = listed(tmp_path)
            assert set(found.values()) == {"idle"}
            assert len(found) == 4
            third.types("\x11")
            assert third.ends() == 0
    found = command(tmp_path, "sessions", "--search", "is mine")
    assert all(f"{name} is mine" in found for name in ("alpha", "beta", "gamma"))
    assert not list(store.parent.glob("*.server"))


class Model(BaseHTTPRequestHandler):
    """A model that begins its first answer and never ends it; the second one is complete."""

    requests: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.requests.append(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self._write({"delta": {"content": "It is about "}})
        if len(self.requests) == 1:
            time.sleep(PATIENCE)
        self._write({"delta": {"content": "a bakery."}})
        self._write({"delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")

    def _write(self, choice: dict[str, Any]) -> None:
        data = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("has_second", [True, False])
def test_a_turn_in_a_folder_continues_after_its_terminal_was_killed(tmp_path: Path, has_second: bool) -> None:
    folder = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    Model.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server, ExitStack() as stack:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        (config := tmp_path / "config" / "everturn" / "everturn.toml").parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f'[models.m]\nmodel = "compatible:m"\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
            '[agents.assistant]\nmodel = "m"\n',
            encoding="utf-8",
        )
        first = stack.enter_context(watched(tmp_path, folder=folder))
        first.sees(BEGUN)
        first.types("what is this about?\r")
        first.sees("It is about")
        if not has_second:
            os.kill(first.pid, signal.SIGKILL)
        second = stack.enter_context(watched(tmp_path, "-c", folder=folder))
        if has_second:
            second.sees("It is about")
            second.drawn = b""
            os.kill(first.pid, signal.SIGKILL)
        second.sees("a bakery")
        assert len(Model.requests) == 2
        second.types("\x11")
        assert second.ends() == 0


def owner_of(store: Path) -> int:
    """The process that has the store, as its lock says."""
    return int(store.with_name(f"{store.name}.lock").read_text())
