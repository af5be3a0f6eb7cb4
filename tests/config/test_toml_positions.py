"""Where keys stand in a TOML text, held against what `tomllib` says is in it."""

from __future__ import annotations

import tomllib
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.config.toml_positions import KeyPath, find_positions

BARE = st.text("abcdefgh_-0123456789", min_size=1, max_size=5)
WILD = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x7f\u2028\u2029\x85"), max_size=6)


def basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


KEY = st.one_of(
    BARE,
    WILD.map(basic),
    st.text('ab.= #[]{}"', max_size=5).map(lambda text: f"'{text}'"),
)
SCALAR = st.one_of(
    st.integers(-999, 999).map(str),
    st.sampled_from(["true", "false", "1.5", "inf", "1979-05-27T07:32:00Z", "07:32:00", "0x1F", "1_000"]),
    WILD.map(basic),
    st.text("a'#=[]{},", max_size=6).map(lambda text: f"'{text.replace(chr(39), '')}'"),
    st.text('ab\n"#=[]', max_size=8).map(lambda text: '"""' + text.replace('"', '\\"') + '"""'),
    st.text("ab\n#=[]{}", max_size=8).map(lambda text: f"'''{text}'''"),
    st.sampled_from(['""""quoted""""', "''''quoted''''", '"""a\\\n   b"""', '""" " "" """', '"\\u00e9\\\\"']),
)
GAP = st.sampled_from(["", " ", "\n  ", " # a, ] } comment\n", "\t"])


@st.composite
def lists(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=3))
    text = "["
    for number, item in enumerate(items):
        text += draw(GAP) + item + draw(GAP) + ("," if number < len(items) - 1 else draw(st.sampled_from(["", ","])))
    return text + draw(GAP) + "]"


@st.composite
def inlines(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    pairs = draw(st.lists(st.tuples(KEY, inner), max_size=3))
    return "{ " + ", ".join(f"{key} = {value}" for key, value in pairs) + " }"


VALUE = st.recursive(SCALAR, lambda inner: lists(inner) | inlines(inner), max_leaves=6)
DOTTED = st.lists(KEY, min_size=1, max_size=3).map(" . ".join) | KEY


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.integers(0, 5))
        indent, tail = draw(st.sampled_from(["", "  ", "\t"])), draw(st.sampled_from(["", " # [x]\n", "  "]))
        if kind == 0:
            lines.append(f"{indent}[{draw(DOTTED)}]{tail}")
        elif kind == 1:
            lines.append(f"{indent}[[ {draw(DOTTED)} ]]{tail}")
        elif kind == 2:
            lines.append(draw(st.sampled_from(["", "# comment = 1", "   "])))
        else:
            lines.append(f"{indent}{draw(DOTTED)} = {draw(VALUE)}{tail}")
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


def paths(value: Any, front: KeyPath = ()) -> set[KeyPath]:
    found: set[KeyPath] = set()
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        pairs = enumerate(cast("list[Any]", value))
    for key, child in pairs:
        found |= {(*front, key)} | paths(child, (*front, key))
    return found


def first_key(rest: str) -> str:
    """The key that a text begins with, as TOML itself reads it."""
    for end in range(1, len(rest) + 1):
        try:
            (key,) = tomllib.loads(f"{rest[:end]} = 1")
        except tomllib.TOMLDecodeError:
            continue
        if end == len(rest) or rest[end] in " .=]\t":
            return key
    return ""


@given(documents())
def test_every_key_that_toml_has_is_found_and_no_other(text: str):
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = find_positions(text)
    assert set(found) == paths(parsed)
    lines = text.replace("\r\n", "\n").split("\n")
    for path, (line, column) in found.items():
        if isinstance(path[-1], str):
            assert first_key(lines[line - 1][column - 1 :]) == path[-1]


def test_most_documents_of_the_property_are_toml():
    outcomes: list[bool] = []

    @given(documents())
    def look(text: str) -> None:
        try:
            outcomes.append(bool(tomllib.loads(text)))
        except tomllib.TOMLDecodeError:
            outcomes.append(False)

    look()
    assert sum(outcomes) > len(outcomes) / 3


def test_tables_in_lists_of_tables_are_distinguished():
    text = "[[a]]\nx = 1\n[[a.b]]\ny = 1\n[[a.b]]\ny = 2\n[[a]]\n[[a.b]]\ny = 3\n[a.c]\nz = { q.r = [ { s = 1 } ] }\n"
    assert set(find_positions(text)) == paths(tomllib.loads(text))
    assert find_positions(text)["a", 1, "b", 0, "y"] == (9, 1)
    assert find_positions(text)["a", 1, "c", "z", "q", "r", 0, "s"] == (11, 17)


@pytest.mark.parametrize(
    "value",
    [
        "''''quoted''''",
        "'''''two'''''",
        '""""quoted""""',
        '"""a\\\n  "" b"""',
        '"""\n# = [x]\n"""',
        '"a # \\" = ["',
        "'a # \\'",
        '["]", "#", [\'"\', {"a.b" = ["}"]}], # ] }\n 2, ]',
        '{ "a b".\'c\' = "}", d = { } }',
        "1979-05-27 07:32:00 # x = 1",
        "+1_000.5e-3",
        "[ 1,\n# ]\n]",
    ],
)
def test_what_looks_like_something_else_inside_of_a_value_is_skipped(value: str):
    text = f"a = {value}\nb.c = 1 # d = 1\n[e]\n  f = {value}\n[[g.h]]\nzz = 1\n"
    found = find_positions(text)
    assert set(found) == paths(tomllib.loads(text))
    line = text[: text.index("\nzz")].count("\n") + 2
    assert found["g", "h", 0, "zz"] == (line, 1)
    assert found["e", "f"][1] == 3
