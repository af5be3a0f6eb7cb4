"""`everturn chat --plain` is what is configured, with what the command line adds: the agent, its tools and its rules."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from everturn.cli import main

CONFIG = """
[agents.assistant]
model = "offline:demo"

[tools]
python = ["{tools}"]

[[permissions]]
tool = "take_note"
action = "deny"
"""
TOOLS = """
from everturn import tool


@tool(read_only=True)
async def current_time() -> str:
    "The time of a test."
    return "noon, as the configuration has it"
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(TOOLS, encoding="utf-8")
    file = tmp_path / "everturn.toml"
    file.write_text(CONFIG.format(tools=tmp_path / "mine.py"), encoding="utf-8")
    monkeypatch.delenv("EVERTURN_MODEL", raising=False)
    return file


def chat_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str, *words: str) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert main(["chat", "--plain", *words]) == 0
    return capsys.readouterr().out


def test_the_model_and_the_rules_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text(CONFIG.replace('[tools]\npython = ["{tools}"]\n', ""), encoding="utf-8")
    monkeypatch.delenv("EVERTURN_MODEL", raising=False)
    text = chat_output(monkeypatch, capsys, "What time is it?\nNote that it rains\n", "--config", str(file))
    assert "current_time says: " in text
    assert "take_note says" not in text  # it is denied outright, so the model is not told of it


def test_the_tools_are_those_of_the_file(
    configured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("everturn.config.demo_tools.demo_tools", lambda: [])
    text = chat_output(monkeypatch, capsys, "What time is it?\n", "--config", str(configured))
    assert "noon, as the configuration has it" in text
