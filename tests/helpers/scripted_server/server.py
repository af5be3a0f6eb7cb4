"""The real server with a scripted model behind it, to be looked at in a browser.

    python -m tests.helpers.scripted_server.server --port 8765

It is `everturn serve` as a process of its own, with a configuration, a store and a folder of files that are made for it
and go with it. `replies.py` says which word in a message makes the model do what, `tools.py` has the tools.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from everturn.access.auth.authentication import Authenticator
from everturn.clock import SystemClock
from everturn.core.tenants.accounts import LOCAL
from everturn.stores.registry import get_store
from tests.helpers.scripted_server.config import CONFIG, USERS
from tests.helpers.scripted_server.model import NAMES, ModelServer
from tests.helpers.scripted_server.replies import WORDS
from tests.helpers.waiting import wait_until_sync
from tools.servers.process import free_port

HERE: Final = Path(__file__).parent
SERVES: Final = re.compile(r"serves at (http://\S+)")
KEYS: Final = re.compile(r"_API_KEY$|^EVERTURN_")


class Rig:
    """The server from outside: started, killed and started again at the same address, with the same store."""

    def __init__(self, home: Path, port: int = 0, web: str = "", pace: float = 0.0, more: str = "") -> None:
        self.home, self.port, self.web = home, port or free_port(), web
        self.model = ModelServer(pace)
        self.files = home / "files"
        self.process: subprocess.Popen[str] | None = None
        self._more = more

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.home / "everturn.toml"

    # ------------------------------------------------------------------------------------------------- its life

    def start(self) -> None:
        """Start the model and the server; it serves when this returns."""
        self.model.start()
        self.files.mkdir(exist_ok=True)
        users = "\n".join(f'[tenants.local.users.{name}]\nrole = "{name}"' for name in USERS)
        text = CONFIG.format(
            home=self.home,
            port=self.port,
            model=self.model.url,
            first=NAMES[0],
            second=NAMES[1],
            deeds=HERE / "tools.py",
            python=sys.executable,
            hostile=HERE.parent / "hostile_mcp_server.py",
            users=users,
        )
        self.config.write_text(text + self._more.replace("{model}", self.model.url), encoding="utf-8")
        self.serve()

    def serve(self) -> None:
        """Start the server alone, such as after it was killed."""
        with (self.home / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "everturn", "serve", "--config", str(self.config), "--no-reload"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.environment,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        while not SERVES.search(line := self.process.stdout.readline()):
            if not line:
                raise RuntimeError(f"the server did not start: {(self.home / 'serve.log').read_text()[-3000:]}")

    def kill(self) -> None:
        """Kill the server with SIGKILL: nothing of it can say goodbye."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        """Ask the server to leave, and the model too."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self._gone()
        self.model.stop()

    def _gone(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.wait(30)
        self.process.stdout.close()

    @property
    def environment(self) -> dict[str, str]:
        """What the server and its commands are told by the environment: nothing of whoever runs this."""
        known = {name: value for name, value in os.environ.items() if not KEYS.search(name)}
        known |= {"RIG_HOME": str(self.home), "XDG_STATE_HOME": f"{self.home}/state", "XDG_DATA_HOME": str(self.home)}
        known |= {
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "PYTHONPATH": f"{HERE.parents[2]}{os.pathsep}{HERE.parents[2] / 'src'}",
        }
        known.pop("JOURNAL_STREAM", None)
        return known | ({"EVERTURN_WEB": self.web} if self.web else {})

    # --------------------------------------------------------------------------------------------- what one asks

    def login_link(self, user: str = "local") -> str:
        """A link that logs a browser in, once, made as `everturn login` does, without a program that has to start."""
        with ThreadPoolExecutor(1) as pool:  # beside whatever loop a browser is driven by
            return f"{self.url}/login?token={pool.submit(asyncio.run, self._login_token(user)).result()}"

    async def _login_token(self, user: str) -> str:
        store: Any = get_store(str(self.home / "talks.db"))
        try:
            return await Authenticator(store.accounts, SystemClock()).login_link(LOCAL, user)
        finally:
            await store.aclose()

    def login_command(self) -> str:
        """What the command prints that makes such links."""
        words = [sys.executable, "-m", "everturn", "login", "--config", str(self.config), "--user", "local"]
        completed = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True, timeout=60)
        return completed.stdout.strip()

    def api(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Ask as the local operator; the answer, decoded.

        Raises:
            AssertionError: it was refused.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        header_fields = {"Authorization": f"Bearer {(self.home / 'token').read_text().strip()}", **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            header_fields["Content-Type"], body = "application/json", json.dumps(body)
        try:
            connection.request(method, path, body, header_fields)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, f"{method} {path}: {answer.status} {data[:500]!r}"
        return json.loads(data) if data else None

    def say(self, text: str, session: str = "", **more: Any) -> dict[str, Any]:
        """Say something without a browser: in a session, or in a new one."""
        path = f"/api/sessions/{session}/messages" if session else "/api/sessions"
        return self.api("POST", path, {"text": text, **more})

    def share(self, session: str) -> str:
        """Let everybody read a session of the local operator, and write in it; its id."""
        self.api("POST", f"/api/sessions/{session}/shares", {"role": "viewer", "level": "write"})
        return session

    def messages(self, session: str) -> list[dict[str, Any]]:
        """The selected branch, as it is stored."""
        return self.api("GET", f"/api/sessions/{session}/messages")["messages"]

    def stored_text(self, session: str) -> str:
        """The text of the last answer, as it is stored."""
        answers = [message for message in self.messages(session) if message["role"] == "assistant"]
        return "".join(part["text"] for part in answers[-1]["parts"] if part["type"] == "text") if answers else ""

    def turn(self, session: str, turn: str) -> dict[str, Any]:
        """A turn as the server tells it."""
        return self.api("GET", f"/api/sessions/{session}/turns/{turn}")

    def gates(self, session: str = "") -> list[dict[str, Any]]:
        """What stands open, in a session or anywhere."""
        found = self.api("GET", "/api/gates")["gates"]
        return [gate for gate in found if not session or gate["session"] == session]

    def is_idle(self, session: str) -> bool:
        """Whether nothing is under way in a session."""
        return not self.api("GET", f"/api/sessions/{session}")["is_awake"]

    def wait_idle(self, session: str, seconds: float = 60.0) -> None:
        """Wait until nothing is under way in a session."""
        wait_until_sync(lambda: self.is_idle(session), seconds, f"session {session} did not come to rest")

    def deeds(self, action: str = "") -> list[dict[str, Any]]:
        """What the tools did, oldest first."""
        file = self.home / "deeds.jsonl"
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
        return [row for row in rows if not action or row["did"] == action]


@contextmanager
def a_rig(port: int = 0, web: str = "", pace: float = 0.0, more: str = "") -> Generator[Rig]:
    """A rig that runs while the block does."""
    home = Path(tempfile.mkdtemp(prefix="everturn-rig-"))
    rig = Rig(home, port, web, pace, more)
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    """Keep it running, and print a way in."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.scripted_server.server",
        description="The real server with a scripted model. Words in a message that make the model do something: "
        + ", ".join(WORDS)
        + '. Also: "pace 20" (milliseconds between pieces), "call NAME {json}" for any tool, "echo: TEXT" to the letter.',
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--web", default="", metavar="DIR", help="where the built page is; that of the server unless said"
    )
    parser.add_argument("--pace", type=float, default=8.0, help="milliseconds between two pieces of an answer")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with a_rig(options.port, options.web, options.pace / 1000) as rig:
        print(f"serves at {rig.url}, keeps all of it in {rig.home}", flush=True)
        for user in ("local", *USERS):
            print(f"  log in as {user:<9} {rig.login_link(user)}", flush=True)
        print(f"  another link: python -m everturn login --config {rig.config} --user local", flush=True)
        print(f'  by the API:   curl -H "Authorization: Bearer $(cat {rig.home}/token)" {rig.url}/api/me', flush=True)
        try:
            while rig.process is not None and rig.process.poll() is None:
                time.sleep(0.5)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
