"""Conversations that are kept: listed, found, read, moved and erased, in a store at hand and on a server."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest
from tests.helpers.server_process import Node

from everturn import Chat, tool
from everturn.cli import main
from everturn.cli.commands import sessions
from everturn.cli.connect_token import load_connect_token
from everturn.core.chunks import FinishChunk, UsageChunk
from everturn.core.parts import Usage
from everturn.errors import ConfigError
from everturn.events import GateOpened
from everturn.stores.registry import get_store, without_password
from everturn.testing import ScriptedModel, call, calls, say

HOSTILE = "It is \x1b[2J noon \u202e!"


@tool(read_only=True)
def look(place: str) -> str:
    """Look somewhere."""
    return "\x1b]0;owned\x07 noon"


@tool(read_only=True, approval="always")
def wait(place: str) -> str:
    """Ask first."""
    return "never"


async def talk(store: Path, session: str, *script: object, until: type[object] | tuple[()] = ()) -> None:
    chat = Chat(ScriptedModel([*script]), tools=[look, wait], store=str(store), session=session)
    turn = await chat.send("When is lunch?")
    async for event in turn:
        if isinstance(event, until):
            break
    await chat.aclose()


async def cached_talk(store: Path, session: str, *usages: Usage) -> None:
    """A conversation whose requests used these tokens."""
    answers = [[say("Noon."), [[UsageChunk(usage), FinishChunk("stop")]]] for usage in usages]
    async with Chat(ScriptedModel(*answers), store=str(store), session=session) as chat:
        for _ in usages:
            await (await chat.send("When is lunch?"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a conversation that is over, and one that waits for somebody."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("EVERTURN_TOKEN", "EVERTURN_CONFIG", "EVERTURN_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    asyncio.run(talk(tmp_path / "talks.db", "lunch", calls(call("look", place="clock")), say(HOSTILE)))
    asyncio.run(talk(tmp_path / "talks.db", "tea", calls(call("wait", place="x")), say("."), until=GateOpened))
    return "talks.db"


def done(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints; of one that fails, what it says instead."""
    capsys.readouterr()
    assert main(words) == code
    captured = capsys.readouterr()
    assert (captured.out if code else captured.err) == ""
    return captured.err if code else captured.out


def test_they_are_listed_with_what_they_are_doing(store: str, capsys: pytest.CaptureFixture[str]):
    lines = done(capsys, "sessions", "--store", store).splitlines()

    assert ("waiting" in lines[0], "tea" in lines[0]) == (True, True)
    assert ("idle" in lines[1], "lunch  When is lunch?" in lines[1]) == (True, True)
    assert main(["sessions", "--store", store, "--limit", "1"]) == 0
    page = capsys.readouterr()
    assert len(page.out.splitlines()) == 1
    assert page.err.startswith("older ones: everturn sessions --before ")
    listed = [json.loads(line) for line in done(capsys, "sessions", "--json", "--store", store).splitlines()]
    assert [(row["id"], row["state"]) for row in listed] == [("tea", "waiting"), ("lunch", "idle")]
    assert "no sessions yet" in done(capsys, "sessions", "--store", store, "--tenant", "other")


def test_one_is_found_by_its_words(store: str, capsys: pytest.CaptureFixture[str]):
    output = done(capsys, "sessions", "--search", "noon", "--store", store)

    assert [line.strip() for line in output.splitlines()][1:] == [r"It is \x1b[2J noon \u202e!"]
    assert "tea" not in output
    assert done(capsys, "sessions", "--search", "dinner", "--store", store) == "no session has these words\n"


def test_what_is_shown_of_one_can_only_be_read(store: str, capsys: pytest.CaptureFixture[str]):
    output = done(capsys, "sessions", "show", "lunch", "--store", store)

    assert output.splitlines() == [
        "--- user",
        "When is lunch?",
        "",
        "--- scripted",
        r'[look {"place":"clock"}: completed] \x1b]0;owned\x07 noon',
        r"It is \x1b[2J noon \u202e!",
        "",
    ]
    as_json = done(capsys, "sessions", "--store", store, "show", "lunch", "--json")
    assert as_json.isascii()
    assert [json.loads(line)["role"] for line in as_json.splitlines()] == ["user", "assistant"]
    missing = done(capsys, "sessions", "show", "diner", "--store", store, code=2)
    assert missing == "everturn: there is no session 'diner' in talks.db; `everturn sessions` lists them\n"
    assert "no session 'lunch'" in done(capsys, "sessions", "show", "lunch", "--store", store, "--tenant", "x", code=2)


def test_one_is_moved_as_a_file(store: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert done(capsys, "export", "lunch", "--store", store).startswith("wrote lunch.zip, ")
    assert "lunch.zip already exists; use --force" in done(capsys, "export", "lunch", "--store", store, code=2)
    done(capsys, "export", "lunch", "--force", "--store", store)
    assert "cannot be written: No such file" in done(capsys, "export", "lunch", "-o", "a/b", "--store", store, code=2)
    again = done(capsys, "import", "lunch.zip", "--store", store, code=2)
    assert "--session ID chooses another" in again
    output = done(capsys, "import", "lunch.zip", "--store", store, "--session", "other")
    assert output == "other is in talks.db; `everturn sessions show other` reads it\n"
    assert done(capsys, "sessions", "show", "other", "--store", store) == done(
        capsys, "sessions", "show", "lunch", "--store", store
    )
    (tmp_path / "none.zip").write_text("no zip", encoding="utf-8")
    assert "`everturn export SESSION` makes a file" in done(capsys, "import", "none.zip", "--store", store, code=2)


def test_one_goes_through_a_pipe(store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    piped = io.BytesIO()
    with monkeypatch.context() as within:
        within.setattr(sys, "stdout", io.TextIOWrapper(piped, encoding="utf-8", write_through=True))
        assert main(["export", "lunch", "-o", "-", "--store", store]) == 0
        data = piped.getvalue()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    assert main(["import", "-", "--session", "third", "--store", store]) == 0


def test_one_turn_is_exported_by_its_id(store: str, capsys: pytest.CaptureFixture[str]):
    done(capsys, "export", "lunch", "--turn", "last", "-o", "turn.jsonl", "--store", store)
    assert Path("turn.jsonl").stat().st_size > 0
    message = done(capsys, "export", "lunch", "--turn", "nope", "-o", "x.jsonl", "--store", store, code=2)
    assert "'lunch' has no turn 'nope'; there are: turn_" in message
    assert not Path("x.jsonl").exists()


def test_one_is_erased_only_when_that_is_wanted(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert "pass --yes" in done(capsys, "sessions", "erase", "lunch", "--store", store, code=2)
    with monkeypatch.context() as within:
        within.setattr(sessions, "confirm", lambda question, yes: False)
        assert "nothing was erased" in done(capsys, "sessions", "erase", "lunch", "--store", store, code=1)
    busy = done(capsys, "sessions", "erase", "tea", "--yes", "--store", store, code=2)
    assert "running" in busy
    assert done(capsys, "sessions", "erase", "lunch", "--yes", "--store", store) == "lunch is erased\n"
    assert "no session 'lunch'" in done(capsys, "sessions", "erase", "lunch", "--yes", "--store", store, code=2)

    async def audit() -> list[str]:
        opened = get_store(store)
        try:
            return [record.did for record in await opened.accounts.audit("local")]
        finally:
            await opened.aclose()

    assert "session.erase" in asyncio.run(audit())


def test_a_token_of_this_machine_is_shown_to_no_other(store: str, monkeypatch: pytest.MonkeyPatch):
    import argparse

    def shown_at(url: str) -> str:
        return load_connect_token(argparse.Namespace(store=store, config=None, connect=url))

    mine, token = "evk_" + "m" * 43, Path("operator.token")
    with pytest.raises(ConfigError, match="set EVERTURN_TOKEN"):
        shown_at("http://127.0.0.1:8000")
    assert not token.exists()  # looking makes none
    token.write_text(mine, encoding="utf-8")
    token.chmod(0o600)

    assert shown_at("http://127.0.0.1:8000") == mine
    for url in ("http://192.0.2.1:8000", "https://chat.example.org", "http://127.0.0.1.example.org", "http://[::1"):
        with pytest.raises(ConfigError, match="set EVERTURN_TOKEN"):
            shown_at(url)
    token.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        shown_at("http://127.0.0.1:8000")
    monkeypatch.setenv("EVERTURN_TOKEN", "evk_other")
    assert shown_at("https://chat.example.org") == "evk_other"


def test_a_password_in_the_name_of_a_store_is_not_shown():
    assert without_password("postgresql://me:secret@host/db") == "postgresql://me:...@host/db"
    assert without_password("talks.db") == "talks.db"


@pytest.mark.live
def test_the_same_is_asked_of_a_server(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    node = Node(tmp_path / "home").start()
    try:
        at = ("--connect", node.address)
        monkeypatch.setenv("EVERTURN_TOKEN", "evk_" + "x" * 40)
        assert "`everturn keys add USER` makes a key" in done(capsys, "sessions", *at, code=2)
        monkeypatch.setenv("EVERTURN_TOKEN", node.token)
        assert "no sessions yet" in done(capsys, "sessions", *at)
        done(capsys, "export", "lunch", "--store", store)
        session = done(capsys, "import", "lunch.zip", *at).split()[0]
        assert session in done(capsys, "sessions", *at)
        assert session in done(capsys, "sessions", "--search", "noon", *at)
        assert "noon" in done(capsys, "sessions", "show", session, *at)
        assert "wrote" in done(capsys, "export", session, "-o", "back.zip", *at)
        assert "leave --turn out" in done(capsys, "export", session, "--turn", "last", *at, code=2)
        assert "a server chooses" in done(capsys, "import", "back.zip", "--session", "x", *at, code=2)
        assert f"`everturn sessions --connect {node.address}`" in done(capsys, "sessions", "show", "nope", *at, code=2)
        assert done(capsys, "sessions", "rename", session, "Noon", *at) == f"{session} is renamed\n"
        assert done(capsys, "sessions", "pin", session, *at) == f"{session} is pinned\n"
        assert "Noon (pinned)" in done(capsys, "sessions", *at)
        # The same store, by its file: the process that has it carries it out.
        database = next((tmp_path / "home").rglob("*.db"))
        assert done(capsys, "sessions", "rename", session, "One", "--store", str(database)) == f"{session} is renamed\n"
        assert "One (pinned)" in done(capsys, "sessions", *at)
        done(capsys, "sessions", "erase", session, "--yes", *at)
        assert "no sessions yet" in done(capsys, "sessions", *at)
    finally:
        node.kill9()


def test_one_is_renamed_pinned_archived_and_labelled(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*words: str) -> list[str]:
        return [
            json.loads(line)["id"]
            for line in done(capsys, "sessions", "--json", "--store", store, *words).split("\n")[:-1]
        ]

    assert done(capsys, "sessions", "rename", "lunch", "At", "noon", "--store", store) == "lunch is renamed\n"
    assert done(capsys, "sessions", "label", "lunch", "work", "food", "--store", store) == "lunch is labelled\n"
    assert done(capsys, "sessions", "pin", "lunch", "--store", store) == "lunch is pinned\n"
    first = done(capsys, "sessions", "--store", store).splitlines()[0]
    assert first.endswith("lunch  At noon (pinned) #work #food")
    assert listed("--label", "work") == ["lunch"]
    assert done(capsys, "sessions", "unpin", "lunch", "--store", store) == "lunch is no longer pinned\n"
    assert listed() == ["tea", "lunch"]
    assert done(capsys, "sessions", "archive", "tea", "--store", store) == "tea is archived\n"  # it waits for somebody
    assert (listed(), listed("--archived")) == (["lunch"], ["tea"])
    assert done(capsys, "sessions", "unarchive", "tea", "--store", store) == "tea is no longer archived\n"
    assert done(capsys, "sessions", "label", "lunch", "--store", store) == "lunch is without labels\n"
    assert listed("--label", "work") == []
    assert "no session 'dinner'" in done(capsys, "sessions", "pin", "dinner", "--store", store, code=2)
    assert "visible character" in done(capsys, "sessions", "rename", "lunch", " ", "--store", store, code=2)


def test_the_cache_of_one_is_shown_by_its_requests(store: str, capsys: pytest.CaptureFixture[str]):
    used = (Usage(12_050, 5, written=12_000), Usage(12_050, 5, cached=12_000), Usage(12_050, 5))
    asyncio.run(cached_talk(Path(store), "cached", *used))

    lines = done(capsys, "sessions", "show", "cached", "--cache", "--store", store).splitlines()
    assert [line.split()[1:] for line in lines[1:]] == [
        ["1", "12,050", "0", "0", "12,000"],
        ["1", "12,050", "12,000", "12,000", "0"],
        ["1", "12,050", "12,000", "0", "0", "unexpected"],
    ]
    json_lines = done(capsys, "sessions", "show", "cached", "--cache", "--json", "--store", store).splitlines()
    assert [json.loads(line).get("cause", "") for line in json_lines] == ["", "", "unexpected"]
