"""Lines for whoever waits: what takes long is told on a terminal, taken back, and never gets into a pipe."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import threading
from pathlib import Path
from unittest.mock import ANY

import pytest

from everturn.cli import main, output
from everturn.cli.commands.mcp import inspect_server
from everturn.errors import ConfigError, StoreUnavailable
from everturn.mcp.config import ServerSpec
from everturn.mcp.servers import McpServers


class Watched(io.StringIO):
    """An output that may be a terminal, and says when something was written to it."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal, self.written = is_terminal, threading.Event()

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        size = super().write(text)
        self.written.set()
        return size


def test_what_takes_long_is_reported_and_taken_back(monkeypatch: pytest.MonkeyPatch):
    out = Watched(True)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("COLUMNS", "40")
    with output.show_slow_operation("reading a store of a very long name indeed", timeout=0.01):
        assert out.written.wait(30)
    text = out.getvalue()

    line = text.split("\r")[1]
    assert line == "reading a store of a very long name ind"  # one column is left
    assert text.endswith(f"\r{' ' * len(line)}\r")
    assert "\x1b" not in text
    assert "\n" not in text


def test_what_is_over_soon_is_not_told(monkeypatch: pytest.MonkeyPatch):
    out = Watched(True)
    monkeypatch.setattr(sys, "stderr", out)
    with output.show_slow_operation("reading", timeout=600.0):
        pass

    assert out.getvalue() == ""


def test_nothing_is_told_to_a_pipe(monkeypatch: pytest.MonkeyPatch):
    out = Watched(False)
    monkeypatch.setattr(sys, "stderr", out)
    before = threading.active_count()
    with output.show_slow_operation("reading", timeout=0.0):
        assert threading.active_count() == before

    assert out.getvalue() == ""


def test_it_is_taken_back_when_something_fails(monkeypatch: pytest.MonkeyPatch):
    out = Watched(True)
    monkeypatch.setattr(sys, "stderr", out)

    def fail() -> None:
        with output.show_slow_operation("reading", timeout=0.01):
            assert out.written.wait(30)
            raise ConfigError("no")

    with pytest.raises(ConfigError):
        fail()
    assert out.getvalue().endswith(" \r")


def test_a_store_that_does_not_answer_is_waited_for_with_a_word(monkeypatch: pytest.MonkeyPatch):
    out = Watched(True)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(output, "NOTICE_DELAY", 0.01)

    def away(store: str) -> str:
        assert out.written.wait(30)
        raise StoreUnavailable("nobody answers")

    monkeypatch.setattr("everturn.cli.commands.accounts.require_existing_store", away)
    for words in ("keys list", "users list", "login"):
        out.written.clear()
        assert main([*words.split(), "--store", "postgresql://example.org/db"]) == 2
    assert out.getvalue().count("\rasking the store (0 s; Ctrl-C leaves)") >= 3


async def test_an_mcp_server_that_does_not_answer_is_waited_for_with_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    out = Watched(True)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(output, "NOTICE_DELAY", 0.01)
    monkeypatch.setenv("HOME", str(tmp_path))

    class Slow(McpServers):
        async def open(self, publish: object) -> None:
            assert await asyncio.to_thread(out.written.wait, 30)

    monkeypatch.setattr("everturn.mcp.servers.McpServers", Slow)
    assert await inspect_server(ServerSpec("notes", command="notes")) == ([], ANY)
    assert "\rasking notes (0 s; Ctrl-C leaves)" in out.getvalue()


@pytest.mark.parametrize(
    ("environment", "no_color", "is_terminal", "wanted"),
    [
        ({}, False, True, True),
        ({}, False, False, False),
        ({}, True, True, False),
        ({"NO_COLOR": "1"}, False, True, False),
        ({"TERM": "dumb"}, False, True, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    environment: dict[str, str], no_color: bool, is_terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Watched(is_terminal))

    assert output.wants_color(argparse.Namespace(no_color=no_color)) is wanted


@pytest.mark.parametrize(
    ("typed", "wanted"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_only_a_yes_is_a_yes(typed: str, wanted: bool, monkeypatch: pytest.MonkeyPatch):
    answer = Watched(True)
    answer.write(typed)
    answer.seek(0)
    monkeypatch.setattr(sys, "stdin", answer)
    monkeypatch.setattr(sys, "stdout", Watched(True))

    assert output.confirm("erase it?") is wanted
    assert output.confirm("erase it?", yes=True)
