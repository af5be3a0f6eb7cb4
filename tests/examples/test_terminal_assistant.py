"""The terminal assistant, in a terminal: a diff is shown, allowed, taken back; a question outlives the process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.examples.example_process import check_recorded, commands, copied, environment, recording_of
from tests.helpers.pseudo_terminal import Terminal

NAME = "terminal-assistant"
ASKED = "or why not: "

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git, which keeps the snapshots")


class Talk(Terminal):
    """A terminal that is read on from what was waited for last, however much came with it."""

    read = 0

    def until(self, text: str) -> None:
        while (at := self.text.find(text, self.read)) < 0:
            assert self._read(), f"it ended without {text!r}:\n{self.text}"
        self.read = at + len(text)


def start(folder: Path) -> Talk:
    (words,) = commands(NAME)
    return Talk(words, environment(folder), folder)


async def test_it_shows_a_diff_writes_and_takes_it_back(tmp_path: Path) -> None:
    folder = copied(NAME, tmp_path)
    menu = folder / "kitchen" / "menu.md"
    terminal = start(folder)
    try:
        terminal.until("> ")
        terminal.type("The soup should cost 7\n")
        terminal.until(ASKED)
        assert "-- soup 6" in terminal.text
        assert "+- soup 7" in terminal.text
        assert "soup 6" in menu.read_text(encoding="utf-8")  # nothing is written before it was allowed
        terminal.type("y\n")
        terminal.until("soup costs 7 now")
        terminal.until("> ")
        assert "soup 7" in menu.read_text(encoding="utf-8")
        terminal.type("/revert\n")
        terminal.until("taken back: modified menu.md")
        terminal.until("> ")
        assert "soup 6" in menu.read_text(encoding="utf-8")
        terminal.type("/quit\n")
        assert terminal.end() == 0
    finally:
        terminal.close()
    fresh = await recording_of(folder / "kitchen.assistant" / "talks.db", "assistant")
    check_recorded(fresh, NAME, "soup.jsonl", {str(folder): f"/examples/{NAME}"})


def test_a_question_that_was_left_open_is_asked_again_by_the_next_process(tmp_path: Path) -> None:
    folder = copied(NAME, tmp_path)
    first = start(folder)
    try:
        first.until("> ")
        first.type("The soup should cost 7\n")
        first.until(ASKED)
        first.type("\x04")  # Ctrl-D
        assert first.end() == 0
    finally:
        first.close()
    second = start(folder)
    try:
        second.until(ASKED)
        second.type("no, it is cheap soup\n")
        second.until("As you wish.")
        second.until("> ")
        second.type("/quit\n")
        assert second.end() == 0
    finally:
        second.close()
    assert "soup 6" in (folder / "kitchen" / "menu.md").read_text(encoding="utf-8")
