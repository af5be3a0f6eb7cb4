"""`everturn serve` as a shell sees it: it says how to get in, serves a turn, and leaves when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.helpers.waiting import wait_until_sync

PLAIN = {key: value for key, value in os.environ.items() if not key.startswith("EVERTURN_") and "API_KEY" not in key}


class Serving:
    """A server in a process of its own, as it is without any configuration."""

    def __init__(self, home: Path, *words: str) -> None:
        self.env = PLAIN | {"HOME": str(home), "PYTHONUTF8": "1"}
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            self.env.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "everturn", "serve", "--port", "0", *words],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        self.said = [self.process.stdout.readline()]
        while self.said[-1] and "Content-Type" not in self.said[-1]:
            self.said.append(self.process.stdout.readline())
        self.url = self.said[0].removeprefix("Everturn serves at ").strip()

    def line(self, about: str) -> str:
        return next(line.split(about, 1)[1].strip() for line in self.said if line.startswith(f"  {about}"))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-W", "error", "-m", "everturn", *words]
        return subprocess.run(line, env=self.env, capture_output=True, encoding="utf-8", check=False)

    def ask(self, path: str, key: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def end(self) -> tuple[int, str]:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    server = Serving(tmp_path)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@pytest.mark.long
def test_a_new_user_has_a_turn_answered_and_a_question_asked_without_any_configuration(
    serving: Serving, tmp_path: Path
):
    token = Path(serving.line("token"))
    key = token.read_text(encoding="utf-8").strip()
    assert token == tmp_path / ".local/share/everturn/operator.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert "offline:demo" in serving.line("agent")

    sent = serving.ask("/api/sessions", key, {"text": "note that it rains"})
    gates = wait_until_sync(lambda: serving.ask("/api/gates", key)["gates"])
    gate = cast("dict[str, Any]", gates[0]["gate"])
    shown = serving.run("ps")
    assert f"{sent['session']!r}" in shown.stdout
    assert "waits for a person to allow 'take_note'  agent='assistant'  by='local'" in shown.stdout
    serving.run("users", "add", "anna", "--role", "approver")
    assert "'anna'  approver" in serving.run("users", "list").stdout
    anna = serving.run("keys", "add", "anna", "--role", "approver").stdout.strip()
    assert serving.ask("/api/me", anna)["user"] == "anna"
    id = re.findall(r"^(key_\w+)  'anna'", serving.run("keys", "list").stdout, re.MULTILINE)[0]
    answered = {"hash": gate["hash"], "allow": "once"}
    serving.ask(f"/api/sessions/{sent['session']}/gates/{gate['id']}/answer", anna, answered)
    assert serving.run("keys", "revoke", id).returncode == 0
    time.sleep(2.5)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        serving.ask("/api/me", anna)
    assert "noted: it rains" in json.dumps(serving.ask(f"/api/sessions/{sent['session']}/messages", key))
    code, output = serving.end()
    assert (code, key in output) == (0, False)


@pytest.mark.long
def test_a_login_link_holds_once_and_another_can_be_had(serving: Serving):
    link = serving.line("log in").split()[0]
    assert link.startswith(f"{serving.url}/login?token=")
    other = serving.run("login", "--url", serving.url).stdout.strip()
    assert other.startswith(f"{serving.url}/login?token=")
    assert other != link
    for url in (link, other):
        with urllib.request.urlopen(url, timeout=10) as page:
            assert page.status == 200


@pytest.mark.long
def test_a_second_server_on_the_same_store_says_who_has_it(serving: Serving):
    done = serving.run("serve", "--port", "0")
    assert done.returncode == 2
    assert f"`everturn serve` (process {serving.process.pid}) has this store" in done.stderr


@pytest.mark.long
def test_a_changed_file_is_read_at_once_on_sighup_and_a_broken_one_is_reported(tmp_path: Path):
    file = tmp_path / "own.toml"
    file.write_text("[agents.one]\nmodel = 'offline:demo'\n", encoding="utf-8")
    server = Serving(tmp_path, "--config", str(file), "--no-reload", "--json-logs")
    try:
        key = Path(server.line("token")).read_text(encoding="utf-8").strip()

        def names() -> list[str]:
            return [agent["name"] for agent in server.ask("/api/agents", key)["agents"]]

        file.write_text("[agents.two]\nmodel = 'offline:demo'\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        assert wait_until_sync(lambda: names() == ["two"])
        file.write_text("[agents.two]\nmodle = 'offline:demo'\n", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert names() == ["two"]
        code, output = server.end()
        assert code == 0
        assert f"{file}:2:1: agents.two.modle" in output
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()
