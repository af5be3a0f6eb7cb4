"""What a command line says → a server: one of its own, with what was said; or one that runs already."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from everturn.cli.housing import house, with_flags
from everturn.cli.words import make_parser
from everturn.client import Server
from everturn.config.loading import load
from everturn.config.tools import Brought
from everturn.errors import ConfigError, NotRecognised, StoreBusy
from everturn.models.offline import OFFLINE
from tests.web.rig import Rig

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

@tool(effects="read")
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


def tokens(home: Path) -> list[Path]:
    return list(home.rglob("*.token"))


def said(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(["chat", *words])


async def test_a_server_of_its_own_answers_and_lets_nobody_else_in(home: Path) -> None:
    async with house(said()) as housed:
        assert housed.is_here
        assert any("offline demo" in note for note in housed.notes)
        assert (await housed.server.me()).role == "operator"
        assert [agent.model for agent in await housed.server.agents()] == [OFFLINE]
        turn = await housed.server.begin("hello")
        assert (await turn).text
        async with Server(housed.server.speaker.url(""), f"evk_{'x' * 43}") as stranger:
            with pytest.raises(NotRecognised):
                await stranger.me()
    assert not tokens(home)
    async with house(said()) as again:  # and it is kept
        assert [view.id for view in (await again.server.sessions()).sessions] == [turn.session]


async def test_a_second_one_is_kept_in_memory_and_says_so() -> None:
    async with house(said()), house(said()) as second:
        assert any("in memory" in note for note in second.notes)
        assert (await second.server.sessions()).sessions == []
        with pytest.raises(StoreBusy):
            async with house(said("--store", str(Path(second.notes[0].split(" in ")[1].split(",")[0])))):
                pass


async def test_options_add_to_the_first_agent_and_to_no_other(home: Path) -> None:
    (home / "tools.py").write_text(TOOLS)
    (home / "everturn.toml").write_text(CONFIG)
    rules = home / "rules.toml"
    rules.write_text('[[permissions]]\ntool = "look"\naction = "deny"\n')
    options = said(
        *("--config", str(home / "everturn.toml"), "--tools", str(home / "tools.py"), "--system", "You look."),
        *("--budget", "calls=3", "--review", "ask", "--permissions", str(rules), "--web"),
    )
    loaded = with_flags(load(options.config), options, Brought())
    first, other = loaded.config.agents["writer"], loaded.config.agents["other"]
    assert (loaded.systems["writer"], first.budget.calls, first.result) == ("You look.", 3, "ask")
    assert (other.budget.calls, other.result) == (0, "auto")
    assert [rule.tool for rule in loaded.rules] == ["look"]
    assert not loaded.config.tools.web  # it comes once, by the option
    async with house(options) as housed:
        agents = await housed.server.agents()
        assert agents[0].tools is not None
        assert {"current_time", "look", "fetch_url"} <= set(agents[0].tools)


async def test_a_model_of_ones_own_server() -> None:
    options = said("--model", "llama3", "--base-url", "http://127.0.0.1:9/v1")
    async with house(options) as housed:
        assert [agent.model for agent in await housed.server.agents()] == ["llama3"]


async def test_a_token_is_shown_elsewhere_only_when_it_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://example.org:8000", "http://127.0.0.1:9"):
        with pytest.raises(ConfigError, match="EVERTURN_TOKEN"):
            async with house(said("--connect", url)):
                pass
    monkeypatch.setenv("EVERTURN_TOKEN", "evk_" + "y" * 43)
    async with house(said("--connect", "http://example.org:8000")) as housed:
        assert not housed.is_here


@pytest.mark.live
@pytest.mark.timeout(120)
async def test_a_server_that_runs_already_is_connected_to(rig: Rig) -> None:
    session = rig.say("hello to whoever comes")["session"]
    async with house(said("--config", str(rig.config))) as housed:
        assert not housed.is_here
        assert any(rig.url in note for note in housed.notes)
        assert session in {view.id for view in (await housed.server.sessions()).sessions}
    with pytest.raises(StoreBusy):
        async with house(said("--config", str(rig.config), "--store", str(rig.home / "talks.db"))):
            pass
