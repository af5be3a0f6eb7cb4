"""Privacy: values of private fields reach tools and nobody else."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given as given_that
from hypothesis import strategies as st

from everturn import Chat, Output, ToolError
from everturn.app import App
from everturn.calls.output import OutputLimits, failure_output, prepare_output
from everturn.calls.private_values import PRIVACY_RULE, PlaceholderMask
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers.tool_results import (
    READ,
    Given,
    Peek,
    everything,
    outputs,
    results_of,
    returns,
    run_through,
    talk,
    then,
)

CANARY = "canary-7f3a@example.org"
ACCENT = 'Renée "Ré" O\'Hara\n42'
PEOPLE: dict[str, Any] = {
    "customer": [{"id": 1, "email": CANARY, "name": ACCENT}, {"id": 2, "email": None, "name": "Bo"}],
    "total": 2,
    "note": f"ask {CANARY} first",
}
PRIVATE = ("email", "customer.name")


async def hidden(value: object, private: tuple[str, ...] = PRIVATE) -> Output:
    [output], _ = await run_through(talk(), [returns(value, private=private)])
    return output


def shown(output: Output) -> Any:
    """What a model reads, with the call left out of placeholders."""
    name = output.text.partition("$private{")[2].partition(":")[0]
    return msgspec.json.decode(output.text.replace(name, "CALL") if name else output.text)


async def test_private_fields_are_stand_ins_wherever_they_stand() -> None:
    output = await hidden(PEOPLE)
    assert shown(output) == {
        "customer": [
            {"id": 1, "email": "$private{CALL:customer.0.email}", "name": "$private{CALL:customer.0.name}"},
            {"id": 2, "email": "$private{CALL:customer.1.email}", "name": "$private{CALL:customer.1.name}"},
        ],
        "total": 2,
        "note": "ask $private{CALL:customer.0.email} first",  # there it is the same value
    }
    assert output.private


@pytest.mark.parametrize(
    ("value", "private", "left"),
    [
        ({"a": {"b": "xx"}, "b": "yy"}, ("a.b",), {"a": {"b": "$private{CALL:a.b}"}, "b": "yy"}),
        ([[{"b": {"c": 1}}]], ("b",), [[{"b": "$private{CALL:0.0.b}"}]]),
        ({"d": {"a": [{"b": 1}]}}, ("a.b",), {"d": {"a": [{"b": "$private{CALL:d.a.0.b}"}]}}),
        (
            {"x": {"a.b": 1, "a": {"b": 2}}},
            ("b",),
            {"x": {"a.b": "$private{CALL:x.a.b}", "a": {"b": "$private{CALL:~1}"}}},
        ),
        ({"odd } key": {"b": 1}}, ("b",), {"odd } key": {"b": "$private{CALL:~0}"}}),
        ({"ab": 1, "B": 2}, ("b",), {"ab": 1, "B": 2}),
    ],
)
async def test_a_name_is_found_at_any_depth_and_dots_lead_to_one(
    value: object, private: tuple[str, ...], left: object
) -> None:
    assert shown(await hidden(value, private)) == left


@pytest.mark.parametrize(
    "text", [f"mail of {CANARY}", f'"{CANARY}"', f'{{"email": "{CANARY}"', f'{{"a":1}}\n{{"email":"{CANARY}"}}']
)
async def test_what_is_not_json_is_private_as_a_whole(text: str) -> None:
    model = talk(then("use", text="$private{CALL:}"))
    recorder = Given()
    look = returns(Output(text, title=f"of {CANARY}", metadata={"who": CANARY}), private=PRIVATE)
    [output, _], seen = await run_through(model, [look, recorder.text()])
    assert output.text.startswith("$private{")
    assert "private as a whole" in output.text
    assert CANARY not in seen
    assert recorder.values == [text]


async def test_a_result_without_such_fields_is_left_as_it_is() -> None:
    output = await hidden('{"a":  1.0}')
    assert (output.text, output.private) == ('{"a":  1.0}', "")


async def test_the_title_and_metadata_of_a_result_are_cleared_of_its_own_short_values_too() -> None:
    text = msgspec.json.encode({"pin": "4711", "ok": "12"}).decode()
    output = await hidden(Output(text, title="PIN 4711", metadata={"4711": ["is 4711"], "n": "12"}), ("pin", "ok"))
    pin = output.title.removeprefix("PIN ")
    assert pin.startswith("$private{")
    assert output.metadata == {pin: [f"is {pin}"], "n": "12"}  # what is shorter is found by chance


# The canary -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [50_000, 300])
async def test_private_values_reach_the_tool_and_nothing_that_is_written_sent_or_logged(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    recorder = Given()
    look = returns(
        Output(
            msgspec.json.encode({**PEOPLE, "rest": "x" * 500}).decode(),
            title=f"Mail of {CANARY}",
            metadata={"to": [CANARY], "n": 1},
        ),
        private=PRIVATE,
        approval="always",
        review="always",
    )
    model = talk(
        then("use", text="$private{CALL:customer.0.email}"),
        then("use", text="To: <$private{CALL:customer.0.email}>, $private{CALL:customer.0.name}"),
        then("read_back", call="CALL"),
        then("use", text="$ref{CALL}"),
    )
    app = App(model, tools=[look, recorder.text(approval="always"), READ], limits=OutputLimits(output=limit))
    everywhere, wholes = "", set[str]()
    async with Chat(model, app=app) as chat:
        turn = await chat.send("please")
        async for event in turn:
            everywhere += repr(event)
            if type(event).__name__ == "TurnSuspended":
                everywhere += await everything(chat, model)
                for gate in await chat.gates():
                    wholes |= {gate.output.blob} if gate.output is not None and gate.output.blob else set()
                    await chat.answer(gate, allow="once")
        [first, *_] = await outputs(chat)
        everywhere += await everything(chat, model)
        for blob in wholes:
            everywhere += (await app.store.blob(blob)).decode()
    assert len(wholes) == (limit == 300)
    assert recorder.values[:2] == [CANARY, f"To: <{CANARY}>, {ACCENT}"]
    assert "$private{" in recorder.values[2]
    assert (first.metadata or {})["n"] == 1
    for text in (everywhere, caplog.text, recorder.values[2]):
        assert CANARY not in text
        assert "Hara" not in text
    assert len(results_of(model)) == 5


@pytest.mark.parametrize("raises", [False, True])
async def test_a_tool_that_says_what_it_was_given_tells_the_model_nothing(raises: bool) -> None:
    recorder = Given()
    model = talk(
        then("echo", text="$private{CALL:customer.0.name}"), then("echo", text="$private{CALL:customer.0.email}")
    )
    results, seen = await run_through(model, [returns(PEOPLE, private=PRIVATE), recorder.echo(raises)])
    assert recorder.values == [ACCENT, CANARY]
    assert CANARY not in seen
    assert "Hara" not in seen
    assert all("customer.0." in output.text for output in results[1:])


async def test_a_value_that_does_not_fit_is_not_quoted_when_it_is_refused() -> None:
    model = talk(then("put", rows="$private{CALL:customer.0.email}"))
    [_, output], seen = await run_through(model, [returns(PEOPLE, private=PRIVATE), Given().rows()])
    assert output.code == "bad_arguments"
    assert CANARY not in seen


async def test_values_of_earlier_turns_are_known_again_after_a_restart(tmp_path: Path) -> None:
    path, recorder = str(tmp_path / "talks.db"), Given()
    first = ScriptedModel(calls(call("look")), say("Seen."))
    look = returns(PEOPLE, private=PRIVATE)
    async with Chat(first, session="talk", app=App(first, tools=[look], store=path)) as chat:
        await (await chat.send("please"))
    text = "$private{CALL:customer.0.email}"
    second = ScriptedModel(say(""), say(""), then("echo", text=text), then("leak"), say("Done."))
    tools = [look, recorder.echo(), returns(ValueError(f"no box of {CANARY}"), "leak")]
    async with Chat(second, session="talk", app=App(second, tools=tools, store=path)) as chat:
        await (await chat.send("mail it"))
        seen = await everything(chat, second)
    assert recorder.values == [CANARY]
    assert CANARY not in seen
    assert "no box of $private{" in results_of(second)[-1]


async def test_a_failure_of_a_private_tool_is_private_unless_it_was_meant_for_the_model() -> None:
    [output], seen = await run_through(talk(), [returns(ValueError(CANARY), private=PRIVATE)])
    assert CANARY not in seen
    assert "(failed) is private as a whole" in output.text
    model, peek = ScriptedModel(say("Done.")), Peek()
    async with Chat(model, app=App(model, plugins=[peek])) as chat:
        await (await chat.send("please"))
        failure = failure_output(ToolError("there is no customer 17"))
        assert (
            await prepare_output(
                peek.run, returns("", private=PRIVATE).spec, "c", failure, OutputLimits(), is_told=True
            )
            == failure
        )


async def test_the_name_of_the_blob_tells_nothing_of_what_is_in_it() -> None:
    first, second = await hidden(PEOPLE), await hidden(PEOPLE)
    assert first.private != second.private


# Placeholders in arguments ----------------------------------------------------------------------------------------


async def test_a_value_keeps_its_type_where_the_tool_takes_it_and_is_written_as_json_elsewhere() -> None:
    recorder = Given()
    rows = [{"a": 1}]
    model = talk(
        then("put", rows="$private{CALL:rows}", count="$private{CALL:n}", note="$private{CALL:n}"),
        then("use", text="$private{CALL:rows}"),
        then("use", text="n=$private{CALL:n}"),
    )
    tools = [returns({"rows": rows, "n": 7}, private=("rows", "n")), recorder.rows(), recorder.text()]
    await run_through(model, tools)
    assert recorder.values == [(rows, "7", 7), '[{"a":1}]', "n=7"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("$private{CALL:customer.9.email}", "there is no private value 'customer.9.email'"),
        ("$private{CALL}", "there is no private value ''"),
        ("$private{nobody:email}", "there are no private values of a call 'nobody' here"),
    ],
)
async def test_a_stand_in_that_stands_for_nothing_is_refused(text: str, says: str) -> None:
    recorder = Given()
    model = talk(then("use", text=text))
    [_, output], _ = await run_through(model, [returns(PEOPLE, private=PRIVATE), recorder.text()])
    assert (output.code, recorder.values) == ("bad_arguments", [])
    assert says in output.text


async def test_a_tool_that_may_tell_what_it_is_given_is_given_no_private_value() -> None:
    recorder = Given()
    model = talk(then("use", text="mail $private{CALL:customer.0.email}"))
    [_, output], _ = await run_through(model, [returns(PEOPLE, private=PRIVATE), recorder.text(echoes=True)])
    assert "cannot receive private values" in output.text
    assert recorder.values == []


async def test_a_stand_in_that_a_person_took_out_stands_for_nothing_any_more() -> None:
    recorder = Given()
    model = talk(
        then("use", text="$private{CALL:customer.0.email}"), then("use", text="$private{CALL:customer.0.name}")
    )
    tools = [returns(PEOPLE, private=PRIVATE, review="always"), recorder.text()]
    async with Chat(model, tools=tools) as chat:
        async for event in await chat.send("please"):
            if type(event).__name__ == "TurnSuspended":
                [gate] = await chat.gates()
                assert gate.output is not None
                await chat.answer(gate, allow="once", text=f"name: $private{{{gate.call}:customer.0.name}}")
    assert recorder.values == [ACCENT]


# Knowing values again ---------------------------------------------------------------------------------------------


@given_that(
    st.lists(st.text("abc$", min_size=3, max_size=6), min_size=1, max_size=80),
    st.lists(st.text("abcd$", max_size=12), max_size=5),
)
def test_no_value_is_left_in_a_text(values: list[str], pieces: list[str]) -> None:
    mask = PlaceholderMask(3)
    mask.add("c", {str(at): value for at, value in enumerate(values)})
    text = mask.mask_text("-".join([*pieces, values[0], *pieces]))
    rest = re.split(r"\$private\{c:\d+\}", text)
    assert len(rest) > 1
    assert not any(value in piece for value in values for piece in rest)


def test_stand_ins_that_are_there_already_are_left_alone() -> None:
    mask = PlaceholderMask()
    mask.add("c", {"p": "customer", "q": "$private"})
    assert mask.mask_text("$private{x:customer.0} customer") == "$private{x:customer.0} $private{c:p}"


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (1234567, ["1234567", "1,234,567", "n=1234567.00", '{"a":1234567}', '{"a": [1, 1234567]}']),
        (-1234567, ["-1234567", "1234567 less", "-1,234,567"]),
        (98765.5, ["98765.5", "98,765.5"]),
        (1234567.0, ["1234567.0", "1234567", "1,234,567"]),
        ([{"deep": 7654321}], ["7654321"]),
    ],
)
def test_numbers_are_known_again_however_they_are_written(value: Any, texts: list[str]) -> None:
    mask = PlaceholderMask()
    mask.add("c", {"p": value})
    for text in texts:
        assert "$private{c:p}" in mask.mask_text(text)
        assert not re.search(r"\d{3}", mask.mask_text(text))


def test_a_number_in_json_leaves_json_behind() -> None:
    mask = PlaceholderMask()
    mask.add("c", {"p": 1234567})
    masked = mask.mask_text('{"a":1234567,"b": [1234567, 2],"c":"1234567"}')
    placeholder = "$private{c:p}"
    assert msgspec.json.decode(masked) == {"a": placeholder, "b": [placeholder, 2], "c": placeholder}


def test_truth_and_short_numbers_are_found_by_chance_and_left() -> None:
    mask = PlaceholderMask()
    mask.add("c", {"p": True, "q": 12345, "r": None})
    assert mask.mask_text("True 12345 true") == "True 12345 true"


async def test_a_number_of_the_metadata_is_masked_too() -> None:
    text = msgspec.json.encode({"pay": 1234567}).decode()
    output = await hidden(Output(text, metadata={"raw": {"pay": 1234567, "other": 7}}), ("pay",))
    assert output.metadata == {"raw": {"pay": msgspec.json.decode(output.text)["pay"], "other": 7}}


RECORD = {"salary": 1234567, "pin": "4711", "age": 107, "name": "Ann"}


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize(("path", "value"), [("salary", "1234567"), ("pin", "4711"), ("age", "107"), ("name", "Ann")])
async def test_what_a_tool_was_given_is_known_again_even_if_it_is_short(path: str, value: str, raises: bool) -> None:
    recorder = Given()
    model = talk(then("echo", text=f"$private{{CALL:{path}}}"))
    [_, output], seen = await run_through(model, [returns(RECORD, private=tuple(RECORD)), recorder.echo(raises)])
    assert recorder.values == [value]
    assert f":{path}}}" in output.text
    assert not re.search(rf"\b{value}\b", seen)


async def test_a_refusal_does_not_repeat_the_number_it_refuses() -> None:
    recorder = Given()
    model = talk(then("put", rows="$private{CALL:salary}", count=["$private{CALL:age}"]))
    [_, output], seen = await run_through(model, [returns(RECORD, private=tuple(RECORD)), recorder.rows()])
    assert (output.code, recorder.values) == ("bad_arguments", [])
    assert "1234567" not in seen
    assert not re.search(r"\b107\b", seen)


async def test_a_short_value_that_no_tool_was_given_is_left_where_it_is_found_by_chance() -> None:
    model = talk(then("other"))
    [_, output], _ = await run_through(model, [returns(RECORD, private=tuple(RECORD)), returns("Ann is 107", "other")])
    assert output.text == "Ann is 107"


def test_a_short_value_is_no_piece_of_a_word_or_a_number() -> None:
    mask = PlaceholderMask(3, is_apart=True)
    mask.add("c", {"n": "Ann", "p": 107})
    assert mask.mask_text("Anna planned 1070, user107 and Ann7") == (
        "Anna planned 1070, user$private{c:p} and $private{c:n}7"
    )


def test_the_rule_says_what_to_do_with_stand_ins() -> None:
    assert "$private{call:path}" in PRIVACY_RULE
    assert "Never ask" in PRIVACY_RULE
