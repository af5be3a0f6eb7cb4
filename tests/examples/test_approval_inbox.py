"""The approval inbox: a request waits, the service is killed, somebody answers, and it is paid once."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.examples.example_process import check_recorded, commands, copied, is_there, recording_of, run, started
from tests.helpers.waiting import wait_until_sync
from tools.servers.process import free_port

NAME = "approval-inbox"


def ask(url: str, body: Any = None, form: str = "", host: str = "") -> tuple[int, Any]:
    """Ask the service, as a program or by a form of its page."""
    data = form.encode() if form else None if body is None else json.dumps(body).encode()
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    request = urllib.request.Request(url, data, {"content-type": kind} | ({"host": host} if host else {}))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if text[:1] in "[{" else text
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode()
            return error.code, json.loads(text) if text[:1] in "[{" else text


def phase(url: str, request: str) -> str:
    return ask(f"{url}/requests/{request}")[1]["phase"]


def paid(folder: Path) -> list[tuple[str, float]]:
    ledger = sqlite3.connect(folder / "inbox-data" / "ledger.db")
    try:
        return ledger.execute("SELECT recipient, amount FROM paid").fetchall()
    finally:
        ledger.close()


def curl(words: list[str], url: str, folder: Path) -> Any:
    """A line of the README, at the port that this service has."""
    assert words[0] == "curl"
    return json.loads(run([word.replace("http://127.0.0.1:8010", url) for word in words], folder))


async def test_a_request_outlives_the_process_and_is_paid_once(tmp_path: Path) -> None:
    folder, port = copied(NAME, tmp_path), free_port()
    service, send, look = commands(NAME)
    url = f"http://127.0.0.1:{port}"
    with started(service, folder, PORT=str(port)) as first:
        wait_until_sync(lambda: is_there(f"{url}/inbox"), why="it does not serve")
        assert curl(send, url, folder) == {"id": "may-1", "is_new": True}
        wait_until_sync(lambda: phase(url, "may-1") == "waiting", why="nothing is asked")
        (before,) = curl(look, url, folder)
        first.kill()  # SIGKILL: nothing can be put in order
        first.wait()
    assert not (folder / "inbox-data" / "ledger.db").exists()

    with started(service, folder, PORT=str(port)):
        wait_until_sync(lambda: is_there(f"{url}/inbox"), why="it does not serve again")
        assert curl(look, url, folder) == [before]
        assert curl(send, url, folder) == {"id": "may-1", "is_new": False}  # sent again, it is the same
        answer = f"{url}/inbox/{before['gate']}"
        assert ask(answer, {"hash": "another", "allow": True})[0] == 409
        assert ask(answer, {"hash": before["hash"], "allow": True, "by": "the till"}) == (200, {"taken": True})
        wait_until_sync(lambda: phase(url, "may-1") == "completed", why="it is not done")
        assert ask(f"{url}/requests/may-1")[1]["answer"] == "Done: paid 40.00 to Ada."
        assert ask(answer, {"hash": before["hash"], "allow": True})[0] == 409
        assert ask(f"{url}/inbox")[1] == []
        assert paid(folder) == [("Ada", 40.0)]
        refuse_on_the_page(url)
        assert paid(folder) == [("Ada", 40.0)]
    check_recorded(await recording_of(folder / "inbox-data" / "talks.db", "may-1"), NAME, "payment.jsonl")


def test_a_process_that_dies_over_the_answer_pays_once(tmp_path: Path) -> None:
    folder, port = copied(NAME, tmp_path), free_port()
    service, send, look = commands(NAME)
    url = f"http://127.0.0.1:{port}"
    with started(service, folder, PORT=str(port)) as first:
        wait_until_sync(lambda: is_there(f"{url}/inbox"), why="it does not serve")
        curl(send, url, folder)
        wait_until_sync(lambda: phase(url, "may-1") == "waiting", why="nothing is asked")
        (item,) = curl(look, url, folder)
        assert ask(f"{url}/inbox/{item['gate']}", {"hash": item["hash"], "allow": True})[0] == 200
        first.kill()  # before it has paid, after it, or in the middle: the answer is safe, and the key is the same
        first.wait()
    with started(service, folder, PORT=str(port)):
        wait_until_sync(lambda: is_there(f"{url}/inbox"), why="it does not serve again")
        wait_until_sync(lambda: phase(url, "may-1") == "completed", why="it is not done")
    assert paid(folder) == [("Ada", 40.0)]


def refuse_on_the_page(url: str) -> None:
    """A person says no, and why; whatever a colleague wrote is text on the page."""
    assert ask(f"{url}/requests", {"id": "may-2", "text": "pay Bob 7 <b>now</b>"})[0] == 202
    wait_until_sync(lambda: phase(url, "may-2") == "waiting", why="nothing is asked")
    ((gate, hash),) = [(item["gate"], item["hash"]) for item in ask(f"{url}/inbox")[1]]
    assert f'action="/inbox/{gate}"' in ask(url)[1]
    assert ask(f"{url}/inbox/{gate}", form=f"hash={hash}&button=deny&why=paid+in+April")[0] == 200
    wait_until_sync(lambda: phase(url, "may-2") == "completed", why="it is not done")
    assert "paid in April" in ask(f"{url}/requests/may-2")[1]["answer"]


def test_what_makes_no_sense_is_refused_in_one_line(tmp_path: Path) -> None:
    folder, port = copied(NAME, tmp_path), free_port()
    url = f"http://127.0.0.1:{port}"
    with started(commands(NAME)[0], folder, PORT=str(port)) as service:
        wait_until_sync(lambda: is_there(f"{url}/inbox"), why="it does not serve")
        assert ask(f"{url}/requests", {"id": "a/b", "text": "x"})[0] == 400
        assert ask(f"{url}/requests", ["not", "an", "object"]) == (
            400,
            {"error": "send a JSON object, as application/json"},
        )
        assert ask(f"{url}/requests", form="id=a&text=pay+mallory+900")[0] == 400  # as any page could send it
        assert ask(f"{url}/requests/nobody")[0] == 404
        assert ask(f"{url}/inbox", host="evil.test")[0] == 400  # a name that was bent to our address
        service.terminate()
        assert service.wait(30) in (0, -15)
    assert "Traceback" not in (folder / "programs.log").read_text(encoding="utf-8")
