"""`everturn webhooks` and `everturn hooks`: on a store, and with the configuration of a server."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.app import App
from everturn.cli import main
from everturn.config.load import load_config
from everturn.core.events import TurnCompleted
from everturn.errors import ConfigError
from everturn.models.scripted import ScriptedModel
from everturn.stores.sql.store import SqlStore
from everturn.testing import say

URL = "https://example.com/hook"


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.sessions()
    await store.aclose()
    return tmp_path / "a.db"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main([*words])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_create_list_rotate_and_delete(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--store", str(file))
    assert run(capsys, "webhooks", *store)[1].startswith("no webhooks yet")
    created = json.loads(run(capsys, "webhooks", "create", URL, "--event", "turn.failed", "--json", *store)[1])
    id, secret = created["webhook"]["id"], created["secret"]
    assert (secret.startswith("whsec_"), created["webhook"]["events"]) == (True, ["turn.failed"])
    assert secret in run(capsys, "webhooks", "secret", id, *store)[1]
    assert run(capsys, "webhooks", *store)[1] == f"{id}  {URL}  turn.failed\n"
    rotated = json.loads(run(capsys, "webhooks", "rotate", id, "--json", *store)[1])
    assert rotated["secret"] != secret
    assert run(capsys, "webhooks", "deliveries", id, *store) == (0, "")
    assert run(capsys, "webhooks", "replay", id, *store) == (0, f"{id}: 0 sent again\n")
    assert run(capsys, "webhooks", "delete", id, *store) == (0, "")
    code, output = run(capsys, "webhooks", "delete", id, *store)
    assert code == 2
    assert "no webhook" in output


def test_what_the_egress_policy_refuses_is_refused_here_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output = run(capsys, "webhooks", "create", "http://127.0.0.1:9/x", "--store", str(file))
    assert code == 2
    assert "[webhooks] allow" in output
    code, output = run(capsys, "webhooks", "create", URL, "--event", "turn.started", "--store", str(file))
    assert code == 2
    assert "turn.completed" in output


def test_edit_changes_what_is_named_and_keeps_the_secret(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--store", str(file))
    created = json.loads(run(capsys, "webhooks", "create", URL, "--event", "turn.failed", "--json", *store)[1])
    id = created["webhook"]["id"]
    changed = ("--url", f"{URL}/new", "--event", "turn.completed", "--description", "Pager", "--pause")
    view = json.loads(run(capsys, "webhooks", "edit", id, *changed, "--json", *store)[1])
    assert (view["url"], view["events"], view["description"], view["is_paused"]) == (
        f"{URL}/new",
        ["turn.completed"],
        "Pager",
        True,
    )
    assert run(capsys, "webhooks", *store)[1] == f"{id}  {URL}/new  paused; turn.completed\n"
    assert run(capsys, "webhooks", "edit", id, "--resume", *store) == (0, f"{id}  {URL}/new  turn.completed\n")
    assert created["secret"] in run(capsys, "webhooks", "secret", id, *store)[1]
    for words, expected in (
        ((id, "--url", "http://127.0.0.1:9/x"), "[webhooks] allow"),
        ((id, "--event", "turn.started"), "turn.completed"),
        (("webhook_none", "--pause"), "no webhook"),
    ):
        code, output = run(capsys, "webhooks", "edit", *words, *store)
        assert (code, expected in output) == (2, True)
    assert run(capsys, "webhooks", *store)[1] == f"{id}  {URL}/new  turn.completed\n"


async def test_dead_letters_are_listed_and_replayed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--store", str(file))
    created = json.loads((await asyncio.to_thread(run, capsys, "webhooks", "create", URL, "--json", *words))[1])
    id, store = created["webhook"]["id"], SqlStore.sqlite(file)
    async with App(ScriptedModel(say("Done.")), store=store) as app:
        await app.webhooks.sender.aclose()
        await app.chat("s").run("Go.")
        [row] = await store.webhooks.claim(app.clock.now() + 1, app.clock.now() + 60, 10)
        assert row.type == "turn.completed"
        events = [entry for entry in await store.events("s") if isinstance(entry.event, TurnCompleted)]
        assert [entry.seq for entry in events] == [row.seq]
        await store.webhooks.finish(replace(row, state="dead", due=None, problem="answered 500"))
    row = (await asyncio.to_thread(run, capsys, "webhooks", *words))[1]
    assert re.search(r"failing since \S+ \S+ \(1 in a row: answered 500\); ", row)
    listed = (await asyncio.to_thread(run, capsys, "webhooks", "deliveries", id, *words))[1]
    assert "turn.completed  s " in listed
    assert "answered 500" in listed
    assert (await asyncio.to_thread(run, capsys, "webhooks", "replay", id, *words))[1] == f"{id}: 1 sent again\n"
    assert (await asyncio.to_thread(run, capsys, "webhooks", "deliveries", id, *words))[1] == ""


HOOKS = """
[hooks.github]
scheme = "github"
secret = "${env:HOOK_SECRET}"
text = "Look at {{issue.number}}."
session = "{{issue.number}}"
when = { action = ["opened", "reopened"] }
"""


def test_the_hooks_of_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, x = tmp_path / "e.toml", str(tmp_path / "x.json")
    file.write_text(HOOKS)
    Path(x).write_text("{}", encoding="utf-8")
    assert run(capsys, "hooks", "--config", str(file)) == (
        0,
        "github  /api/hooks/github  github  send  Look at {{issue.number}}.\n",
    )
    code, output = run(capsys, "hooks", "send", "gitlab", x, "--config", str(file), "--connect", "http://127.0.0.1:1")
    assert code == 2
    assert "[hooks.gitlab]" in output
    code, output = run(capsys, "hooks", "send", "github", x, "--config", str(file), "--connect", "http://127.0.0.1:1")
    assert code == 2
    assert "HOOK_SECRET" in output


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('text = "x"\nsecret = "plain"', "reference"),
        ('secret = "${env:A}"', "text is missing"),
        ('text = "x"\nsecret = "${env:A}"\ntenant = "nobody"', "no tenant 'nobody'"),
        ('text = "x"\nsecret = "${env:A}"\nmax_bytes = 0', "max_bytes"),
        ('text = "x"\nsecret = "${env:A}"\nsesion = "x"', "sesion"),
        ('action = "answer"\nsecret = "${env:A}"', "answer is missing"),
    ],
)
def test_a_mistake_in_a_hook_is_told_with_its_line(tmp_path: Path, line: str, expected: str) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f'[hooks.a]\nscheme = "github"\n{line}\n')
    with pytest.raises(ConfigError, match=expected) as error:
        load_config(str(file), {})
    assert "e.toml:" in str(error.value)
