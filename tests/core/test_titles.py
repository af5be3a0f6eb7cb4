"""Titles: the first message of a session on one line, cut after a word."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.parts import FilePart, Part, ReasoningPart, TextPart
from everturn.core.titles import ELLIPSIS, TITLE_LENGTH, derive_title, shorten_title

LONG = "Please compare the two proposals for the harbour bridge and say which one"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("hello", "hello"),
        ("  what is\n\nthe   time?  ", "what is the time?"),
        (LONG, "Please compare the two proposals for the harbour bridge and…"),
        (LONG.replace("bridge and", "bridge, then"), "Please compare the two proposals for the harbour bridge…"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + ELLIPSIS),
        ("short " + "x" * 80, "short " + "x" * 53 + ELLIPSIS),
        ("请把" * 40, "请把" * 29 + "请" + ELLIPSIS),
        (" ", ""),
        ("\x1b]0;oops\x07 \u202elive", "]0;oops live"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("x" * 58 + "e\u0301" + "y" * 9, "x" * 58 + ELLIPSIS),
    ],
)
def test_a_title_is_the_text_on_one_line_cut_after_a_word(text: str, title: str) -> None:
    assert derive_title([TextPart(text)]) == title


@pytest.mark.parametrize(
    ("parts", "title"),
    [
        ([FilePart("b", "image/png", 3, "harbour.png")], "harbour.png"),
        ([FilePart("b", "image/png", 3, "a.png"), FilePart("c", "text/csv", 3, "b.csv")], "a.png, b.csv"),
        ([FilePart("b", "audio/wav", 3)], "audio/wav"),
        ([TextPart(" "), FilePart("b", "image/png", 3, "a.png")], "a.png"),
        ([FilePart("b", "image/png", 3, "a.png"), TextPart("What is this?")], "What is this?"),
        ([ReasoningPart("private thoughts")], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_a_message_without_text_is_called_by_its_files(parts: list[Part] | None, title: str) -> None:
    assert derive_title(parts) == title


@given(st.text(max_size=300))
def test_a_title_is_short_printable_and_what_the_message_begins_with(text: str) -> None:
    title = derive_title([TextPart(text)])
    assert len(title) <= TITLE_LENGTH
    assert title == " ".join(title.split())
    assert all(char.isprintable() or char in "\u200c\u200d" for char in title)
    assert shorten_title(title) == title
    if title.endswith(ELLIPSIS) and ELLIPSIS not in text:
        cut = len(title) - 1
        rest = "".join(char for char in text if char.isprintable() or char.isspace() or char in "\u200c\u200d").split()
        whole = " ".join(rest)
        assert whole.startswith(title[:-1])
        assert not unicodedata.combining(whole[cut]) or cut <= 1
