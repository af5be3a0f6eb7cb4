"""What the provider refuses in the messages format, and the nearest thing to it that it takes."""

from typing import Any

import pytest
from tests.testing.provider_rules import Rule

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.signatures import seal_reasoning, sign
from everturn.testing.provider.strict.request import check

Json = dict[str, Any]
HEADERS = {"anthropic-version": "2023-06-01"}

USER: Json = {"role": "user", "content": "hi"}
SAID: Json = {"role": "assistant", "content": "hello"}
TEXT: Json = {"type": "text", "text": "hi"}
MARK: Json = {"cache_control": {"type": "ephemeral"}}
TOOL: Json = {"name": "read", "input_schema": {"type": "object", "properties": {"a.b-C_1": {}}}}
THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": sign("m", "hm")}
HIDDEN: Json = {"type": "redacted_thinking", "data": seal_reasoning("red", "m", "x")}
ENABLED: Json = {"type": "enabled", "budget_tokens": 1024}


def messages(*history: Any, **fields: Any) -> Json:
    return {"model": "m", "stream": True, "max_tokens": 2048, "messages": list(history) or [USER], **fields}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(id: Any = "toolu_1", name: Any = "read", input: Any = None, **fields: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input, **fields}


def result(id: Any = "toolu_1", content: Any = "ok", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def turn(*history: Any, **fields: Any) -> Json:
    return messages(USER, *history, **{"tools": [TOOL], **fields})


def tool(**fields: Any) -> Json:
    return messages(tools=[{**TOOL, **fields}])


def schema(**fields: Any) -> Json:
    return tool(input_schema={"type": "object", **fields})


def image(**source: Any) -> Json:
    return messages(user({"type": "image", "source": source}))


def document(**source: Any) -> Json:
    return messages(user({"type": "document", "source": source}))


PAIR = turn(assistant(use()), user(result()))
IMAGE = image(type="base64", media_type="image/png", data="AA==")

RULES = [
    Rule("the answer is streamed", messages(stream=False), "stream: Input should be true", messages()),
    Rule("fields are known", messages(seed=1), "seed: Extra inputs are not permitted", messages(top_k=5, metadata={})),
    Rule("there is a limit", messages(max_tokens=None), "max_tokens: Field required", messages()),
    Rule("the limit is a number", messages(max_tokens=True), "max_tokens: Input should be a valid integer", messages()),
    Rule("the limit is positive", messages(max_tokens=0), "greater than or equal to 1", messages(max_tokens=1)),
    # system
    Rule("a system prompt is text", messages(system=1), "system: Input should be", messages(system="be nice")),
    Rule("a system block is text", messages(system=[{"type": "image"}]), "system.0.type", messages(system=[TEXT])),
    Rule(
        "a system block is not empty",
        messages(system=[{"type": "text", "text": ""}]),
        "system: text content blocks must be non-empty",
        messages(system=[TEXT]),
    ),
    # tools
    Rule("a tool has a name", tool(name=None), "tools.0.custom.name: Field required", tool()),
    Rule("a name is plain", tool(name="a.b"), "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", tool(name="a" * 128)),
    Rule("names are unique", messages(tools=[TOOL, TOOL]), "Tool names must be unique", messages(tools=[TOOL, {**TOOL, "name": "b"}])),
    Rule("a tool has a schema", tool(input_schema=None), "tools.0.custom.input_schema: Field required", tool()),
    Rule("a schema has a type", tool(input_schema={}), "input_schema.type: Field required", schema()),
    Rule("a schema is of an object", schema(type="string"), "input_schema.type: Input should be 'object'", schema()),
    *(
        Rule(f"a schema has no {word} at its root", schema(**{word: []}), "at the top level", schema(properties={"a": {word: []}}))
        for word in ("anyOf", "oneOf", "allOf", "enum", "not")
    ),
    Rule("a property has a plain name", schema(properties={"a b": {}}), "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", schema(properties={"a.b": {}})),
    Rule("a property has a short name", schema(properties={"a" * 65: {}}), "Property keys", schema(properties={"a" * 64: {}})),
    Rule("a choice is an object", messages(tools=[TOOL], tool_choice="auto"), "tool_choice: Input tag", messages(tools=[TOOL], tool_choice={"type": "none"})),
    Rule("a choice comes with tools", messages(tool_choice={"type": "auto"}), "only be specified while providing tools", messages(tools=[TOOL], tool_choice={"type": "auto"})),
    Rule("a chosen tool is there", messages(tools=[TOOL], tool_choice={"type": "tool", "name": "b"}), "Tool 'b' not found", messages(tools=[TOOL], tool_choice={"type": "tool", "name": "read"})),
    # thinking
    Rule("thinking is known", messages(thinking={"type": "on"}), "thinking: Input tag", messages(thinking={"type": "adaptive"})),
    Rule("a budget is given", messages(thinking={"type": "enabled"}), "budget_tokens: Field required", messages(thinking=ENABLED)),
    Rule("a budget is worth it", messages(thinking={**ENABLED, "budget_tokens": 1023}), "greater than or equal to 1024", messages(thinking=ENABLED)),
    Rule("a budget is below the limit", messages(thinking=ENABLED, max_tokens=1024), "`max_tokens` must be greater than", messages(thinking=ENABLED, max_tokens=1025)),
    Rule("thinking is not cold", messages(thinking=ENABLED, temperature=0), "`temperature` may only be set to 1", messages(thinking={"type": "disabled"}, temperature=0)),
    Rule("adaptive thinking is not cold", messages(thinking={"type": "adaptive"}, temperature=0.5), "`temperature`", messages(thinking=ENABLED, temperature=1)),
    *(
        Rule(
            f"thinking is not forced to {choice['type']}",
            messages(thinking=ENABLED, tools=[TOOL], tool_choice=choice),
            "Thinking may not be enabled when tool_choice forces tool use.",
            messages(tools=[TOOL], tool_choice=choice),
        )
        for choice in ({"type": "any"}, {"type": "tool", "name": "read"})
    ),
    # messages
    Rule("there are messages", messages(messages=None), "messages: Field required", messages()),
    Rule("there is a message", messages(messages=[]), "at least one message is required", messages()),
    Rule("the first is the user's", messages(SAID, USER), 'first message must use the "user" role', messages(USER, SAID, USER)),
    Rule("the system is no role", messages({"role": "system", "content": "a"}, USER), 'Unexpected role "system"', messages(system="a")),
    Rule("a role is known", messages({"role": "tool", "content": "a"}), "messages.0.role: Input should be 'user' or 'assistant'", messages(USER, USER)),
    Rule("there is content", messages({"role": "user"}), "messages.0.content: Field required", messages()),
    Rule("content is not empty", messages({"role": "user", "content": ""}), "must have non-empty content", messages()),
    Rule("content is not an empty list", messages(user()), "must have non-empty content", messages(user(TEXT))),
    Rule("content is not blank", messages({"role": "user", "content": " \n"}), "must contain non-whitespace text", messages({"role": "user", "content": " a\n"})),
    Rule("a block has a type", messages(user({"text": "a"})), "Unable to extract tag", messages(user(TEXT))),
    Rule("a block is known", messages(user({"type": "video"})), "Input tag 'video'", messages(user(TEXT))),
    Rule("text is not empty", messages(user({"type": "text", "text": ""})), "text content blocks must be non-empty", messages(user(TEXT))),
    Rule("text is not blank", messages(USER, assistant({"type": "text", "text": "\n"}), USER), "non-whitespace text", messages(USER, assistant(TEXT), USER)),
    Rule(
        "the last word is the user's",
        messages(USER, SAID),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        messages(USER, SAID, model="prefill-m"),
    ),
    Rule(
        "nobody is led on with blanks",
        messages(USER, {**SAID, "content": "I am "}, model="prefill-m"),
        "final assistant content cannot end with trailing whitespace",
        messages(USER, {**SAID, "content": "I am"}, model="prefill-m"),
    ),
    # files
    Rule("an image is of four types", image(type="base64", media_type="image/bmp", data="AA=="), "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", IMAGE),
    Rule("an image has data", image(type="base64", media_type="image/png"), "data: Field required", IMAGE),
    Rule("an image has a source", messages(user({"type": "image"})), "image.source: Field required", image(type="url", url="https://a.b/c")),
    Rule("an image is not the assistant's", messages(USER, assistant({"type": "image", "source": {}}), USER), "Input tag 'image'", IMAGE),
    Rule("a document is a PDF", document(type="base64", media_type="text/html", data="AA=="), "Input should be 'application/pdf'", document(type="base64", media_type="application/pdf", data="AA==")),
    Rule("a document is text", document(type="text", media_type="text/html", data="a"), "Input should be 'text/plain'", document(type="text", media_type="text/plain", data="a")),
    Rule("a document is somewhere", document(type="disk"), "Input tag 'disk'", document(type="file", file_id="file_1")),
    # calls
    Rule("an id is plain", turn(assistant(use("a.b")), user(result("a.b"))), "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", PAIR),
    Rule("a call has a plain name", turn(assistant(use(name="a b")), user(result())), "tool_use.name: String should match", PAIR),
    Rule("input is an object", turn(assistant(use(input="{}")), user(result())), "tool_use.input: Input should be a valid dictionary", PAIR),
    Rule("a call is the assistant's", turn(user(use())), "`tool_use` blocks can only be in `assistant` messages", PAIR),
    Rule(
        "ids are unique over the request",
        turn(assistant(use()), user(result()), assistant(use()), user(result())),
        "`tool_use` ids must be unique",
        turn(assistant(use()), user(result()), assistant(use("b")), user(result("b"))),
    ),
    Rule("calls come with tools", turn(assistant(use()), user(result()), tools=None), "must define tools", PAIR),
    # results
    Rule(
        "a call is answered at once",
        turn(assistant(use()), USER),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each",
        turn(assistant(use()), user(result()), USER),
    ),
    Rule("a call is answered at all", turn(assistant(use())), "without `tool_result` blocks immediately after", PAIR),
    Rule("every call is answered", turn(assistant(use(), use("b")), user(result("b"))), "after: toolu_1.", turn(assistant(use(), use("b")), user(result("b"), result()))),
    Rule("results may be in neighbouring messages", turn(assistant(use(), use("b")), user(result())), "after: b.", turn(assistant(use(), use("b")), user(result()), user(result("b")))),
    Rule("results come first", turn(assistant(use()), user(TEXT, result())), "without `tool_result` blocks immediately after", turn(assistant(use()), user(result(), TEXT))),
    Rule("a result has a call", turn(user(result())), "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.", PAIR),
    Rule("a result has a call right before it", turn(assistant(use()), user(result()), SAID, user(result())), "messages.4.content.0: unexpected `tool_use_id`", turn(assistant(use()), user(result()), SAID, USER)),
    Rule("a call has one result", turn(assistant(use()), user(result(), result())), "each tool_use must have a single result", PAIR),
    Rule("a result names its call", turn(assistant(use()), user(result(None))), "tool_use_id: Field required", PAIR),
    Rule("a result is the user's", turn(assistant(result()), USER), "`tool_result` blocks can only be in `user` messages", PAIR),
    Rule("an error says which", turn(assistant(use()), user(result(content="", is_error=True))), "content cannot be empty if `is_error` is true", turn(assistant(use()), user(result(content="")))),
    Rule("an error says which, in a list too", turn(assistant(use()), user(result(content=[], is_error=True))), "content cannot be empty", turn(assistant(use()), user(result(content=[TEXT], is_error=True)))),
    Rule("text in a result is not empty", turn(assistant(use()), user(result(content=[{"type": "text", "text": ""}]))), "text content blocks must be non-empty", turn(assistant(use()), user(result(content=[{"type": "text", "text": "\n"}])))),
    Rule("a result holds known blocks", turn(assistant(use()), user(result(content=[use()]))), "Input tag 'tool_use'", turn(assistant(use()), user(result(content=[IMAGE["messages"][0]["content"][0]])))),
    # thinking that comes back
    Rule("thinking is signed", messages(USER, assistant({**THOUGHT, "signature": None}, TEXT), USER), "thinking.signature: Field required", messages(USER, assistant(THOUGHT, TEXT), USER)),
    Rule("thinking is unchanged", messages(USER, assistant({**THOUGHT, "thinking": "h"}, TEXT), USER), "messages.1.content.0: Invalid `signature` in `thinking` block", messages(USER, assistant(THOUGHT, TEXT), USER)),
    Rule("thinking is of this model", messages(USER, assistant(THOUGHT, TEXT), USER, model="n"), "Invalid `signature`", messages(USER, assistant(THOUGHT, TEXT), USER)),
    Rule("redacted thinking is unchanged", messages(USER, assistant({**HIDDEN, "data": "red-1-2"}, TEXT), USER), "Invalid `data` in `redacted_thinking` block", messages(USER, assistant(HIDDEN, TEXT), USER)),
    Rule("redacted thinking is of this model", messages(USER, assistant(HIDDEN, TEXT), USER, model="n"), "Invalid `data`", messages(USER, assistant(HIDDEN, TEXT), USER)),
    Rule("a signature is no data", messages(USER, assistant({**HIDDEN, "data": THOUGHT["signature"]}), USER), "Invalid `data`", messages(USER, assistant(HIDDEN, TEXT), USER)),
    Rule("thinking is the assistant's", messages(user(THOUGHT)), "may only be in `assistant` messages", messages(USER, assistant(THOUGHT, TEXT), USER)),
    Rule("thinking does not stand last", messages(USER, assistant(TEXT, THOUGHT), USER), "cannot be `thinking`", messages(USER, assistant(THOUGHT, TEXT), USER)),
    *(
        Rule(
            f"with {wanted['type']} thinking a turn that calls begins with it",
            turn(assistant(use()), user(result()), thinking=wanted),
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When",
            turn(assistant(first, use()), user(result()), assistant(use("b")), user(result("b")), thinking=wanted),
        )
        for wanted, first in ((ENABLED, THOUGHT), ({"type": "adaptive"}, HIDDEN))
    ),
    Rule(
        "with thinking a turn that is over may begin with anything",
        turn(assistant(TEXT, use()), user(result()), thinking=ENABLED),
        "but found `text`",
        turn(assistant(use()), user(result(), TEXT), thinking=ENABLED),
    ),
    # cache
    Rule(
        "four places are marked at most",
        messages(user(*[{**TEXT, **MARK}] * 3), system=[{**TEXT, **MARK}], tools=[{**TOOL, **MARK}]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        messages(user(*[{**TEXT, **MARK}] * 2), system=[{**TEXT, **MARK}], tools=[{**TOOL, **MARK}]),
    ),
    Rule("an empty text is not marked", messages(user({"type": "text", "text": "", **MARK})), "cache_control cannot be set for empty text blocks", messages(user({**TEXT, **MARK}))),
    Rule("an empty system text is not marked", messages(system=[{"type": "text", "text": "", **MARK}]), "cache_control cannot be set for empty", messages(system=[{**TEXT, **MARK}])),
    Rule("thinking is not marked", messages(USER, assistant({**THOUGHT, **MARK}), USER), "thinking.cache_control: Extra inputs", messages(USER, assistant(THOUGHT, {**TEXT, **MARK}), USER)),
    Rule("redacted thinking is not marked", messages(USER, assistant({**HIDDEN, **MARK}), USER), "redacted_thinking.cache_control: Extra", messages(USER, assistant(HIDDEN, TEXT), USER)),
    # shapes
    Rule("tools are a list", messages(tools={}), "tools: Input should be a valid list", messages(tools=[])),
    Rule("a tool is an object", messages(tools=["read"]), "tools.0: Input should be a valid dictionary", tool()),
    Rule("a system block has text", messages(system=[{"type": "text"}]), "system.0.text: Field required", messages(system=[TEXT])),
    Rule("content is a list", messages({"role": "user", "content": 1}), "messages.0.content: Input should be a valid list", messages()),
    Rule("a text block has text", messages(user({"type": "text"})), "text.text: Field required", messages(user(TEXT))),
    Rule("a document has a source", messages(user({"type": "document"})), "document.source: Field required", document(type="content", content=[])),
    Rule("a document has data", document(type="text", media_type="text/plain"), "document.source.text.data: Field required", document(type="url", url="https://a.b")),
    Rule("what lies elsewhere says where", image(type="url"), "image.source.url.url: Field required", image(type="file", file_id="file_1")),
    Rule("a result is a list", turn(assistant(use()), user(result(content=1))), "tool_result.content: Input should be a valid list", PAIR),
    Rule("a thinking block has thinking", messages(USER, assistant({"type": "thinking"}), USER), "thinking.thinking: Field required", messages(USER, assistant(THOUGHT, TEXT), USER)),
    Rule("a redacted block has data", messages(USER, assistant({"type": "redacted_thinking"}), USER), "redacted_thinking.data: Field required", messages(USER, assistant(HIDDEN, TEXT), USER)),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
def test_a_rule_refuses_one_thing_and_takes_the_next(rule: Rule):
    check("messages", rule.taken, HEADERS)
    with pytest.raises(Refused) as caught:
        check("messages", rule.refused, HEADERS)
    assert rule.words in caught.value.message
    assert caught.value.status == 400


def test_the_version_is_a_header():
    check("messages", messages(), HEADERS)
    with pytest.raises(Refused, match="anthropic-version: header is required"):
        check("messages", messages(), {})
