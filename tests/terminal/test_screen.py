"""What a screen makes of text, whoever wrote it."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.terminal.text.screen import (
    WIDTH,
    LineScreen,
    display_width,
    escape_and_expand_blanks,
    escape_prose,
    escape_unprintable,
)

ANYTHING = st.text(st.characters(exclude_categories=()))


@given(ANYTHING)
def test_printable_text_is_nothing_but_printable(text: str):
    assert escape_unprintable(text).isprintable()


@given(st.text().filter(str.isprintable))
def test_plain_text_stays_as_it_is(text: str):
    assert escape_unprintable(text) == text


@given(st.lists(st.tuples(st.sampled_from(["write", "line", "row"]), ANYTHING)))
def test_no_line_is_wider_than_the_screen_whatever_is_written(written: list[tuple[str, str]]):
    out = io.StringIO()
    screen = LineScreen(out)
    for how, text in written:
        if how == "row":
            screen.row(text, text)
        else:
            getattr(screen, how)(text)
    screen.begin("end")

    lines = out.getvalue().split("\n")
    assert all(line.isprintable() and display_width(line) <= WIDTH and line == line.rstrip() for line in lines)


@given(ANYTHING)
def test_prose_has_nothing_a_terminal_obeys(text: str):
    assert all(c.isprintable() or c in "\t\u200c\u200d" or c.isspace() for c in escape_prose(text))
    assert not set(escape_prose(text)) & set("\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\x1b\x07\x9b\u202e")


def test_prose_keeps_what_languages_are_written_with():
    assert escape_prose("Non\u202f! \u0645\u06cc\u200c\u062e\tx") == "Non\u202f! \u0645\u06cc\u200c\u062e\tx"
    assert escape_and_expand_blanks("Non\u202f!\tx") == "Non !    x"


class TerminalOut(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> TerminalOut:
    monkeypatch.setenv("COLUMNS", "20")
    return TerminalOut()


def test_a_word_that_comes_in_pieces_is_not_broken_at_the_margin(narrow: TerminalOut):
    screen = LineScreen(narrow, gutter=0, width=0)
    for piece in ("The qui", "ck brown fo", "xes jump o", "ver it"):
        screen.write(piece)
    screen.end()

    assert narrow.getvalue() == "The quick brown\nfoxes jump over it\n"


def test_a_text_without_blanks_is_shown_as_it_comes_and_counted_as_wide_as_it_is(narrow: TerminalOut):
    screen = LineScreen(narrow, gutter=0, width=0)
    screen.write("日本語のテキストはスペース")
    assert narrow.getvalue() == "日本語のテキストはス\nペース"

    screen.write("x" * 50)
    assert max(map(display_width, narrow.getvalue().splitlines())) == 20


def test_empty_lines_are_kept_within_a_text_and_not_around_it():
    out = io.StringIO()
    screen = LineScreen(out, gutter=0, width=0)
    for piece in ("\n\nOne", "\n", "\n    two", "\n\n"):
        screen.write(piece)
    screen.line("three")

    assert out.getvalue() == "One\n\n    two\nthree\n"


def test_what_goes_into_a_file_is_not_wrapped():
    out = io.StringIO()
    screen = LineScreen(out, gutter=0, width=0)
    screen.line("word " * 100)

    assert out.getvalue() == ("word " * 100).strip() + "\n"
