"""Whatever a text is, and however it is split, the same is heard in it; and nothing runs that was not called, whole."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.prompted.parsed_output import (
    CODE,
    CODING,
    LOOK,
    LOOKED,
    TOOL,
    WAYS,
    answer,
    calling,
    hear,
    join_chunks,
    pieces_of,
)
from tests.models.prompted.tool_format_writer import LOOSE, call

from everturn.core.chunks import Chunk
from everturn.models.prompted import TOOL_FORMATS, OfferedTools
from everturn.models.prompted.response import LOOKAHEAD

each_way = pytest.mark.parametrize("way", WAYS)

MARKERS = [
    *'{}[]"\\:,<>=/`~-\n\r\t \0',
    *('{"tool_calls": [', '"tool_calls"', '{"name": "look", "arguments": {', '"name": "', '"arguments": ', "}]}", "{}"),
    *(
        "<tool_code>",
        "</tool_code>",
        "<tool_",
        "=== call look ===\n",
        "=== call ",
        "=== end ===",
        " <<END\n",
        "\nEND\n",
    ),
    *(
        "<think>",
        "</think>",
        "<thinking>",
        "```",
        "~~~~",
        "````py\n",
        '{"tool_call_result": {',
        "path = ",
        '\\"',
        "\\u00",
    ),
    *("é", "👋", "\u2028", "\x85", "\ud83d", "\\ud83d", "\\ude00", '{"answer": "', "null", "1e9", "    "),
]
wild = st.lists(st.sampled_from(MARKERS) | st.text(max_size=4), max_size=24).map("".join)


def texts(way: str) -> dict[str, str]:
    """Answers with all that makes them hard to read."""
    single, two = calling(way), calling(way, LOOK, CODING)
    return {
        "words": "Hello, {name}!\n\nA <b>bold</b> word, `code` and === more ===. \n",
        "a call": single,
        "two calls, and words around them": f"Let me see.\n\n{two}\n \nThat was it.\n",
        "in the loose style": f"So:\n{LOOSE[way]([LOOK, CODING, LOOK, CODING])}\n",
        "calls with words between": f"A\n{single}\nB\n{single} \n\nC",
        "over CRLF": f"A\r\n\r\n{single}\r\nB\r\n",
        "in a fence": f"Look:\n```json\n{single}\n```\nand\n~~~\n{single}\n~~~\n{single}\n",
        "in a longer fence": f"`````\n```\n{single}\n````\n{single}\n`````  \n{single}",
        "in a fence that stays open": f"  ```\n{single}\n```x\n{single}\n",
        "not a fence": f"``\n{single}\n    ```\n{single}\n``` `x`\n{single}\n",
        "talked about": f"I would write {single}\n`{single}`\n> {single}\n- {single}\n",
        "in code by its indent": f"    {single}\n\t{single}\n",
        "in a thought": f"Hm.\n<think>\n{single}\n</thin </think>\n{single}\n<thinking>{single}",
        "results that were made up": f'{single}\n{{"tool_call_result": {{"result": "x"}}}}\n{single}\n',
        "cut off": two[:-9],
        "broken": f"{single[: len(single) // 2]}\n\n{single}",
        "odd": '\0\x85\u2028é👋\ud83d {\n "tool_call": 1}\n<tool_code\n=== callback ===\n<thinker>\n',
        "blanks": f"A{' ' * 40}\n{' ' * (1_200)}\n\n{single}\n{' ' * 99}",
        "a beginning that is too long": f'{{{" " * LOOKAHEAD}"tool_calls"\n<tool_code {" " * LOOKAHEAD}\n=== call {"x" * LOOKAHEAD} ===\n',
        "a fence that is too long": f"{'`' * (LOOKAHEAD - 1)}\n{single}\n{'`' * (LOOKAHEAD + 9)}\n{single}",
    }


# Splits -------------------------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("kind", texts("json"))
def test_wherever_a_text_is_split_the_same_is_heard(way: str, kind: str) -> None:
    text = texts(way)[kind]
    whole = hear(way, [text])

    for size in (1, 2, 3, 7):
        assert hear(way, pieces_of(text, size)) == whole, size
    for at in range(0, len(text), 1 + len(text) // 500):
        assert hear(way, [text[:at], text[at:]]) == whole, at


@each_way
@given(wild, st.lists(st.integers(0, 200), max_size=5))
def test_no_text_is_too_wild_and_no_split_matters(way: str, text: str, cuts: list[int]) -> None:
    ends = sorted({*cuts, 0, len(text)})
    split = [text[at:end] for at, end in pairwise(ends)]

    assert hear(way, pieces_of(text, 1)) == hear(way, [text]) == hear(way, split)


@each_way
@given(st.text().filter(lambda text: not set(text) & set('{<=`~"')))
def test_words_come_out_unchanged(way: str, text: str) -> None:
    parsed = answer(way, pieces_of(text, 3))

    assert (parsed.text, parsed.calls, parsed.finish) == (text, [], "stop")


@given(st.text(), st.booleans(), st.integers(1, 9))
def test_an_answer_that_stands_in_an_object_is_what_it_says(text: str, is_ascii: bool, size: int) -> None:
    written = json.dumps({"answer": text}, ensure_ascii=is_ascii)

    assert answer("json", pieces_of(written, size), decoding_constraint="schema").text == text


@given(st.sampled_from(["", '{"answer": "', '{"answer": {', '{"answer": "\\ud83d']), wild)
def test_no_answer_in_an_object_is_too_wild(begun: str, text: str) -> None:
    whole = hear("json", [begun + text], is_bound=True)

    for size in (1, 2, 5):
        assert hear("json", pieces_of(begun + text, size), is_bound=True) == whole


def test_half_an_escape_is_never_shown() -> None:
    written = json.dumps({"answer": 'a\n"b" \\ \u00e9 \U0001f44b /\u2028'})
    assert "\\ud83d\\udc4b" in written

    for at in range(len(written)):
        shown = hear("json", [written[:at], written[at:]], is_bound=True)
        assert (shown.text, shown.calls) == ('a\n"b" \\ é 👋 /\u2028', [])
        begun = hear("json", [written[:at]], is_bound=True).text
        assert shown.text.startswith(begun) or begun == written[:at]


def test_an_answer_in_words_may_be_followed_by_calls() -> None:
    written = f'{{"answer": "Let me look.", {calling("json")[1:]}'

    for size in (1, 5, 999):
        parsed = hear("json", pieces_of(written, size), is_bound=True)
        assert (parsed.text, parsed.runnable, parsed.order) == ("Let me look.", [LOOKED], "tc")


# As it comes --------------------------------------------------------------------------------------------------------


@each_way
def test_words_are_not_held_back(way: str) -> None:
    out: list[Chunk] = []
    reader = TOOL_FORMATS[way].answer(OfferedTools([TOOL]))
    text = "Let me see.\nIt is {here}, <there> or\n= nowhere = at\n\nall: `x`, *y*.\n- one\n- two\n\n" * 9
    fed = ""
    for piece in pieces_of(text, 5):
        before, fed = fed.rstrip(), fed + piece
        reader.feed(piece, out)
        shown = join_chunks(out).text
        assert len(before) <= len(shown) <= len(fed)
        assert fed.startswith(shown)


@each_way
@pytest.mark.parametrize(
    ("begun", "goes_on"),
    [
        ("{", '"a": 1}'),
        ("{\n  ", '"tool": 1'),
        ('{"tool_call', 's_": '),
        ("<", "b>"),
        ("<tool_code", "s>"),
        ("<thin", "g>"),
        ("===", " calls"),
        ("=== call", "back ==="),
        ("``", "x"),
        ("=== call look =", "\n"),
    ],
)
def test_what_might_have_been_a_call_is_shown_as_soon_as_it_is_none(way: str, begun: str, goes_on: str) -> None:
    out: list[Chunk] = []
    reader = TOOL_FORMATS[way].answer(OfferedTools([TOOL]))
    for piece in ("Well:\n", begun, goes_on):
        reader.feed(piece, out)

    assert join_chunks(out).text == f"Well:\n{begun}{goes_on}".rstrip()


@each_way
def test_arguments_come_as_they_are_written(way: str) -> None:
    out: list[Chunk] = []
    reader = TOOL_FORMATS[way].answer(OfferedTools([TOOL]))
    head, tail = calling(way, call("look", path="a" * 3_000, text="b\n" * 3_000)).split("a" * 3_000)
    reader.feed(head, out)
    for at in range(1, 31):
        reader.feed("a" * 100, out)
        assert join_chunks(out).calls[0][1].count("a") >= at * 100
    for piece in pieces_of(tail, 100)[:-2]:
        reader.feed(piece, out)
    assert join_chunks(out).calls[0][1].count("b") >= 2_800


# A lot --------------------------------------------------------------------------------------------------------------

LONG: dict[str, Callable[[str, int], str]] = {
    "a call": lambda way, size: calling(way, call("write", text="0123456789abcde " * (size // 16))),
    "a call with code": lambda way, size: calling(way, call("write", text='x = {"a": [1]}\n\n' * (size // 16))),
    "a call of many values": lambda way, size: calling(way, call("write", list=[{"a": "b"}, 1] * (size // 16))),
    "a call of many arguments": lambda way, size: calling(
        way, call("write", **{f"k{at}": at for at in range(size // 16)})
    ),
    "many calls": lambda way, size: calling(way, *[LOOK] * (size // 64)),
    "a line": lambda _, size: "0123456789abcde " * (size // 16),
    "lines": lambda _, size: "0123456789abcde\n" * (size // 16),
    "empty lines": lambda _, size: "\n" * size,
    "blanks": lambda _, size: " " * size,
    "fences": lambda _, size: "```\n~~~\n" * (size // 8),
    "lines of code": lambda _, size: "`x` and `y`\n" * (size // 12),
    "beginnings": lambda _, size: '{"tool_\n<tool_\n=== call x\n' * (size // 26),
    "a header of blanks": lambda _, size: "=== call x" + " " * size + "\n",
    "a broken call": lambda way, size: calling(way)[:-6] + "{" * size,
    "backslashes": lambda way, size: calling(way, call("write", text="\\" * (size // 2))),
    "half tags": lambda _, size: "a\n<think>" + "</think" * (size // 7),
}


@each_way
@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("piece", [9, 1_000_000], ids=["in pieces", "at once"])
def test_four_times_as_much_takes_about_four_times_as_long(way: str, kind: str, piece: int) -> None:
    """It would take sixteen times as long, were anything looked at again and again."""

    def cost(size: int) -> float:
        pieces = pieces_of(LONG[kind](way, size), piece)
        gc.disable()  # it comes when it likes, and a millisecond is all there is to measure
        try:
            start = time.thread_time()
            hear(way, pieces)
            return time.thread_time() - start
        finally:
            gc.enable()

    small, large = (min(cost(size) for _ in range(4)) for size in (10_000, 40_000))

    assert large < 10 * max(small, 0.002)


@each_way
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_large_payload_arrives_whole(way: str, size: int) -> None:
    text = f'{CODE}é👋 "\\u00e9" ' * 3_000
    assert len(text) > 200_000

    parsed = hear(way, pieces_of(calling(way, call("write", text=text)), size))

    assert parsed.runnable == [("write", {"text": text})]
