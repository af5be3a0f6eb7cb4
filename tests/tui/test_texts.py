"""Texts of the terminal UI: a number of one has the words for one."""

from __future__ import annotations

from everturn.localization import format_text
from everturn.terminal.tui.texts import chat, gates


def test_one_and_many() -> None:
    assert format_text(gates.EN.more, n=1) == "↓ 1 more line below"
    assert format_text(gates.EN.more, n=2_000) == "↓ 2,000 more lines below"
    assert format_text(gates.ZH.more, n=1) == "↓ 下面还有 1 行"
    assert format_text(chat.EN.thought, n=1) == "Thought, 1 character"
