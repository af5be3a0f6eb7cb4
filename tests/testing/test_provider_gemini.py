"""What the provider refuses in the gemini format and the nearest thing to it that it takes, and how it answers there."""

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.testing.provider_rules import Rule
from tests.testing.test_provider_fuzz import VALUES, places
from tests.testing.test_provider_http import Reply, send, wire

from everturn.testing.provider import (
    Call,
    Cut,
    Finish,
    InBandError,
    Item,
    Provider,
    Redacted,
    Refuse,
    Say,
    ScriptedUsage,
    Status,
    Think,
)
from everturn.testing.provider.faults import Refused
from everturn.testing.provider.gemini_signatures import SKIP, signature
from everturn.testing.provider.library import ScriptLibrary
from everturn.testing.provider.strict.request import check

Json = dict[str, Any]

HI: Json = {"text": "hi"}
TEXT: Json = {"type": "STRING"}
TOOL: Json = {"name": "read", "parameters": {"type": "OBJECT", "properties": {"path": TEXT}}}
SIGNED: Json = {"thoughtSignature": signature("m", "x")}
PNG: Json = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
THIRD = "gemini-3-m"


def gemini(*contents: Any, **fields: Any) -> Json:
    return {"model": "m", "contents": list(contents) or [user(HI)], **fields}


def user(*parts: Any) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> Json:
    return {"role": "model", "parts": list(parts)}


def call(name: Any = "read", args: Any = None, *, signed: Any = None, **fields: Any) -> Json:
    part = {"functionCall": {"name": name, "args": {} if args is None else args, **fields}}
    return part if signed is None else {**part, "thoughtSignature": signed}


def result(name: Any = "read", response: Any = None, **fields: Any) -> Json:
    return {"functionResponse": {"name": name, "response": {"output": "x"} if response is None else response, **fields}}


def turn(*contents: Any, **fields: Any) -> Json:
    return gemini(user(HI), *contents, **{"tools": [{"functionDeclarations": [TOOL]}], **fields})


def tools(*declared: Any, **fields: Any) -> Json:
    return gemini(tools=[{"functionDeclarations": list(declared)}], **fields)


def schema(**fields: Any) -> Json:
    return tools({"name": "read", "parameters": {"type": "OBJECT", "properties": {"path": TEXT}, **fields}})


def prop(**fields: Any) -> Json:
    return schema(properties={"path": fields})


def config(**fields: Any) -> Json:
    return gemini(generationConfig=fields)


def thinking(name: str = "m", **fields: Any) -> Json:
    return gemini(model=name, generationConfig={"thinkingConfig": fields})


def choice(tools: Any = (TOOL,), **fields: Any) -> Json:
    declared = {"tools": [{"functionDeclarations": list(tools)}]} if tools else {}
    return gemini(toolConfig={"functionCallingConfig": fields}, **declared)


def third(*contents: Any) -> Json:
    return turn(*contents, model=THIRD)


PAIR = turn(model(call()), user(result()))
TWO = model(call(), call("look"))
OWN = signature(THIRD, "x")
NO_DATA = (
    "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field"
)
COUNT = "Please ensure that the number of function response parts is equal to the number of function call parts of the"
AFTER_CALL = "Please ensure that function response turn comes immediately after a function call turn."
AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
UNSIGNED = "Function call is missing a thought_signature in functionCall parts. This is required"
DECLARED = "* GenerateContentRequest.tools[0].function_declarations[0]"

RULES = [
    # messages of Google's
    Rule("fields are known", gemini(messages=[]), 'Invalid JSON payload received. Unknown name "messages": Cannot find field.', gemini(safetySettings=[])),
    Rule("fields of a content are known", gemini({**user(HI), "content": 1}), "Unknown name \"content\" at 'contents[0]': Cannot find field.", gemini()),
    Rule("fields of a part are known", gemini(user({"type": "text", "text": "a"})), "Unknown name \"type\" at 'contents[0].parts[0]'", gemini(user(HI))),
    Rule("fields of a config are known", config(max_tokens=1), "Unknown name \"max_tokens\" at 'generation_config'", config(max_output_tokens=1)),
    Rule("a field has two names and no third", gemini(system_Instruction=user(HI)), 'Unknown name "system_Instruction"', gemini(system_instruction=user(HI))),
    Rule("a text is a string", gemini(user({"text": 1})), "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 1", gemini(user(HI))),
    Rule("a content is an object", gemini("hi"), "Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"hi\"", gemini(contents=user(HI))),
    Rule("a number is a number", config(temperature="warm"), "'generation_config.temperature' (TYPE_FLOAT), \"warm\"", config(temperature="0.5")),
    Rule("a whole number is whole", config(topK=1.5), "'generation_config.top_k' (TYPE_INT32), 1.5", config(topK=2.0)),
    Rule("a number is no boolean", config(seed=True), "(TYPE_INT32), true", config(seed="7")),
    Rule("a boolean is a boolean", thinking(includeThoughts="yes"), "(TYPE_BOOL), \"yes\"", thinking(includeThoughts=True)),
    Rule("arguments are an object", turn(model(call(args="{}")), user(result())), "function_call.args' (type.googleapis.com/google.protobuf.Struct), \"{}\"", PAIR),
    Rule("a response is an object", turn(model(call()), user(result(response="x"))), "function_response.response' (type.googleapis.com/google.protobuf.Struct)", PAIR),
    Rule("bytes are base64", gemini(user({"inlineData": {"mimeType": "image/png", "data": "data:image/png;base64,AAAA"}})), "inline_data.data' (TYPE_BYTES), Base64 decoding failed", gemini(user(PNG))),
    Rule("bytes are a string", gemini(user({"inlineData": {"mimeType": "image/png", "data": 1}})), "(TYPE_BYTES), 1", gemini(user(PNG))),
    Rule("what is one is no list", prop(type=["STRING", "NULL"]), "Unknown name \"type\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Proto field is not repeating, cannot start list.", prop(type="string", nullable=True)),
    Rule("a map is an object", schema(properties=[]), "Proto field is not repeating", schema()),
    Rule("properties are a map", schema(properties="x"), "parameters.properties' (Map)", schema()),
    # contents
    Rule("there are contents", gemini(contents=None), "* GenerateContentRequest.contents: contents is not specified", gemini()),
    Rule("there is a content", gemini(contents=[]), "contents is not specified", gemini()),
    Rule("a role is known", gemini({"role": "assistant", "parts": [HI]}), "Please use a valid role: user, model.", gemini({"parts": [HI]})),
    Rule("the system is no role", gemini({"role": "system", "parts": [HI]}, user(HI)), "Please use a valid role", gemini(systemInstruction={"parts": [HI]})),
    Rule("a content has parts", gemini(user()), "contents[0].parts: contents.parts must not be empty.", gemini(user(HI))),
    Rule("a part is something", gemini(user({})), NO_DATA, gemini(user(HI))),
    Rule("a text is not empty", gemini(user({"text": ""})), NO_DATA, gemini(user({"text": " "}))),
    Rule("an empty text may be signed", gemini(user(HI), model({"text": ""})), "contents[1].parts[0].data: required oneof", gemini(user(HI), model({"text": "", **SIGNED}))),
    Rule("a thought says something", gemini(user(HI), model({"thought": True})), "required oneof field", gemini(user(HI), model({"text": "hm", "thought": True}))),
    Rule("a part is one thing", gemini(user({**HI, **PNG})), "(oneof), oneof field 'data' is already set. Cannot set 'inlineData'", gemini(user(HI, PNG))),
    Rule("a system instruction says something", gemini(systemInstruction={"parts": [{"text": ""}]}), "system_instruction.parts[0].data: required oneof", gemini(systemInstruction=user(HI))),
    # files
    Rule("an image is of a known type", gemini(user({"inlineData": {"mimeType": "image/gif", "data": "AAAA"}})), "Unsupported MIME type: image/gif", gemini(user(PNG))),
    Rule("a file is of a known type", gemini(user({"inlineData": {"mimeType": "application/zip", "data": "AAAA"}})), "Unsupported MIME type: application/zip", gemini(user({"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}))),
    Rule("a file has data", gemini(user({"inlineData": {"mimeType": "image/png"}})), "inline_data.data: must not be empty", gemini(user(PNG))),
    Rule("what lies elsewhere says where", gemini(user({"fileData": {"mimeType": "text/csv"}})), "file_data.file_uri", gemini(user({"fileData": {"mimeType": "text/csv", "fileUri": "a"}}))),
    # calls and results
    Rule("a call has a name", turn(model(call("")), user(result())), "contents[1].parts[0].function_call.name: Name cannot be empty.", PAIR),
    Rule("a call has a plain name", turn(model(call("a b")), user(result("a b"))), "function_call.name: Invalid function name.", turn(model(call("a.b:c-d")), user(result("a.b:c-d")))),
    Rule("a result has a name", turn(model(call()), user(result(""))), "function_response.name: Name cannot be empty.", PAIR),
    Rule("a result has a response", turn(model(call()), user({"functionResponse": {"name": "read"}})), "function_response.response: must be specified", turn(model(call()), user(result(response={})))),
    Rule("a call is answered", turn(model(call())), COUNT, PAIR),
    Rule("a call is answered at once", turn(model(call()), user(HI), user(result())), COUNT, turn(model(call()), user(result()), user(HI))),
    Rule("every call is answered", turn(TWO, user(result())), COUNT, turn(TWO, user(result("look"), result()))),
    Rule("results come in one content", turn(TWO, user(result()), user(result("look"))), COUNT, turn(TWO, user(result(), result("look"), HI))),
    Rule("a result has a call", turn(user(result())), AFTER_CALL, PAIR),
    Rule("a result has a call right before it", turn(model(call()), user(result()), user(result())), AFTER_CALL, PAIR),
    Rule("a result is the user's", turn(model(call()), model(result())), AFTER_CALL, PAIR),
    Rule("a call is not the user's", turn(user(call()), user(result())), AFTER_USER, PAIR),
    Rule("a call does not come first", gemini(model(call()), user(result())), AFTER_USER, gemini(model(HI), user(HI))),
    Rule("a call does not follow the model", turn(model(HI), model(call()), user(result())), AFTER_USER, turn(model(HI, call()), user(result()), model(call()), user(result()))),
    Rule("a result is of that function", turn(model(call()), user(result("look"))), "Please ensure that the names of the function response parts", PAIR),
    Rule("a result is of that call", turn(model(call(id="a")), user(result(id="b"))), "Please ensure that the ids of the function response parts", turn(model(call(id="a")), user(result(id="a")))),
    Rule("an id comes back", turn(model(call(id="a")), user(result())), "Please ensure that the ids", PAIR),
    Rule("older models see no files in results", turn(model(call()), user(result(parts=[PNG])), model="gemini-2.5-m"), "Multimodal function responses", turn(model(call()), user(result(parts=[PNG])))),
    Rule("a file in a result is of a known type", turn(model(call()), user(result(parts=[{"inlineData": {"mimeType": "image/bmp", "data": "AA=="}}]))), "Unsupported MIME type: image/bmp", turn(model(call()), user(result(parts=[PNG])))),
    # signatures
    Rule("a signature is of this provider", turn(model(call(signed="AAAA")), user(result())), "Thought signature is not valid.", turn(model({**call(), **SIGNED}), user(result()))),
    Rule("a signature is of this model", turn(model(call(signed=OWN)), user(result())), "Thought signature is not valid.", third(model(call(signed=OWN)), user(result()))),
    Rule("a signature of a text is of this model", gemini(user(HI), model({**HI, "thoughtSignature": OWN})), "Thought signature", gemini(user(HI), model({**HI, **SIGNED}))),
    Rule("a signature is base64", turn(model(call(signed="?")), user(result())), "thought_signature' (TYPE_BYTES), Base64 decoding failed", turn(model(call(signed=SKIP[0])), user(result()))),
    Rule("the third kind wants its signature", third(model(call()), user(result())), UNSIGNED, third(model(call(signed=OWN)), user(result()))),
    Rule("the third kind can be told to want none", third(model(call()), user(result())), "function call `default_api:read` , position 2.", third(model(call(signed=SKIP[0])), user(result()))),
    Rule("the first call of a step is signed", third(model(call(), call(signed=OWN)), user(result(), result())), UNSIGNED, third(model(call(signed=OWN), call()), user(result(), result()))),
    Rule(
        "every step of a turn is signed",
        third(model(call(signed=OWN)), user(result()), model(call()), user(result())),
        "position 4.",
        third(model(call()), user(result()), model(HI), user(HI)),
    ),
    Rule("a turn goes on beside an image", third(model(call()), user(result(), PNG)), UNSIGNED, third(model(call()), user(result(), HI))),
    # functions
    Rule("a name begins with a letter", tools({**TOOL, "name": "1read"}), f"{DECLARED}.name: Invalid function name. Must start with a letter or an underscore.", tools({**TOOL, "name": "_1"})),
    Rule("a name is plain", tools({**TOOL, "name": "a b"}), "Invalid function name", tools({**TOOL, "name": "a.b:c-d"})),
    Rule("a name is short", tools({**TOOL, "name": "a" * 65}), "with a maximum length of 64", tools({**TOOL, "name": "a" * 64})),
    Rule("a function has a name", tools({"description": "x"}), "Invalid function name", tools({"name": "x"})),
    Rule("names are unique", tools(TOOL, TOOL), "Duplicate function declaration found: read", tools(TOOL, {**TOOL, "name": "b"})),
    Rule("names are unique over all tools", gemini(tools=[{"functionDeclarations": [TOOL]}] * 2), "Duplicate function declaration", gemini(tools=[{"functionDeclarations": [TOOL]}, {"functionDeclarations": [{**TOOL, "name": "b"}]}])),
    Rule("built-in tools beside functions need the flag", gemini(tools=[{"functionDeclarations": [TOOL]}, {"googleSearch": {}}]), "Please enable tool_config.include_server_side_tool_invocations", gemini(tools=[{"functionDeclarations": [TOOL]}, {"googleSearch": {}}], toolConfig={"includeServerSideToolInvocations": True})),
    Rule("parameters are an object's", tools({"name": "a", "parameters": TEXT}), "functionDeclaration parameters schema should be of type OBJECT.", tools({"name": "a"})),
    Rule("a JSON schema is an object's", tools({"name": "a", "parametersJsonSchema": {"type": "string"}}), "should be of type OBJECT", tools({"name": "a", "parametersJsonSchema": {"type": "object", "$defs": {}, "additionalProperties": False}})),
    Rule("parameters are in one language", tools({**TOOL, "parametersJsonSchema": {}}), "only one of parameters and parameters_json_schema", tools(TOOL)),
    # schemas
    *(
        Rule(f"a schema has no {word}", prop(type="STRING", **{word: value}), f"Unknown name \"{word}\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find", prop(type="STRING"))
        for word, value in {"$ref": "#/x", "$defs": {}, "const": "a", "additionalProperties": False, "exclusiveMinimum": 1, "oneOf": [], "allOf": [], "not": {}, "multipleOf": 1}.items()
    ),
    Rule("a schema has no $schema at its root", schema(**{"$schema": "x"}), "Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters'", schema(title="x", description="y")),
    Rule("a schema has a type", prop(description="x"), f"{DECLARED}.parameters.properties[path].type: must be specified when not using", prop(anyOf=[TEXT])),
    Rule("a type is known", prop(type="text"), "(type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"text\"", prop(type="string")),
    Rule("an alternative has a type", prop(anyOf=[{}]), "properties[path].any_of[0].type: must be specified", prop(anyOf=[TEXT, {"type": "NULL"}])),
    Rule("only strings are chosen from a list", prop(type="INTEGER", enum=["1"]), "properties[path].enum: only allowed for STRING type", prop(type="STRING", enum=["1"])),
    Rule("a choice is a string", prop(type="STRING", enum=[1]), "enum[0]' (TYPE_STRING), 1", prop(type="STRING", enum=["1"])),
    Rule("a choice is not empty", prop(type="STRING", enum=["a", ""]), "properties[path].enum[1]: cannot be empty", prop(type="STRING", enum=["a"])),
    Rule("a format is known", prop(type="STRING", format="uri"), "format: only 'enum' and 'date-time' are supported for STRING type", prop(type="STRING", format="date-time")),
    Rule("an array says of what", prop(type="ARRAY"), "properties[path].items: missing field.", prop(type="ARRAY", items=TEXT)),
    Rule("items have a type", prop(type="ARRAY", items={}), "properties[path].items.type: must be specified", prop(type="ARRAY", items=TEXT)),
    Rule("an object has properties", schema(properties={}), f"{DECLARED}.parameters.properties: should be non-empty for OBJECT type", tools({"name": "read"})),
    Rule("an object inside has properties", prop(type="OBJECT"), "properties[path].properties: should be non-empty", prop(type="OBJECT", properties={"a": TEXT})),
    Rule("only objects have properties", prop(type="STRING", properties={"a": TEXT}), "properties: only allowed for OBJECT type", prop(type="OBJECT", properties={"a": TEXT})),
    Rule("what is required is a property", schema(required=["path", "b"]), f"{DECLARED}.parameters.required[1]: property is not defined", schema(required=["path"])),
    # choices
    Rule("a choice comes with functions", choice(tools=(), mode="AUTO"), "Function calling config is set without function_declarations.", choice(mode="AUTO")),
    Rule("a mode is known", choice(mode="required"), "v1beta.Mode), \"required\"", choice(mode="any")),
    Rule("a chosen function goes with a mode", choice(mode="AUTO", allowedFunctionNames=["read"]), "should only be set when the function calling mode is ANY", choice(mode="ANY", allowedFunctionNames=["read"])),
    Rule("a chosen function is there", choice(mode="ANY", allowedFunctionNames=["look"]), "look is not one of the function_declarations", choice(mode="ANY", allowedFunctionNames=["read"])),
    # how it is run
    Rule("it is not too warm", config(temperature=2.1), "generation_config.temperature: temperature must be in the range [0.0, 2.0].", config(temperature=2)),
    Rule("a share is a share", config(topP=1.1), "top_p must be in the range [0.0, 1.0].", config(topP=1)),
    Rule("a limit is positive", config(maxOutputTokens=0), "max_output_tokens must be positive.", config(maxOutputTokens=1)),
    Rule("there are few stops", config(stopSequences=list("abcdef")), "at most 5 stop sequences", config(stopSequences=list("abcde"))),
    Rule("an answer is of a known type", config(responseMimeType="text/html"), "allowed mimetypes are `text/plain`", config(responseMimeType="application/json")),
    Rule("a schema goes with JSON", config(responseJsonSchema={}), "response_json_schema: only allowed when response_mime_type is application/json", config(responseMimeType="application/json", responseJsonSchema={})),
    Rule("there is one schema", config(responseMimeType="application/json", responseJsonSchema={}, responseSchema=TEXT), "only one of response_schema and response_json_schema", config(responseMimeType="application/json", responseSchema=TEXT)),
    Rule("the schema of an answer is checked", config(responseMimeType="application/json", responseSchema={"type": "ARRAY"}), "response_schema.items: missing field.", config(responseMimeType="application/json", responseSchema=TEXT)),
    Rule(
        "older models do not call and answer in JSON",
        tools(TOOL, model="gemini-2.5-m", generationConfig={"responseMimeType": "application/json"}),
        "Function calling with a response mime type: 'application/json' is unsupported",
        tools(TOOL, generationConfig={"responseMimeType": "application/json"}),
    ),
    Rule("thinking is measured one way", thinking(thinkingBudget=1, thinkingLevel="LOW"), "only one of thinking budget and thinking level", thinking(thinkingBudget=0)),
    Rule("older models know no levels", thinking("gemini-2.5-m", thinkingLevel="low"), "Thinking level is not supported for this model.", thinking(THIRD, thinkingLevel="low")),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_a_rule_refuses_one_thing_and_takes_the_next(rule: Rule):
    check("gemini", rule.taken, {})
    with pytest.raises(Refused) as caught:
        check("gemini", rule.refused, {})
    assert rule.words in caught.value.message
    assert caught.value.status == 400


def test_a_schema_without_end_is_refused_and_not_read():
    deep: Json = TEXT
    for _ in range(150):
        deep = {"type": "ARRAY", "items": deep}
    with pytest.raises(Refused, match="Message too deep"):
        check("gemini", prop(**deep), {})


@given(data=st.data())
def test_a_body_with_anything_anywhere_is_answered_or_refused(data: st.DataObject):
    body = copy.deepcopy(data.draw(st.sampled_from([rule.taken for rule in RULES])))
    *way, last = data.draw(st.sampled_from([place for place in places(body) if place != ("model",)]))
    holder: Any = body
    for key in way:
        holder = holder[key]
    holder[last] = data.draw(VALUES)
    with suppress(Refused):
        check("gemini", body, {})
    library = ScriptLibrary()
    assert library.answer(*library.find("gemini", "tool1"), "gemini", body["model"], body).status == 200


# The front door -----------------------------------------------------------------------------------------------------

SHOWN: Json = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


def path(name: str, query: str = "?alt=sse") -> str:
    return f"/v1beta/models/{name}:streamGenerateContent{query}"


async def ask(name: str, *items: Item, **fields: Any) -> Reply:
    async with Provider() as provider:
        provider.script(name, [list(items)])
        [reply] = await send(provider, wire(path(name), {"contents": [user(HI)], **fields}, {}))
        return reply


def parts(reply: Reply) -> list[Json]:
    contents = [event["candidates"][0].get("content", {}) for event in reply.events]
    return [part for content in contents for part in content.get("parts", ())]


async def test_an_answer_comes_in_parts_with_the_tokens_so_far():
    reply = await ask("m", Say("hello there"), ScriptedUsage(10, 30, cached=4, reasoning=5))

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.body.endswith(b"}\r\n\r\n")
    first, second, last = reply.events
    assert first["candidates"] == [{"content": {"parts": [{"text": "hello "}], "role": "model"}, "index": 0}]
    assert second["usageMetadata"]["candidatesTokenCount"] == 2
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"] == {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 25,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 40,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
    }


async def test_thoughts_are_shown_to_who_asks_for_them():
    items = Think("hm"), Redacted(), Say("hi")

    assert parts(await ask("m", *items)) == [{"text": "hi"}, {"text": ""}]
    assert parts(await ask("m", *items, **SHOWN)) == [{"text": "hm", "thought": True}, {"text": "hi"}, {"text": ""}]


async def test_calls_come_whole_and_the_first_is_signed():
    items = Call("read", '{"a": 1}'), Call("read", "")

    first, second, last = parts(await ask("m", *items))
    assert first == {"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": first["thoughtSignature"]}
    assert (second, last) == ({"functionCall": {"name": "read"}}, {"text": ""})
    initial, other, _ = parts(await ask("gemini-3-m", *items))
    assert initial["functionCall"]["id"] != other["functionCall"]["id"]
    assert "thoughtSignature" not in other


async def test_only_the_third_kind_signs_the_end_of_a_text():
    *_, last = parts(await ask(THIRD, Say("hi")))

    check("gemini", third(model(HI, last), user(HI)), {})
    assert parts(await ask("m", Say("hi")))[-1] == {"text": ""}


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([Say("a")], "STOP"),
        ([Call("read")], "STOP"),
        ([Say("a"), Finish("length")], "MAX_TOKENS"),
        ([Say("a"), Finish("content_filter")], "SAFETY"),
        ([Refuse("no")], "SAFETY"),
        ([], "STOP"),
        ([Call("read", "{oops")], "MALFORMED_FUNCTION_CALL"),
        ([Call("read", "[]")], "MALFORMED_FUNCTION_CALL"),
    ],
)
async def test_an_answer_says_why_it_ends(items: list[Item], reason: str):
    reply = await ask("m", *items)

    assert reply.events[-1]["candidates"][0]["finishReason"] == reason


async def test_a_filter_that_lets_no_word_pass_has_blocked_the_prompt():
    [event] = (await ask("m", Finish("content_filter"))).events

    assert event["promptFeedback"] == {"blockReason": "SAFETY"}
    assert "candidates" not in event


async def test_a_call_is_there_before_the_connection_breaks_if_it_was_whole():
    reply = await ask("m", Call("read", '{"a": 1}'), Cut())
    assert [part["functionCall"]["args"] for part in parts(reply)] == [{"a": 1}]
    assert not reply.is_whole
    assert parts(await ask("m", Call("read", '{"a": '), Cut())) == []


async def test_an_error_in_the_stream_is_an_event_or_not_even_that():
    rate = InBandError("Slow down.", "rate_limit_exceeded")

    reply = await ask("m", Say("a"), rate)
    assert reply.events[-1] == {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
    bare = (await ask("m", Say("a"), InBandError("Sorry.", kind="bare"))).body.split(b"\r\n\r\n")[-1]
    assert json.loads(bare) == {"error": {"code": 500, "message": "Sorry.", "status": "INTERNAL"}}


@pytest.mark.parametrize(
    ("status", "word", "words"),
    [
        (400, "INVALID_ARGUMENT", "failed with status 400"),
        (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted"),
        (503, "UNAVAILABLE", "The model is overloaded."),
        (418, "UNKNOWN", "failed with status 418"),
    ],
)
async def test_a_status_has_googles_body(status: int, word: str, words: str):
    reply = await ask("m", Status(status))

    error = reply.json["error"]
    assert (reply.status, error["code"], error["status"]) == (status, status, word)
    assert words in error["message"]
    assert "details" not in error


async def test_what_is_refused_is_told_in_googles_body_and_remembered():
    async with Provider() as provider:
        provider.script("m", [[Say("hi")]])
        [reply] = await send(provider, wire(path("m"), {"contents": []}, {}))

        assert reply.json["error"]["status"] == "INVALID_ARGUMENT"
        assert provider.refusals == ["* GenerateContentRequest.contents: contents is not specified\n"]
        assert [(seen.format, seen.model, seen.status) for seen in provider.seen] == [("gemini", "m", 400)]


async def test_a_model_is_named_in_the_path():
    async with Provider() as provider:
        provider.script("a/b:c", [[Say("hi")]])
        body = {"contents": [user(HI)]}
        [known, unknown] = await send(provider, wire(path("a%2Fb:c"), body, {}), wire(path("nobody"), body, {}))

        assert (known.status, provider.seen[0].model) == (200, "a/b:c")
        assert (unknown.status, unknown.json["error"]["status"]) == (404, "NOT_FOUND")
        assert "models/nobody is not found for API version v1beta" in unknown.json["error"]["message"]


@pytest.mark.parametrize("query", ["", "?alt=json", "?key=alt=sse"])
async def test_an_answer_is_asked_for_in_events(query: str):
    async with Provider() as provider:
        [reply] = await send(provider, wire(path("plain", query), {"contents": [user(HI)]}, {}))

    assert "'alt' must be sse" in reply.json["error"]["message"]


async def test_a_key_comes_in_its_header_or_in_the_query():
    body = {"contents": [user(HI)]}
    async with Provider(key="k") as provider:
        replies = await send(
            provider,
            wire(path("plain"), body, {"x-goog-api-key": "k"}),
            wire(path("plain", "?key=k&alt=sse"), body, {}),
            wire(path("plain"), body, {"x-goog-api-key": "z"}),
            wire(path("plain"), body, {"authorization": "Bearer k"}),
        )

    assert [reply.status for reply in replies] == [200, 200, 400, 403]
    assert replies[2].json["error"]["message"] == "API key not valid. Please pass a valid API key."
    assert replies[2].json["error"]["details"][0]["reason"] == "API_KEY_INVALID"


async def test_a_turn_goes_on_where_its_request_says_it_stands():
    async with Provider() as provider:
        model_content, answered = model(call("lookup")), user(result("lookup"))
        steps = [
            [user(HI)],
            [user(HI), model_content, answered],
            [user(HI), model_content, answered, model(HI), user(HI)],
        ]
        declared = [{"functionDeclarations": [{"name": "lookup"}]}]
        replies = await send(
            provider, *(wire(path("tool1-n1"), {"contents": contents, "tools": declared}, {}) for contents in steps)
        )

    assert ["functionCall" in parts(reply)[0] for reply in replies] == [True, False, True]


async def test_what_was_answered_is_taken_back_as_it_came():
    async with Provider() as provider:
        provider.script(THIRD, [[Think("hm"), Call("read", '{"a": 1}'), Call("look")], [Say("hi")]])
        contents = [user(HI)]
        for _ in range(3):
            [reply] = await send(provider, wire(path(THIRD), {"contents": contents, **SHOWN}, {}))
            reply_parts = parts(reply)
            calls = [part["functionCall"] for part in reply_parts if "functionCall" in part]
            results = [result(function_call["name"], id=function_call["id"]) for function_call in calls]
            whole = [
                part for part in reply_parts if part.get("text") or "functionCall" in part or "thoughtSignature" in part
            ]
            contents = [*contents, model(*whole), user(*results or [HI])]

        assert provider.refusals == []
        assert len(provider.seen) == 3
