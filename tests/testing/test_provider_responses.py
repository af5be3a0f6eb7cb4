"""What the provider refuses in the responses format, and the nearest thing to it that it takes."""

from typing import Any

import pytest
from tests.testing.provider_rules import Rule

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.signatures import seal_reasoning
from everturn.testing.provider.strict.request import check

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "hi"}
SAID: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
REASONING: Json = {"type": "reasoning", "summary": [], "encrypted_content": seal_reasoning("enc", "m", "hm")}
TOOL: Json = {"type": "function", "name": "read", "parameters": {"type": "object"}}


def responses(*items: Any, **fields: Any) -> Json:
    return {"model": "m", "stream": True, "store": False, "input": list(items) or [USER], **fields}


def call(id: Any = "call_1", name: Any = "read", arguments: Any = "{}", **fields: Any) -> Json:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **fields}


def output(id: Any = "call_1", output: Any = "ok") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": output}


def says(role: str, *parts: Any) -> Json:
    return responses({"type": "message", "role": role, "content": list(parts)})


PAIR = responses(USER, call(), output())
LATER = responses(USER, REASONING, call(), output())
TEXT = {"type": "input_text", "text": "hi"}
IMAGE = {"type": "input_image", "image_url": "https://a.b/c.png"}

RULES = [
    Rule("the answer is streamed", responses(stream=False), "'stream' must be true", responses()),
    Rule("fields are known", responses(messages=[]), "Unknown parameter: 'messages'.", responses(reasoning={}, metadata={})),
    Rule("there is input", responses(input=None), "Missing required parameter: 'input'.", responses(input="hi")),
    Rule("input is text or items", responses(input=1), "Invalid type for 'input'", responses()),
    Rule("instructions are text", responses(instructions=["a"]), "Invalid type for 'instructions': expected a string", responses(instructions="a")),
    Rule("the limit is a handful", responses(max_output_tokens=15), "Expected a value >= 16, but got 15 instead.", responses(max_output_tokens=16)),
    Rule("the limit is a number", responses(max_output_tokens="16"), "expected an integer, but got a string", responses()),
    Rule("what is included is known", responses(include=["everything"]), "Invalid value: 'everything'.", responses(include=["reasoning.encrypted_content"])),
    Rule("nothing is remembered", responses(previous_response_id="resp_1"), "Previous response with id 'resp_1' not found.", responses()),
    Rule("no conversation is remembered", responses(conversation="conv_1"), "Conversation not found", responses()),
    Rule("a format is known", responses(text={"format": {"type": "xml"}}), "Invalid value: 'xml'", responses(text={"format": {"type": "text"}})),
    Rule("a schema format has a name", responses(text={"format": {"type": "json_schema", "schema": {}}}), "'text.format.name'", responses(text={"format": {"type": "json_schema", "name": "a", "schema": {}}})),
    Rule("a schema format has a schema", responses(text={"format": {"type": "json_schema", "name": "a"}}), "'text.format.schema'", responses(text={"verbosity": "low"})),
    # tools
    Rule("a tool is flat", responses(tools=[{"type": "function", "function": {"name": "read"}}]), "Missing required parameter: 'tools[0].name'.", responses(tools=[TOOL])),
    Rule("a tool has a type", responses(tools=[{"name": "read"}]), "'tools[0].type'", responses(tools=[TOOL])),
    Rule("a tool is known", responses(tools=[{"type": "magic"}]), "Invalid value: 'magic'", responses(tools=[{"type": "web_search"}])),
    Rule("a name is plain", responses(tools=[{**TOOL, "name": "a.b"}]), "does not match pattern", responses(tools=[TOOL])),
    Rule("names are unique", responses(tools=[TOOL, TOOL]), "Tool names must be unique", responses(tools=[TOOL, {**TOOL, "name": "b"}])),
    Rule("a schema is of an object", responses(tools=[{**TOOL, "parameters": {"type": "array"}}]), "schema must be a JSON Schema", responses(tools=[TOOL])),
    Rule("a schema has a plain root", responses(tools=[{**TOOL, "parameters": {"type": "object", "anyOf": []}}]), "at the top level", responses(tools=[TOOL])),
    Rule("a choice comes with tools", responses(tool_choice="auto"), "'tool_choice' is only allowed when 'tools' are specified", responses(tools=[TOOL], tool_choice="auto")),
    Rule("parallel calls come with tools", responses(parallel_tool_calls=True), "'parallel_tool_calls' is only allowed", responses(tools=[TOOL], parallel_tool_calls=True)),
    # messages
    Rule("an item is an object", responses("hi"), "Invalid type for 'input[0]'", responses(USER)),
    Rule("an item has a type", responses({"content": "hi"}), "Missing required parameter: 'input[0].type'", responses(USER)),
    Rule("an item is known", responses({"type": "magic"}), "Invalid value: 'magic'", responses(SAID)),
    Rule("a role is known", says("tool", TEXT), "Invalid value: 'tool'", says("developer", TEXT)),
    Rule("there is content", responses({"role": "user"}), "'input[0].content'", responses(USER)),
    Rule("content is not empty", says("user"), "empty array", says("user", TEXT)),
    Rule("a user sends input", says("user", {"type": "output_text", "text": "a"}), "Invalid value: 'output_text'. Supported values are: 'input_text'", says("user", TEXT, IMAGE)),
    Rule("an assistant sent output", says("assistant", TEXT), "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.", says("assistant", {"type": "refusal", "refusal": "no"})),
    Rule("text has text", says("user", {"type": "input_text"}), "'input[0].content[0].text'", says("system", TEXT)),
    Rule("an image lies somewhere", says("user", {"type": "input_image", "image_url": "c.png"}), "Expected a valid URL", says("user", {"type": "input_image", "file_id": "file-1"})),
    Rule("a file has data", says("user", {"type": "input_file", "filename": "a"}), "file_data'", says("user", {"type": "input_file", "filename": "a", "file_data": "data:"})),
    Rule("a file has a name", says("user", {"type": "input_file", "file_data": "data:"}), "filename'", says("user", {"type": "input_file", "file_url": "https://a.b"})),
    # calls and outputs
    Rule("a call has an id", responses(USER, call(None), output()), "'input[1].call_id'", PAIR),
    Rule("an id is short", responses(USER, call("a" * 65), output("a" * 65)), "maximum length 64", responses(USER, call("a" * 64), output("a" * 64))),
    Rule("ids are unique", responses(USER, call(), output(), call(), output()), "Duplicate function call found with call_id call_1", responses(USER, call(), output(), call("b"), output("b"))),
    Rule("a call has a plain name", responses(USER, call(name="a b"), output()), "does not match pattern", PAIR),
    Rule("arguments are a string", responses(USER, call(arguments={}), output()), "expected a string, but got an object", PAIR),
    Rule("arguments are an object", responses(USER, call(arguments='"a"'), output()), "holds a JSON object", responses(USER, call(arguments='{"a":1}'), output())),
    Rule("a call is answered", responses(USER, call()), "No tool output found for function call call_1.", PAIR),
    Rule("every call is answered", responses(USER, call(), call("b"), output()), "No tool output found for function call b.", responses(USER, call(), call("b"), output("b"), output())),
    Rule("an output has a call", responses(USER, output()), "No tool call found for function call output with call_id call_1.", PAIR),
    Rule("an output comes behind its call", responses(USER, output(), call()), "No tool call found", PAIR),
    Rule("a call has one output", responses(USER, call(), output(), output()), "Duplicate function call output", PAIR),
    Rule("an output is there", responses(USER, call(), output(output=None)), "'input[2].output'", responses(USER, call(), output(output=""))),
    Rule("an output is input", responses(USER, call(), output(output=[{"type": "output_text", "text": "a"}])), "Invalid value: 'output_text'", responses(USER, call(), output(output=[TEXT, IMAGE]))),
    # reasoning
    Rule("reasoning has a summary", responses(USER, {"type": "reasoning"}, SAID), "Missing required parameter: 'input[1].summary'.", responses(USER, REASONING, SAID)),
    Rule("a summary is text", responses(USER, {**REASONING, "summary": [TEXT]}, SAID), "'summary_text'", responses(USER, {**REASONING, "summary": [{"type": "summary_text", "text": "a"}]}, SAID)),
    Rule("reasoning is unchanged", responses(USER, {**REASONING, "encrypted_content": "gAAAAAAAxyz"}, SAID), "The encrypted content gAAA...Axyz could not be verified.", responses(USER, REASONING, SAID)),
    Rule("reasoning is of this model", responses(USER, REASONING, SAID, model="n"), "could not be verified", responses(USER, REASONING, SAID)),
    Rule("reasoning is not alone", responses(USER, REASONING), "Item 'input[1]' of type 'reasoning' was provided without its required following item.", LATER),
    Rule("reasoning is not followed by a user", responses(USER, REASONING, REASONING, USER), "without its required following item", responses(USER, REASONING, REASONING, SAID, USER)),
    Rule("reasoning is not followed by an output", responses(USER, call(), REASONING, output()), "without its required following item", LATER),
    *(
        Rule(f"without a store {item['type']} has no id", responses(USER, *before, {**item, "id": id}, *after), f"Item with id '{id}' not found. Items are not persisted when `store` is set to false.", responses(USER, *before, {**item, "id": id}, *after, store=True))
        for item, id, before, after in (
            (REASONING, "rs_1", [], [SAID]),
            (SAID, "msg_1", [], []),
            (call(), "fc_1", [], [output()]),
        )
    ),
    Rule("a stored id says what it is", responses(USER, {**SAID, "id": "rs_1"}, store=True), "Expected an ID that begins with 'msg'.", responses(USER, {**SAID, "id": "msg_1"}, store=None)),
    # shapes
    Rule("what is included is a list", responses(include="all"), "Invalid type for 'include': expected an array of strings", responses(include=[])),
    Rule("content is text or parts", responses({"role": "user", "content": 1}), "Invalid type for 'input[0].content'", responses(USER)),
    Rule("there is an output", responses(USER, call(), output(output=None)), "Missing required parameter: 'input[2].output'.", PAIR),
    Rule("a type is a string", responses({"type": ["message"], **USER}), "Invalid type for 'input[0].type'", responses(USER)),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_a_rule_refuses_one_thing_and_takes_the_next(rule: Rule):
    check("responses", rule.taken, {})
    with pytest.raises(Refused) as caught:
        check("responses", rule.refused, {})
    assert rule.words in caught.value.message
    assert caught.value.status == 400
