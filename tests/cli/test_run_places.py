"""`everturn run` beside other things: a terminal that is asked, a core without extras, a server that does it."""

import asyncio
import contextlib
import fcntl
import io
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.cli_run import PATIENCE, RUN, plain, run

from everturn.cli.run.output import JsonOutput
from everturn.events import TextDelta
from everturn.stores.sql.event_packs import unpack_body

pytestmark = pytest.mark.timeout(180)  # it starts processes, and a machine may be busy
OFFLINE = ["--model", "offline:demo"]
NOTE = "Note that it rains"
EXTRAS = (
    *("starlette", "uvicorn", "jwt", "cryptography", "uvloop", "textual", "rich", "mcp", "tree_sitter", "asyncpg"),
    *("restate", "nats", "granian", "opentelemetry", "genai_prices", "sqlalchemy", "alembic", "pydantic_monty"),
)
BARE = f"""
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Gone())
from everturn.cli import main
sys.exit(main(["run", *sys.argv[1:]]))
"""


def in_front_of(terminal: int) -> None:
    """Let a terminal be the one of this process, though its input and output are pipes."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def read_until(master: int, text: bytes) -> bytes:
    shown = b""
    while text not in shown:
        shown += os.read(master, 4096)
    return shown


def answer(home: Path, typed: bytes, *words: str) -> tuple[bytes, bytes]:
    """What the terminal shows to a person who answers a gate there, and what goes down the pipe."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*RUN, *words, "--ask"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=plain(home),
        preexec_fn=lambda: in_front_of(slave),
    )
    try:
        assert process.stdin is not None
        process.stdin.write(NOTE.encode())
        process.stdin.close()
        process.stdin = None
        shown = b""
        for line in typed.splitlines(keepends=True):
            shown += read_until(master, b"> ")
            os.write(master, line)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, b"")
        return shown, out
    finally:
        process.kill()
        process.wait()
        os.close(slave)  # until now, as a shell would have it
        os.close(master)


@pytest.mark.parametrize(("typed", "expected"), [(b"y\n", "noted: it rains"), (b"n\nnot today\n", "not today")])
def test_with_ask_the_terminal_is_asked_though_there_are_pipes(tmp_path: Path, typed: bytes, expected: str) -> None:
    shown, out = answer(tmp_path, typed, *OFFLINE)
    assert b"take_note needs approval" in shown
    assert expected in out.decode()
    assert b"needs approval" not in out


def test_on_a_terminal_nothing_that_it_says_can_be_obeyed(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    words = [*RUN, *OFFLINE, "--no-stdin", "say \x1b[2J\u202e\x9b31m"]
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=plain(tmp_path))
    os.close(slave)
    shown = b""
    try:
        while piece := _read(master):
            shown += piece
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        os.close(master)
    assert "\\x1b[2J\\u202e\\x9b31m" in shown.decode()
    assert b"\x1b" not in shown


def test_json_on_a_terminal_says_the_same_and_can_only_be_shown() -> None:
    piece = TextDelta("turn_1", 1, 0, 0, "a\x1b[2J \u202e\x9b31m \U000e0041 \u4f60")
    pipe, terminal = io.BytesIO(), io.BytesIO()
    JsonOutput(pipe, False, True).show(piece)
    JsonOutput(terminal, True, True).show(piece)
    shown = terminal.getvalue().decode()
    assert json.loads(shown) == json.loads(pipe.getvalue())
    assert shown.removesuffix("\n").isprintable()
    assert "\u4f60" in shown


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # how Linux says that the other end is gone
        return b""


def test_the_core_alone_is_enough(tmp_path: Path) -> None:
    words = [*OFFLINE, "--store", "a.db", "--json", "What time is it?"]
    done = subprocess.run(
        [sys.executable, "-c", BARE, *words],
        input="",
        capture_output=True,
        env=plain(tmp_path),
        cwd=tmp_path,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[-1])["event"]["type"] == "TurnCompleted"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    words = [sys.executable, "-m", "everturn", "serve", "--port", "0"]
    process = subprocess.Popen(
        words, env=plain(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        while "serves at" not in line:
            assert line, "it did not start"
            line = process.stdout.readline()
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


@pytest.mark.live
async def test_a_server_does_it(server: str, tmp_path: Path) -> None:
    at = ["--connect", server, "--no-stdin"]  # the token of the server that runs here is found
    time, denied, keyed, wrong = await asyncio.gather(
        run(tmp_path, *at, "What time is it?"),
        run(tmp_path, *at, NOTE),
        run(tmp_path, *at, "Hello", "--json", "--idempotency-key", "k"),
        run(tmp_path, *at, "Hello", EVERTURN_TOKEN="evk_wrong"),
    )
    assert (time.code, time.out.startswith("current_time says: "), time.err) == (0, True, "")
    assert (denied.code, "nobody is there to ask" in denied.out) == (3, True)
    assert (wrong.code, wrong.out, wrong.err.count("\n")) == (2, "", 1)
    parked, again = await asyncio.gather(
        run(tmp_path, *at, NOTE, "--wait"),
        run(tmp_path, *at, "Hello", "--json", "--idempotency-key", "k"),
    )
    assert (parked.code, server in parked.err) == (5, True)
    assert (again.code, again.out) == (0, keyed.out)
    shown, out = await asyncio.to_thread(answer, tmp_path, b"y\n", "--connect", server)
    assert b"take_note needs approval" in shown
    assert b"there is no tool of this name" not in shown
    assert b"noted: it rains" in out


def test_the_folder_of_a_turn_is_the_one_that_it_was_started_in(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    words = [*RUN, "hello", *OFFLINE, "--store", str(tmp_path / "talks.db")]
    done = subprocess.run(words, cwd=tmp_path / "project", env=plain(tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "talks.db")) as base:
        (body,) = base.execute("SELECT body FROM events ORDER BY seq LIMIT 1").fetchone()
    assert json.loads(unpack_body(body)[0])["event"]["options"]["folder"] == str(tmp_path / "project")
