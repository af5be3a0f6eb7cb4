"""First runs: `everturn` in a new folder, as a new user, on six kinds of machine:

    python -m tools.first_run.campaign [--only "no key"] [--screens] [--write]

Each state has a home folder of its own and a pseudo-terminal. A person presses Enter at each question, types one message, and
reads. It measures the seconds until the first question, and until the answer or the text that says what to do next. `--screens`
prints the last screen of each; `--write` writes the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import Struct

from tools.docs_table import write_docs_table
from tools.environment import ROOT, describe_load
from tools.real_job.person import environment, find_python
from tools.real_job.screen import UID, TerminalWindow

PAGE = ROOT / "benchmarks" / "results" / "first_run.md"
OLLAMA = 11434
BYTECODE = Path("/var/tmp/everturn-first-bytecode")  # an installed package is compiled, too
MESSAGE = "hello there"
ANSWER = "Good morning from the local model."
QUESTION = r"\[1\]."
READY = r"Ask anything|想聊什么"
DONE = r"─ [^\n─]*\d s\b"  # the line below an answer
TRUST = r"\[y/N\]|\[Y/n\]"


class State(Struct, frozen=True):
    """A kind of machine: what is different from an empty one, and what the screen shows at the end."""

    name: str
    shows: str
    environ: dict[str, str] = {}
    is_read_only: bool = False
    has_server: bool = False
    has_network: bool = True


KEY = {"OPENAI_API_KEY": "sk-" + "x" * 40}
STATES = (
    State("no key", DONE),
    State("key in the environment", r"no server answers at https://api\.openai\.com", KEY),
    State("local model server", re.escape(ANSWER), has_server=True),
    State("no network", r"no server answers at https://api\.openai\.com", KEY, has_network=False),
    State("read-only home", DONE, is_read_only=True),
    State("Chinese locale", DONE, {"LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8"}),
)


class Seen(Struct):
    """What a person saw, and after how many seconds."""

    state: str
    question: float = 0.0
    ready: float = 0.0
    answer: float = 0.0
    screen: str = ""
    problem: str = ""

    def line(self) -> str:
        """The row of the table."""
        end = "yes" if not self.problem else "no"
        return f"| {self.state} | {self.question:.1f} | {self.ready:.1f} | {self.answer:.1f} | {end} |"


class Ollama(BaseHTTPRequestHandler):
    """A local model server: a list of models, and one answer."""

    def do_GET(self) -> None:
        self._reply(b'{"models": [{"name": "tiny:1b"}], "data": [{"id": "tiny:1b"}]}', "application/json")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        chunk = {"model": "tiny:1b", "message": {"role": "assistant", "content": ANSWER}, "done": False}
        last = {
            "model": "tiny:1b",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
        }
        self._reply("".join(f"{json.dumps(line)}\n" for line in (chunk, last)).encode(), "application/x-ndjson")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def local_server(is_needed: bool) -> Generator[None]:
    """Serve at the usual port of Ollama until the block ends."""
    if not is_needed:
        yield
        return
    with ThreadingHTTPServer(("127.0.0.1", OLLAMA), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def look(state: State, base: Path) -> Seen:
    """Start it in one state, and follow what it asks."""
    home, folder = base / "home", base / "home" / "project"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# A project\n", encoding="utf-8")
    environ = {name: value for name, value in environment(home).items() if not name.startswith("XDG_")}
    environ = {**environ, "TMPDIR": "/tmp", "PYTHONPYCACHEPREFIX": str(BYTECODE), **state.environ}
    for path in (base, home, folder, folder / "README.md"):
        os.chown(path, UID, UID)
    if state.is_read_only:
        for path in (home, folder):
            os.chown(path, 0, 0)
            path.chmod(0o555)
    words = [find_python(), "-m", "everturn"]
    if not state.has_network:
        start = "ip link set lo up && exec " + shlex.join(words)
        words = [shutil.which("unshare") or "unshare", "-Urn", "--", "/bin/sh", "-c", start]
    seen, begin = Seen(state.name), time.monotonic()
    window = TerminalWindow(words, environ, folder, (100, 30))
    try:
        follow(window, state, seen, lambda: time.monotonic() - begin)
    except TimeoutError as error:
        seen.problem = str(error).splitlines()[0]
    finally:
        seen.screen = window.text
        window.close()
    return seen


def follow(window: TerminalWindow, state: State, seen: Seen, clock: Callable[[], float]) -> None:
    """Answer the questions with Enter, and send a message."""
    window.wait_for(QUESTION, 60)
    seen.question = clock()
    window.press("\r")
    if not re.search(READY, window.wait_for(f"{TRUST}|{READY}", 60)):
        window.press("y\r")
        window.wait_for(READY, 60)
    seen.ready = clock()
    time.sleep(0.3)
    window.press(MESSAGE)
    window.wait_for(MESSAGE, 20)
    window.press("\r")
    window.wait_for(state.shows, 60)
    seen.answer = clock()


def render(results: list[Seen]) -> str:
    """The page."""
    lines = [
        "# First runs",
        "",
        "Written by `python -m tools.first_run.campaign --write`: seconds from the start of `everturn` in a new folder, by a new",
        "user, who presses Enter at each question and sends one message. Without a network the last column is the text that",
        "says what to do next.",
        "",
        describe_load(),
        "",
        "| machine | first question, s | ready, s | answer or next step, s | seen |",
        "|---|--:|--:|--:|---|",
        *(seen.line() for seen in results),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="First runs on six kinds of machine.")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--screens", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    results: list[Seen] = []
    BYTECODE.mkdir(mode=0o777, exist_ok=True)
    BYTECODE.chmod(0o777)
    is_warm = False
    for state in (STATES[0], *STATES):  # the first start compiles, and does not count
        if options.only and state.name not in options.only and is_warm:
            continue
        base = Path(tempfile.mkdtemp(prefix="everturn-first-", dir="/var/tmp"))
        base.chmod(0o755)
        try:
            with local_server(state.has_server):
                results.append(look(state, base))
        finally:
            shutil.rmtree(base, ignore_errors=True)
        if not is_warm:
            is_warm = bool(results.pop())
            continue
        print(results[-1].line(), results[-1].problem, flush=True)
        if options.screens or results[-1].problem:
            print(results[-1].screen, flush=True)
    if options.write:
        PAGE.write_text(render(results), encoding="utf-8")
        write_docs_table("terminal/first-run.md", "first_run", render(results))
    return 1 if any(seen.problem for seen in results) else 0


if __name__ == "__main__":
    sys.exit(main())
