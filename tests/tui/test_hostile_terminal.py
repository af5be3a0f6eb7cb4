"""What is written to a real terminal when somebody means harm: the same kinds of sequences as for a plain text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.hostile_terminal_texts import CONTROLS, LOOKALIKES, MARKUP, SEQUENCES, UNICODE
from tests.helpers.scripted_server.server import Rig
from tests.tui.terminal_emulator import terminal

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[PX^_][^\x1b]*\x1b\\\\|.)", re.DOTALL
)
HARMFUL = [text for text in (*MARKUP, *SEQUENCES, *CONTROLS, *UNICODE, *LOOKALIKES) if len(text) < 200]


def kinds(drawn: bytes) -> set[bytes]:
    """The sequences that were written, without their numbers: where the cursor goes, and which colour, may differ."""
    return {re.sub(rb"\d+(;\d+)*", b"", sequence) for sequence in SEQUENCE.findall(drawn)}


def written(rig: Rig, home: Path, text: str) -> bytes:
    """Say it over HTTP, have it echoed, and open that session in a terminal."""
    session = str(rig.say(f"echo:{text}\n\nThe end.")["session"])
    rig.wait_idle(session, 90)
    token = (rig.home / "token").read_text().strip()
    words = ("chat", "--connect", rig.url, "--session", session)
    with terminal(home, *words, size=(100, 48), EVERTURN_TOKEN=token) as console:
        console.sees(r"The end\.")
        seen = console.drawn
        console.types("\x1b[5~\x1b[5~")  # what is above is seen too
        for _ in range(10):
            console.read(0.2)
        return seen + console.drawn


def test_a_hostile_text_has_no_sequence_written_that_a_plain_one_has_not(rig: Rig, tmp_path: Path) -> None:
    plain = written(rig, tmp_path / "plain", "\n\n".join("Just some **words**." for _ in HARMFUL))
    evil = written(rig, tmp_path / "evil", "\n\n".join(text.encode("utf-8", "replace").decode() for text in HARMFUL))
    assert kinds(evil) <= kinds(plain)
    text = SEQUENCE.sub(b"", evil).decode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.search(rb"\x1b\](8|52|0|2|9|777|1337);", evil)
