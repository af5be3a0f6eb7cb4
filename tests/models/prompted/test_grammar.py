"""A grammar lets the calls through that a tool_format writes for arguments that fit, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.prompted.gbnf import Gbnf
from tests.models.prompted.parsed_output import hear

from everturn.core.canonical_json import JsonObject, encode_canonical
from everturn.core.requests import RequestCall, ToolSpec
from everturn.models.prompted import TOOL_FORMATS, OfferedTools

WAYS = ("xml", "blocks")
each_way = pytest.mark.parametrize("way", WAYS)


def of(properties: JsonObject, *required: str, **more: Any) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required), **more}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TREE = of({"name": TEXT, "under": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}, "name")
LEAF: JsonObject = {"name": "b"}
SCHEMAS: dict[str, tuple[JsonObject, list[JsonObject], list[JsonObject]]] = {
    # what it is about: the schema, arguments that fit it, arguments that do not
    "no properties": (of({}), [{}], []),
    "no schema to speak of": ({}, [{}], []),
    "text": (of({"a": TEXT}, "a"), [{"a": ""}, {"a": 'x "y" \\ \n é👋 \u2028 END\n'}], [{}, {"a": 1}, {"b": ""}]),
    "numbers": (
        of({"a": NUMBER, "b": {"type": "number"}}, "a"),
        [{"a": 0}, {"a": -12, "b": 1.5}, {"a": 1, "b": 2e-07}],
        [{"a": 1.5}, {"a": "1"}, {"a": None}, {"a": 1, "b": True}],
    ),
    "yes, no and nothing": (
        of({"a": {"type": "boolean"}, "b": {"type": "null"}}, "a", "b"),
        [{"a": True, "b": None}],
        [{"a": None, "b": None}, {"a": True}, {"a": "true", "b": None}],
    ),
    "enum": (
        of({"a": {"enum": ["x y", 1, None, {"k": [1, 2]}]}}, "a"),
        [{"a": "x y"}, {"a": 1}, {"a": None}],
        [{"a": "x"}, {"a": 2}, {}],
    ),
    "const": (of({"a": {"const": 'on"e'}}, "a"), [{"a": 'on"e'}], [{"a": "two"}]),
    "optional": (
        of({"a": TEXT, "b": NUMBER, "c": NUMBER}, "b"),
        [{"b": 1}, {"b": 1, "a": "x"}, {"b": 1, "a": "x", "c": 2}, {"b": 1, "c": 2}],
        [{"a": "x"}, {"b": 1, "d": 2}, {}],
    ),
    "all optional": (
        of({"a": TEXT, "b": NUMBER, "c": NUMBER}),
        [{}, {"a": "x"}, {"b": 1}, {"c": 1}, {"a": "x", "c": 1}, {"a": "x", "b": 1, "c": 1}],
        [{"d": 1}, {"a": 1}],
    ),
    "nested": (
        of({"a": of({"b": of({"c": NUMBER}, "c")}, "b")}, "a"),
        [{"a": {"b": {"c": 1}}}],
        [{"a": {"b": {}}}, {"a": {}}, {"a": {"b": {"c": "x"}}}],
    ),
    "arrays": (
        of({"a": {"type": "array", "items": NUMBER}, "b": {"type": "array"}}, "a"),
        [{"a": []}, {"a": [1, 2, 3], "b": [1, "x", [None, {"y": {}}]]}],
        [{"a": ["x"]}, {"a": 1}, {"a": [1, None]}],
    ),
    "any of": (
        of({"a": {"anyOf": [NUMBER, {"type": "array", "items": TEXT}]}, "b": {"type": ["string", "null"]}}, "a"),
        [{"a": 1}, {"a": ["x"], "b": "y"}, {"a": 1, "b": None}],
        [{"a": "x"}, {"a": [1]}, {"a": 1, "b": 2}],
    ),
    "a reference to itself": (
        {"$defs": {"Tree": TREE}, **of({"tree": {"$ref": "#/$defs/Tree"}}, "tree")},
        [{"tree": LEAF}, {"tree": {"name": "a", "under": [LEAF, {"name": "c", "under": [LEAF]}]}}],
        [{"tree": {}}, {"tree": {"name": "a", "under": [{}]}}, {"tree": "a"}],
    ),
    "anything": (
        of({"a": {}, "b": True, "c": {"type": "object"}}, "a"),
        [{"a": [1, {"x": None}], "b": "x", "c": {"": 0}}],
        [{}],
    ),
    "odd names": (
        of({"a b": TEXT, 'q"\\': NUMBER, "x=y": TEXT, ",": NUMBER}, "a b"),
        [{"a b": "x", 'q"\\': 1, "x=y": "", ",": 2}],
        [{}],
    ),
}


def grammar(way: str, *tools: ToolSpec, choice: str = "auto") -> Gbnf:
    return Gbnf(TOOL_FORMATS[way].constrain(OfferedTools(tools, choice, is_constrained=True))["grammar"])


def written(way: str, arguments: JsonObject, name: str = "do_it") -> list[str]:
    """A call as it may be spaced: as models do, and as tight as it gets."""
    return [
        TOOL_FORMATS[way].write([RequestCall("c", name, text)])
        for text in (json.dumps(arguments, ensure_ascii=False), canonical_in_order(arguments))
    ]


def canonical_in_order(arguments: JsonObject) -> str:
    return (
        "{" + ",".join(f"{encode_canonical(key)}:{encode_canonical(value)}" for key, value in arguments.items()) + "}"
    )


@each_way
@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_fits_a_schema_is_let_through_and_what_does_not_is_not(way: str, kind: str) -> None:
    schema, good, bad = SCHEMAS[kind]
    allowed = grammar(way, ToolSpec("do_it", "Do it.", schema))

    for arguments in good:
        for text in written(way, arguments):
            assert allowed.fits(text), text
            assert allowed.fits(f"So.\n\n{text}\n{text}")
            assert hear(way, [text]).runnable == [("do_it", arguments)]
            assert not allowed.fits(text + "x")
            assert not any(allowed.fits(other) for other in written(way, arguments, "do_that"))
    for arguments in bad:
        for text in written(way, arguments):
            assert not allowed.fits(text), text


@pytest.mark.parametrize("kind", SCHEMAS)
def test_in_json_all_of_an_answer_fits(kind: str) -> None:
    schema, good, bad = SCHEMAS[kind]
    tool = ToolSpec("do_it", "Do it.", schema)
    json_way, offer = TOOL_FORMATS["json"], OfferedTools([tool], is_constrained=True, by_grammar=True)
    allowed = Gbnf(json_way.constrain(offer)["grammar"])
    must_call = Gbnf(json_way.constrain(OfferedTools([tool], "required", None, True, True, True))["grammar"])

    for arguments in good:
        for text in written("json", arguments):
            assert allowed.fits(text), text
            assert must_call.fits(text)
            calls = [RequestCall("c", "do_it", json.dumps(arguments))]
            assert allowed.fits(json_way.write_answer("So.", calls, offer))
            assert not must_call.fits(json_way.write_answer("So.", calls, offer))
            assert not must_call.fits(json_way.write(calls * 2))
            assert not any(allowed.fits(other) for other in written("json", arguments, "do_that"))
    for arguments in bad:
        for text in written("json", arguments):
            assert not allowed.fits(text), text
    assert allowed.fits(json_way.write_answer('Say "hi".', [], offer))
    assert not allowed.fits("Hello.")


def test_in_json_an_answer_in_words_fits_the_schema_it_must_fit() -> None:
    offer = OfferedTools(
        [ToolSpec("do_it", "", of({}))], schema=of({"n": NUMBER}, "n"), is_constrained=True, by_grammar=True
    )
    allowed = Gbnf(TOOL_FORMATS["json"].constrain(offer)["grammar"])

    assert allowed.fits('{"answer": {"n": 1}}')
    assert not allowed.fits('{"answer": "one"}')


@each_way
def test_each_tool_takes_its_own_arguments(way: str) -> None:
    tools = [ToolSpec("one", "", of({"a": TEXT}, "a")), ToolSpec("two", "", of({"b": NUMBER}, "b"))]
    allowed = grammar(way, *tools)

    for name, arguments, is_right in (("one", {"a": ""}, True), ("two", {"b": 1}, True), ("one", {"b": 1}, False)):
        assert [allowed.fits(text) for text in written(way, arguments, name)] == [is_right] * 2


@each_way
def test_words_are_let_through_unless_a_tool_must_be_called(way: str) -> None:
    tool = ToolSpec("do_it", "", of({}))
    words = ["", "Hello.", "Hello.\n\nIt is {here}, <b> = and ==.\n", "=\n==\n<\n<tool\n{}\n"]
    called = written(way, {})[0]

    assert [text for text in words if not grammar(way, tool).fits(text)] == []
    for choice in ("required", "do_it"):
        assert [text for text in words if grammar(way, tool, choice=choice).fits(text)] == []
        assert grammar(way, tool, choice=choice).fits(called)
    assert not grammar(way, tool, ToolSpec("other", "", of({})), choice="other").fits(called)


@each_way
def test_nothing_that_begins_like_a_call_is_let_through_as_words(way: str) -> None:
    allowed = grammar(way, ToolSpec("do_it", "", of({"a": NUMBER}, "a")))

    for text in written(way, {"a": 12}):
        for at in range(len({"xml": "<tool_code>", "blocks": "==="}[way]), len(text)):
            assert not allowed.fits(f"So.\n{text[:at]}"), text[:at]


@given(st.text())
def test_any_text_can_be_a_body_and_any_word_a_value(text: str) -> None:
    tool = ToolSpec("do_it", "", of({"a": TEXT}, "a"))
    for way in WAYS:
        found = TOOL_FORMATS[way].write([RequestCall("c", "do_it", json.dumps({"a": text}, ensure_ascii=False))])
        if "ENDX" not in found:  # the grammar knows one word for the end of a body
            assert grammar(way, tool).fits(found)


def test_the_matcher_can_say_no() -> None:
    allowed = Gbnf('root ::= "a" [b-d]{2,3} ("\\n" | other)? [^x]*\nother ::= "\\u00e9"+')

    assert [text for text in ("abb", "abcd\ny", "abcdéé", "abby") if not allowed.fits(text)] == []
    assert [text for text in ("a", "ab", "b", "", "abbx", "abcdx") if allowed.fits(text)] == []
    with pytest.raises(AssertionError):
        Gbnf('root ::= "a" )')
