"""The front door, as a stranger finds it: the lines that are printed are pasted, the link is opened, words are mistyped."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.helpers.waiting import wait_until_sync

PLAIN = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ} | {"PYTHONUTF8": "1"}
with_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")


class Door:
    """`everturn serve` with nothing configured, in a home with a quote in its name; and a shell beside it."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.home, self.env = home, {**PLAIN, "HOME": str(home), "EVERTURN_WEB": str(home)}  # no page was built there
        words = [sys.executable, "-m", "everturn", "serve", "--port", "0"]
        with (home / "log").open("w") as log:
            self.process = subprocess.Popen(
                words, env=self.env, stdout=subprocess.PIPE, stderr=log, encoding="utf-8", cwd=home
            )
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if "No model is named" in line:  # the last one
                break
        else:
            self.end()
            raise AssertionError((home / "log").read_text())
        self.address = self.said[0].removeprefix("Everturn serves at ")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def pasted(self, line: str, **more: str) -> Any:
        done = subprocess.run(
            ["sh", "-c", line], env=self.env | more, capture_output=True, encoding="utf-8", check=True, timeout=20
        )
        return json.loads(done.stdout)

    def everturn(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "everturn", *words]
        return subprocess.run(
            line,
            env=self.env | more,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    door = Door(tmp_path_factory.mktemp("door") / "it's a home")
    yield door
    door.end()


def wait_for_text(look: Callable[[], Any], says: str) -> None:
    wait_until_sync(lambda: says in json.dumps(look()), why=f"{says!r} never came")


@with_curl
def test_the_lines_that_are_printed_can_be_pasted_as_they_are(door: Door) -> None:
    at = next(n for n, line in enumerate(door.said) if line.startswith("  try"))
    sent = door.pasted("\n".join(door.said[at : at + 2]).removeprefix("  try"))
    assert sent["is_new"]
    assert door.said[at + 2].startswith("  answer")
    see = door.said[at + 3].replace("SESSION", sent["session"])
    wait_for_text(lambda: door.pasted(see), "current_time says: ")


@with_curl
def test_the_lines_on_the_page_can_be_pasted_too(door: Door) -> None:
    with urllib.request.urlopen(door.address, timeout=10) as answer:
        page = unescape(answer.read().decode())
    (lines,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    first, _, second = lines.partition("# SESSION is the id that comes back\n")
    token = (door.home / ".local/share/everturn/operator.token").read_text().strip()
    sent = door.pasted(first, TOKEN=token)
    wait_for_text(lambda: door.pasted(second, TOKEN=token, SESSION=sent["session"]), "current_time says: ")


class Browser(Protocol):
    def __call__(self, path: str, form: str = "", **headers: str) -> tuple[int, str]: ...


@pytest.fixture
def browser(door: Door) -> Browser:
    """Opens addresses, follows redirects, keeps cookies: the status and the page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def go(path: str, form: str = "", **headers: str) -> tuple[int, str]:
        url = path if "://" in path else door.address + path
        request = urllib.request.Request(url, form.encode() or None, headers)
        try:
            with opener.open(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return go


def test_the_link_is_opened_once_and_the_browser_stays_logged_in(door: Door, browser: Browser) -> None:
    link = door.everturn("login", "--url", door.address).stdout.strip()
    assert browser("/api/me")[0] == 401
    status, page = browser(link)
    assert (status, "Log in" in page, door.address in page) == (200, True, True)
    (token,) = re.findall(r'name="token" value="([^"]+)"', page)
    status, page = browser("/login", f"token={token}", Origin=door.address)
    assert status == 200
    assert "You are logged in: <b>local</b> in <b>local</b>, as operator" in page
    me = json.loads(browser("/api/me")[1])
    body = {"Content-Type": "application/json", "Origin": door.address}
    assert browser("/api/sessions", '{"text": "hi"}', **body)[0] == 403
    assert browser("/api/sessions", '{"text": "hi"}', **body, **{"X-CSRF-Token": me["csrf"]})[0] == 201
    status, page = browser("/login", f"token={token}", Origin=door.address)
    assert (status, "has expired" in page, "everturn login" in page) == (401, True, True)
    assert browser("/api/me")[0] == 200  # a link that is used up logs nobody out


def test_a_link_without_its_end_is_a_page_that_says_so(browser: Browser) -> None:
    status, page = browser("/login")
    assert (status, "This link is not whole" in page, "everturn login" in page) == (422, True, True)


def test_pages_fit_a_phone_and_run_nothing(door: Door) -> None:
    for path in ("/", "/login?token=x"):
        with urllib.request.urlopen(door.address + path, timeout=10) as answer:
            page, policy = answer.read().decode(), answer.headers["content-security-policy"]
        assert 'name="viewport"' in page
        assert "<script" not in page
        assert "default-src 'none'" in policy


MISTYPED = [
    (("serve", "--port", "eighty"), "'eighty' is not a whole number"),
    (("serve", "--port", "70000"), "use 0 (any free port) to 65535"),
    (("serve", "--port", "0"), "stop that one first, or give this one a file of its own"),
    (("serve", "--port", "0", "--store", "what"), "there are: a file such as talks.db"),
    (("serve", "--port", "0", "--store", "new.db", "--model", "gpt"), "write vendor:model with one of the vendors"),
    (
        ("serve", "--port", "0", "--store", "new.db", "--model", "openai:x"),
        "set the environment variable OPENAI_API_KEY",
    ),
    (("serve", "--database", "postgresql://x/y"), "add --cluster"),
    (("serve", "--config", "gone.toml"), "gone.toml: the configuration cannot be read"),
    (("config", "check", "gone.toml"), "gone.toml: the configuration cannot be read"),
    (("keys", "add", "nobody"), "`everturn users add nobody` creates one"),
    (("keys", "add", "o'x", "--tenant", "a b"), "`everturn users add 'o'\"'\"'x' --tenant 'a b'` creates one"),
    (("keys", "add", "local", "--days", "soon"), "'soon' is not a whole number"),
    (("keys", "add", "local", "--days", "0"), "at least 1"),
    (("keys", "add", "local", "--role", "king"), "'king' is not one of viewer, member"),
    (("keys", "add", "local", "--store", "memory"), "name a file or a database with --store"),
    (("keys", "add", "local", "--store", "gone.db"), "`everturn serve` create it, and --store names another"),
    (("keys", "revoke", "key_x", "--tenant", "t"), "`everturn keys list --tenant t` lists them"),
    (("users", "add", ""), "up to 200 visible characters"),
    (("users", "add", " anna"), "without spaces around them"),
    (("users", "add", "everturn"), "is reserved for the runtime, plugins"),
    (("users", "add", "anna", "--tenant", "t"), "name it in the configuration: [tenants.NAME]"),
    (("login", "--user", "nobody"), "`everturn users add nobody` creates one"),
    (("login", "--url", "here"), "is not the URL of a server; it looks like http://127.0.0.1:8000"),
    (("login", "--url", "http://here:port"), "is not the URL of a server; it looks like http://127.0.0.1:8000"),
    (("ps", "--store", "gone.db"), "there is no store gone.db yet"),
    (("doctor", "--loud"), "see `everturn doctor --help`"),
]


@pytest.mark.parametrize(("words", "says"), MISTYPED, ids=[" ".join(words) for words, _ in MISTYPED])
def test_what_is_mistyped_is_one_line_that_says_what_to_do_next(door: Door, words: tuple[str, ...], says: str) -> None:
    done = door.everturn(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("ps",), ("login",), ("keys", "list"), ("users", "list")])
def test_before_the_first_start_every_command_says_how_to_start(
    door: Door, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = door.everturn(*words, HOME=str(tmp_path))
    assert (done.returncode, "`everturn serve` create it" in done.stderr) == (2, True)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []  # looking makes no store


def test_a_link_leads_to_where_the_server_is_and_where_nobody_listens_there_is_a_note(
    door: Door, tmp_path: Path
) -> None:
    done = door.everturn("login")
    assert done.stdout.startswith(f"{door.address}/login?token=evn_")
    assert done.stderr == ""
    other = Door(tmp_path / "home")
    other.end()  # killed, it could not say that it is gone
    for more in ({}, {"EVERTURN_SERVER__PORT": "9"}):
        done = other.everturn("login", **more)
        assert (done.returncode, done.stdout.count("/login?token=evn_")) == (0, 1)
        assert "no server answers at http://127.0.0.1:" in done.stderr
        assert "--url" in done.stderr
        for left in other.home.rglob("server.address"):
            left.unlink()
