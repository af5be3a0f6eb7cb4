"""What a model, a file, a server, another user of the machine or a slip of the pen tries on the command line."""

import json
import os
import shlex
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everturn import Chat, tool
from everturn.cli import main, port_owner
from everturn.cli.args.commands import make_parser
from everturn.cli.commands.sessions import format_time
from everturn.cli.port_owner import check_port_owner
from everturn.cli.store.local_server import open_chat_server
from everturn.errors import ConfigError
from everturn.permissions.rule_text import parse_rule
from everturn.replay.recording import Recording
from everturn.stores.export import export_session
from everturn.stores.registry import get_store
from everturn.testing import ScriptedModel, say
from everturn.testing.provider import Call, Provider, Say
from tests.helpers.cli_run import Here, did

ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e"
TOOLS = '''
from everturn import tool
from tests.helpers.cli_run_tools import _did

@tool(approval="ask", subjects={"path": "path"})
def save(path: str, text: str) -> str:
    """Save a text."""
    _did(f"save {path}")
    return path

@tool(approval="always", subjects={"path": "path"})
def put(path: str, how: str = "by force") -> str:
    """Put something somewhere."""
    _did(f"put {path} {how}")
    return "done"

@tool(read_only=True)
def look() -> str:
    """Look at what a stranger wrote."""
    return "../../elsewhere"
'''


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Here:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    return Here(tmp_path, monkeypatch, capsysbinary)


def at(provider: Provider, *steps: object) -> list[str]:
    provider.script("m", steps, sequence=True)  # pyright: ignore[reportArgumentType]
    return ["--model", "m", "--base-url", f"{provider.url}/v1", "--tools", "tools.py", "Do it"]


async def recorded(file: Path) -> Recording:
    """A turn with a call in it, in a file."""
    store = get_store("memory")

    @tool
    def find(word: str) -> str:
        """Find a word."""
        return word

    from everturn.testing import call, calls

    async with Chat(ScriptedModel(calls(call("find", word="tea")), say("Found.")), tools=[find], store=store) as chat:
        await (await chat.send("Find tea"))
        recording = await Recording.from_session(store, chat.session)
    recording.write(file)
    return recording


# A hostile model ------------------------------------------------------------------------------------------------------


async def test_what_is_offered_to_be_pasted_is_one_word_of_a_shell(provider: Provider, cli: Here) -> None:
    path = "a'; touch owned; 'b"
    words = at(provider, [Call("save", json.dumps({"path": path, "text": "x"}))], [Say("Well.")])
    done = await cli(*words)
    offer = done.err.split("--allow ")[1]
    pasted = shlex.split(offer)
    assert pasted[1:] == ["would", "let", "it", "run"]
    assert parse_rule(pasted[0], "allow", "--allow").match == {"path": path}


@pytest.mark.parametrize(
    ("rule", "arguments", "runs"),
    [
        ("put(path=notes/**)", {"path": "notes/a"}, True),
        ("put(path=notes/**)", {"path": "notes/../b"}, False),
        ("put(path=notes/**)", {"path": "notes/$ref{LAST}"}, False),
        ("put(path=notes/**, how=gently)", {"path": "notes/a"}, False),
    ],
)
async def test_what_was_allowed_beforehand_is_what_runs(
    rule: str, arguments: dict[str, str], runs: bool, provider: Provider, cli: Here, tmp_path: Path
) -> None:
    """`put` always requires approval, so it is `--allow` that answers; a reference leads wherever the last result says."""

    def put(body: dict[str, Any]) -> list[Call]:
        last = body["messages"][-1]["tool_call_id"]
        return [Call("put", json.dumps(arguments).replace("LAST", last))]

    done = await cli(*at(provider, [Call("look", "{}")], put, [Say("Well.")]), "--allow", rule)
    assert bool(did(tmp_path)) == runs, done


async def test_what_a_rule_asks_about_a_default_is_not_answered_by_allow(
    provider: Provider, cli: Here, tmp_path: Path
) -> None:
    rule = '[[permissions]]\ntool = "put"\nmatch = {how = "by force"}\naction = "ask"\n'
    (tmp_path / "ask.toml").write_text(rule, encoding="utf-8")
    words = at(provider, [Call("put", '{"path": "a"}')], [Say("Well.")])
    done = await cli(*words, "--allow", "put", "--permissions", "ask.toml")
    assert (done.code, did(tmp_path)) == (3, [])


@pytest.mark.parametrize("rule", ["savee*", "*(pth=notes/**)", "s?ve(command=rm *)"])
async def test_a_pattern_that_denies_nothing_is_refused(rule: str, provider: Provider, cli: Here) -> None:
    done = await cli(*at(provider, [Say("Well.")]), "--deny", rule)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert (await cli(*at(provider, [Say("Well.")]), "--deny", "s*(path=**)")).code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run_shell(a)(b)", {"command": "a)(b"}),
        ("run_shell(git commit -m x, author=me)", {"command": "git commit -m x, author=me"}),
        ('{tool = "save", match = {path = "a\'b"}}', {"path": "a'b"}),
    ],
)
def test_a_rule_is_read_as_it_is_written(text: str, expected: dict[str, str]) -> None:
    assert parse_rule(text, "allow", "--allow").match == expected


@pytest.mark.parametrize(
    "text",
    [
        '{tool = "a"}\nother = 1',
        '{tool = "a", action = "deny"}',
        '{tool = "a", layer = "grants"}',
        "a(x=1, x=2)",
        "a()",
        "other(*)",
        "a,b",
        "a\nb",
        "(x=1)",
        "",
    ],
)
def test_a_rule_that_could_be_another_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_rule(text, "allow", "--allow")


# A hostile file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["--show"], ["--until", "1"], ["--until", "9" * 5000], ["--diff", "--system", "x"], []]
)
async def test_no_file_can_write_to_the_terminal_through_replay(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.jsonl"
    await recorded(file)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    turn = rows[0]["everturn"].get("turn") or rows[1]["event"]["turn"]
    whole = json.dumps(rows[1:3]).replace(turn, f"{turn}{ESCAPE.encode('unicode_escape').decode()}")
    for some in (rows[1:2], rows[1:3], json.loads(json.dumps(rows[1:]).replace(turn, "x\\u001b[2Jy")), rows[3:]):
        file.write_text("\n".join(json.dumps(row) for row in some), encoding="utf-8")
        await _replay(file, words, capsys)
    file.write_text(whole, encoding="utf-8")
    await _replay(file, words, capsys)


async def _replay(file: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    code = await asyncio.to_thread(main, ["replay", str(file), *words])
    captured = capsys.readouterr()
    assert code in (0, 1, 2)
    assert all(char.isprintable() or char == "\n" for char in captured.out + captured.err), captured
    assert "please report" not in captured.err


async def test_a_log_that_makes_no_sense_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, rules = tmp_path / "a.jsonl", tmp_path / "deny.toml"
    await recorded(file)
    rules.write_text('[[permissions]]\ntool = "*"\naction = "deny"\n', encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()[1:]
    file.write_text("\n".join(line for line in lines if "TurnStarted" not in line), encoding="utf-8")
    await _replay(file, ["--diff", "--permissions", str(rules)], capsys)
    await _replay(file, ["--show"], capsys)


def test_what_is_endless_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everturn.errors import UnreadableLog
    from everturn.replay import recording

    monkeypatch.setattr(recording, "ENTRY_LIMIT", 1000)
    with pytest.raises(UnreadableLog, match="too long"):
        Recording.read("/dev/zero")


def test_a_complaint_obeys_nothing_that_it_quotes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[agents."a\\u001b[2J"]\nmodel = "offline:demo"\n', encoding="utf-8")
    for words in (["config", "check"], ["config", "show"], ["run", "--no-stdin", "Hi", "--config"]):
        assert main([*words, str(file)]) == 2
    assert main(["replay", str(tmp_path / ESCAPE)]) == 2
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert captured.err.count("\\x1b[2J") >= 3
    assert captured.err.count("\n") == 4


def test_a_time_that_is_none_is_listed_all_the_same() -> None:
    assert [format_time(at, 0.0) for at in (1e300, -1e300, float("nan"))] == ["?"] * 3


# Another user of the machine ------------------------------------------------------------------------------------------


async def test_what_is_written_of_a_conversation_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for name in ("turn.jsonl", "session.zip"):
            file, aim = tmp_path / name, tmp_path / f"{name}.aim"
            file.symlink_to(aim)  # somebody has laid it there
            await (recorded(file) if name == "turn.jsonl" else _exported(file))
            assert not aim.exists()
            assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    finally:
        os.umask(before)


async def _exported(file: Path) -> None:
    store = get_store("memory")
    async with Chat(ScriptedModel(say("Well.")), store=store) as chat:
        await (await chat.send("Hi"))
        await export_session(store, chat.session, file)


def test_a_device_is_not_replaced_by_an_export(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = ["export", "a", "-o", str(tmp_path / "pipe"), "--force", "--store", str(tmp_path / "a.db")]
    assert main(words) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_the_token_of_this_machine_is_not_shown_to_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    row = (
        "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {uid:5d}        0 7 1\n"
    )
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        + row.format(port=8000, state="0A", uid=os.getuid() + 1)
        + row.format(port=8001, state="0A", uid=os.getuid())
        + row.format(port=8002, state="06", uid=os.getuid() + 1),
        encoding="ascii",
    )
    monkeypatch.setattr(port_owner, "TABLES", (str(table),))
    monkeypatch.delenv("EVERTURN_TOKEN", raising=False)
    for port in (8001, 8002, 8003):
        check_port_owner(f"http://127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="another user"):
        check_port_owner("http://localhost:8000")


# Secrets in what is said ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "store",
    ["redis://u:pass@word@h/x", "postgresql://u:pass@word@[h/x", "postgresql://u:pass@h:1x/x", "postgres://u:pass@h"],
)
def test_the_password_of_a_store_is_not_said(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--store", store]) == 2
    stderr = capsys.readouterr().err
    assert "pass" not in stderr
    assert "word" not in stderr
    assert stderr.count("\n") == 1


# A web page, and whoever else can reach a port of this machine ----------------------------------------------------------


async def test_the_server_of_a_chat_opens_to_its_own_user_alone(cli: Here, tmp_path: Path) -> None:
    options = make_parser().parse_args(["chat", "--model", "offline:demo", "--store", str(tmp_path / "a.db")])
    async with open_chat_server(options) as housed, aiohttp.ClientSession() as anybody:
        assert await housed.server.sessions() is not None
        speaker = housed.server.node_client
        token = speaker.headers["authorization"]
        assert holding(tmp_path, token[7:].encode()) == [tmp_path / "a.db.server"]
        for headers, status in (
            ({}, 401),
            ({"authorization": token[:-1]}, 401),
            ({"authorization": "Bearer "}, 401),
            ({"cookie": f"everturn={token[7:]}", "authorization": token}, 200),
            ({"cookie": f"everturn={token[7:]}"}, 401),
            ({"authorization": token, "host": "evil.example"}, 403),
            ({"authorization": token, "origin": "https://evil.example"}, 403),
        ):
            async with anybody.get(speaker.url("/api/sessions"), headers=headers) as answer:
                assert answer.status == status, (headers, await answer.text())
                assert token[7:] not in await answer.text()
        async with anybody.get(speaker.url(f"/login?token={token[7:]}"), allow_redirects=False) as answer:
            assert "set-cookie" not in answer.headers
    assert not holding(tmp_path, token[7:].encode())


def holding(folder: Path, secret: bytes) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and secret in file.read_bytes()]
