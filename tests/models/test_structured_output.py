"""Structured output: how a schema is written for a vendor, which mode is taken, and what is read of the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter
from tests.models.output_types import LEAVES, Cat, Chain, Tree, Wide

from everturn import Chat, tool
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk
from everturn.core.parts import Opaque, ReasoningPart, TextPart, ToolPart
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import ModelError
from everturn.models.registry import get_model
from everturn.models.structured_output import OutputReader, plan_output, read_output
from everturn.models.structured_output.json_text import JsonTextFilter
from everturn.models.structured_output.plan import OUTPUT_TOOL, as_object_schema
from everturn.models.structured_output.schema_facts import SchemaSize
from everturn.models.structured_output.schema_writer import SchemaNotSupported, write_schema
from everturn.models.structured_output.subsets import FORMAT_SUBSETS, SUBSETS
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Call, Provider, Say, Think

Json = dict[str, Any]
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {}}, read_only=True)
CITY: Json = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}


def schema_of(kind: Any) -> Json:
    return TypeAdapter(kind).json_schema()


def output_request(schema: Json, tools: Sequence[ToolSpec] = (), **params: Any) -> ModelRequest:
    message = RequestMessage("user", (TextPart("Hi."),))
    return ModelRequest("m", "Be brief.", [message], list(tools), {"output_schema": schema, **params})


def written(schema: Json, subset: str) -> Json:
    return write_schema(schema, SUBSETS[subset])


# Schemas ----------------------------------------------------------------------------------------------------------------


def test_openai_gets_closed_objects_that_require_all_they_have() -> None:
    schema = {**CITY, "properties": {**CITY["properties"], "of": {**CITY, "default": None}}, "required": ["name"]}
    closed = {**CITY, "required": ["name", "size"], "additionalProperties": False}
    assert written(schema, "openai") == {
        **closed,
        "properties": {**CITY["properties"], "of": closed},
        "required": ["name", "size", "of"],
    }


@pytest.mark.parametrize(
    ("subset", "bounded"),
    [
        ("openai", {"type": "integer", "minimum": 2, "exclusiveMaximum": 40, "multipleOf": 2}),
        (
            "anthropic",
            {"type": "integer", "description": "(minimum: 2, exclusiveMaximum: 40, multipleOf: 2)"},
        ),
        ("gemini", {"type": "integer", "minimum": 2, "maximum": 39, "description": "(multipleOf: 2)"}),
        ("llamacpp", {"type": "integer", "minimum": 2, "exclusiveMaximum": 40, "description": "(multipleOf: 2)"}),
    ],
)
def test_a_bound_that_a_vendor_does_not_know_is_told_in_words(subset: str, bounded: Json) -> None:
    schema = {"type": "integer", "minimum": 2, "exclusiveMaximum": 40, "multipleOf": 2}
    assert written(schema, subset) == bounded


def test_what_was_said_of_a_value_stays_in_front_of_what_could_not_be_said_otherwise() -> None:
    schema = {"type": "string", "description": "A name.", "minLength": 1, "default": "x", "title": "Name"}
    assert written(schema, "openai") == {
        "title": "Name",
        "type": "string",
        "description": 'A name.\n(minLength: 1, default: "x")',
    }


def test_a_pattern_is_sent_only_where_it_can_be_compiled() -> None:
    assert written({"type": "string", "pattern": "^[a-z]+$"}, "openai")["pattern"] == "^[a-z]+$"
    assert "pattern" not in written({"type": "string", "pattern": "^(?!x)"}, "openai")
    assert "pattern" not in written({"type": "string", "pattern": "^[a-z]+$"}, "llamacpp")


def test_a_reference_stands_alone_and_a_description_beside_it_is_kept() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "The first."}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string"}},
    }
    properties = written(schema, "gemini")["properties"]
    assert properties == {"a": {"type": "string", "description": "The first."}, "b": {"$ref": "#/$defs/A"}}


def test_definitions_are_written_where_they_are_used_for_a_grammar() -> None:
    schema = {**CITY, "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    assert written(schema, "llamacpp") == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_tuple_is_told_in_words_where_places_have_no_types() -> None:
    assert written(schema_of(tuple[int, str]), "openai") == {
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "description": 'The items are, in this order: {"type":"integer"}, {"type":"string"}',
    }
    assert written(schema_of(tuple[int, str]), "gemini")["prefixItems"] == [{"type": "integer"}, {"type": "string"}]


def test_values_of_several_types_are_a_choice_and_gemini_gets_no_enum_of_truth() -> None:
    mixed = {"enum": ["a", 1, True, None]}
    assert written(mixed, "openai")["anyOf"] == [
        {"type": "string", "enum": ["a"]},
        {"type": "integer", "enum": [1]},
        {"type": "boolean", "enum": [True]},
        {"type": "null"},
    ]
    assert written(mixed, "gemini")["anyOf"][2] == {"type": "boolean"}


NOT_THERE: list[tuple[Any, str, str]] = [
    (dict[str, int], "openai", "keys are not known"),
    (dict[str, int], "anthropic", "keys are not known"),
    (Tree, "anthropic", "Tree refers to itself"),
    (Tree, "llamacpp", "Tree refers to itself"),
    (Chain, "gemini", "Chain refers to itself in a property that is required"),
    (list[Any], "openai", "leaves the type of a value open"),
    (LEAVES["14 deep"][0], "openai", "it has 14 depth, and 10 are allowed"),
    (LEAVES["huge enum"][0], "openai", "it has 1200 enum values, and 1000 are allowed"),
]


@pytest.mark.parametrize(("kind", "subset", "why"), NOT_THERE)
def test_what_a_subset_cannot_say_is_said(kind: Any, subset: str, why: str) -> None:
    with pytest.raises(SchemaNotSupported, match=why):
        written(as_object_schema(schema_of(kind))[0], subset)


@pytest.mark.parametrize(("kind", "subset"), [(Tree, "openai"), (Tree, "gemini"), (Chain, "openai"), (Chain, "vllm")])
def test_recursion_is_kept_where_it_is_allowed(kind: Any, subset: str) -> None:
    assert f'"$ref":"#/$defs/{kind.__name__}"' in msgspec.json.encode(
        written(as_object_schema(schema_of(kind))[0], subset)
    ).decode().replace(" ", "")


def test_too_many_options_are_required_instead() -> None:
    schema: Json = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(25)}}
    few: Json = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(24)}}
    assert SchemaSize(written(few, "anthropic")).optional == 24
    assert SchemaSize(written(schema, "anthropic")).optional == 0


def test_every_format_has_a_subset_and_every_profile_names_one_that_exists() -> None:
    named = {change.get("output_subset", "") for vendor in VENDORS.values() for change in vendor.models.values()}
    named |= {vendor.output_subset for vendor in VENDORS.values()}
    assert {*named - {""}, *FORMAT_SUBSETS.values()} == set(SUBSETS)


def test_a_schema_is_written_the_same_every_time() -> None:
    first, again = (msgspec.json.encode(written(schema_of(Wide), "openai")) for _ in range(2))
    assert first == again


# Modes --------------------------------------------------------------------------------------------------------------------

MODES: list[tuple[str, str, Any, bool, str]] = [
    ("openai", "gpt-5.2", Cat, True, "native"),
    ("openai", "gpt-5.2", dict[str, int], False, "tool"),
    ("openai", "gpt-3.5-turbo", Cat, False, "tool"),
    ("openai-chat", "gpt-4.1", Tree, False, "native"),
    ("openai-chat", "gpt-4-turbo", Cat, False, "tool"),
    ("anthropic", "claude-opus-5", Cat, True, "native"),
    ("anthropic", "claude-opus-5", Tree, False, "tool"),
    ("anthropic", "claude-opus-5", Wide, False, "native"),
    ("anthropic", "claude-3-5-sonnet", Cat, False, "tool"),
    ("anthropic", "claude-sonnet-4-5", Cat, False, "native"),
    ("gemini", "gemini-3-pro", Cat, True, "native"),
    ("gemini", "gemini-2.5-flash", Cat, True, "tool"),
    ("gemini", "gemini-2.5-flash", dict[str, int], False, "native"),
    ("gemini", "gemini-3-pro", Chain, False, "tool"),
    ("ollama", "qwen3", Cat, False, "native"),
    ("ollama", "qwen3", Cat, True, "tool"),
    ("ollama", "qwen3", Tree, False, "prompted"),
    ("deepseek", "deepseek-chat", Cat, False, "tool"),
    ("groq", "openai/gpt-oss-20b", Cat, False, "tool"),
    ("mistral", "mistral-large", Cat, True, "tool"),
    ("mistral", "mistral-large", Cat, False, "native"),
    ("vllm", "m", Tree, False, "native"),
]


@pytest.mark.parametrize(("vendor", "model", "kind", "has_tools", "mode"), MODES)
def test_the_first_mode_that_is_possible_is_taken(
    vendor: str, model: str, kind: Any, has_tools: bool, mode: str
) -> None:
    plan = plan_output(output_request(schema_of(kind), [LOOK] if has_tools else []), VENDORS[vendor].for_model(model))
    assert plan.mode == mode
    assert bool(plan.reason) == (mode != "native")
    assert ("output_schema" in plan.request.params) == (mode == "native")


def test_a_model_must_answer_with_the_output_tool_or_call_another() -> None:
    profile = VENDORS["deepseek"]
    alone, beside = (plan_output(output_request(CITY, tools), profile).request for tools in ([], [LOOK]))
    assert [tool.name for tool in beside.tools] == ["look", OUTPUT_TOOL]
    assert (alone.params["tool_choice"], beside.params["tool_choice"]) == (OUTPUT_TOOL, "required")
    assert alone.system == beside.system == "Be brief."


@pytest.mark.parametrize(("vendor", "params"), [("kimi", {}), ("anthropic", {"thinking": {"type": "enabled"}})])
def test_where_no_call_can_be_forced_the_model_is_told_to_make_one(vendor: str, params: Json) -> None:
    request = plan_output(output_request(CITY, [LOOK], output_mode="tool", **params), VENDORS[vendor]).request
    assert "tool_choice" not in request.params
    assert f"calling the tool {OUTPUT_TOOL}" in request.system


def test_an_answer_without_calls_is_one_with_the_output_tool_alone() -> None:
    request = output_request(CITY, [LOOK], tool_choice="none", output_mode="tool")
    assert plan_output(request, VENDORS["deepseek"]).request.params["tool_choice"] == OUTPUT_TOOL
    assert plan_output(output_request(CITY, [LOOK], tool_choice="none"), VENDORS["kimi"]).mode == "prompted"


@pytest.mark.parametrize("choice", ["required", "look"])
def test_a_step_that_must_be_a_call_has_no_schema(choice: str) -> None:
    for vendor in VENDORS.values():
        request = plan_output(output_request(CITY, [LOOK], tool_choice=choice), vendor).request
        assert (request.tools, request.params) == ([LOOK], {"tool_choice": choice})


def test_a_mode_that_is_named_is_taken_or_refused() -> None:
    for mode in ("tool", "prompted"):
        assert plan_output(output_request(CITY, output_mode=mode), VENDORS["openai"]).mode == mode
    with pytest.raises(ModelError, match=r"output_mode='native' of openai: it has an object whose keys"):
        plan_output(output_request(schema_of(dict[str, int]), output_mode="native"), VENDORS["openai"])
    with pytest.raises(ModelError, match="there is no output_mode 'strict'"):
        plan_output(output_request(CITY, output_mode="strict"), VENDORS["openai"])
    with pytest.raises(ModelError, match="output_schema must be a JSON Schema"):
        plan_output(ModelRequest("m", "", [], [], {"output_schema": "city"}), VENDORS["openai"])


def test_json_mode_goes_with_the_prompt_where_there_are_no_tools() -> None:
    chat = plan_output(output_request(CITY, output_mode="prompted"), VENDORS["deepseek"]).request
    assert chat.params == {"response_format": {"type": "json_object"}}
    assert msgspec.json.encode(CITY, order="sorted").decode() in chat.system
    assert plan_output(output_request(CITY, [LOOK], output_mode="prompted"), VENDORS["deepseek"]).request.params == {}
    request = output_request(CITY, output_mode="prompted", text={"verbosity": "low"})
    assert plan_output(request, VENDORS["openai"]).request.params == {
        "text": {"verbosity": "low", "format": {"type": "json_object"}}
    }


# Reading --------------------------------------------------------------------------------------------------------------------

FOUND: list[tuple[str, str, str]] = [
    ('{"a": 1}', "", '{"a": 1}'),
    ('Here:\n```json\n{"a": "}"}\n```\nBye {"b": 2}.', "", '{"a": "}"}'),
    ("I use {x} for { it.", "", "I use {x} for { it."),
    ('Set {x}: {"a": "\\"}"} and so on', "", '{"a": "\\"}"}'),
    ("{}", "", "{}"),
    ("{ }", "", "{ }"),
    ('{"result": [1, {"a": "]"}]}', "result", '[1, {"a": "]"}]'),
    ('{ "result" : "a \\" } b" }', "result", '"a \\" } b"'),
    ('{"result": -1.5e3}', "result", "-1.5e3"),
    ('{"result":null\n}', "result", "null"),
    ('{"other": 1}', "result", '{"other": 1}'),
    ('{"results": 1}', "result", '{"results": 1}'),
    ('{"result": {}}', "result", "{}"),
    ("no", "result", "no"),
    ('{"a": 1', "", '{"a": 1'),
    ('{"res', "result", '{"res'),
]


@pytest.mark.parametrize(("text", "key", "found"), FOUND)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_json_is_found_however_the_text_is_cut(text: str, key: str, found: str, size: int) -> None:
    reader = JsonTextFilter(key)
    pieces = [reader.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*pieces, reader.end()]) == found


def test_json_is_passed_on_as_it_comes() -> None:
    reader = JsonTextFilter("result")
    assert [reader.feed(piece) for piece in ('{"res', 'ult": [1', ", 2", "]}")] == ["", "[1", ", 2", "]"]


def read_chunks(*chunks: Chunk, key: str = "", tool: str = OUTPUT_TOOL) -> list[Chunk]:
    reader = OutputReader(key, tool)
    return [*reader.feed(chunks), *reader.end()]


CALLED = FinishChunk("tool_calls")


def test_the_arguments_of_the_output_tool_are_the_text_and_nobody_sees_a_call() -> None:
    opaque = OpaqueChunk(Opaque("m", "{}"), "call", 0)
    calls = [CallChunk(0, "", OUTPUT_TOOL, "id"), CallChunk(0, '{"result": [1'), CallChunk(0, ", 2]}"), opaque]
    assert read_chunks(*calls, CALLED, key="result") == [TextChunk("[1"), TextChunk(", 2]"), FinishChunk("stop")]


def test_an_output_without_properties_is_an_object_all_the_same() -> None:
    assert read_chunks(CallChunk(0, "", OUTPUT_TOOL), CALLED) == [TextChunk("{}"), FinishChunk("stop")]


def test_other_calls_stay_calls_and_so_does_the_text_before_them() -> None:
    call = CallChunk(0, "{}", "look")
    assert read_chunks(TextChunk("I look."), call, CALLED) == [TextChunk("I look."), call, CALLED]
    both = read_chunks(CallChunk(0, '{"a": 1}', OUTPUT_TOOL), CallChunk(1, "{}", "look"), CALLED)
    assert both == [TextChunk('{"a": 1}'), CallChunk(1, "{}", "look"), CALLED]


def test_what_a_model_says_before_its_answer_is_reasoning() -> None:
    chunks = read_chunks(TextChunk("So: "), CallChunk(3, '{"a": 1}', OUTPUT_TOOL), TextChunk("Done."), CALLED)
    assert chunks == [ReasoningChunk("So: "), TextChunk('{"a": 1}'), FinishChunk("stop")]


def test_a_second_answer_is_dropped() -> None:
    chunks = read_chunks(CallChunk(0, '{"a": 1}', OUTPUT_TOOL), CallChunk(1, '{"a": 2}', OUTPUT_TOOL), CALLED)
    assert chunks == [TextChunk('{"a": 1}'), FinishChunk("stop")]


def test_a_model_that_writes_its_answer_instead_of_the_call_is_understood() -> None:
    chunks = read_chunks(TextChunk('```\n{"result": 3}\n```'), FinishChunk("stop"), key="result")
    assert chunks == [TextChunk("3"), FinishChunk("stop")]


async def test_what_was_held_back_of_a_broken_stream_is_passed_on() -> None:
    async def batches() -> AsyncGenerator[Sequence[Chunk]]:
        yield [TextChunk("I am sorry")]
        raise ModelError("it broke", kind="truncated")

    seen: list[Chunk] = []

    async def read() -> None:
        async for batch in read_output(OutputReader(), batches()):
            seen.extend(batch)

    with pytest.raises(ModelError, match="it broke"):
        await read()
    assert seen == [TextChunk("I am sorry")]


# Turns --------------------------------------------------------------------------------------------------------------------

BASES = {"openai": "/v1", "openai-chat": "/v1", "anthropic": "/v1", "gemini": "/v1beta", "ollama": ""}
NAMES = {"gemini": "gemini-3-a", "anthropic": "claude-a"}


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("vendor", BASES)
async def test_the_log_of_a_turn_with_an_output_tool_has_plain_json_and_goes_on(vendor: str) -> None:
    async with Provider() as provider:
        name = NAMES.get(vendor, "m")
        final = Call(OUTPUT_TOOL, '{"result": {"a": 1}}', 3)
        steps = [[Think("Hm."), Call("look")], [Think("So."), final], [Say("Ulm.")]]
        provider.script(name, steps, sequence=True)
        model = get_model(f"{vendor}:{name}", base_url=provider.url + BASES[vendor], key="k")
        async with Chat(model, tools=[look]) as chat:
            params = {"output_schema": schema_of(dict[str, int] | None), "output_mode": "tool"}
            result = await (await chat.send("Count.", params=params))
            assert json.loads(result.text) == {"a": 1}
            message = (await chat.messages())[-1]
            assert [part.name for part in message.parts if isinstance(part, ToolPart)] == ["look"]
            assert not any("result" in part.text for part in message.parts if isinstance(part, ReasoningPart))
            assert (await (await chat.send("And where?"))).text == "Ulm."
        assert provider.refusals == []
