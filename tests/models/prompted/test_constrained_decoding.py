"""Where a server can hold a model to a form it does: what it is sent, what the model is told, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from inline_snapshot import snapshot
from tests.models.prompted.parsed_output import hear, pieces_of, prompted_request

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.models.prompted import DecodingConstraint

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
STOP = ToolSpec("stop", "Stop.", {"type": "object", "properties": {}})
HISTORY = [
    RequestMessage("user", (TextPart("Look."),)),
    RequestMessage("assistant", (TextPart("Let me see."), RequestCall("x", "look", '{"path": "a"}'))),
    RequestMessage("tool", (RequestResult("x", "look", "hello"),)),
    RequestMessage("assistant", (RequestCall("y", "stop", "{}"),)),
    RequestMessage("tool", (RequestResult("y", "stop", "done"),)),
    RequestMessage("assistant", (TextPart('It "says" hello.'),)),
    RequestMessage("user", (TextPart("And now?"),)),
]


def request(*messages: RequestMessage, tools: tuple[ToolSpec, ...] = (LOOK, STOP), **params: Any) -> ModelRequest:
    return ModelRequest("m", "Be kind.", list(messages), list(tools), params)


def test_a_server_that_takes_a_schema_gets_one_for_all_of_the_answer() -> None:
    assert prompted_request("json", request(*HISTORY, tools=(STOP,)), "schema").params == snapshot(
        {
            "output_schema": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "answer": {"type": "string"},
                            "tool_calls": {
                                "type": "array",
                                "items": {
                                    "anyOf": [
                                        {
                                            "type": "object",
                                            "properties": {
                                                "name": {"const": "stop"},
                                                "arguments": {"type": "object", "properties": {}},
                                            },
                                            "required": ["name", "arguments"],
                                            "additionalProperties": False,
                                        }
                                    ]
                                },
                                "minItems": 1,
                                "maxItems": 16,
                            },
                        },
                        "required": ["answer"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "tool_calls": {
                                "type": "array",
                                "items": {
                                    "anyOf": [
                                        {
                                            "type": "object",
                                            "properties": {
                                                "name": {"const": "stop"},
                                                "arguments": {"type": "object", "properties": {}},
                                            },
                                            "required": ["name", "arguments"],
                                            "additionalProperties": False,
                                        }
                                    ]
                                },
                                "minItems": 1,
                                "maxItems": 16,
                            }
                        },
                        "required": ["tool_calls"],
                        "additionalProperties": False,
                    },
                ]
            }
        }
    )


def test_a_model_that_is_bound_is_told_so_and_shown_that_it_always_was() -> None:
    prompted = prompted_request("json", request(*HISTORY), "schema")

    assert "All you write is one JSON object" in prompted.system
    assert [json.loads(message.text) for message in prompted.messages if message.role == "assistant"] == snapshot(
        [
            {"answer": "Let me see.", "tool_calls": [{"name": "look", "arguments": {"path": "a"}}]},
            {"tool_calls": [{"name": "stop", "arguments": {}}]},
            {"answer": 'It "says" hello.'},
        ]
    )


def test_an_answer_that_must_fit_a_schema_stands_where_words_would() -> None:
    schema: JsonObject = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    prompted = prompted_request("json", request(HISTORY[0], output_schema=schema), "schema")

    [answered, called] = prompted.params["output_schema"]["anyOf"]
    assert answered["properties"]["answer"] == schema
    assert list(called["properties"]) == ["tool_calls"]
    for size in (1, 4, 99):
        parsed = hear("json", pieces_of('{"answer": {"sum": [1, "}\\""]}}', size), is_bound=True)
        assert (parsed.text, parsed.calls) == ('{"sum": [1, "}\\""]}', [])


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, inner in cast("JsonObject", schema).items():
            yield from [inner] if key == "$ref" else _references(inner)
    elif isinstance(schema, list):
        for inner in cast("list[Any]", schema):
            yield from _references(inner)


def test_what_a_schema_refers_to_is_still_where_it_says() -> None:
    tree: JsonObject = {"type": "object", "properties": {"under": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    leaf: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    tools = [
        ToolSpec(name, "", {"type": "object", "properties": {"t": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": of}})
        for name, of in (("grow", tree), ("pick", leaf))
    ]
    schema = prompted_request("json", request(HISTORY[0], tools=tuple(tools)), "schema").params["output_schema"]

    def at(reference: str) -> JsonObject:
        found: Any = schema
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        return found

    called = schema["anyOf"][1]["properties"]["tool_calls"]["items"]["anyOf"]
    targets = [at(call["properties"]["arguments"]["properties"]["t"]["$ref"]) for call in called]
    assert [list(target["properties"]) for target in targets] == [["under"], ["name"]]  # both call it Tree
    assert all("properties" in at(reference) for reference in _references(schema))


def test_what_must_be_called_is_all_a_schema_allows() -> None:
    schema = prompted_request("json", request(HISTORY[0], tool_choice="stop"), "schema").params["output_schema"]

    assert list(schema["properties"]) == ["tool_calls"]
    assert [call["properties"]["name"] for call in schema["properties"]["tool_calls"]["items"]["anyOf"]] == [
        {"const": "stop"}
    ]


def test_only_what_a_server_can_bind_is_bound_and_a_turn_may_say_no() -> None:
    def bound(way: str, decoding_constraint: DecodingConstraint, **params: Any) -> list[str]:
        return sorted(prompted_request(way, request(HISTORY[0], **params), decoding_constraint).params)

    assert bound("json", "schema") == ["output_schema"]
    assert bound("json", "grammar") == ["grammar"]
    assert bound("xml", "grammar") == bound("blocks", "grammar") == ["grammar"]
    assert bound("xml", "schema") == bound("blocks", "schema") == bound("json", "") == []
    assert (
        bound("json", "schema", constrained_decoding=False) == bound("xml", "grammar", constrained_decoding=False) == []
    )
    assert bound("xml", "grammar", tool_choice="none") == []
