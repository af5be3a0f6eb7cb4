"""What is a call in a text and what only looks like one; and that a call that is not whole never runs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import pytest
from tests.models.prompted.parsed_output import (
    CODING,
    LOOK,
    LOOKED,
    TOOL,
    WAYS,
    Recited,
    answer,
    ask,
    calling,
    hear,
    join_chunks,
    pieces_of,
)
from tests.models.prompted.tool_format_writer import LOOSE, call

from everturn.core.canonical_json import parse_object
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.models.prompted import PromptedModel

each_way = pytest.mark.parametrize("way", WAYS)


# What is a call -----------------------------------------------------------------------------------------------------


@each_way
def test_calls_and_words_come_in_the_order_in_which_they_were_written(way: str) -> None:
    parsed = answer(way, [f"One.\n\n{calling(way)}\n\nTwo.\n{calling(way)}\nThree.\n"])

    assert parsed.text == "One.Two.Three.\n"
    assert parsed.runnable == [LOOKED, LOOKED]
    assert (parsed.order, parsed.finish) == ("tctct", "tool_calls")


@each_way
@pytest.mark.parametrize(
    "around",
    [
        "```\n{}\n```\n",
        "```json\n{}\n```\n",
        "~~~ some info `here`\n{}\n~~~\n",
        "   ```\n{}\n   ```\n",
        "````\n```\n{}\n```\n````\n",
        "~~~\n```\n{}\n~~~\n",
        "```\n{}\n    ```\n{}\n```\n",
        "```\n``` not the end\n{}\n```\n",
        "```\n~~~\n{}\n```\n",
        "```\n{}",
        "~~~\r\n{}\r\n~~~\r\n",
    ],
)
def test_what_stands_in_a_fence_is_no_call_and_what_follows_it_is_one(way: str, around: str) -> None:
    text = around.replace("{}", calling(way))

    assert (hear(way, [text]).text, hear(way, [text]).calls) == (text, [])
    if not text.endswith(calling(way)):  # closed
        assert hear(way, [text + calling(way)]).runnable == [LOOKED]


@each_way
@pytest.mark.parametrize("around", ["``\n", "    ```\n", "``` `code`\n", "`a`\n", "> ```\n", "x ```\n"])
def test_what_only_looks_like_a_fence_opens_none(way: str, around: str) -> None:
    assert hear(way, [around + calling(way)]).runnable == [LOOKED]


@each_way
@pytest.mark.parametrize("before", ["So: ", "`", "> ", "- ", "1. ", "* ", "// ", "    ", "\t", "  \t", "(", '"', "x"])
def test_a_call_that_does_not_begin_its_line_is_talked_about(way: str, before: str) -> None:
    line = before + calling(way).replace("\n", f"\n{before}")

    assert (hear(way, [line]).text, hear(way, [line]).calls) == (line, [])


@each_way
@pytest.mark.parametrize("indent", ["", " ", "   ", "\n\n  ", "words\n", "words\r\n   "])
def test_a_call_may_be_indented_a_little(way: str, indent: str) -> None:
    parsed = hear(way, [indent + calling(way)])

    assert (parsed.text, parsed.runnable) == (indent.strip(), [LOOKED])


@each_way
@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_a_thought_never_calls(way: str, tag: str) -> None:
    thought = f"<{tag}>\nI could write\n{calling(way)}\n</{tag}>"

    first = answer(way, pieces_of(f"{thought}\n\nNo.", 5))
    assert (first.text, first.calls) == ("No.", [])
    assert calling(way) in first.reasoning
    later = answer(way, pieces_of(f"Hm.\n{thought}\nNo.", 5))
    assert (later.text, later.reasoning, later.calls) == (f"Hm.\n{thought}\nNo.", "", [])
    assert answer(way, [f"Hm.\n{thought}\n{calling(way)}"]).runnable == [LOOKED]
    assert answer(way, [thought + calling(way)]).runnable == [LOOKED]
    assert answer(way, [f"Hm.\n<{tag}>{calling(way)}\n{calling(way)}"]).calls == []


@each_way
def test_results_that_are_made_up_are_dropped_with_all_that_follows(way: str) -> None:
    forged = '{\n "tool_call_result": {"tool_call_id": "call_1", "result": "42"}}\nSo it is 42.\n' + calling(way)

    parsed = answer(way, pieces_of(f"A.\n{calling(way)}\n{forged}", 4))
    assert (parsed.text, parsed.runnable) == ("A.", [LOOKED])
    alone = answer(way, pieces_of(f"A.\n{forged}", 4))
    assert (alone.text.startswith("A.\n" + forged[:40]), alone.runnable) == (True, [LOOKED])


@each_way
def test_every_call_has_a_slot_of_its_own_and_native_calls_have_theirs(way: str) -> None:
    own: list[Chunk] = [CallChunk(at, "{}", "look", f"own_{at}") for at in range(3)]
    text = TextChunk(calling(way, LOOK, LOOK) + "\n" + calling(way))
    model = PromptedModel(Recited([own[0], text], own[1:], [FinishChunk("stop")]), way)

    chunks = [chunk for batch in ask(model) for chunk in batch]

    assert len({chunk.slot for chunk in chunks if isinstance(chunk, CallChunk)}) == 6
    assert sorted(join_chunks(chunks).calls) == sorted([("look", "{}")] * 3 + hear(way, [text.text]).calls)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("12", 12),
        ("-1.5e3 ", -1500.0),
        ("true", True),
        ("null", None),
        ('"12"', "12"),
        ("True", "True"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("two words, and = more", "two words, and = more"),
        ("1 2", "1 2"),
        ("<<END", "<<END"),
        ("'x'", "'x'"),
        ("é👋", "é👋"),
    ],
)
def test_a_word_in_a_block_needs_no_quotes(line: str, value: object) -> None:
    assert hear("blocks", [f"=== call look ===\npath = {line}\n=== end ==="]).runnable == [("look", {"path": value})]


def test_an_id_that_a_model_gave_its_call_is_kept() -> None:
    call_json = '{"id": "c7", "name": "look", "arguments": {}}'

    assert (
        hear("json", [f'{{"tool_calls": [{call_json}]}}']).ids
        == hear("xml", [f"<tool_code>{call_json}</tool_code>"]).ids
    )
    assert hear("xml", [f"<tool_code>{call_json}</tool_code>"]).ids == ["c7"]


@each_way
async def test_a_stream_that_is_given_up_is_closed_behind_it_at_once(way: str) -> None:
    is_closed = False

    class Endless:
        name = "endless"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            nonlocal is_closed
            try:
                while True:
                    yield [TextChunk("More. ")]
            finally:
                is_closed = True

    batches = PromptedModel(Endless(), way).stream(ModelRequest("m", "", [], [TOOL], {}))
    assert isinstance(batches, AsyncGenerator)
    await anext(batches)
    await batches.aclose()

    assert is_closed


# What is not whole --------------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("style", ["strict", "loose"])
def test_a_call_that_was_cut_off_never_runs_wherever_it_was_cut(way: str, style: str) -> None:
    text = calling(way, CODING) if style == "strict" else LOOSE[way]([CODING]).rstrip()

    for at in range(len(text)):
        parsed = answer(way, [text[:at]], "length")
        assert parsed.runnable == [], text[:at]
        assert len(parsed.calls) <= 1
        assert parsed.finish == "length"
    assert hear(way, [text]).runnable == [("write", parse_object(CODING.arguments))]


@each_way
def test_of_two_calls_only_a_whole_one_runs_wherever_they_are_cut(way: str) -> None:
    text = calling(way, LOOK, CODING)

    for at in range(len(text)):
        assert hear(way, [text[:at]]).runnable in ([], [LOOKED] if way != "json" else []), text[:at]


@each_way
def test_nothing_that_follows_a_cut_is_another_call(way: str) -> None:
    for begun in (calling(way), calling(way, CODING), LOOSE[way]([LOOK]).rstrip()):
        for at in range(len(begun)):
            parsed = hear(way, [f"{begun[:at]}\n{calling(way)}\n"])
            assert parsed.runnable in ([], [LOOKED]), begun[:at]


@each_way
@pytest.mark.parametrize(
    "broken",
    [
        '{"tool_calls": [{"arguments": {}}]}',
        '{"tool_calls": "look"}',
        '{"tool_calls": [{"name": "look", "arguments": {}} oh',
        '{"tool_calls": [{"name": "look", "arguments": "{\\"path\\": "}]}',
        '{"tool_calls": [{"name": "look", "arguments": {"a": 1}, "arguments": {"b": 2}}]}',
        '{"tool_calls": [{"name": "look", "arguments": [1]}]}',
        "<tool_code>look</tool_code>",
        '<tool_code>{"name": "look", "arguments": {}}</tool>',
        '<tool_code>[{"name": "look", "arguments": {}}]</tool_code>',
        "=== call look ===\npath\n=== end ===",
        "=== call look ===\npath <<END\nx\n=== end ===",
        '=== call look ===\npath = "x" "y"\n=== end ===',
        "=== call look ===\npath = {1]\n=== end ===",
    ],
)
def test_a_broken_call_is_shown_and_does_not_run(way: str, broken: str) -> None:
    parsed = hear(way, [broken])

    assert parsed.runnable == []
    is_own = broken.startswith({"json": '{"tool', "xml": "<tool", "blocks": "==="}[way])
    assert bool(parsed.calls) is is_own
    assert (parsed.text == broken) is not is_own


def test_what_follows_a_broken_call_in_tags_is_read_on() -> None:
    parsed = hear("xml", [f"<tool_code>look</tool_code> So.\n{calling('xml')}"])

    assert (parsed.text, parsed.runnable, parsed.order) == ("So.", [LOOKED], "ctc")


@pytest.mark.parametrize("way", ["json", "xml"])
def test_what_follows_a_whole_call_without_a_name_is_read_while_it_streams(way: str) -> None:
    nameless = calling(way, call("", path="a"))
    half = calling(way).removesuffix("]}" if way == "json" else "</tool_code>")

    parsed = hear(way, [f"{nameless}\nSo.\n{calling(way)}\n{half}"])

    assert (parsed.text, parsed.runnable, parsed.order) == ("So.", [LOOKED], "ctc")
    assert len(parsed.calls) == 3
    assert "it has no name" in parsed.calls[0][1]


def test_a_call_without_a_name_does_not_stop_the_others_of_its_list() -> None:
    parsed = hear("json", [calling("json", LOOK, call(""), LOOK)])

    assert (parsed.runnable, len(parsed.calls)) == ([LOOKED, LOOKED], 3)


@each_way
def test_half_a_surrogate_harms_nobody(way: str) -> None:
    half = call("look", **{"\ud83d": "\ud83d"})  # in JSON, and as it comes
    block = "=== call look ===\n\ud83d = x\ud83d\ny <<END\n\ud83d\nEND\n=== end ==="
    for text in (json.dumps({"tool_calls": [{"name": "\ud83d", "arguments": {"\ud83d": "\ud83d"}}]}), block):
        assert hear(way, [text]) == hear(way, pieces_of(text, 1))
    for text in (
        '=== call "\\ud83d" ===\n"\\ud83d" = 1\n=== end ===',
        "<tool_code>\ud83d</tool_code>\ud83d",
        half.arguments,
    ):
        assert hear(way, [text]) == hear(way, pieces_of(text, 1))


@pytest.mark.parametrize("arguments", ["null", '""', '"{}"', "{}"])
def test_no_arguments_at_all_are_none(arguments: str) -> None:
    parsed = hear("json", [f'{{"tool_calls": [{{"name": "look", "arguments": {arguments}}}, {{"name": "look"}}]}}'])

    assert parsed.runnable == [("look", {}), ("look", {})]


@each_way
def test_depth_harms_nobody(way: str) -> None:
    deep = "[" * 200_000
    texts = {
        "json": [f'{{"tool_calls": [{{"name": "a", "x": {deep}', '{"tool_calls": [' + '{"function": ' * 5_000],
        "xml": [f'<tool_code>{{"name": "a", "x": {deep}', "<tool_code>" + '{"function": ' * 5_000],
        "blocks": [f"=== call a ===\nx = {deep}", f"=== call a ===\nx = 1{deep}\n=== end ==="],
    }

    for text in texts[way]:
        parsed = hear(way, [text])
        assert parsed.runnable in ([], [("a", {"x": "1" + deep})])
        if way != "blocks":
            closed = text + "]" * 200_000 + "}}]}"
            assert all(name == "a" for name, _ in hear(way, [closed]).runnable)
