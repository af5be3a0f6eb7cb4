"""Forms, without a terminal: a schema → fields, and a line → a value or what to type instead."""

import io
import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from everturn.errors import ConfigError
from everturn.terminal.lines.form_prompt import fill_form
from everturn.terminal.text.forms import MAX_FIELDS, FormField, parse_form, parse_value
from everturn.terminal.text.screen import LineScreen

COLOURS = {"colour": {"enum": ["red", "blue"]}}


def single_field(schema: dict[str, Any], needed: bool = True) -> FormField:
    """The one field of a form."""
    form = {"type": "object", "properties": {"x": schema}, "required": ["x"] if needed else [], "$defs": COLOURS}
    (field,) = parse_form(json.dumps(form)) or []
    return field


TEXT, WHOLE, NUMBER, YES_NO = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
PICK = {"enum": ["red", 7, None, "2"]}


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        (TEXT, "Ada", "Ada"),
        (TEXT, " two  blanks ", " two  blanks "),
        (TEXT, '""', ""),
        (TEXT, "null", "null"),
        (WHOLE, "12", 12),
        (WHOLE, "-3", -3),
        (WHOLE, "3.0", 3),
        (NUMBER, "1.5", 1.5),
        (NUMBER, "2e3", 2000.0),
        (YES_NO, "y", True),
        (YES_NO, "No", False),
        (PICK, "1", "red"),
        (PICK, "2", 7),  # by its number, though there is a text like it
        (PICK, "3", None),
        (PICK, "red", "red"),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "2", "b"),
        ({"type": "array", "items": {"enum": ["Mo", "Tu"]}}, "2, 1", ["Tu", "Mo"]),
        ({"type": "array", "items": {"enum": ["Mo", "Tu"]}}, "[]", []),
        ({"type": "array", "items": TEXT}, '["a"]', ["a"]),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": ["string", "null"]}, "x", "x"),
        ({"anyOf": [WHOLE, {"type": "null"}]}, "4", 4),
        ({"anyOf": [WHOLE, {"type": "null"}]}, "", None),
        ({"$ref": "#/$defs/colour"}, "2", "blue"),
    ],
)
def test_a_line_is_the_value_that_a_field_means_by_it(schema: dict[str, Any], line: str, value: object):
    found = parse_value(single_field(schema), line)

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("schema", "line", "expected"),
    [
        (TEXT, "", 'for an empty text type ""'),
        ({**TEXT, "minLength": 3}, "ab", "at least 3"),
        (WHOLE, "1.5", "integer"),
        (WHOLE, "twelve", "a whole number, such as 12"),
        (WHOLE, "1_000", "a whole number"),
        (WHOLE, "9" * 30, "too large"),
        (WHOLE, "007", "without zeros"),
        (NUMBER, "NaN", "a number"),
        (NUMBER, "1e999", "too large"),
        ({**WHOLE, "maximum": 3}, "4", "at most 3"),
        (YES_NO, "perhaps", "y for yes"),
        (PICK, "0", "from 1 to 4"),
        (PICK, "5", "from 1 to 4"),
        (PICK, "9" * 5000, "from 1 to 4"),
        (PICK, "green", "from 1 to 4"),
        ({"type": "object"}, "{a: 1}", "not JSON"),
        ({"type": "object"}, "[1]", "object"),
        ({**TEXT, "default": 5}, "", "string"),  # a default that does not fit is no answer either
    ],
)
def test_a_line_that_means_nothing_is_answered_with_what_to_type(schema: dict[str, Any], line: str, expected: str):
    with pytest.raises(ConfigError, match=re.escape(expected)):
        parse_value(single_field(schema), line)


def test_what_may_be_left_out_is_left_out_and_a_default_is_taken():
    assert parse_value(single_field(TEXT, needed=False), "") is UNSET
    assert parse_value(single_field({**TEXT, "default": "Ada"}), "") == "Ada"
    assert parse_value(single_field({**TEXT, "default": "Ada"}, needed=False), '""') == ""


def test_what_is_needed_is_asked_first_and_in_its_order():
    form = {"type": "object", "properties": dict.fromkeys("abcd", TEXT), "required": ["d", "b"]}

    assert [field.name for field in parse_form(json.dumps(form)) or []] == ["d", "b", "a", "c"]


def test_a_choice_is_never_called_by_its_title_alone():
    field = single_field({"enum": ["delete"], "enumNames": ["Keep everything"]})

    assert field.options == (("delete", "delete (Keep everything)"),)


@pytest.mark.parametrize(
    "form",
    [
        {"type": "object", "allOf": [{}]},
        {"type": "object", "properties": {str(n): TEXT for n in range(MAX_FIELDS + 1)}},
        {"type": "object", "properties": {}, "required": ["gone"]},
        {"type": "array"},
        {"$ref": "#"},
        {"$ref": "#/a", "a": {"$ref": "#/a"}},
        [],
        "x",
    ],
)
def test_what_no_fields_can_be_made_of_is_for_json(form: object):
    assert parse_form(json.dumps(form)) is None


WORDS = st.sampled_from(
    ["type", "enum", "enumNames", "oneOf", "anyOf", "const", "properties", "required", "items", "$ref", "default"]
)
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["string", "object", "array", "#/a", "#", ""])
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)


@given(ANYTHING, st.text(max_size=8))
def test_any_schema_of_an_untrusted_server_is_fields_or_json_and_any_line_a_value_or_an_error(form: object, line: str):
    for field in parse_form(json.dumps(form)) or []:
        with suppress(ConfigError):  # and no other
            parse_value(field, line)


class Person:
    """Types these lines, and keeps what they were told."""

    def __init__(self, *lines: str | None) -> None:
        self.out = io.StringIO()
        self.screen = LineScreen(self.out, gutter=0)
        self._lines = list(lines)
        self.told: list[str] = []

    async def prompt(self, *texts: str) -> str | None:
        return self._lines.pop(0)

    async def edit_text(self, words: Any, text: str, suffix: str) -> str:
        raise AssertionError("nobody asked for an editor")

    def print_message(self, text: str, style: str = "dim") -> None:
        self.told.append(text)


async def test_a_wrong_line_asks_for_the_same_field_again_and_going_back_answers_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    form = json.dumps({"type": "object", "properties": {"a": WHOLE, "b": TEXT}, "required": ["a", "b"]})
    ada = Person("x", "5", "words")

    assert await fill_form(ada, form, "") == '{"a":5,"b":"words"}'
    assert ada.told == ["type a whole number, such as 12"]
    assert await fill_form(Person("5", None), form, '{"a":1,"b":""}') == '{"a":1,"b":""}'


async def test_a_form_that_is_one_value_is_answered_with_that_value():
    assert await fill_form(Person("4"), json.dumps(WHOLE), "") == "4"
    assert await fill_form(Person(), json.dumps({"type": "object"}), "") == "{}"
