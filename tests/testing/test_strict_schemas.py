"""The strict provider refuses every schema outside of a vendor's subset: one schema for every rule."""

from typing import Any

import pytest

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.strict.request import check
from everturn.testing.provider.strict.schemas import RULES

Json = dict[str, Any]
MESSAGES = [{"role": "user", "content": "Hi."}]
TEXT: Json = {"type": "string"}


def closed(properties: Json, **more: Any) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def nested(levels: int) -> Json:
    return TEXT if levels == 0 else closed({"a": nested(levels - 1)})


def body(vendor: str, schema: Json) -> tuple[Any, Json]:
    """A request of a vendor's format with this output schema."""
    chat: Json = {"model": "m", "stream": True, "messages": MESSAGES}
    response_format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    match vendor:
        case "openai":
            return "chat", {**chat, "response_format": response_format}
        case "responses":
            text = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}
            return "responses", {"model": "m", "stream": True, "input": "Hi.", "text": text}
        case "anthropic":
            output = {"format": {"type": "json_schema", "schema": schema}}
            return "messages", {**chat, "max_tokens": 9, "output_config": output}
        case "gemini":
            config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
            contents = [{"role": "user", "parts": [{"text": "Hi."}]}]
            return "gemini", {"model": "gemini-3", "contents": contents, "generationConfig": config}
        case "llamacpp":
            return "ollama", {"model": "m", "messages": MESSAGES, "format": schema}
        case "deepseek":
            return "chat", {**chat, "model": "deepseek-a", "response_format": response_format}
        case _:
            tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
            return "chat", {**chat, "model": "kimi-a", "tools": [tool], "tool_choice": "required"}


NODE = closed({"next": {"$ref": "#/$defs/Node"}})
MAYBE: Json = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": False}
HEADER = {"anthropic-version": "2023-06-01"}

BREAKS: dict[str, Json] = {
    "openai.root-object": {"type": "array", "items": TEXT},
    "openai.closed": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
    "openai.all-required": closed({"a": TEXT}, required=[]),
    "openai.keyword": closed({"a": {**TEXT, "default": "x"}}),
    "openai.typed": closed({"a": {}}),
    "openai.format": closed({"a": {**TEXT, "format": "uri"}}),
    "openai.pattern": closed({"a": {**TEXT, "pattern": "^(?!x).*$"}}),
    "openai.ref-alone": closed({"a": {"$ref": "#/$defs/A", "description": "x"}}, **{"$defs": {"A": TEXT}}),
    "openai.depth": nested(11),
    "openai.properties": closed({f"p{number}": TEXT for number in range(5_001)}),
    "openai.enum-values": closed({f"p{n}": {**TEXT, "enum": [str(v) for v in range(201)]} for n in range(5)}),
    "openai.enum-size": closed({"a": {**TEXT, "enum": [f"{'x' * 70}{number}" for number in range(251)]}}),
    "openai.name-size": closed({f"{'x' * 200}{number}": TEXT for number in range(600)}),
    "anthropic.root-object": {"anyOf": [TEXT, {"type": "null"}]},
    "anthropic.closed": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
    "anthropic.keyword": closed({"a": {"type": "integer", "minimum": 1}}),
    "anthropic.typed": closed({"a": {"title": "A"}}),
    "anthropic.format": closed({"a": {**TEXT, "format": "binary"}}),
    "anthropic.min-items": closed({"a": {"type": "array", "items": TEXT, "minItems": 2}}),
    "anthropic.enum": closed({"a": {"enum": [["x"]]}}),
    "anthropic.recursion": closed({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": MAYBE}}),
    "anthropic.external-ref": closed({"a": {"$ref": "https://example.com/schema"}}),
    "anthropic.optional": closed({f"p{number}": TEXT for number in range(25)}, required=[]),
    "anthropic.unions": closed({f"p{number}": {"anyOf": [TEXT, {"type": "null"}]} for number in range(17)}),
    "gemini.keyword": closed({"a": {"const": "x"}}),
    "gemini.enum": closed({"a": {"type": "boolean", "enum": [True]}}),
    "gemini.ref-alone": closed({"a": {"$ref": "#/$defs/A", "description": "x"}}, **{"$defs": {"A": TEXT}}),
    "gemini.recursion": closed({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": NODE}}),
    "llamacpp.keyword": {"type": "array", "prefixItems": [TEXT]},
    "llamacpp.bounds": {"type": "number", "minimum": 1},
    "llamacpp.format": {**TEXT, "format": "email"},
    "llamacpp.mixed-choice": {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}]},
    "llamacpp.ref": closed({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": TEXT}}),
    "deepseek.no-schema": closed({"a": TEXT}),
    "kimi.forced-call": {},
}
ALLOWED: dict[str, list[Json]] = {
    "openai": [nested(10), closed({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": NODE}})],
    "responses": [nested(10)],
    "anthropic": [nested(12), closed({f"p{number}": TEXT for number in range(24)}, required=[])],
    "gemini": [
        {"type": "array", "prefixItems": [TEXT]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        closed({"a": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": MAYBE}}),
    ],
    "llamacpp": [{"type": "integer", "exclusiveMinimum": 1}, {"anyOf": [TEXT, {"type": "null"}]}, {}],
}


def test_every_rule_has_a_source_and_a_schema_that_breaks_it() -> None:
    assert list(BREAKS) == list(RULES)
    assert all(source.startswith("https://") for source in RULES.values())


@pytest.mark.parametrize("rule", BREAKS)
def test_a_schema_that_breaks_a_rule_is_refused_by_its_name(rule: str) -> None:
    format, request = body(rule.partition(".")[0], BREAKS[rule])
    with pytest.raises(Refused) as refused:
        check(format, request, HEADER)
    assert refused.value.status == 400
    assert f"[rule {rule}, see {RULES[rule]}]" in refused.value.message


@pytest.mark.parametrize("rule", [rule for rule in BREAKS if rule.startswith("openai.")])
def test_both_formats_of_openai_have_the_same_rules(rule: str) -> None:
    format, request = body("responses", BREAKS[rule])
    with pytest.raises(Refused, match=f"rule {rule},"):
        check(format, request, {})


@pytest.mark.parametrize(("vendor", "at"), [(vendor, at) for vendor in ALLOWED for at in range(len(ALLOWED[vendor]))])
def test_a_schema_within_the_rules_is_accepted(vendor: str, at: int) -> None:
    format, request = body(vendor, ALLOWED[vendor][at])
    check(format, request, HEADER)


def test_a_schema_that_is_not_strict_is_not_held_to_the_rules() -> None:
    format, request = body("openai", {"type": "array"})
    request["response_format"]["json_schema"]["strict"] = False
    check(format, request, {})
