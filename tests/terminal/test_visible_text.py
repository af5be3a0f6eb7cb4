"""Text that a person is about to allow: all of it, and every character of it can be seen."""

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everturn.terminal.text.screen import LineScreen, display_width
from everturn.terminal.text.visible_text import (
    count_invisible_in,
    escape_invisible,
    format_arguments,
    print_lines,
    wrap_line,
)

INVISIBLE = "\x00\x07\x1b\x7f\x9b\xa0\xad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u202e\u2028\u2060\u2066\u2800\u3164\ufe0f\ufeff\uffa0\U000e0041\U000e0101"


@pytest.mark.parametrize("char", INVISIBLE)
def test_what_cannot_be_seen_is_written_out(char: str):
    shown = escape_invisible(f"a{char}b")

    assert char not in shown
    assert f"{ord(char):x}" in shown
    assert shown.isascii()


def test_blanks_at_the_end_of_a_line_are_written_out():
    assert escape_invisible("rm  ") == r"rm\x20\x20"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])), st.integers(13, 60))
def test_pieces_put_together_are_the_line_and_each_fits(text: str, room: int):
    line = escape_invisible(text)
    pieces = list(wrap_line(line, room))

    assert "".join(pieces) == line
    assert all(display_width(piece) <= room for piece in pieces)
    assert not any(piece.endswith(" ") for piece in pieces)  # it could not be seen


@example({"│": ""})  # the bar that marks a wrapped line is an argument's own name
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=200) | st.integers() | st.lists(st.text(max_size=40))))
def test_everything_that_would_run_is_on_the_screen_at_any_width(arguments: dict[str, object]):
    text = json.dumps(arguments)
    for width in (40, 80):
        out = io.StringIO()
        screen = LineScreen(out, gutter=0, width=width)
        for name, lines in format_arguments(text):
            print_lines(screen, f"    {name}  ", lines, pad=10)
        shown = "".join(out.getvalue().replace("│", "").split())
        for name, lines in format_arguments(text):
            assert "".join(name.replace("│", "").split()) in shown
            for line in lines:
                assert "".join(line.replace("│", "").split()) in shown


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("plain text", ["plain text"]),
        ("two\nlines\n", ["two", "lines", ""]),
        ("5", ['"5"']),
        (5, ["5"]),
        ("true", ['"true"']),
        ("", ['""']),
        (" padded ", ['" padded "']),
        ("a\\u202eb", ["a\\u202eb"]),
        ("a\\b\u202e", ['"a\\\\b\\u202e"']),
        ("\tif x:\n\t\tsay", ["\\x09if x:", "\\x09\\x09say"]),
        ("\tsay '\\n'\nbye", ["\"\\tsay '\\\\n'\"", '"bye"']),
        (["ada", "grace"], ['["ada", "grace"]']),
        (["a" * 50], ["[", f'  "{"a" * 50}"', "]"]),
    ],
)
def test_a_text_is_shown_as_it_is_and_what_could_be_taken_for_another_value_in_quotes(value: object, lines: list[str]):
    assert format_arguments(json.dumps({"x": value})) == [("x", lines)]


def test_what_goes_on_below_begins_further_right_than_what_we_say_and_a_bar_marks_each_line_of_its_own():
    out = io.StringIO()
    print_lines(
        LineScreen(out, gutter=0, width=40),
        "    text  ",
        [escape_invisible("[y] allow " * 4), escape_invisible("? sure")],
    )

    assert out.getvalue() == (
        "    text  │ [y] allow [y] allow [y]\n             allow [y] allow\\x20\n          │ ? sure\n"
    )


def test_hidden_characters_are_counted_in_names_and_values_at_any_depth():
    assert count_invisible_in({"a\u200b": [{"b": "\x1b\n"}, 5, None]}) == 2


def test_arguments_are_in_the_order_of_the_schema_and_unknown_ones_come_last():
    schema = {"type": "object", "properties": {"to": {}, "subject": {}, "body": {}}}

    shown = format_arguments('{"body": "hi", "x": 1, "to": "me", "subject": "s"}', schema)

    assert [name for name, _ in shown] == ["to", "subject", "body", "x"]


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": None}])
def test_without_properties_the_arguments_stay_in_the_order_of_the_call(schema: dict[str, object] | None):
    assert [name for name, _ in format_arguments('{"b": 1, "a": 2}', schema)] == ["b", "a"]
