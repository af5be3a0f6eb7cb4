"""Terminals that are closed when a test is done with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.pseudo_terminal import Terminal
from tests.terminal.chat_process import CHAT, PLAIN, PROMPT, Start


@pytest.fixture
def start() -> Iterator[Start]:
    opened: list[Terminal] = []

    def start(*words: str, cwd: Path | None = None, until: str = PROMPT, **environment: str) -> Terminal:
        opened.append(Terminal([*CHAT, *words], PLAIN | environment, cwd))
        opened[-1].until(until)
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()
