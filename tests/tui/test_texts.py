"""The words of the terminal UI: one thing is not told as many."""

from __future__ import annotations

from msgspec.structs import asdict

from everturn.terminal.tui.texts import chat, gates
from everturn.terminal.tui.texts.chat import pluralize

ALIKE = {"step", "tokens_in", "tokens_out", "cached", "reasoning", "days"}
"""What is the same for one and for many."""


def test_whatever_is_counted_has_words_for_one() -> None:
    for words in (chat.EN, gates.EN):
        told = {name: text for name, text in asdict(words).items() if isinstance(text, str) and "{n}" in text}
        assert told
        for name, text in told.items():
            assert name in ALIKE or "|" in text, text


def test_one_and_many() -> None:
    assert pluralize(gates.EN.more, 1) == "↓ 1 more line below"
    assert pluralize(gates.EN.more, 2_000) == "↓ 2,000 more lines below"
    assert pluralize(gates.ZH.more, 1) == "↓ 下面还有 1 行"
    assert pluralize(chat.EN.thought, 1) == "Thought, 1 character"
