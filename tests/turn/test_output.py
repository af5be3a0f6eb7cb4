"""Shaping: what is too long is shown by its head and tail, and the whole of it can be read by range."""

from __future__ import annotations

import tracemalloc
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import Chat, Output, ToolError
from everturn.app import App
from everturn.calls.output import OutputLimits, excerpt, prepare_output
from everturn.calls.results import has_truncated_result
from everturn.core.parts import FilePart
from everturn.core.ports import ToolContext
from everturn.errors import BadArguments
from everturn.testing import ScriptedModel, say
from everturn.tools.read_result import DEFAULT_RANGE_LENGTH, MAX_RANGE_LENGTH, ReadResultTool
from tests.helpers.tool_results import READ, Given, Peek, outputs, results_of, returns, run_through, talk, then

LINES = "".join(f"line {n}\n" for n in range(20_000))


async def test_a_long_result_is_cut_to_two_thirds_head_and_one_third_tail_at_line_ends() -> None:
    model = talk()
    [output], _ = await run_through(model, [returns(LINES)], limits=OutputLimits(output=3_000))
    head, _, rest = output.text.partition("[… ")
    note, _, tail = rest.partition(" …]\n")
    assert LINES.startswith(head)
    assert LINES.endswith(tail)
    assert head.endswith("\n")
    assert tail.startswith("line ")
    assert (1_980 < len(head) <= 2_000, 980 < len(tail) <= 1_000) == (True, True)
    assert note.startswith(f"{len(LINES) - len(head) - len(tail)} characters left out")
    assert "$ref{" in note
    assert "read_result" in note
    assert results_of(model) == [output.text]


async def test_the_whole_is_a_blob_and_all_else_of_the_output_is_as_it_was() -> None:
    async with Chat(model := talk(), app=App(model)) as chat:
        file = FilePart(await chat.app.store.put_blob(b"png"), "image/png", 3, "a.png")
        store = chat.app.store
    whole = Output("ü" * 300, title="T" * 200, metadata={"n": "m" * 200}, attachments=(file,))
    model = talk()
    async with Chat(
        model, app=App(model, tools=[returns(whole)], store=store, limits=OutputLimits(output=100))
    ) as chat:
        await (await chat.send("please"))
        [output] = await outputs(chat)
        assert (await store.blob(output.blob)).decode() == whole.text
    assert (output.title, output.metadata, output.attachments) == (whole.title, whole.metadata, whole.attachments)


@pytest.mark.parametrize(("limit", "is_cut"), [(0, True), (299, True), (300, False), (1_000, False)])
async def test_a_tool_may_have_a_limit_of_its_own(limit: int, is_cut: bool) -> None:
    [output], _ = await run_through(talk(), [returns("x" * 300, limit=limit)], limits=OutputLimits(output=100))
    assert bool(output.blob) == is_cut


async def test_a_text_within_the_limit_is_not_copied() -> None:
    model, peek = ScriptedModel(say("Done.")), Peek()
    async with Chat(model, app=App(model, plugins=[peek])) as chat:
        await (await chat.send("please"))
        output = Output("x" * 50_000)
        assert await prepare_output(peek.run, returns("").spec, "c", output, OutputLimits()) is output


async def test_cutting_takes_no_more_memory_than_three_times_the_text() -> None:
    model, peek = ScriptedModel(say("Done.")), Peek()
    async with Chat(model, app=App(model, plugins=[peek])) as chat:
        await (await chat.send("please"))
        text = "word " * 1_000_000
        tracemalloc.start()
        try:
            await prepare_output(peek.run, returns("").spec, "c", Output(text), OutputLimits())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 2 * len(text)  # beside the text itself


# Where it is cut --------------------------------------------------------------------------------------------------

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize("piece", ["e\u0301", FAMILY, "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea ", "\r\n", "abc"])
@pytest.mark.parametrize("limit", range(60, 72))
def test_what_is_shown_as_one_character_is_not_cut_in_two(piece: str, limit: int) -> None:
    text = piece * 400
    head, _, rest = excerpt(text, limit, "c").partition("\n[… ")
    tail = rest.partition(" …]\n")[2]
    if piece != "abc":
        assert not head.replace(piece.strip(" "), "").strip("\r\n ")
        assert not tail.replace(piece.strip(" "), "").strip(" ")
    assert limit - 16 <= len(head) + len(tail) <= limit


def test_a_prank_of_marks_on_marks_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 10_000
    assert unicodedata.combining(text[1])
    assert len(excerpt(text, 300, "c")) < 600


@pytest.mark.parametrize("limit", range(100, 190))
def test_a_stand_in_is_shown_whole_or_not_at_all(limit: int) -> None:
    text = "x$private{turn_1-1-1:customer.0.email}" * 100
    shown = excerpt(text, limit, "c")
    assert "\n[… " in shown
    pieces = shown.replace("$private{turn_1-1-1:customer.0.email}", "")
    assert "$" not in pieces.partition("[…")[0]
    assert "}" not in pieces.partition("…]")[2]


@given(st.text(min_size=1, max_size=400), st.integers(1, 300))
def test_what_is_shown_and_what_is_left_out_make_the_whole(text: str, limit: int) -> None:
    if len(text) <= limit:
        return
    shown = excerpt(text, limit, "CALL")
    note = shown.index("[… ", 0) if "[… " not in text else None
    if note is None:
        return
    head, tail = shown[:note], shown[shown.index(" …]\n", note) + 4 :]
    count = int(shown[note:].split()[1])
    assert text.startswith(head) or text.startswith(head[:-1])
    assert text.endswith(tail)
    assert len(head) - (not text.startswith(head)) + count + len(tail) in (len(text), len(text) + 1)


# Reading by range -------------------------------------------------------------------------------------------------


async def test_a_range_of_a_long_result_is_read_with_where_it_stands() -> None:
    whole = "".join(f"{n:06d}" for n in range(10_000))
    model = talk(
        then("read_back", call="CALL", start=600, length=12), then("read_back", call="$ref{CALL}", start=59_994)
    )
    [_, first, last], _ = await run_through(model, [returns(whole), READ], limits=OutputLimits(output=100))
    assert first.text == "[characters 600 to 612 of 60000; continue with start=612]\n000100000101"
    assert last.text == "[characters 59994 to 60000 of 60000]\n009999"
    assert first.origin == "builtin"


async def test_what_is_read_is_bounded_and_never_cut_in_its_turn() -> None:
    model = talk(then("read_back", call="CALL"), then("read_back", call="CALL", length=1_000_000))
    [_, piece, most], _ = await run_through(model, [returns("x" * 100_000), READ], limits=OutputLimits(output=100))
    assert [output.text.count("x") for output in (piece, most)] == [DEFAULT_RANGE_LENGTH, MAX_RANGE_LENGTH]
    assert (piece.blob, most.blob) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "needs `call`"),
        ({"call": 1}, "needs `call`"),
        ({"call": "c", "start": -1}, "start is a number of characters, at least 0"),
        ({"call": "c", "length": True}, "length is a number"),
        ({"call": "c", "end": 1}, "not end"),
    ],
)
def test_a_range_that_cannot_be_is_refused_in_words(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(BadArguments, match=says):
        ReadResultTool().validate(arguments)


async def test_a_start_behind_the_end_and_an_unknown_call_say_what_there_is() -> None:
    model = talk(then("read_back", call="CALL", start=300), then("read_back", call="nobody"))
    [first, behind, unknown], _ = await run_through(model, [returns("x" * 300), READ], limits=OutputLimits(output=100))
    assert behind.text == "start=300 is after the end; the full text has 300 characters"
    assert unknown.text.startswith("there is no result 'nobody' to refer to; there are: $ref{")
    assert first.blob


async def test_outside_a_turn_there_is_nothing_to_read() -> None:
    context = ToolContext(session="s", turn="t", call="c", key="c", progress=print)
    with pytest.raises(ToolError, match="results cannot be read"):
        await ReadResultTool().run({"call": "c"}, context)


async def test_whether_something_was_cut_is_known_in_this_turn_and_the_next() -> None:
    seen: list[bool] = []

    class Look:
        name = "look_for_cuts"

        def on_before_request(self, ctx: Peek) -> None:
            seen.append(has_truncated_result(ctx.run))

    model = talk(say("Again."))
    app = App(model, tools=[returns("x" * 300)], plugins=[Look()], limits=OutputLimits(output=100))
    async with Chat(model, app=app) as chat:
        await (await chat.send("please"))
        await (await chat.send("and now?"))
    assert seen == [False, True, True]


async def test_a_result_that_a_person_withheld_is_not_read_and_of_a_redacted_one_only_what_was_left() -> None:
    replies: list[tuple[dict[str, Any], str]] = [
        ({"deny": True}, "there is no result"),
        ({"allow": "once", "text": "left"}, "4]\nleft"),
    ]
    for answer, says in replies:
        model = talk(then("read_back", call="CALL"), then("use", text="<$ref{CALL}>"))
        recorder = Given()
        tools = [returns("secret " * 100, review="always"), READ, recorder.text()]
        async with Chat(model, app=App(model, tools=tools, limits=OutputLimits(output=100))) as chat:
            turn = await chat.send("please")
            async for event in turn:
                if type(event).__name__ == "TurnSuspended":
                    [gate] = await chat.gates()
                    await chat.answer(gate, **answer)
            [_, read, _] = await outputs(chat)
        assert says in read.text
        assert "secret" not in read.text
        assert recorder.values == ([] if "deny" in answer else ["<left>"])
