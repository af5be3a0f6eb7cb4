"""The guide on tool formats, and what other pages say of manual calls: what they claim beside their examples."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, TurnError, get_model, manual, tool
from everturn.core.hooks import StepContext, Suspend
from everturn.core.parts import ToolPart
from everturn.errors import ConfigError, GateClosed, HashMismatch
from everturn.events import TurnSuspended
from everturn.models import PromptedModel
from everturn.models.prompted import TOOL_FORMATS, DecodingConstraint
from everturn.models.prompted.tool_format import MAX_CALLS
from everturn.models.vendors import VENDORS
from everturn.plugins import SUSPEND
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.provider import Provider, Say, Status

GUIDE = (Path(__file__).parent.parent.parent / "docs/guides/prompted-tool-calling.md").read_text(encoding="utf-8")
LOOK = '{"tool_calls": [{"name": "look", "arguments": {"at": "it"}}]}'


@tool(read_only=True)
async def look(at: str) -> str:
    """Look."""
    return f"saw {at}"


@tool(read_only=True)
async def smell() -> str:
    """Smell."""
    return "roses"


def calls_of(result: Any) -> list[ToolPart]:
    return [part for message in result.messages for part in message.parts if isinstance(part, ToolPart)]


async def capture_request(way: str, binds: DecodingConstraint = "", **params: Any) -> Any:
    """The request as a model gets it that is told of two tools."""
    model = ScriptedModel(say("Well."))
    async with Chat(PromptedModel(model, way, binds), tools=[look, smell]) as chat:
        await (await chat.send("Go", params=params))
    return model.requests[0]


# Choosing one ------------------------------------------------------------------------------------------------------


def test_the_table_has_every_tool_format() -> None:
    table = GUIDE.split("## The three formats")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)[1:4] == list(TOOL_FORMATS)


async def test_any_model_found_by_name_takes_a_tool_format_for_one_turn() -> None:
    async with Provider() as provider:
        provider.script("m", [[Say(LOOK)], [Say("Seen.")]], sequence=True)
        async with Chat(get_model("m", base_url=f"{provider.url}/v1"), tools=[look]) as chat:
            result = await (await chat.send("Look", params={"tool_format": "json"}))
            await (await chat.send("And now?"))
        assert [tool_call.state for tool_call in calls_of(result)] == ["completed"]
        assert ["tools" in seen.body for seen in provider.seen] == [False, False, True]


async def test_a_refusal_of_tools_says_which_parameter_helps() -> None:
    async with Provider() as provider:
        provider.script("m", [[Status(400, '{"error": "m does not support tools"}')]])
        async with Chat(get_model("ollama:m", base_url=provider.url), tools=[look]) as chat:
            with pytest.raises(TurnError, match=re.escape('params={"tool_format": "json"}')):
                await (await chat.send("Look"))


async def test_a_tool_format_that_does_not_exist_is_refused_when_the_model_is_made_or_fails_its_turn() -> None:
    with pytest.raises(ConfigError, match="native, json, xml, blocks"):
        PromptedModel(ScriptedModel(), "yaml")
    async with Chat(PromptedModel(ScriptedModel()), tools=[look]) as chat:
        with pytest.raises(TurnError, match="native, json, xml, blocks") as failed:
            await (await chat.send("Go", params={"tool_format": "yaml"}))
    assert failed.value.kind == "request"


# What is a call ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("indent", "is_call"), [(" " * 3, True), (" " * 4, False), ("\t", False)])
async def test_a_call_may_be_indented_by_three_blanks(indent: str, is_call: bool) -> None:
    model = ScriptedModel(say(f"Well:\n{indent}{LOOK}"), say("Seen."))
    async with Chat(PromptedModel(model), tools=[look]) as chat:
        assert bool(calls_of(await (await chat.send("Look")))) is is_call


async def test_of_a_list_that_was_not_closed_no_call_runs_and_the_model_is_told() -> None:
    model = ScriptedModel(say(LOOK.removesuffix("]}")), say("I see."))
    async with Chat(PromptedModel(model), tools=[look]) as chat:
        (tool_call,) = calls_of(await (await chat.send("Look")))
    assert (tool_call.state, tool_call.used) == ("failed", "")
    feedback = model.requests[-1].messages[-1].text
    assert "not one complete JSON object" in feedback
    assert '"error"' in feedback


async def test_calls_that_a_model_makes_natively_all_the_same_run_too() -> None:
    async with Chat(PromptedModel(ScriptedModel(calls(call("smell")), say("Nice."))), tools=[smell]) as chat:
        assert [tool_call.state for tool_call in calls_of(await (await chat.send("Smell")))] == ["completed"]


async def test_gates_are_the_same_and_a_denial_is_reported_as_rejected() -> None:
    @tool(approval="always")
    async def pay() -> str:
        """Pay."""
        return "paid"

    model = ScriptedModel(say('{"tool_calls": [{"name": "pay", "arguments": {}}]}'), say("Oh."))
    async with Chat(PromptedModel(model), tools=[pay]) as chat:
        turn = await chat.send("Pay")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.answer((await chat.gates())[0], deny="not today")
    feedback = model.requests[-1].messages[-1].text
    assert '"rejected":"' in feedback
    assert "not today" in feedback


# Binding -----------------------------------------------------------------------------------------------------------


def test_the_table_of_what_servers_bind_is_the_one_in_the_code() -> None:
    binds = {p.vendor: p.decoding_constraint for p in VENDORS.values() if p.decoding_constraint}
    listed = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|$", GUIDE, re.MULTILINE)
    assert {vendor: kind for kind, vendors, _ in listed for vendor in re.findall(r"\w+", vendors)} == binds


async def test_what_is_bound_is_sent_as_a_schema_or_a_grammar_and_a_turn_may_say_no() -> None:
    assert [list((await capture_request(way, "grammar")).params) for way in TOOL_FORMATS] == [
        ["grammar"],
        ["grammar"],
        ["grammar"],
    ]
    assert [list((await capture_request(way, "schema")).params) for way in TOOL_FORMATS] == [["output_schema"], [], []]
    assert [
        list((await capture_request(way, "grammar", constrained_decoding=False)).params) for way in TOOL_FORMATS
    ] == [
        [],
        [],
        [],
    ]


async def test_the_most_calls_of_a_bound_answer_are_those_on_the_page() -> None:
    assert f"at most {MAX_CALLS} calls" in " ".join(GUIDE.split())
    bound = (await capture_request("json", "schema")).params["output_schema"]
    assert f"'maxItems': {MAX_CALLS}" in repr(bound)
    single = (await capture_request("json", "schema", parallel_tool_calls=False)).params["output_schema"]
    assert "'maxItems': 1}" in repr(single)


async def test_a_choice_is_put_into_words_and_where_it_is_bound_it_holds() -> None:
    assert "you must call the tool smell" in (await capture_request("xml", tool_choice="smell")).system
    schema = (await capture_request("json", "schema", tool_choice="smell")).params["output_schema"]
    assert ("'smell'" in repr(schema), "'look'" in repr(schema), "answer" in repr(schema)) == (True, False, False)


async def test_a_schema_for_the_answer_is_held_to_in_json_and_told_where_nothing_is_bound() -> None:
    wanted = {"type": "object", "title": "Invoice"}
    bound = await capture_request("json", "schema", output_schema=wanted)
    assert ("Invoice" in repr(bound.params), "Invoice" in bound.system) == (True, False)
    for way in TOOL_FORMATS:
        unbound = await capture_request(way, output_schema=wanted)
        assert ("Invoice" in repr(unbound.params), "Invoice" in unbound.system) == (False, True)


# By hand -----------------------------------------------------------------------------------------------------------


async def manual_chat(store: MemoryStore | None = None, *tools: Any) -> Chat:
    model = ScriptedModel(calls(call("smell")), say("Nice."))
    return Chat(model, tools=tools or [manual(smell)], store=store, session="s")


async def test_a_result_is_taken_by_another_process_once_and_only_with_the_hash_of_its_gate() -> None:
    store = MemoryStore()
    async with await manual_chat(store) as chat:
        turn = await chat.send("Smell")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    async with await manual_chat(store) as chat:
        (gate,) = await chat.gates()
        with pytest.raises(HashMismatch):
            await chat.answer(replace(gate, hash="0" * 64), result="lilies")
        await chat.answer(gate, result="lilies")
        with pytest.raises(GateClosed):
            await chat.answer(gate, result="tulips")
        (tool_call,) = calls_of(await chat.turn(turn.id))
    assert tool_call.output is not None
    assert (tool_call.state, tool_call.output.text, tool_call.output.title) == ("completed", "lilies", "done by hand")


async def test_whoever_allows_what_is_done_manual_has_not_done_it() -> None:
    async with await manual_chat() as chat:
        turn = await chat.send("Smell")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await chat.answer((await chat.gates())[0], allow="once")
        (tool_call,) = calls_of(await turn)
    assert tool_call.state == "failed"
    assert tool_call.output is not None
    assert "run by a person" in tool_call.output.text


async def test_any_gate_takes_a_result_and_then_the_tool_does_not_run() -> None:
    ran: list[str] = []

    @tool(approval="always", name="smell")
    async def asks() -> str:
        ran.append("smell")
        return "roses"

    async with await manual_chat(None, asks) as chat:
        turn = await chat.send("Smell")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                both: list[dict[str, Any]] = [{"allow": "once"}, {"deny": "no"}, {"arguments": {}}]
                for wrong in both:
                    with pytest.raises(ConfigError):
                        await turn.answer(gate, result="lilies", **wrong)
                await turn.answer(gate, result="lilies")
        (tool_call,) = calls_of(await turn)
    assert (tool_call.state, ran) == ("completed", [])


async def test_the_question_of_a_plugin_is_answered_in_words() -> None:
    class Asks:
        name = "asks"

        async def on_after_request(self, ctx: StepContext) -> Suspend | None:
            resolution = await ctx.ask("Which colour?")
            if resolution is None:
                return SUSPEND
            answers.append(resolution.result)
            return None

    answers: list[str | None] = []
    async with Chat(ScriptedModel(say("Hm.")), plugins=[Asks()]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.answer((await chat.gates())[0], result="blue")
        await turn
    assert answers == ["blue"]


async def test_a_tool_that_is_run_manual_is_the_same_to_the_model() -> None:
    model = ScriptedModel(say("Hi."))
    async with Chat(model, tools=[manual(smell)]) as chat:
        await (await chat.send("Hello"))
    assert model.requests[0].tools == [replace(smell.spec, manual=True)]
