"""Keys that are pressed before there is a box to take them: in a real terminal while the program loads, and in the app."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste

from everturn.terminal.tui.key_buffer import keys_from_text
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import person
from tests.tui.terminal_emulator import Terminal, terminal

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
LOADING = """
import asyncio
import time
from pathlib import Path

from everturn import tool

print("the tools are loading", flush=True)
while not Path(__file__).with_name("go").exists() and not any(task.cancelling() for task in asyncio.all_tasks()):
    time.sleep(0.01)


@tool(read_only=True)
def look() -> str:
    "Look."
    return ""
"""


@contextmanager
def loading(home: Path, keys: str = "", size: tuple[int, int] = (100, 30)) -> Generator[Terminal]:
    """A chat that has begun to load its tools, and goes on when `go` is there; `keys` were pressed before it ran at all."""
    (home / "slow.py").write_text(LOADING, encoding="utf-8")
    with terminal(home, "chat", "--tools", str(home / "slow.py"), size=size) as console:
        console.types(keys)
        console.sees("the tools are loading")
        yield console


def test_what_is_typed_while_it_starts_is_in_the_prompt(tmp_path: Path) -> None:
    with loading(tmp_path, "typed at once, ") as console:
        console.types("typed while loading; ", is_forgotten=False)
        (tmp_path / "go").touch()
        console.sees(r"│\s+typed at once, typed while loading; ")
        console.types("then more")
        console.sees(r"│\s+typed at once, typed while loading; then more")
        console.types("\x11")
        assert console.ends() == 0


def test_enter_sends_what_was_typed_before_it_and_nothing_more(tmp_path: Path) -> None:
    with loading(tmp_path, "the first\r") as console:
        console.types("the second\rthe third", is_forgotten=False)
        (tmp_path / "go").touch()
        console.sees("You said: “the first”")
        console.sees("You said: “the second”")
        console.sees(r"│\s+the third ")
        console.types("\x11")
        assert console.ends() == 0


@pytest.mark.parametrize("size", [(100, 30), (30, 8)])
def test_ctrl_q_leaves_however_early_it_is_pressed(tmp_path: Path, size: tuple[int, int]) -> None:
    with loading(tmp_path, size=size) as console:
        console.types("\x11")
        (tmp_path / "go").touch()
        assert console.ends() == 0


def test_ctrl_c_still_interrupts_what_starts(tmp_path: Path) -> None:
    with loading(tmp_path) as console:
        console.types("\x03")
        assert console.ends() == 128 + signal.SIGINT
        assert "Traceback" not in console.text
        assert echoes(console)


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_ended_while_it_starts_leaves_the_terminal_as_it_was(tmp_path: Path, ends: signal.Signals) -> None:
    with loading(tmp_path) as console:
        assert not echoes(console)
        os.kill(console.pid, ends)
        assert console.ends() == -ends
        assert echoes(console)


def test_who_leaves_has_the_terminal_back(tmp_path: Path) -> None:
    with terminal(tmp_path, "chat") as console:
        before = termios.tcgetattr(console.fd)
        console.sees(r"Ask anything")
        console.types("\x11")
        assert console.ends() == 0
        assert termios.tcgetattr(console.fd) == before


def echoes(console: Terminal) -> bool:
    mode: list[Any] = termios.tcgetattr(console.fd)
    return bool(mode[3] & termios.ECHO and mode[3] & termios.ICANON and mode[0] & termios.ICRNL)


# In the app ----------------------------------------------------------------------------------------------------------------


async def test_keys_that_come_before_the_box_has_the_focus_wait_for_it(rig: Rig) -> None:
    async with person(rig, early=[*keys_from_text("echo:one\r"), Paste("two"), *keys_from_text(" three")]) as user:
        await user.until(lambda: user.said(), "what was sent")
        assert [message.text for message in user.said()] == ["echo:one"]
        await user.until(lambda: user.app.chat_screen.composer.text == "two three", "the text")


async def test_they_belong_to_the_session_that_is_opened(rig: Rig) -> None:
    session = rig.say("echo:before")["session"]
    rig.wait_idle(session, 60)
    async with person(rig, session, early=[*keys_from_text("echo:one\rtwo")]) as user:
        await user.until(lambda: len(user.said()) == 2, "what was sent")
        assert user.session == session
        assert user.app.chat_screen.composer.text == "two"
