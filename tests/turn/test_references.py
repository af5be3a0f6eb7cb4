"""Passing results on: a reference in the arguments of a later call becomes what it refers to, for the tool alone."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn import Chat, ToolError, tool
from everturn.app import App
from everturn.calls import references
from everturn.calls.output import OutputLimits
from everturn.calls.references import REFERENCES_RULE, resolve_references, types_at_path
from everturn.core.events import CallStarted
from everturn.models.registry import get_model
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.provider import Call, Provider, Say
from tests.helpers.tool_results import Given, Peek, call_ids, everything, outputs, returns, run_through, talk, then

SHORT = OutputLimits(output=200)


async def use(value: object, text: str, **more: Any) -> Any:
    """What a tool was given for a text in which `CALL` is the call that returned the value."""
    recorder = Given()
    results, _ = await run_through(talk(then("use", text=text)), [returns(value), recorder.text(**more)], limits=SHORT)
    return recorder.values[0] if recorder.values else results[-1]


async def refused(value: object, text: str, **more: Any) -> str:
    output = await use(value, text, **more)
    assert output.code == "bad_arguments"
    return output.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ref{CALL}", "0123456789"),
        ("<$ref{CALL}>", "<0123456789>"),
        ("$ref{CALL}$ref{CALL:0:1}", "01234567890"),
        ("$ref{CALL:2:3}", "234"),
        ("$ref{CALL:8:100}", "89"),
        ("$ref{CALL:10:1}", ""),
        ("$$ref{a}", "$ref{a}"),
        ("$$ref{CALL:0:1}$ref{CALL:0:1}"[1:], "00"),
        ("a $$ref{ and $$private{x} b", "a $ref{ and $private{x} b"),
        ("$$$ref{a}", "$$ref{a}"),
        ("$ {ref} $refs ref{CALL", "$ {ref} $refs ref{"),
    ],
)
async def test_a_reference_is_the_text_of_a_result_and_two_dollars_are_none(text: str, expected: str) -> None:
    assert (await use("0123456789", text)).startswith(expected)
    assert "CALL" in text or await use("0123456789", text) == expected


async def test_what_was_cut_is_passed_on_whole() -> None:
    whole = "".join(f"{n}," for n in range(1_000))
    assert await use(whole, "$ref{CALL}") == whole
    assert await use(whole, "$ref{CALL:500:20}") == whole[500:520]


async def test_what_comes_out_of_a_result_is_not_looked_through_again() -> None:
    hostile = "$ref{CALL} $private{CALL:a} $$ref{"
    assert await use(hostile, "$ref{CALL}") == hostile
    assert await use(hostile, "<$ref{CALL}>") == f"<{hostile}>"


async def test_what_is_written_down_hashed_and_sent_keeps_the_reference() -> None:
    model = talk(then("use", text="$ref{CALL}!"))
    async with Chat(model, tools=[returns("body" * 10), Given().text()]) as chat:
        await (await chat.send("please"))
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
        assert (await everything(chat, model)).count("bodybody!") == 0
    [_, started] = [event for event in events if isinstance(event, CallStarted)]
    assert started.arguments == f'{{"text":"$ref{{{call_ids(model.requests[-1])[0]}}}!"}}'


async def test_a_person_is_asked_about_the_reference_and_the_tool_is_given_the_text() -> None:
    recorder, model = Given(), talk(then("use", text="$ref{CALL}"))
    async with Chat(model, tools=[returns("body"), recorder.text(approval="always")]) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if type(event).__name__ == "TurnSuspended":
                [gate] = await chat.gates()
                assert "$ref{" in gate.arguments
                await chat.answer(gate, allow="once")
    assert recorder.values == ["body"]


# Where no text is wanted ------------------------------------------------------------------------------------------


async def test_where_a_tool_takes_data_the_text_is_read_as_json_and_elsewhere_it_stays_text() -> None:
    recorder = Given()
    model = talk(then("put", rows="$ref{CALL}", note="$ref{CALL}"))
    await run_through(model, [returns([{"a": 1}]), recorder.rows()])
    assert recorder.values == [([{"a": 1}], '[{"a":1}]', None)]


async def test_references_are_found_however_deep_they_stand() -> None:
    recorder = Given()
    model = talk(then("put", rows=[{"a": "$ref{CALL:1:2}"}, {"b": 2}], count="$ref{CALL:0:1}"))
    await run_through(model, [returns("1234"), recorder.rows()])
    assert recorder.values == [([{"a": 23}, {"b": 2}], "", 1)]


async def test_text_that_is_no_json_is_refused_where_data_is_wanted() -> None:
    recorder = Given()
    [_, output], _ = await run_through(talk(then("put", rows="$ref{CALL}")), [returns("words"), recorder.rows()])
    assert output.text.startswith("rows takes array, and what $ref{")
    assert recorder.values == []


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        (("a",), {"string"}),
        (("b", 0), {"integer"}),
        (("b", 5), {"object", "null"}),
        (("b", 5, "x", "x", "y"), {"number"}),
        (("c", "anything"), {"boolean", "array"}),
        (("d",), {"string"}),
        (("e",), set()),
        (("nowhere", "at", 1), set()),
    ],
)
def test_a_schema_says_what_it_takes_at_a_place(path: tuple[str | int, ...], kinds: set[str]) -> None:
    schema = {
        "properties": {
            "a": {"type": "string"},
            "b": {"prefixItems": [{"type": "integer"}], "items": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
            "c": {"additionalProperties": {"type": ["boolean", "array"]}},
            "d": {"enum": ["x", 1]},
            "e": {},
        },
        "$defs": {"N": {"type": "object", "properties": {"x": {"$ref": "#/$defs/N"}, "y": {"type": "number"}}}},
    }
    assert types_at_path(schema, path) == kinds


def test_a_schema_that_goes_in_circles_is_looked_at_once() -> None:
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}}
    assert types_at_path(circle, ("x",)) == set()


# What leads nowhere -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("$ref{nobody}", "there is no result 'nobody' to refer to; there are: $ref{"),
        ("$ref{CALL:3}", "is not a reference; it is $ref{call} or $ref{call:start:length}"),
        ("$ref{CALL:-1:3}", "is not a reference"),
        ("$ref{CALL:5:1}", "begins after the end; the whole text has 4 characters"),
        ("$ref{CALL", "$ref{ begins a reference, $ref{call}; for the plain text write $$ref{"),
        ("my %h; $ref{$key}", "for the plain text $ref{ write $$ref{"),
        ("$private{CALL:a}", "there are no private values of a call"),
        ("$private{", "$private{ begins a reference"),
        ("$ref{CALL}" * 101, "there are 101 references in this call; at most 100"),
    ],
)
async def test_a_reference_that_leads_nowhere_is_refused_and_says_what_there_is(text: str, says: str) -> None:
    assert says in await refused("body", text)


async def test_calls_of_the_same_step_and_calls_that_never_ran_are_not_there() -> None:
    recorder = Given()

    def both(request: Any) -> Any:
        turn = call_ids(request)[0].rsplit("-", 2)[0]
        texts = [f"$ref{{{turn}-2-1}}", f"$ref{{{turn}-2-3}}", f"$ref{{{turn}-1-2}}"]
        return calls(call("look"), *(call("use", text=text) for text in texts))

    model = ScriptedModel(calls(call("look"), call("nobody")), both, say("Done."))
    app = App(model, tools=[returns("body"), recorder.text()], limits=OutputLimits(parallel=1))  # one after the other
    async with Chat(model, app=app) as chat:
        await (await chat.send("please"))
        found = await outputs(chat)
    assert recorder.values == []
    assert [output.code for output in found] == ["", "unknown_tool", "", *["bad_arguments"] * 3]


async def test_a_call_that_failed_while_it_ran_can_be_referred_to() -> None:
    assert await use(ValueError("it fell"), "$ref{CALL}") == "ValueError: it fell"


async def test_another_branch_has_other_results() -> None:
    recorder = Given()
    model = ScriptedModel(calls(call("look")), say("Seen."), say("Done."))
    async with Chat(model, tools=[returns("body"), recorder.text()]) as chat:
        await (await chat.send("please"))
        name = call_ids(model.requests[-1])[0]
        other = ScriptedModel(calls(call("use", text=f"$ref{{{name}}}")), say("Done."), name="other")
        await (await chat.insert((await chat.messages())[0], "something else", model=other))
        [last] = await outputs(chat)
    assert "there is none yet" in last.text
    assert recorder.values == []


@pytest.mark.parametrize("path", ["$ref{CALL}", "a/$ref{CALL:0:1}", "$private{CALL:x}"])
async def test_what_a_call_is_done_to_is_written_out(path: str) -> None:
    text = await refused("body", path, subjects={"text": "path"})
    assert text.startswith("text is matched by permission rules")
    assert text.endswith("write the value itself")


async def test_what_references_come_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MAX_INSERTED_LENGTH", 10)
    assert "more than 10 characters" in await refused("x" * 11, "$ref{CALL}")
    assert "more than 10 characters" in await refused("x" * 4, "$ref{CALL}" * 3)
    assert await use("x" * 100, "$ref{CALL:0:10}") == "x" * 10


# At what price ----------------------------------------------------------------------------------------------------


async def test_passing_five_megabytes_on_adds_less_than_fifty_tokens_to_the_next_prompt() -> None:
    recorder = Given()

    def pass_on(body: Any) -> list[Any]:
        [note] = [m["content"] for m in body["messages"] if m["role"] == "tool"]
        [name] = set(re.findall(r"\$ref\{[^{}]+\}", note))
        return [Call("use", msgspec.json.encode({"text": name}).decode())]

    async with Provider() as provider:
        provider.script("small", [[Call("look", "{}")], pass_on, [Say("Done.")]])
        small = get_model("compatible:small", base_url=f"{provider.url}/v1")
        async with Chat(small, tools=[returns("0123456789" * 500_000), recorder.text()]) as chat:
            assert (await (await chat.send("please"))).text == "Done."
        assert provider.refusals == []
        before, after = (sum(map(len, words(seen.body["messages"]))) for seen in provider.seen[1:])
    assert recorder.values == ["0123456789" * 500_000]
    assert before > 50_000
    assert 0 < (after - before) / 4 < 50  # the call, its ids and its result included


def words(value: Any) -> list[str]:
    """All that is said in a JSON value, without the form it is said in."""
    if isinstance(value, dict):
        value = list(value.values())
    return [value] if isinstance(value, str) else [word for item in value or () for word in words(item)]


async def test_arguments_without_references_are_handed_on_as_they_are() -> None:
    model, peek = ScriptedModel(say("Done.")), Peek()
    async with Chat(model, app=App(model, plugins=[peek])) as chat:
        await (await chat.send("please"))
        for arguments in ({}, {"path": "a", "rows": [{"n": 1}]}, {"text": "costs $5 {now}"}):
            assert await resolve_references(peek.run, returns("").spec, arguments) is arguments


# Later, and elsewhere ---------------------------------------------------------------------------------------------


async def test_a_reference_leads_to_the_same_text_in_a_later_turn_of_another_process(tmp_path: Path) -> None:
    whole, path, recorder = "word " * 1_000, str(tmp_path / "talks.db"), Given()
    first = ScriptedModel(calls(call("look")), say("Seen."))
    app = App(first, tools=[returns(whole)], store=path, limits=SHORT)
    async with Chat(first, session="talk", app=app) as chat:
        await (await chat.send("please"))
    second = ScriptedModel(say(""), say(""), then("use", text="$ref{CALL}"), say("Done."))
    tools = [returns("other words"), recorder.text()]
    async with Chat(second, session="talk", app=App(second, tools=tools, store=path, limits=SHORT)) as chat:
        await (await chat.send("pass it on"))
    assert recorder.values == [whole]


async def test_a_call_with_a_reference_goes_on_in_another_process_after_a_gate(tmp_path: Path) -> None:
    path, recorder = str(tmp_path / "talks.db"), Given()
    tools = [returns("word " * 1_000), recorder.text(approval="always")]
    for answers in (False, True):
        model = talk(then("use", text="$ref{CALL:5:4}"))
        app = App(model, tools=tools, store=path, limits=SHORT)
        async with Chat(model, session="talk", app=app) as chat:
            if not answers:
                async for event in await chat.send("please"):
                    if type(event).__name__ == "TurnSuspended":
                        break
            else:
                [gate] = await chat.gates()
                await chat.answer(gate, allow="once")
                async with asyncio.timeout(5):
                    while not recorder.values:  # noqa: ASYNC110 - the tool rings no bell
                        await asyncio.sleep(0)
    assert recorder.values == ["word"]


def test_the_rule_for_the_prompt_is_one_sentence() -> None:
    assert REFERENCES_RULE.count(". ") == 0
    assert "$ref{call:start:length}" in REFERENCES_RULE


# Arguments ------------------------------------------------------------------------------------------------------------

MAIL = {"to": ["ann", "bob"], "body": "a long $ref{x} text", "options": {"copies": 2}}


async def argument(text: str, **more: Any) -> Any:
    """What a tool was given for a text in which `CALL` is a call that was made with the arguments of a mail."""

    @tool(read_only=True)
    async def mail(to: list[str], body: str, options: dict[str, int]) -> str:
        """Send a mail."""
        raise ToolError("the server is away")

    recorder = Given()
    model = ScriptedModel(calls(call("mail", **MAIL)), then("use", text=text), say("Done."))
    results, _ = await run_through(model, [mail, recorder.text(**more)])
    return recorder.values[0] if recorder.values else results[-1].text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ref{CALL.arguments.body}", MAIL["body"]),
        ("<$ref{CALL.arguments.body:2:4}>", "<long>"),
        ("$ref{CALL.arguments.to}", '["ann","bob"]'),
        ("$ref{CALL.arguments.to.1}", "bob"),
        ("$ref{CALL.arguments.options.copies}", "2"),
    ],
)
async def test_a_reference_is_an_argument_of_an_earlier_call_whatever_came_of_it(text: str, expected: str) -> None:
    assert await argument(text) == expected
    assert msgspec.json.decode(await argument("$ref{CALL.arguments}")) == MAIL


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$ref{CALL.arguments.bdy}", "was made without an argument 'bdy'; there are: body, options, to"),
        ("$ref{CALL.arguments.to.7}", "was made without an argument 'to.7'"),
        ("$ref{CALL.arguments.body.x}", "was made without an argument 'body.x'"),
        ("$ref{CALL.argumentsx}", "there is no result"),
        ("$ref{other.arguments.body}", "there is no result 'other.arguments.body' to refer to"),
    ],
)
async def test_an_argument_that_was_not_given_is_refused_with_those_that_were(text: str, reason: str) -> None:
    assert reason in await argument(text)


async def test_an_argument_that_says_what_is_done_cannot_be_a_reference_to_an_argument() -> None:
    assert "write the value itself" in await argument("$ref{CALL.arguments.body}", subjects={"text": "path"})
