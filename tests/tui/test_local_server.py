"""What a command line says → a server: one of its own, with what was said; or one that runs already."""

from __future__ import annotations

import argparse
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from everturn.cli.args.commands import make_parser
from everturn.cli.store.local_server import apply_command_line, open_chat_server
from everturn.client import Server
from everturn.config.load import load_config
from everturn.config.tools import ConfiguredTools
from everturn.errors import ConfigError, NotRecognised, StoreBusy
from everturn.models.offline import OFFLINE
from tests.helpers.scripted_server.server import Rig

CONFIG = """\
[agents.writer]
model = "offline:demo"
system = "You write."
tools = ["current_time"]

[agents.other]
model = "offline:demo"

[tools]
web = true
"""
TOOLS = """\
from everturn import tool

@tool(read_only=True)
def look(place: str) -> str:
    "Look."
    return place
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "EVERTURN_MODEL", "EVERTURN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def left(home: Path, pattern: str) -> list[Path]:
    return list(home.rglob(pattern))


def parse_words(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(["chat", *words])


async def test_a_server_of_its_own_answers_and_lets_nobody_else_in(home: Path) -> None:
    async with open_chat_server(parse_words()) as housed:
        assert housed.is_own_process
        assert any("offline demo" in note for note in housed.notes)
        assert (await housed.server.me()).role == "operator"
        assert [agent.model for agent in await housed.server.agents()] == [OFFLINE]
        turn = await housed.server.start_session("hello")
        assert (await turn).text
        async with Server(housed.server.node_client.url(""), f"evk_{'x' * 43}") as stranger:
            with pytest.raises(NotRecognised):
                await stranger.me()
    assert not left(home, "*.token")
    assert not left(home, "*.server")  # nobody is there any more
    async with open_chat_server(parse_words()) as again:  # and it is kept
        assert [view.id for view in (await again.server.sessions()).sessions] == [turn.session]


async def test_a_second_one_attaches_to_the_first() -> None:
    async with open_chat_server(parse_words()) as first:
        session = (await first.server.start_session("hello")).session
        async with open_chat_server(parse_words()) as second:
            assert not second.is_own_process
            assert not second.is_in_memory
            assert any("connected" in note for note in second.notes)
            assert [view.id for view in (await second.server.sessions()).sessions] == [session]
            begun = await second.server.start_session("hello from the second")
        assert begun.session in {view.id for view in (await first.server.sessions()).sessions}


async def test_what_the_first_one_cannot_do_is_done_in_memory_and_that_is_said(home: Path) -> None:
    (home / "tools.py").write_text(TOOLS)
    async with open_chat_server(parse_words()) as first:
        async with open_chat_server(parse_words("--tools", str(home / "tools.py"))) as second:
            assert second.is_in_memory
            assert any("in memory only" in note and "--tools" in note for note in second.notes)
            await second.server.start_session("hello")
            assert (await first.server.sessions()).sessions == []
        store = left(home, "everturn.db")[0]
        with pytest.raises(StoreBusy, match="--tools cannot be used there"):
            async with open_chat_server(parse_words("--tools", str(home / "tools.py"), "--store", str(store))):
                pass
        async with open_chat_server(
            parse_words("--store", str(store), "--model", OFFLINE)
        ) as third:  # which the first one has, too
            assert not third.is_in_memory
        async with open_chat_server(
            parse_words("--model", "openai:gpt-5.2", "--base-url", "http://127.0.0.1:9/v1")
        ) as fourth:
            assert fourth.is_in_memory


async def test_when_the_first_one_leaves_the_second_has_the_sessions() -> None:
    moves: list[bool] = []
    async with AsyncExitStack() as stack:
        leaving = AsyncExitStack()
        first = await leaving.enter_async_context(open_chat_server(parse_words()))
        session = (await first.server.start_session("hello")).session
        second = await stack.enter_async_context(open_chat_server(parse_words()))
        third = await stack.enter_async_context(open_chat_server(parse_words()))
        assert second.connection is not None
        assert third.connection is not None
        second.connection.on_moved = third.connection.on_moved = moves.append
        address = second.connection.address
        await leaving.aclose()
        for chat_server in (second, third):
            assert [view.id for view in (await chat_server.server.sessions()).sessions] == [session]
        assert sorted(moves) == [False, True]
        assert second.connection.owns_store
        assert not third.connection.owns_store
        assert second.connection.address == third.connection.address == address  # as a browser knows it


async def test_options_add_to_the_first_agent_and_to_no_other(home: Path) -> None:
    (home / "tools.py").write_text(TOOLS)
    (home / "everturn.toml").write_text(CONFIG)
    rules = home / "rules.toml"
    rules.write_text('[[permissions]]\ntool = "look"\naction = "deny"\n')
    options = parse_words(
        *("--config", str(home / "everturn.toml"), "--tools", str(home / "tools.py"), "--system", "You look."),
        *("--budget", "calls=3", "--review", "always", "--permissions", str(rules), "--web"),
    )
    loaded = apply_command_line(load_config(options.config), options, ConfiguredTools())
    first, other = loaded.config.agents["writer"], loaded.config.agents["other"]
    assert (loaded.systems["writer"], first.budget.calls, first.review) == ("You look.", 3, "always")
    assert (other.budget.calls, other.review) == (0, "never")
    assert [rule.tool for rule in loaded.rules] == ["look"]
    assert not loaded.config.tools.web  # it comes once, by the option
    async with open_chat_server(options) as housed:
        agents = await housed.server.agents()
        assert agents[0].tools is not None
        assert {"current_time", "look", "fetch_url"} <= set(agents[0].tools)


async def test_a_model_of_ones_own_server() -> None:
    options = parse_words("--model", "llama3", "--base-url", "http://127.0.0.1:9/v1")
    async with open_chat_server(options) as housed:
        assert [agent.model for agent in await housed.server.agents()] == ["llama3"]


async def test_a_token_is_shown_elsewhere_only_when_it_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://example.org:8000", "http://127.0.0.1:9"):
        with pytest.raises(ConfigError, match="EVERTURN_TOKEN"):
            async with open_chat_server(parse_words("--connect", url)):
                pass
    monkeypatch.setenv("EVERTURN_TOKEN", "evk_" + "y" * 43)
    async with open_chat_server(parse_words("--connect", "http://example.org:8000")) as housed:
        assert not housed.is_own_process


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_a_server_that_runs_already_is_connected_to(rig: Rig) -> None:
    session = rig.say("hello to whoever comes")["session"]
    async with open_chat_server(parse_words("--config", str(rig.config))) as housed:
        assert not housed.is_own_process
        assert any(rig.url in note for note in housed.notes)
        assert session in {view.id for view in (await housed.server.sessions()).sessions}
    async with open_chat_server(
        parse_words("--config", str(rig.config), "--store", str(rig.home / "talks.db"))
    ) as housed:
        assert session in {view.id for view in (await housed.server.sessions()).sessions}
