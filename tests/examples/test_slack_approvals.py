"""Approvals in Slack, against a Slack that is scripted: a message with buttons, a kill, a signed click, one payment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from everturn.core.events import TurnCompleted
from everturn.inbound_hooks.signatures import sign_slack
from tests.examples.example_process import check_recorded, commands, copied, is_there, recording_of, run, started
from tests.helpers.waiting import wait_until_sync
from tools.servers.process import free_port

NAME = "slack-approvals"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


class ScriptedSlack:
    """Slack's Web API as far as the example uses it, and a person who presses buttons."""

    def __init__(self, port: int) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.tokens: set[str] = set()
        self.port, self.fails = port, 0

    def messages(self, method: str = "chat.postMessage") -> list[dict[str, Any]]:
        return [body for name, body in self.calls if name == method]

    def press(self, url: str, button: str, *, user: str = "U0001", secret: str = SECRET, age: int = 0) -> int:
        [actions] = [block for block in self.messages()[0]["blocks"] if block["type"] == "actions"]
        [pressed] = [element for element in actions["elements"] if element["action_id"] == button]
        payload = {"type": "block_actions", "user": {"id": user}, "actions": [pressed]}
        body = urlencode({"payload": json.dumps(payload)}).encode()
        at = int(time.time()) - age
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "x-slack-request-timestamp": str(at),
            "x-slack-signature": sign_slack(secret, at, body),
        }
        try:
            with urlopen(Request(f"{url}/slack", body, headers), timeout=30) as response:
                return response.status
        except HTTPError as error:
            with error:
                return error.code


@contextmanager
def scripted_slack() -> Generator[ScriptedSlack]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            slack.tokens.add(self.headers["authorization"])
            is_failing = slack.fails > 0
            slack.fails -= is_failing
            if not is_failing:
                slack.calls.append((self.path.rpartition("/")[2], body))
            answer = {"ok": not is_failing, "channel": "C1", "ts": f"{len(slack.calls)}.0", "error": "ratelimited"}
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    slack = ScriptedSlack(server.server_port)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield slack
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def is_done(store: Path) -> bool:
    """Whether the turn in a store is over, as another process sees it."""
    return any(isinstance(event, TurnCompleted) for event in (await recording_of(store, "may-1")).events)


async def test_a_click_in_slack_answers_after_a_restart_once(tmp_path: Path) -> None:
    folder, port = copied(NAME, tmp_path), free_port()
    service, send = commands(NAME)
    url = f"http://127.0.0.1:{port}"
    with scripted_slack() as slack:
        slack.fails = 1  # the webhook is sent again
        more = {
            "PORT": str(port),
            "SLACK_API": f"http://127.0.0.1:{slack.port}",
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": SECRET,
        }
        with started(service, folder, **more) as first:
            wait_until_sync(lambda: is_there(f"{url}/requests"), why="it does not serve")
            words = [word.replace("http://127.0.0.1:8020", url) for word in send]
            assert json.loads(run(words, folder)) == {"id": "may-1", "is_new": True}
            data = folder / "approvals-data"
            wait_until_sync(lambda: list(data.glob("gate*.json")), why="Slack is told nothing")
            first.kill()
            first.wait()
        assert slack.tokens == {"Bearer xoxb-1"}
        assert '"amount": 40' in slack.messages()[0]["blocks"][0]["text"]["text"]
        with started(service, folder, **more):
            wait_until_sync(lambda: is_there(f"{url}/requests"), why="it does not serve again")
            assert slack.press(url, "approve", secret="0" * 32) == 401  # forged
            assert slack.press(url, "approve", age=400) == 401  # too old
            assert slack.press(url, "approve", user="U0666") == 409  # somebody else
            assert slack.messages("chat.update") == []
            assert [slack.press(url, "approve") for _ in range(2)] == [200, 200]
            assert slack.press(url, "deny") == 409
            wait_until_sync(lambda: bool(slack.messages("chat.update")), why="the buttons stay")
            assert slack.messages("chat.update")[0]["blocks"] == []
            store = folder / "approvals-data" / "talks.db"
            await asyncio.to_thread(wait_until_sync, lambda: asyncio.run(is_done(store)), why="it is not done")
    recording = await recording_of(store, "may-1")
    check_recorded(recording, NAME, "approval.jsonl")
