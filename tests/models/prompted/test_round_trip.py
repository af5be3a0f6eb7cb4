"""What a tool_format writes it reads again: the same names and the same arguments, however odd, and never another call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.models.prompted.parsed_output import LOOKED, WAYS, calling, hear, pieces_of

from everturn.core.requests import RequestCall
from everturn.models.prompted import TOOL_FORMATS

each_way = pytest.mark.parametrize("way", WAYS)

LINES = (
    "END",
    "END ",
    "END\r",
    "ENDX",
    "=== end ===",
    "=== call look ===",
    'other = "x"',
    "other <<END",
    "",
    "```",
    "</tool_code>",
)
WORDS = (
    "null",
    "true",
    "1",
    "-0",
    "[1, 2]",
    "{}",
    '"',
    ", ",
    "...",
    '{"tool_calls": [',
    "\\",
    "<<END",
    " = ",
    "\u2028",
    "\0",
)
words = (
    st.text()
    | st.sampled_from(WORDS)
    | st.lists(st.sampled_from(LINES) | st.text(max_size=9), max_size=9).map("\n".join)
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(words | st.text(",=:<\"' \t\nax", max_size=6), values, max_size=5)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", fullmatch=True)


def written(way: str, calls: list[tuple[str, Any]]) -> str:
    return TOOL_FORMATS[way].write(
        [RequestCall(f"c{at}", name, json.dumps(arguments)) for at, (name, arguments) in enumerate(calls)]
    )


@each_way
@given(st.lists(st.tuples(names, objects), min_size=1, max_size=4), st.integers(1, 40))
@example([("look", {"text": "a\nEND \nother <<END\nx"})], 40)
@example([("look", {"text": "a\nEND\r\nb"})], 1)
@example([("look", {"text": "a\nEND\nEND of it\nENDX\nb", "more": "END it is\n"})], 1)
@example([("look", {"text": 'x"}]\\', "list": ['"}', {"]": "\\"}]}), ("look", {})], 1)
@example([("look", {"a": 1, ",x": 2})], 3)
@example([("look", {"": "", " ": [], "a": "x" * 81, "b": "x" * 81 + "\r"})], 3)
def test_calls_are_read_as_they_were_written(way: str, calls: list[tuple[str, Any]], size: int) -> None:
    parsed = hear(way, pieces_of(written(way, calls), size))

    assert (parsed.runnable, parsed.text) == (calls, "")


@each_way
@given(
    st.text(min_size=1) | st.sampled_from(["a ", " a", "a\nb", "===", "a ===\n=== end ===\n=== call b", '"a"', '"']),
    objects,
)
def test_an_odd_name_stays_the_name_of_its_call_or_there_is_no_call(
    way: str, name: str, given_: dict[str, Any]
) -> None:
    parsed = hear(way, [written(way, [(name, given_)])])

    assert parsed.runnable in ([], [(name, given_)])
    assert parsed.runnable or len(name) > 200


@each_way
def test_a_call_without_a_name_is_none_that_could_be_found(way: str) -> None:
    assert [name for name, _ in hear(way, [written(way, [("", {})])]).calls] in ([], ["malformed_call"])


@each_way
@pytest.mark.parametrize("broken", ["", "  ", '{"path": ', "[1]", '"text"', "not JSON"])
def test_broken_arguments_are_written_as_what_they_are(way: str, broken: str) -> None:
    [(name, arguments)] = hear(way, [TOOL_FORMATS[way].write([RequestCall("c", "look", broken)])]).runnable

    assert (name, arguments) == ("look", {"invalid_json": broken} if broken.strip() else {})


@each_way
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_words_in_front_of_a_call_do_not_spoil_it(way: str, text: str) -> None:
    parsed = hear(way, [f"{text}\n\n{calling(way)}"])

    if not any(sign in text for sign in ("```", "~~~", "<think", "===", "{", "<tool")):
        assert (parsed.text, parsed.runnable) == (text.rstrip(), [LOOKED])
