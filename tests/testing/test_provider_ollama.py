"""What the provider refuses in the ollama format and the nearest thing to it that it takes, and how it answers there."""

import copy
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from everturn.testing.provider.library import ScriptLibrary
from everturn.testing.provider.strict.functions import OURS
from everturn.testing.provider.strict.request import check, model_of

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "hi"}
SAID: Json = {"role": "assistant", "content": "hello"}
TOOL: Json = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}


def ollama(*messages: Any, **fields: Any) -> Json:
    return {"model": "m", "messages": list(messages) or [USER], **fields}


def call_message(*names: str, **fields: Any) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": [call(name, **fields) for name in names]}


def call(name: Any = "read", arguments: Any = None, **fields: Any) -> Json:
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}, **fields}


def calls(*tool_calls: Any) -> Json:
    return ollama(USER, {"role": "assistant", "content": "", "tool_calls": list(tool_calls)}, result())


def result(name: Any = "read", content: Any = "x", **fields: Any) -> Json:
    return {"role": "tool", "content": content, "tool_name": name, **fields}


def tool(**function: Any) -> Json:
    return ollama(tools=[{"type": "function", "function": {**TOOL["function"], **function}}])


def schema(**fields: Any) -> Json:
    return tool(parameters={"type": "object", **fields})


def prop(**fields: Any) -> Json:
    return schema(properties={"path": fields})


def image(*images: Any) -> Json:
    return ollama({**USER, "images": list(images)})


class Rule(NamedTuple):
    says: str
    refused: Json
    words: str
    taken: Json
    is_ours: bool = False


PAIR = ollama(USER, call_message("read"), result())
NO_OBJECT = "Value looks like object, but can't find closing '}' symbol"
FIELD = "into Go struct field ChatRequest."

RULES = [
    # types
    Rule("stream is a boolean", ollama(stream="yes"), f"json: cannot unmarshal string {FIELD}stream of type bool", ollama(stream=None)),
    Rule("messages are a list", ollama(messages="hi"), f"json: cannot unmarshal string {FIELD}messages of type []api.Message", ollama(no_such_field=1)),
    Rule("tools are a list", ollama(tools={}), f"json: cannot unmarshal object {FIELD}tools of type api.Tools", ollama(tools=[])),
    Rule("options are an object", ollama(options=[]), f"cannot unmarshal array {FIELD}options of type map[string]interface {{}}", ollama(options={"no_such_option": "x"})),
    Rule("a whole option is a number", ollama(options={"num_ctx": "8k"}), 'option "num_ctx" must be of type integer', ollama(options={"num_ctx": 8192})),
    Rule("an option is a number", ollama(options={"temperature": True}), 'option "temperature" must be of type float32', ollama(options={"temperature": 1})),
    Rule("stops are a list", ollama(options={"stop": "a"}), 'option "stop" must be of type array', ollama(options={"stop": ["a"], "seed": None})),
    Rule("a format is known", ollama(format="xml"), 'invalid format: "\\"xml\\""; expected "json" or a valid JSON Schema object', ollama(format="json")),
    Rule("a format is a schema", ollama(format=[1]), 'invalid format: "[1]"; expected', ollama(format={"type": "object"})),
    Rule("a level is known", ollama(think="hard"), 'invalid think value: "hard" (must be "high", "medium", "low", "max", true, or false)', ollama(think="high")),
    Rule("thinking is on or off", ollama(think=1), "think must be a boolean or string", ollama(think=True)),
    Rule("not every model thinks", ollama(model="nothink-m", think=True), '"nothink-m" does not support thinking', ollama(model="nothink-m", think=False)),
    Rule("not every model thinks on a level", ollama(model="nothink-m", think="low"), "does not support thinking", ollama(model="nothink-m")),
    # tools
    Rule("not every model calls", ollama(model="notools-m", tools=[TOOL]), '"notools-m" does not support tools', ollama(model="notools-m", tools=[])),
    Rule("a tool is an object", ollama(tools=["read"]), f"cannot unmarshal string {FIELD}tools of type api.Tool", ollama(tools=[TOOL])),
    Rule("a function is an object", ollama(tools=[{"function": "read"}]), "tools.function of type api.ToolFunction", ollama(tools=[TOOL])),
    Rule("a name is a string", tool(name=1), "cannot unmarshal number into Go struct field ChatRequest.tools.function.name of type string", tool()),
    Rule("parameters are an object", tool(parameters=[]), "tools.function.parameters of type api.ToolFunctionParameters", tool(parameters=None)),
    Rule("parameters have one type", schema(type=["object", "null"]), "cannot unmarshal array into Go struct field ChatRequest.tools.function.parameters.type of type string", prop(type=["string", "null"])),
    Rule("a type is a string", prop(type=[1]), "parameters.properties.type of type string", prop(type=["string"])),
    Rule("a description is a string", prop(description={}), "properties.description of type string", prop(description="x")),
    Rule("required are strings", schema(required=[1]), "parameters.required of type []string", schema(required=["a"])),
    Rule("properties are an object", schema(properties=[]), NO_OBJECT, schema(properties={})),
    Rule("a property is an object", schema(properties={"path": True}), "cannot unmarshal bool into Go struct field", prop(**{"$ref": "#/x", "const": 1})),
    Rule("alternatives are a list", prop(anyOf={}), "anyOf of type []api.ToolProperty", prop(anyOf=[{"type": "string"}])),
    Rule("a property inside is read too", prop(properties={"a": {"type": 1}}), "properties.type of type string", prop(properties={"a": {"type": "string"}})),
    Rule("a tool has a function", ollama(tools=[{"type": "function"}]), "a tool without a function", ollama(tools=[TOOL]), True),
    Rule("a tool has a name", tool(name=""), "a tool without a name", tool(), True),
    Rule("names are unique", ollama(tools=[TOOL, TOOL]), 'two tools are called "read"', ollama(tools=[TOOL, tool(name="b")["tools"][0]]), True),
    # messages
    Rule("there are messages", ollama(messages=[]), "a request without messages only loads the model", ollama(), True),
    Rule("a message is an object", ollama("hi"), f"cannot unmarshal string {FIELD}messages of type api.Message", ollama()),
    Rule("a role is known", ollama({"role": "developer", "content": "a"}), 'invalid role: "developer"', ollama({"role": "system", "content": "a"}, USER), True),
    Rule("a message has a role", ollama({"content": "a"}), 'invalid role: ""', ollama(), True),
    Rule("content is a string", ollama({**USER, "content": [{"type": "text", "text": "a"}]}), f"cannot unmarshal array {FIELD}messages.content of type string", ollama(USER)),
    Rule("thinking is a string", ollama(USER, {**SAID, "thinking": True}), "messages.thinking of type string", ollama(USER, {**SAID, "thinking": "hm"})),
    Rule("an assistant says something", ollama(USER, {**SAID, "content": ""}, USER), "an assistant message without anything in it", ollama(USER, SAID, USER), True),
    # images
    Rule("images are a list", ollama({**USER, "images": "AAAA"}), "messages.images of type []api.ImageData", image("AAAA")),
    Rule("an image is a string", image({"url": "x"}), "cannot unmarshal object into Go struct field ChatRequest.messages.images", image("AAAA")),
    Rule("an image is no URL", image("data:image/png;base64,AAAA"), "illegal base64 data at input byte 4", image("AAAA")),
    Rule("an image is plain", image("AAAA_-_-"), "illegal base64 data at input byte 4", image("AAAA+/+/")),
    Rule("an image is whole", image("AAA"), "illegal base64 data at input byte 3", image("AAA=")),
    # calls
    Rule("calls are a list", ollama(USER, {**SAID, "tool_calls": {}}), "messages.tool_calls of type []api.ToolCall", PAIR),
    Rule("a call is an object", calls("read"), "tool_calls of type api.ToolCall", calls(call())),
    Rule("a call's function is an object", calls({"function": "read"}), "tool_calls.function of type api.ToolCallFunction", calls(call())),
    Rule("a call's name is a string", calls(call(1)), "tool_calls.function.name of type string", calls(call())),
    Rule("an id is a string", calls(call(id=1)), "tool_calls.id of type string", calls(call(id="a"))),
    Rule("arguments are an object", calls(call(arguments='{"a": 1}')), NO_OBJECT, calls(call(arguments={"a": 1}))),
    Rule("arguments are no list", calls(call(arguments=[])), NO_OBJECT, calls({"function": {"name": "read"}})),
    Rule("a call has a name", calls({"function": {}}), "a call without a name", calls(call()), True),
    Rule("a call is the assistant's", ollama({**USER, "tool_calls": [call()]}, result()), 'calls in a message of role "user"', PAIR, True),
    # results
    Rule("a result has a call", ollama(USER, result()), 'a result of "read" without a call of it right before', PAIR, True),
    Rule("a result has a call right before it", ollama(USER, call_message("read"), result(), SAID, result()), "without a call of it right before", ollama(USER, call_message("read"), result(), SAID), True),
    Rule("a call has one result", ollama(USER, call_message("read"), result(), result()), "without a call of it right before", ollama(USER, call_message("read", "read"), result(), result()), True),
    Rule("a result names its tool", ollama(USER, call_message("read"), result(None)), "a tool message without a tool_name", PAIR, True),
    Rule("a result is of that tool", ollama(USER, call_message("read"), result("look")), 'a result of "look" without a call', PAIR, True),
    Rule("a result is of that call", ollama(USER, call_message("read", id="a"), result(tool_call_id="b")), "without a call of it", ollama(USER, call_message("read", id="a"), result(tool_call_id="a")), True),
    Rule("a call is answered", ollama(USER, call_message("read")), "calls without a result: read", PAIR, True),
    Rule("a call is answered at once", ollama(USER, call_message("read"), USER, result()), "calls without a result: read", ollama(USER, call_message("read"), result(), USER), True),
    Rule("every call is answered", ollama(USER, call_message("read", "look"), result("look")), "calls without a result: read", ollama(USER, call_message("read", "look"), result("look"), result()), True),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_a_rule_refuses_one_thing_and_takes_the_next(rule: Rule):
    check("ollama", rule.taken, {})
    with pytest.raises(Refused) as caught:
        check("ollama", rule.refused, {})
    assert rule.words in caught.value.message
    assert caught.value.status == 400
    assert caught.value.message.endswith(OURS) == rule.is_ours


def test_the_answer_is_streamed():
    check("ollama", ollama(stream=True), {})
    with pytest.raises(Refused, match="'stream' must not be false"):
        check("ollama", ollama(stream=False), {})


@given(data=st.data())
def test_a_body_with_anything_anywhere_is_answered_or_refused(data: st.DataObject):
    body = copy.deepcopy(data.draw(st.sampled_from([rule.taken for rule in RULES])))
    *way, last = data.draw(st.sampled_from(places(body)))
    holder: Any = body
    for key in way:
        holder = holder[key]
    holder[last] = data.draw(VALUES)
    try:
        model = model_of("ollama", body)
        check("ollama", body, {})
    except Refused:
        model = "m"
    library = ScriptLibrary()
    assert library.answer(*library.find("ollama", "tool1"), "ollama", model, body).status == 200


# The front door -----------------------------------------------------------------------------------------------------

PATH = "/api/chat"


async def ask(*items: Item, model: str = "m", **fields: Any) -> Reply:
    async with Provider() as provider:
        provider.script(model, [list(items)])
        [reply] = await send(provider, wire(PATH, ollama(model=model, **fields), {}))
        return reply


def lines(reply: Reply) -> list[Json]:
    return [json.loads(line) for line in reply.body.decode().splitlines()]


def messages(reply: Reply) -> list[Json]:
    return [line["message"] for line in lines(reply)]


async def test_an_answer_comes_in_lines_and_the_last_one_counts():
    reply = await ask(Say("hello there"), ScriptedUsage(10, 30))

    assert reply.headers["content-type"] == "application/x-ndjson"
    assert reply.body.endswith(b"}\n")
    first, second, last = lines(reply)
    assert first == {
        "model": "m",
        "created_at": first["created_at"],
        "message": {"role": "assistant", "content": "hello "},
        "done": False,
    }
    assert second["message"]["content"] == "there"
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert (last["prompt_eval_count"], last["eval_count"]) == (10, 30)


async def test_thinking_is_shown_unless_it_is_off():
    items = Think("hm"), Redacted(), Say("hi")
    thought, answer = {"role": "assistant", "content": "", "thinking": "hm"}, {"role": "assistant", "content": "hi"}

    assert messages(await ask(*items))[:-1] == [thought, answer]
    assert messages(await ask(*items, think="low"))[:-1] == [thought, answer]
    assert messages(await ask(*items, think=False))[:-1] == [answer]
    assert messages(await ask(*items, model="nothink-m"))[:-1] == [answer]


async def test_calls_come_whole_with_ids():
    reply = await ask(Call("read", '{"a": 1}'), Call("read", "", id="mine"))

    tool_calls = [tool_call for message in messages(reply) for tool_call in message.get("tool_calls", ())]
    assert [tool_call["function"] for tool_call in tool_calls] == [
        {"index": 0, "name": "read", "arguments": {"a": 1}},
        {"index": 1, "name": "read", "arguments": {}},
    ]
    assert tool_calls[0]["id"].startswith("call_")
    assert tool_calls[1]["id"] == "mine"
    assert lines(reply)[-1]["done_reason"] == "stop"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([Say("a"), Finish("length")], "length"),
        ([Say("a"), Finish("content_filter")], "stop"),
        ([Refuse("no")], "stop"),
        ([], "stop"),
    ],
)
async def test_an_answer_says_why_it_ends(items: list[Item], reason: str):
    assert lines(await ask(*items))[-1]["done_reason"] == reason


async def test_an_error_in_the_stream_is_a_line_and_an_early_one_a_status():
    late, early = await ask(Say("a"), InBandError("Sorry.")), await ask(InBandError("Sorry."))

    assert lines(late)[-1] == early.json == {"error": "Sorry."}
    assert (late.status, early.status) == (200, 500)


@pytest.mark.parametrize("arguments", ["{oops", "[]", "null", "a.txt"])
async def test_a_call_that_cannot_be_read_is_an_error(arguments: str):
    reply = await ask(Say("a"), Call("read", arguments), Say("never"))

    assert f"error parsing tool call: raw='{arguments}'" in lines(reply)[-1]["error"]
    assert (await ask(Call("read", arguments))).status == 500


async def test_a_call_is_there_before_the_connection_breaks_if_it_was_whole():
    reply = await ask(Call("read", '{"a": 1}'), Cut())

    assert [len(message["tool_calls"]) for message in messages(reply)] == [1]
    assert not reply.is_whole
    half = await ask(Call("read", '{"a": '), Cut())
    assert (half.status, half.body, half.is_whole) == (200, b"", False)


@pytest.mark.parametrize(("status", "words"), [(400, "failed with status 400"), (503, "server busy, please try again")])
async def test_a_status_has_ollamas_body(status: int, words: str):
    reply = await ask(Status(status))

    assert reply.status == status
    assert words in reply.json["error"]


async def test_what_is_refused_is_told_in_ollamas_body_and_remembered():
    async with Provider() as provider:
        provider.script("m", [[Say("hi")]])
        [reply] = await send(provider, wire(PATH, ollama(think="hard"), {}))

        assert reply.status == 400
        assert provider.refusals == [reply.json["error"]]
        assert provider.seen[0].format == "ollama"


async def test_a_model_has_a_name_of_its_own_kind_and_is_there():
    async with Provider() as provider:
        provider.script("library/m:7b-q4", [[Say("hi")]])
        names = ["library/m:7b-q4", "library/n:latest", ""]
        replies = await send(provider, *(wire(PATH, ollama(model=name), {}) for name in names))

        assert [reply.status for reply in replies] == [200, 404, 400]
        assert replies[1].json == {"error": "model 'library/n:latest' not found"}
        assert replies[2].json == {"error": "model is required"}


async def test_a_key_is_asked_for_where_there_is_one():
    async with Provider(key="k") as provider:
        body = ollama(model="plain")
        authorized, missing = await send(
            provider, wire(PATH, body, {"authorization": "Bearer k"}), wire(PATH, body, {})
        )

        assert (authorized.status, missing.status) == (200, 401)
        assert missing.json == {"error": "unauthorized"}


async def test_a_turn_goes_on_where_its_request_says_it_stands():
    async with Provider() as provider:
        step = [call_message("lookup"), result("lookup")]
        histories = [[USER], [USER, *step], [USER, *step, SAID, USER]]
        replies = await send(
            provider, *(wire(PATH, ollama(*history, model="tool1-n1", tools=[TOOL]), {}) for history in histories)
        )

    assert ["tool_calls" in messages(reply)[0] for reply in replies] == [True, False, True]


async def test_calls_get_new_ids_even_where_none_come_back():
    async with Provider() as provider:
        provider.script("m", [[Call("read")]])
        histories = [[USER], [USER, call_message("read"), result()]]
        replies = await send(provider, *(wire(PATH, ollama(*history), {}) for history in histories))

    assert len({messages(reply)[0]["tool_calls"][0]["id"] for reply in replies}) == 2
