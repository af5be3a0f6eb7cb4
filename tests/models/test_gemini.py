"""Gemini's own format, rule by rule: what goes out, which the strict provider takes, and what is read of a stream."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.messages import assistant_message, tool_message
from tests.models.test_requests import call, result, user

from everturn import Chat, tool
from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart, Usage
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.errors import ModelError
from everturn.models.failures import response_error
from everturn.models.formats.gemini_request import PLACEHOLDER_SIGNATURE, build
from everturn.models.formats.gemini_schema import to_openapi
from everturn.models.http_model import HttpModel
from everturn.models.profile import Origin
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.structured_output import plan_output
from everturn.models.structured_output.plan import OUTPUT_TOOL
from everturn.models.vendors import VENDORS
from everturn.testing.provider.gemini_signatures import signature
from everturn.testing.provider.strict.declarations import check_schema
from everturn.testing.provider.strict.proto import read_proto_message
from everturn.testing.provider.strict.request import check as strict
from everturn.transport import StreamLimits
from everturn.transport.replay import RecordedResponse, ReplayTransport

Json = dict[str, Any]
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"q": {"type": "string"}}})
OLD, NEW = "gemini-2.5-flash", "gemini-3-pro-preview"
PNG = b"\x89PNG not really"
PICTURE = FilePart("b1", "image/png", len(PNG), "cat.png")


# What goes out --------------------------------------------------------------------------------------------------------


def built(*messages: RequestMessage, model: str = OLD, system: str = "", **request: Any) -> Json:
    """The body as it goes out, which the strict provider takes."""
    model_request = ModelRequest(model, system, list(messages), request.pop("tools", [LOOK]), request.pop("params", {}))
    model_request.files = request.pop("files", {"b1": PNG})
    body = json.loads(build(model_request, VENDORS["gemini"], Origin("gemini", model)).body)
    strict("gemini", {**body, "model": model}, {})
    return body


def contents(*messages: RequestMessage, **request: Any) -> list[tuple[str, list[Json]]]:
    return [(content["role"], content["parts"]) for content in built(*messages, **request)["contents"]]


def sealed(model: str = NEW, **more: str) -> Opaque:
    return Opaque(f"gemini:{model}", encode_canonical({"thoughtSignature": signature(model, "x"), **more}))


SIGNED = {"thoughtSignature": signature(NEW, "x")}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
        ("../x?y=z:w", "models/..%2Fx%3Fy%3Dz%3Aw"),
        ("models/../x", "models/..%2Fx"),
        ("ä\ud800", "models/%C3%A4%3F"),
    ],
)
def test_a_model_is_part_of_the_path(model: str, path: str) -> None:
    request = ModelRequest(model, "", [user("hi")], [], {})
    found = build(request, VENDORS["gemini"], Origin("gemini", model))
    assert found.path == f"/{path}:streamGenerateContent?alt=sse"
    assert json.loads(found.body) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


async def test_the_key_has_a_header_of_its_own() -> None:
    replay = ReplayTransport([RecordedResponse([events(text_body("hi"), ended())])])
    model = get_model("gemini:m", key="k" * 20, transport=replay)
    _ = [batch async for batch in model.stream(ModelRequest("m", "", [user("hi")], [], {}))]
    assert replay.posts[0].url == (
        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"
    )
    assert replay.posts[0].headers["x-goog-api-key"] == "k" * 20
    assert "authorization" not in replay.posts[0].headers


def test_the_system_prompt_stands_apart() -> None:
    assert built(user("hi"), system="Be.")["systemInstruction"] == {"parts": [{"text": "Be."}]}
    assert "systemInstruction" not in built(user("hi"), system=" \n")


def test_results_stand_together_right_behind_their_calls() -> None:
    found = contents(
        user("hi"),
        assistant_message("Looking.", call("c1"), call("c2")),
        tool_message(result("c1", "one"), result("c2", "two", is_error=True)),
        user("and?"),
    )
    assert found[1:] == [
        (
            "model",
            [
                {"text": "Looking."},
                {"functionCall": {"name": "look", "args": {"q": "x"}}},
                {"functionCall": {"name": "look", "args": {"q": "x"}}},
            ],
        ),
        (
            "user",
            [
                {"functionResponse": {"name": "look", "response": {"result": "one"}}},
                {"functionResponse": {"name": "look", "response": {"error": "two"}}},
                {"text": "and?"},
            ],
        ),
    ]


def test_an_id_goes_back_where_the_provider_gave_one_and_never_twice() -> None:
    calling = assistant_message(call("c1", provider_id="g"), call("c2", provider_id="g"), call("c3"))
    found = contents(user("hi"), calling, tool_message(result("c1"), result("c2"), result("c3")))
    for (_, parts), name in zip(found[1:], ("functionCall", "functionResponse"), strict=True):
        assert [part[name].get("id") for part in parts] == ["g", "c2", None]


def test_users_and_models_take_turns_and_a_user_has_the_first_and_the_last_word() -> None:
    assert [role for role, _ in contents()] == ["user"]
    found = contents(
        assistant_message("a"), assistant_message("b"), user("c"), user(" "), user("d"), assistant_message("e")
    )
    assert found == [
        ("user", [{"text": "Go on."}]),
        ("model", [{"text": "a"}, {"text": "b"}]),
        ("user", [{"text": "c"}, {"text": "(nothing)"}, {"text": "d"}]),
        ("model", [{"text": "e"}]),
        ("user", [{"text": "Go on."}]),
    ]


def test_what_is_empty_is_not_sent() -> None:
    found = contents(user("a", ""), assistant_message("", ReasoningPart("cut off")), user(NoticePart("k", "n")))
    assert found == [("user", [{"text": "a"}, {"text": "<notice kind='k'>\nn\n</notice>"}])]


def test_a_picture_a_recording_and_a_document_are_sent_as_they_are() -> None:
    kinds = ["image/png", "audio/x-wav", "audio/mpeg", "application/pdf"]
    found = contents(user(*(FilePart("b1", kind, 1) for kind in kinds)))
    assert [part["inlineData"]["mimeType"] for part in found[0][1]] == [
        "image/png",
        "audio/wav",
        "audio/mp3",
        "application/pdf",
    ]
    assert base64.b64decode(found[0][1][0]["inlineData"]["data"]) == PNG


def test_a_file_it_cannot_read_is_told_of() -> None:
    found = contents(user(FilePart("b1", "image/gif", 1, "a.gif"), FilePart("gone", "image/png", 1)))
    assert ["cannot be shown to you" in part["text"] for part in found[0][1]] == [True, True]


def test_files_of_results_come_behind_all_of_them() -> None:
    found = contents(
        user("hi"),
        assistant_message(call("c1"), call("c2")),
        tool_message(result("c1", files=(PICTURE,)), result("c2")),
    )
    assert [next(iter(part)) for part in found[2][1]] == ["functionResponse", "functionResponse", "text", "inlineData"]


def test_a_picture_the_model_made_goes_back_with_its_seal() -> None:
    painted = assistant_message("Here.", PICTURE, TextPart("", sealed(on="file")), "Like it?")
    found = contents(user("paint"), painted, user("bluer"), model=NEW)
    data = {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
    assert found[1] == ("model", [{"text": "Here."}, {"inlineData": data, **SIGNED}, {"text": "Like it?"}])


def test_a_seal_goes_back_on_the_part_it_came_on() -> None:
    answer = assistant_message(
        ReasoningPart("hm", sealed()), TextPart("so", sealed()), call("c1", opaque=sealed()), TextPart("", sealed())
    )
    found = contents(user("hi"), answer, tool_message(result("c1")), model=NEW)
    assert found[1][1] == [
        {"text": "hm", "thought": True, **SIGNED},
        {"text": "so", **SIGNED},
        {"functionCall": {"name": "look", "args": {"q": "x"}}, **SIGNED},
        {"text": "", **SIGNED},
    ]


@pytest.mark.parametrize(
    "other",
    [
        sealed("gemini-3-flash"),
        Opaque("openai:m", encode_canonical({"encrypted": "x"})),
        Opaque(f"gemini:{OLD}", encode_canonical({"google": {"thought_signature": "x"}})),
    ],
)
def test_what_another_sealed_goes_back_without_its_seal(other: Opaque) -> None:
    answer = assistant_message(ReasoningPart("hm", other), TextPart("so", other), PICTURE, TextPart("", other))
    found = contents(user("hi"), answer, user("and?"), model=OLD)
    assert [list(part) for part in found[1][1]] == [["text"], ["inlineData"]]


def test_what_gemini_3_misses_a_seal_on_gets_a_stand_in() -> None:
    def turn(id: str) -> list[RequestMessage]:
        return [assistant_message(call(id), call(id + "b")), tool_message(result(id), result(id + "b"))]

    history = [user("a"), *turn("1"), assistant_message("so", PICTURE), user("b"), *turn("2"), *turn("3")]
    parts = [part for _, parts in contents(*history, model=NEW) for part in parts]
    assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == [
        *(None, None),
        *(PLACEHOLDER_SIGNATURE, None),
        *(PLACEHOLDER_SIGNATURE, None),
    ]
    assert [part["thoughtSignature"] for part in parts if "inlineData" in part] == [PLACEHOLDER_SIGNATURE]
    assert PLACEHOLDER_SIGNATURE not in json.dumps(contents(*history, model=OLD))


def test_a_seal_is_not_replaced_by_a_stand_in() -> None:
    history = [
        user("a"),
        assistant_message(call("1", opaque=sealed()), call("2")),
        tool_message(result("1"), result("2")),
    ]
    found = contents(*history, model=NEW)[1][1]
    assert [part.get("thoughtSignature") for part in found] == [SIGNED["thoughtSignature"], None]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("1st.look", {"mode": "ANY", "allowedFunctionNames": ["_1st_look"]}),
        ({"mode": "VALIDATED"}, {"mode": "VALIDATED"}),
    ],
)
def test_a_choice_of_tools(choice: str | Json, config: Json) -> None:
    tools = [LOOK, ToolSpec("1st.look", "", {})]
    body = built(user("hi"), tools=tools, params={"tool_choice": choice})
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in built(user("hi"), tools=[], params={"tool_choice": choice})


def test_parameters_find_their_place() -> None:
    params = {
        "max_tokens": 9,
        "top_p": 0.5,
        "topK": 3,
        "stop": "END",
        "thinking_config": {"includeThoughts": True},
        "generationConfig": {"seed": 1, "topP": 0.1},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    }
    body = built(user("hi"), params=params)
    assert body["generationConfig"] == {
        "seed": 1,
        "topP": 0.5,
        "topK": 3,
        "stopSequences": ["END"],
        "thinkingConfig": {"includeThoughts": True},
        "maxOutputTokens": 9,
    }
    assert body["safetySettings"] == params["safetySettings"]
    assert "generationConfig" not in built(user("hi"))  # nothing is said of thoughts to a model that may have none


def test_an_answer_may_have_a_schema_which_becomes_no_wider() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    body = built(user("hi"), tools=[], params={"output_schema": schema})
    assert body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}


def test_names_begin_with_a_letter_and_come_back_as_ours() -> None:
    tools = [ToolSpec(name, "", {}) for name in ("1.x", "_1_x", "-", "ok")]
    request = ModelRequest("m", "", [user("hi")], tools, {})
    found = build(request, VENDORS["gemini"], Origin("gemini", "m"))
    declared = json.loads(found.body)["tools"][0]["functionDeclarations"]
    assert [declaration["name"] for declaration in declared] == ["_1_1_x", "_1_x", "_-", "ok"]
    assert found.names == {"_1_1_x": "1.x", "_-": "-"}
    gone = assistant_message(RequestCall("c", "2 gone", "{}"))
    assert contents(user("a"), gone, tool_message(RequestResult("c", "2 gone", "")))[1][1][0]["functionCall"][
        "name"
    ] == ("_2_gone")


def test_a_tool_that_takes_nothing_says_nothing() -> None:
    tools = [ToolSpec("now", "Tells.", {"type": "object", "properties": {}, "additionalProperties": False})]
    assert built(user("hi"), tools=tools)["tools"] == [
        {"functionDeclarations": [{"name": "now", "description": "Tells."}]}
    ]


# Schemas --------------------------------------------------------------------------------------------------------------

NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name", "kids"],
}
ODD_SCHEMAS: list[Any] = [
    *({}, True, [], {"type": "date"}, {"$ref": "#/nowhere"}, {"$ref": "http://elsewhere"}, {"items": True}),
    *({"enum": []}, {"enum": [""]}, {"enum": [[1], {"a": 1}]}, {"const": None}, {"type": []}, {"allOf": [{}]}),
    *({"anyOf": [{"required": ["a"]}], "properties": {"a": False}, "type": "object"}, {"type": "object"}),
    *({"type": "array"}, {"type": ["array", "null"], "items": [{"type": "string"}]}, {"not": {}}, {"anyOf": "x"}),
    *({"allOf": [{"$ref": "#/properties/a"}]}, {"properties": {"b": {"$ref": "#"}}}, {"oneOf": [{"type": "null"}]}),
    {"type": "string", "minLength": 1, "pattern": "x", "format": "uri", "default": "a", "title": "T", "$comment": ""},
]


def rewritten(schema: Any, **defs: Any) -> Json:
    """A schema as a property of a tool, as Gemini takes it."""
    whole = {"type": "object", "properties": {"a": schema}, "$defs": defs}
    before = json.dumps(whole)
    found = to_openapi(whole)
    assert json.dumps(whole) == before  # it is somebody else's
    check_schema("", read_proto_message("Schema", found))
    return found["properties"].get("a", {})


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"const": 1}, {"type": "integer", "description": "One of 1."}),
        ({"enum": ["a", "b", None]}, {"type": "string", "enum": ["a", "b"], "nullable": True}),
        ({"enum": [1, 2], "description": "N."}, {"type": "integer", "description": "N.\nOne of 1, 2."}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2}, {"type": "integer", "minimum": 3}),
        ({"type": "string", "format": "email", "pattern": "@"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {"type": "array", "items": {"type": "number"}, "uniqueItems": True, "minItems": 1},
            {"type": "array", "items": {"type": "number"}, "minItems": 1},
        ),
        (
            {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b", "c"], "minProperties": 1},
            {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]},
        ),
        (
            {"allOf": [{"properties": {"b": {"type": "number"}}}, {"required": ["b"]}], "type": "object"},
            {"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]},
        ),
        (
            {"prefixItems": [{"type": "string"}, {"type": "number"}], "maxItems": 2},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "maxItems": 2},
        ),
        (
            {"description": "D.", "anyOf": [{"type": "string"}, {"type": "number", "description": "N."}]},
            {"anyOf": [{"type": "string", "description": "D."}, {"type": "number", "description": "D.\nN."}]},
        ),
    ],
)
def test_a_schema_is_written_in_words_that_gemini_knows(schema: Json, wanted: Json) -> None:
    assert rewritten(schema) == wanted


def test_a_circle_of_references_is_cut_and_becomes_wider() -> None:
    inner = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert rewritten({"$ref": "#/$defs/Node"}, Node=NODE) == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "next": {**inner, "nullable": True},
            "kids": {"type": "array", "items": inner},
        },
        "required": ["name", "kids"],
    }


def test_a_map_keeps_what_its_values_are() -> None:
    found = rewritten({"type": "object", "additionalProperties": {"type": "integer"}})
    assert found["properties"] == {"any_name": {"type": "integer"}}
    assert "any names" in found["description"]


def test_whatever_may_be_anything_names_every_type() -> None:
    found = rewritten({})
    assert [branch["type"] for branch in found["anyOf"]] == ["string", "number", "boolean", "object", "array"]
    assert found["anyOf"][0]["nullable"]


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
def test_an_odd_schema_is_taken_all_the_same(schema: Any) -> None:
    rewritten(schema)
    rewritten({"type": "array", "items": schema})


@given(st.recursive(st.sampled_from(ODD_SCHEMAS), lambda inner: st.fixed_dictionaries({}, optional={
    "anyOf": st.lists(inner, max_size=3), "allOf": st.lists(inner, max_size=2), "items": inner,
    "properties": st.dictionaries(st.sampled_from("ab"), inner), "type": st.sampled_from(["object", "array", "string"]),
    "description": st.just("D."), "nullable": st.booleans(), "additionalProperties": inner,
}), max_leaves=8))  # fmt: skip
def test_no_schema_is_refused(schema: Any) -> None:
    rewritten(schema, Node=NODE)


def test_references_in_references_do_not_grow_without_bounds() -> None:
    many = {f"L{at}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/L{at + 1}"} for name in "abcd"}} for at in range(20)}  # fmt: skip
    assert len(json.dumps(rewritten({"$ref": "#/$defs/L0"}, **many))) < 10_000_000
    deep: Json = {"type": "string"}
    for _ in range(100):
        deep = {"allOf": [{"type": "array", "items": deep}]}
    rewritten(deep)


# What is read ---------------------------------------------------------------------------------------------------------


def events(*bodies: object) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(body).encode() for body in bodies)


def parts(*found: Json) -> Json:
    return {"candidates": [{"content": {"parts": list(found), "role": "model"}, "index": 0}]}


def text_body(text: str) -> Json:
    return parts({"text": text})


def ended(reason: str = "STOP", **more: Any) -> Json:
    return {"candidates": [{"finishReason": reason, "index": 0, **more}]}


def seal_of(chunk: Chunk) -> tuple[str, str, int, str]:
    assert isinstance(chunk, OpaqueChunk)
    return json.loads(chunk.opaque.data)["thoughtSignature"], chunk.part, chunk.slot, chunk.opaque.issuer


async def read_stream(
    data: bytes, *, is_cut: bool = False, limits: StreamLimits | None = None
) -> tuple[list[Chunk], str]:
    """What comes of a stream, and the kind of its error; the same however it is split."""
    found: list[tuple[list[Chunk], str]] = []
    for size in (len(data), 7, 1) if len(data) < 5_000 else (len(data), 100_001):
        recording = RecordedResponse([data[at : at + size] for at in range(0, len(data), size)], is_cut=is_cut)
        model = HttpModel("m", VENDORS["gemini"], ReplayTransport([recording]), limits=limits)
        chunks: list[Chunk] = []
        kind = ""
        try:
            async for batch in model.stream(ModelRequest("m", "", [], [ToolSpec("look.up", "", {})], {})):
                chunks += batch
        except ModelError as error:
            kind = error.kind
        found.append((chunks, kind))
    assert all(outcome == found[0] for outcome in found)
    return found[0]


async def answered(*bodies: object) -> list[Chunk]:
    chunks, kind = await read_stream(events(*bodies))
    assert kind == ""
    return chunks


async def test_text_and_thoughts_are_distinguished() -> None:
    thought = parts({"text": "hm", "thought": True})
    assert await answered(thought, text_body("so"), parts({"text": "ä"}, {"text": ""}), ended()) == [
        ReasoningChunk("hm"),
        TextChunk("so"),
        TextChunk("ä"),
        FinishChunk("stop", "STOP"),
    ]


async def test_calls_come_whole_with_or_without_ids_and_arguments() -> None:
    calls = parts(
        {"functionCall": {"name": "look_up", "args": {"q": "x", "a": [1]}, "id": "g1"}},
        {"functionCall": {"name": "now"}},
    )
    assert await answered(calls, parts({"functionCall": {"name": "n", "args": {}}}), ended()) == [
        CallChunk(0, '{"a":[1],"q":"x"}', "look.up", "g1"),
        CallChunk(1, "{}", "now"),
        CallChunk(2, "{}", "n"),
        FinishChunk("tool_calls", "STOP"),
    ]


@pytest.mark.parametrize("more", [{"willContinue": True}, {"partialArgs": [{"jsonPath": "$.q", "stringValue": "x"}]}])
async def test_arguments_in_pieces_which_nobody_asked_for_are_an_error(more: Json) -> None:
    chunks, kind = await read_stream(events(parts({"functionCall": {"name": "n", **more}}), ended()))
    assert (chunks, kind) == ([], "response")


async def test_a_seal_says_which_part_it_is_of() -> None:
    chunks = await answered(
        parts({"text": "hm", "thought": True, "thoughtSignature": "AA"}),
        parts({"text": "so", "thoughtSignature": "BB"}),
        parts({"functionCall": {"name": "n"}}, {"functionCall": {"name": "n"}, "thoughtSignature": "CC"}),
        parts({"text": "", "thoughtSignature": "DD"}),
        parts({"thoughtSignature": "EE"}),
        ended(),
    )
    assert [seal_of(chunk) for chunk in chunks if isinstance(chunk, OpaqueChunk)] == [
        ("AA", "reasoning", 0, "gemini:m"),
        ("BB", "text", 0, "gemini:m"),
        ("CC", "call", 1, "gemini:m"),
        ("DD", "text", 0, "gemini:m"),
        ("EE", "text", 0, "gemini:m"),
    ]


async def test_a_picture_is_a_file_and_its_seal_says_so() -> None:
    data = {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
    draft = {"inlineData": data, "thought": True}
    chunks = await answered(parts(draft, {"inlineData": data, "thoughtSignature": "AA"}), ended())
    file, seal, _ = chunks
    assert file == FileChunk(PNG, "image/png")
    assert seal == OpaqueChunk(Opaque("gemini:m", '{"on":"file","thoughtSignature":"AA"}'), "text")


async def test_a_picture_may_be_bigger_than_any_line_of_text() -> None:
    data = {"mimeType": "image/png", "data": base64.b64encode(bytes(3_000_000)).decode()}
    chunks, kind = await read_stream(events(parts({"inlineData": data}), ended()))
    assert (kind, chunks[0]) == ("", FileChunk(bytes(3_000_000), "image/png"))
    _, kind = await read_stream(events(parts({"inlineData": data}), ended()), limits=StreamLimits())
    assert kind == "limit"


async def test_code_that_the_server_ran_is_two_parts_with_their_signature() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "AA"}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    called, found, *rest = await answered(parts(code, result), text_body("It is 1."), ended())
    assert isinstance(called, ProviderToolChunk)
    assert isinstance(found, ProviderToolChunk)
    assert called.part.opaque is not None
    assert msgspec.json.decode(called.part.opaque.data) == code
    assert (called.part.state, called.part.id) == ("called", found.part.id)
    assert (found.part.state, found.part.text) == ("completed", "1")
    assert rest == [TextChunk("It is 1."), FinishChunk("stop", "STOP")]


async def test_the_last_count_of_tokens_counts_and_what_it_leaves_out_stays() -> None:
    last = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "cachedContentTokenCount": 4,
        "toolUsePromptTokenCount": 2,
        "totalTokenCount": 24,
    }
    first = {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1}, **text_body("hi")}
    chunks = await answered(first, ended(), {"usageMetadata": last}, {"usageMetadata": {"totalTokenCount": 24}})
    assert chunks[1:] == [
        UsageChunk(Usage(input=12, output=12, cached=4, reasoning=7)),
        FinishChunk("stop", "STOP"),
    ]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *((raw, "content_filter") for raw in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")),
        ("IMAGE_SAFETY", "content_filter"),
        *((raw, "other") for raw in ("LANGUAGE", "OTHER", "NO_IMAGE", "SOMETHING_NEW")),
    ],
)
async def test_how_an_answer_ends(raw: str, reason: Any) -> None:
    assert await answered(text_body("hi"), ended(raw)) == [TextChunk("hi"), FinishChunk(reason, raw)]


async def test_the_last_reason_counts_for_old_models_say_stop_all_along() -> None:
    begun = {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    assert (await answered(begun, ended("MAX_TOKENS")))[-1] == FinishChunk("length", "MAX_TOKENS")
    unsaid = ended("FINISH_REASON_UNSPECIFIED")
    assert (await read_stream(events(text_body("hi"), unsaid)))[1] == "truncated"


@pytest.mark.parametrize("raw", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
async def test_a_call_that_cannot_be_read_is_a_call_that_fails(raw: str) -> None:
    finish = FinishChunk("tool_calls", raw)
    assert await answered(ended(raw)) == [CallChunk(0, raw, "malformed_call"), finish]
    ending = ended(raw, finishMessage="Malformed function call: print(look(")
    good = parts({"functionCall": {"name": "n"}})
    assert await answered(good, ending) == [
        CallChunk(0, "{}", "n"),
        CallChunk(1, "Malformed function call: print(look(", "malformed_call"),
        finish,
    ]


async def test_a_question_that_is_refused_has_no_answer() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    assert await answered(blocked) == [
        UsageChunk(Usage(input=3)),
        FinishChunk("content_filter", "PROHIBITED_CONTENT"),
    ]


@pytest.mark.parametrize("empty", [{}, {"content": None}, {"content": {}}, {"content": {"role": "model"}}])
async def test_a_candidate_may_have_no_content(empty: Json) -> None:
    assert await answered({"candidates": [empty]}, {"candidates": []}, {}, ended()) == [FinishChunk("stop", "STOP")]


async def test_of_several_answers_the_first_is_read() -> None:
    other = {"candidates": [{"content": {"parts": [{"text": "no"}]}, "finishReason": "SAFETY", "index": 1}]}
    assert await answered(text_body("hi"), other, ended()) == [TextChunk("hi"), FinishChunk("stop", "STOP")]


async def test_an_answer_that_does_not_say_why_it_ends_was_cut_off() -> None:
    assert await read_stream(events(text_body("hi"))) == ([TextChunk("hi")], "truncated")
    assert (await read_stream(events(text_body("hi")), is_cut=True))[1] == "truncated"
    assert (await read_stream(events(text_body("hi"), ended()), is_cut=True))[1] == ""


async def test_a_proxy_may_say_that_it_is_over() -> None:
    data = events(text_body("hi"), ended()) + b"data: [DONE]\n\n" + events(text_body("more"))
    assert await read_stream(data) == ([TextChunk("hi"), FinishChunk("stop", "STOP")], "")


ERROR = {"error": {"code": 429, "message": "Resource has been exhausted.", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize(
    "data",
    [
        events(text_body("hi"), ERROR),
        events(text_body("hi"), [ERROR]),
        events(text_body("hi")) + json.dumps(ERROR, indent=2).encode(),
        events(text_body("hi")) + json.dumps([ERROR], indent=2).encode() + b"\n",
    ],
)
async def test_an_error_in_the_middle_is_that_error(data: bytes) -> None:
    assert await read_stream(data) == ([TextChunk("hi")], "rate")


async def test_an_answer_that_was_not_streamed_is_not_taken_for_one() -> None:
    assert (await read_stream(json.dumps({**text_body("hi"), **ended()}).encode()))[1] == "response"


async def test_a_seal_that_is_missed_in_the_stream_is_asked_for_once_more_without_any() -> None:
    missed = RecordedResponse([events(ended("MISSING_THOUGHT_SIGNATURE"))])
    replay = ReplayTransport([missed, RecordedResponse([events(text_body("hi"), ended())])])
    model = get_model(f"gemini:{NEW}", key="k" * 20, transport=replay, retry=RetryPolicy(attempts=1))
    history = [user("a"), assistant_message(call("1", opaque=sealed())), tool_message(result("1"))]
    chunks = [chunk async for batch in model.stream(ModelRequest("m", "", history, [LOOK], {})) for chunk in batch]
    assert isinstance(chunks[0], RetryChunk)
    assert chunks[1] == TextChunk("hi")
    assert [PLACEHOLDER_SIGNATURE in post.body.decode() for post in replay.posts] == [False, True]


NAMES = {"vendor": "gemini", "model": "m", "key": "K"}


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "API key not valid. Please pass a valid API key.", "key"),
        (403, "Your API key was reported as leaked. Please use another API key.", "key"),
        (
            404,
            "models/x is not found for API version v1beta, or is not supported for generateContent.",
            "unknown_model",
        ),
        (429, "Resource has been exhausted (e.g. check quota).", "rate"),
        (503, "The model is overloaded. Please try again later.", "server"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "context"),
        (400, "Function call is missing a thought_signature in functionCall parts.", "seal"),
    ],
)
def test_what_google_says_when_it_refuses(status: int, text: str, kind: str) -> None:
    body = json.dumps([{"error": {"code": status, "message": text, "status": "X"}}]).encode()
    assert response_error(status, {}, body, NAMES).kind == kind


@pytest.mark.parametrize(
    "odd",
    [
        *(b"nonsense", b"[]", b"[[]]", b"1", b'{"candidates":{}}', b'{"candidates":[{"content":[]}]}', b"[DONE"),
        *(b'{"candidates":[{"content":{"parts":[{"text":1}]}}]}', b'{"candidates":[{"finishReason":[]}]}'),
        b'{"candidates":[{"content":{"parts":[{"inlineData":{"data":"*"}}]}}]}',
        b'{"usageMetadata":{"promptTokenCount":"many"}}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"n","args":%b}}]}}]}' % (b"[" * 5000),
    ],
)
async def test_nonsense_is_a_typed_error(odd: bytes) -> None:
    assert (await read_stream(b"data: " + odd + b"\n\n" + events(text_body("hi"), ended())))[1] == "response"


@pytest.mark.parametrize("args", [b'"x"', b"[1]", b"1", b'{"a":NaN}', b'{"a":"\\ud800"}', b"null", b'"{\\"q\\":1}"'])
async def test_arguments_may_be_anything(args: bytes) -> None:
    call = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"n","args":%b}}]}}]}\n\n' % args
    chunks, kind = await read_stream(call + events(ended()))
    assert (kind, len(chunks)) == ("", 2)
    assert isinstance(chunks[0], CallChunk)
    chunks[0].arguments.encode()


# A whole turn ---------------------------------------------------------------------------------------------------------


async def test_a_turn_calls_a_tool_and_gives_back_what_was_sealed() -> None:
    @tool
    async def look(q: str) -> str:
        """Look something up."""
        return f"{q} is so"

    calling = parts({"functionCall": {"name": "look", "args": {"q": "it"}, "id": "g1"}, **SIGNED})
    broken = ended("MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: look(")
    answers = [
        [calling, ended()],
        [broken],
        [text_body("It is "), text_body("so."), parts({"text": "", **SIGNED}), ended()],
    ]
    replay = ReplayTransport([RecordedResponse([events(*answer)]) for answer in [*answers, answers[-1]]])
    async with Chat(get_model(f"gemini:{NEW}", key="k" * 20, transport=replay), tools=[look]) as chat:
        assert (await (await chat.send("Is it so?"))).text == "It is so."
        await (await chat.send("Sure?"))
    bodies = [json.loads(post.body) for post in replay.posts]
    for body in bodies:
        strict("gemini", {**body, "model": NEW}, {})
    first, unread = (content["parts"] for content in bodies[2]["contents"][1::2])
    assert first == [{"functionCall": {"name": "look", "id": "g1", "args": {"q": "it"}}, **SIGNED}]
    assert bodies[2]["contents"][2]["parts"][0]["functionResponse"]["response"] == {"result": "it is so"}
    assert unread[0]["functionCall"]["args"] == {"invalid_json": "Malformed function call: look("}
    assert "malformed_call" in bodies[2]["contents"][4]["parts"][0]["functionResponse"]["response"]["error"]
    assert bodies[3]["contents"][5] == {"role": "model", "parts": [{"text": "It is so.", **SIGNED}]}


async def test_a_picture_of_one_turn_is_in_the_next() -> None:
    data = {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
    answer = RecordedResponse([events(text_body("Here:"), parts({"inlineData": data, **SIGNED}), ended())])
    replay = ReplayTransport([answer, answer])
    async with Chat(get_model(f"gemini:{NEW}", key="k" * 20, transport=replay)) as chat:
        await (await chat.send("Paint."))
        await (await chat.send("Bluer."))
    assert json.loads(replay.posts[1].body)["contents"][1]["parts"] == [
        {"text": "Here:"},
        {"inlineData": data, **SIGNED},
    ]


@pytest.mark.parametrize(("model", "is_bound"), [(OLD, False), (NEW, True)])
def test_a_schema_beside_tools_is_that_of_a_tool_where_it_would_be_refused(model: str, is_bound: bool) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    profile, request = VENDORS["gemini"].for_model(model), ModelRequest(model, "Be brief.", [user("Hi.")], [LOOK], {})
    request.params = {"output_schema": schema}

    body = json.loads(build(plan_output(request, profile).request, profile, Origin("gemini", model)).body)

    strict("gemini", {**body, "model": model}, {})
    offered = [functiondeclaration["name"] for functiondeclaration in body["tools"][0]["functionDeclarations"]]
    assert ("responseJsonSchema" in body.get("generationConfig", {})) is is_bound
    assert offered == [LOOK.name] if is_bound else [LOOK.name, OUTPUT_TOOL]
