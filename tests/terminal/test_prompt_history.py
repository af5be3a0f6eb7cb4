"""The messages that a person has sent: which are kept, in which order, and who can read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from everturn.terminal.text.prompt_history import (
    MAX_ENTRIES,
    MAX_LENGTH,
    add_to_history,
    history_path,
    load_history,
    search_history,
)


def test_the_newest_is_first_and_a_repeated_one_moves_to_the_front(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    assert load_history(path) == []
    for text in ("one", "two\nlines", "one", "  ", "x" * (MAX_LENGTH + 1)):
        add_to_history(path, text)
    assert load_history(path) == ["one", "two\nlines"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_there_is_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    add_to_history(path, "first")
    path.write_text(str([f"m{at}" for at in range(MAX_ENTRIES)]).replace("'", '"'))
    os.chmod(path, 0o600)
    add_to_history(path, "last")
    assert len(load_history(path)) == MAX_ENTRIES
    assert load_history(path)[0] == "last"


def test_a_damaged_file_or_one_of_others_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_text("{")
    os.chmod(path, 0o600)
    assert load_history(path) == []
    path.write_text('["a"]')
    os.chmod(path, 0o666)
    assert load_history(path) == []
    add_to_history(tmp_path / "missing" / "\0" if os.name == "nt" else Path("/proc/none/prompts.json"), "text")


def test_all_words_must_occur(tmp_path: Path) -> None:
    entries = ["Fix the price of shoes", "fix the tests", "price list"]
    assert search_history(entries, "FIX price") == ["Fix the price of shoes"]
    assert search_history(entries, "") == entries
    assert history_path({"XDG_STATE_HOME": "/s", "HOME": "/h"}).as_posix() == "/s/everturn/prompts.json"
