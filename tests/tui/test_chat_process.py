"""`everturn chat` as a stranger meets it: a real process in a real terminal, with a server of its own or another's."""

from __future__ import annotations

import os
import pty
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.scripted_server.server import Rig
from tests.tui.terminal_emulator import PATIENCE, Terminal, environment, terminal

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
BEGUN = r"Ask anything"


def is_restored(console: Terminal) -> bool:
    """Whether all that was switched on in the terminal is off again: the other screen, the mouse, pasting, the cursor."""
    drawn = console.drawn
    return all(drawn.rfind(off) >= 0 for off in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l", b"\x1b[?1000l")) and (
        drawn.rfind(b"\x1b[?1049l") > drawn.rfind(b"\x1b[?1049h")
    )


def test_the_offline_demo_from_the_first_key_to_the_last(tmp_path: Path) -> None:
    with terminal(tmp_path, "chat") as console:
        console.sees(BEGUN)
        console.sees("offline demo answers")
        console.types("take a note: milk\r")
        console.sees(r"Allow take_note")
        console.sees(r"allow once")
        console.drawn = b""
        for _ in range(120):  # a question must have stood for a moment
            console.types("y", is_forgotten=False)
            console.read(0.5)
            if "noted: milk" in console.text:
                break
        console.sees("noted: milk")
        console.types("\x11")
        assert console.ends() == 0
        assert is_restored(console)
    log = tmp_path / "state" / "everturn" / "chat.log"
    assert "Traceback" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    left = {file.suffix for file in (tmp_path / "data" / "everturn").iterdir()}
    assert not left & {".token", ".server"}  # its token has ended with it
    with terminal(tmp_path, "chat") as again:  # and what was said is kept
        again.sees(BEGUN)
        again.types("\x0f")
        again.sees("take a note: milk")
        again.types("\x1b")
        again.types("\x11")
        assert again.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_who_is_told_to_end_puts_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    with terminal(tmp_path, "chat") as console:
        console.sees(BEGUN)
        console.drawn = b"\x1b[?1049h"
        os.kill(console.pid, number)
        assert console.ends() == 128 + number
        assert is_restored(console)


STUCK = """
import signal, time

from everturn import tool

signal.signal(signal.SIGUSR1, lambda *_: time.sleep(600))


@tool(read_only=True)
async def look() -> str:
    "Look."
    return "seen"
"""


@pytest.mark.parametrize("is_quarantined", [False, True])
def test_it_ends_when_the_terminal_is_gone_without_a_word(tmp_path: Path, is_quarantined: bool) -> None:
    ours, theirs = pty.openpty()  # it controls nobody, so nobody gets a signal when it goes
    (tmp_path / "quarantined.py").write_text(STUCK, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "everturn", "chat", "--tools", str(tmp_path / "quarantined.py")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(tmp_path),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        drawn = b""
        while b"anything" not in drawn:
            drawn += os.read(ours, 1 << 16)
        if is_quarantined:  # as when what draws waits for a terminal that takes nothing
            process.send_signal(signal.SIGUSR1)
        os.close(ours)
        assert process.wait(PATIENCE) == 128 + signal.SIGHUP
    finally:
        process.kill()
        process.wait()


def test_a_server_that_is_named(rig: Rig, tmp_path: Path) -> None:
    token = (rig.home / "token").read_text().strip()
    with terminal(tmp_path, "chat", "--connect", rig.url, EVERTURN_TOKEN=token) as console:
        console.sees(BEGUN)
        console.types("parallel\r")
        console.sees("It came to this")
        console.types("\x11")
        assert console.ends() == 0
    with terminal(tmp_path, "chat", "--connect", rig.url) as nobody:
        nobody.sees("needs a token")
        assert nobody.ends() == 2
        assert "Traceback" not in nobody.text


def test_where_it_cannot_draw_it_goes_line_by_line(tmp_path: Path) -> None:
    with terminal(tmp_path, "chat", TERM="dumb") as console:
        console.sees("which model")
        assert console.ends() == 2
        assert b"\x1b[?1049h" not in console.drawn


@pytest.mark.long
def test_a_window_that_is_too_small_can_be_left(tmp_path: Path) -> None:
    with terminal(tmp_path, "chat", size=(30, 8)) as console:
        console.sees("too small")
        console.types("\x11")
        assert console.ends() == 0


def test_what_makes_no_sense_is_said_in_one_line_before_anything_is_drawn(tmp_path: Path) -> None:
    for words, message in (
        (("--tools", "nosuch.py"), "nosuch.py"),
        (("--files", str(tmp_path / "no")), "there is no such folder"),
        (("--model", "nosuch:thing"), "nosuch"),
        (("--session", "x"), "--store"),
    ):
        with terminal(tmp_path, "chat", *words) as console:
            assert console.ends() == 2
            assert message in console.text
            assert len(re.findall(r"\n", console.text.strip())) == 0
            assert b"\x1b[?1049h" not in console.drawn


LOUD = """\
import os, subprocess, threading, time
from everturn import tool

def shout():
    while True:
        print("LOUD print", flush=True)
        os.write(2, b"LOUD write\\n")
        subprocess.run(["echo", "LOUD child"])
        time.sleep(0.2)

threading.Thread(target=shout, daemon=True).start()

@tool(read_only=True)
def quiet() -> str:
    "Do nothing."
    return ""
"""


def test_what_others_print_is_not_drawn_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    with terminal(tmp_path, "chat", "--tools", str(tmp_path / "loud.py")) as console:
        console.sees(BEGUN)
        console.types("hello\r")
        console.sees("real model")
        assert "LOUD" not in console.text
        console.types("\x11")
        assert console.ends() == 0
    assert {"LOUD write", "LOUD child"} <= set((tmp_path / "state" / "everturn" / "chat.log").read_text().splitlines())
