"""Lines, lists and names, without any server."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.mcp.elicitation import ElicitationRequest, make_question
from everturn.mcp.jsonrpc import LINE_LIMIT, TOO_LARGE, UNREADABLE, IncomingMessage, LineSplitter, read_message
from everturn.mcp.tool_list import (
    ListedTool,
    assign_tool_names,
    find_schema_problem,
    limit_tools,
    read_tools,
    repeat_hints,
)
from everturn.mcp.tool_results import convert_result


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject):
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()
    found: list[Any] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert found == lines


@pytest.mark.parametrize("id", [b"7", b'"seven"'])
@pytest.mark.parametrize("place", ["front", "back"])
def test_a_line_that_is_too_long_is_reported_to_its_call(id: bytes, place: str):
    body = b'"result":{"content":"' + b"x" * 5000 + b'"}'
    line = b'{"id":' + id + b"," + body + b"}" if place == "front" else b"{" + body + b',"id": ' + id + b"}"
    splitter = LineSplitter(limit=1000)
    found: list[Any] = []
    for at in range(0, len(line), 300):
        found += splitter.feed(line[at : at + 300])
        assert len(splitter._line) <= 1300
    found += splitter.feed(b'\n{"id":8}\n')
    assert found[1] == b'{"id":8}'
    assert isinstance(found[0], IncomingMessage)
    assert (found[0].id, (found[0].error or {})["code"]) == (json.loads(id), TOO_LARGE)


@given(st.binary(max_size=200))
def test_reading_a_line_never_fails(line: bytes):
    read_message(line)


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"7", b"{}", b'{"id": 1.5, "result": {}}', b'{"id": null, "result": {}}', b"[" * 100_000]
)
def test_what_is_no_message_is_none(line: bytes):
    assert read_message(line) is None


def test_a_large_result_keeps_its_texts_and_loses_what_grows():
    numbers = "[" + "1," * 600_000 + "1]"
    line = f'{{"id":1,"result":{{"content":[{{"type":"text","text":"hi"}}],"structuredContent":{numbers}}}}}'
    message = read_message(line.encode())
    assert message is not None
    assert message.result == {"content": [{"type": "text", "text": "hi"}], "isError": False}
    assert len(line) < LINE_LIMIT


def test_the_pieces_of_a_large_result_are_counted():
    blocks = [{"type": "text", "text": "x" * 1100}] * 1500
    message = read_message(json.dumps({"id": 1, "result": {"content": blocks}}).encode())
    assert message is not None
    assert message.result is not None
    assert message.result["content"][-1]["text"] == "[500 more pieces were dropped]"


@pytest.mark.parametrize(
    ("schema", "trouble"),
    [
        (None, "no input schema"),
        ({"type": "string"}, "not one of an object"),
        ({"type": "object", "properties": []}, "is invalid"),
        ({"type": "object", "required": "a"}, "is invalid"),
        ({"type": "object", "properties": {"a": {"$ref": "https://evil.example/s"}}}, "not in it"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "not in it"),
        ({"type": "object", "description": "x" * 200_000}, "longer than"),
    ],
)
def test_a_schema_that_a_provider_would_refuse_is_refused_here(schema: Any, trouble: str):
    assert trouble in find_schema_problem(schema)


def test_a_schema_that_is_too_deep_is_refused():
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "too deep" in find_schema_problem(schema)


def test_a_schema_may_refer_to_itself():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"$ref": "#"}}}
    assert find_schema_problem(schema) == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(max_examples=50, deadline=None)
def test_a_list_of_anything_is_read(raw: Any):
    read_tools(raw)
    read_tools([raw, {"name": raw, "inputSchema": raw}])


def test_too_many_tools_are_left_out():
    tools, problems = read_tools([{"name": f"t{at}", "inputSchema": {"type": "object"}} for at in range(501)])
    assert len(tools) == 500
    assert "501 tools" in problems[0]


def test_what_a_person_says_of_a_tool_counts_more_than_what_its_server_claims():
    neither = {"read_only": False, "idempotent": False}
    assert repeat_hints({"readOnlyHint": True}, "at_most_once") == neither
    assert repeat_hints({}, "read_only") == {"read_only": True, "idempotent": False}
    assert repeat_hints({"readOnlyHint": True, "idempotentHint": True}, None) == {"read_only": True, "idempotent": True}
    assert repeat_hints({"idempotentHint": True}, None) == {"read_only": False, "idempotent": True}
    assert repeat_hints({"readOnlyHint": "true"}, None) == neither


names = st.text(st.sampled_from("abAB_-. é"), min_size=1, max_size=70)


@given(
    st.lists(names, unique=True, max_size=12),
    st.lists(st.sampled_from(["a", "a_b", "ab", "b"]), unique=True, min_size=1),
)
def test_names_fit_every_provider_and_none_is_taken_for_another(tools: list[str], servers: list[str]):
    found = [name for server in servers for name in assign_tool_names(server, tools, servers).values()]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in found)
    plain = [name.replace("-", "").replace("_", "").casefold() for name in found]
    assert len(set(plain)) == len(plain)


def test_a_name_does_not_depend_on_the_order_of_others():
    assert assign_tool_names("s", ["get.user", "get_user"], ["s"]) == assign_tool_names(
        "s", ["get_user", "get.user"], ["s"]
    )
    assert assign_tool_names("s", ["get_user", "get.user"], ["s"])["get_user"] == "s_get_user"
    assert assign_tool_names("s", ["get.user"], ["s"]) == {"get.user": "s_get_user"}


def test_a_name_that_means_something_else_here_is_not_given():
    assert assign_tool_names("in", ["valid"], ["in"])["valid"] != "in_valid"


CUT = rb"\ud83d"  # what JavaScript writes of an emoji that was cut in two


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (CUT, "\ufffd"),
        (CUT + CUT + rb"\ude00", "\ufffd😀"),
        (rb"\ude00" + CUT, "\ufffd\ufffd"),
        (rb"\\ud83d " + CUT, r"\ud83d " + "\ufffd"),
        (rb"\\" + CUT, "\\\ufffd"),
        (b"\xff" + CUT.upper().replace(b"U", b"u"), "\ufffd\ufffd"),
    ],
)
def test_half_a_character_costs_no_more_than_itself(text: bytes, read: str):
    message = read_message(b'{"id": 1, "result": {"content": "' + text + b'"}}')
    assert message is not None
    assert message.result == {"content": read}


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"mean":NaN}}', 7),
        (b'{"id":"a","result":' + b"[" * 5000 + b"}", "a"),
        (b'{"result":{"rows":[{"id":5}],"mean":NaN},"id":7}', 7),
        (b'{"result":{"mean":NaN},"jsonrpc":"2.0" , "id": 7 , "jsonrpc":"2.0"}', 7),
    ],
)
def test_an_answer_that_cannot_be_read_is_reported_to_its_call(line: bytes, id: Any):
    message = read_message(line)
    assert message is not None
    assert (message.id, message.result, (message.error or {})["code"]) == (id, None, UNREADABLE)
    assert "cannot be read" in (message.error or {})["message"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
        b'{"id":1,"jsonrpc":"2.0","method":"ping","params":{"a":NaN}}',
        b'{"method":"ping","params":{"a":NaN},"id":1}',
        b'{"jsonrpc":"2.0","params":{"a":NaN},"method":"ping","id":1}',
        b'{"result":{"id":5,"mean":NaN}}',
    ],
)
def test_what_is_no_answer_is_told_to_no_call(line: bytes):
    assert read_message(line) is None


def test_answers_are_read_as_they_were_meant():
    failed = read_message(b'{"id": 1, "error": {"code": -32000, "message": null}}')
    assert failed == IncomingMessage(1, error={"code": -32000, "message": "it does not say what is wrong"})
    assert read_message(b'{"id": 1.0, "result": {}}') == IncomingMessage(1, result={})
    assert read_message(b'\xef\xbb\xbf{"id": 1, "result": {}}') == IncomingMessage(1, result={})


@pytest.mark.parametrize(
    ("url", "is_asked"),
    [
        ("https://example.org/login?a=b@c", True),
        ("https://bank.example@evil.example/", False),
        ("https://bank.example:x@evil.example/", False),
        ("https://bank.example\\@evil.example/", False),
        ("https://[", False),
        ("https://", False),
        ("javascript:alert(1)", False),
        ("https://example.org/" + "a" * 2000, False),
        ("https://example.org/\u202egro.elpmaxe", False),
    ],
)
def test_an_address_is_shown_only_if_it_can_be_seen_where_it_leads(url: str, is_asked: bool):
    request = ElicitationRequest("a", "elicitation/create", {"mode": "url", "url": url, "message": "log in"})
    assert (make_question("s", request) is not None) == is_asked


async def test_what_is_too_deep_to_be_written_is_said_to_be():
    deep: Any = {}
    for _ in range(3000):
        deep = {"a": deep}
    output = await convert_result({"content": [], "structuredContent": deep}, "s", None)
    assert output.text == "[structured content: it was not kept, for it is too deep]"
    output = await convert_result({"content": [{"type": "text", "text": "hi"}], "structuredContent": deep}, "s", None)
    assert output.text == "hi"


def test_the_bounds_of_a_list_are_those_of_all_its_pages():
    few = [ListedTool(f"t{at}", "d", {"type": "object"}, {}) for at in range(500)]
    assert limit_tools(few) == (few, [])
    retained, problems = limit_tools([*few, *few])
    assert (len(retained), len(problems)) == (500, 1)
    retained, problems = limit_tools([ListedTool(f"t{at}", "d" * 16_000, {"type": "object"}, {}) for at in range(100)])
    assert len(retained) == 62
    assert "those behind 62 were left out" in problems[0]


def test_a_schema_of_many_parts_is_refused_before_it_is_checked():
    began = time.process_time()
    trouble = find_schema_problem({"type": "object", "properties": {"a": {"anyOf": [{}] * 32_000}}})
    assert "more than 2000 parts" in trouble
    assert time.process_time() - began < 1  # to check them all takes 15 s
    fields = {f"f{at}": {"type": "string", "enum": ["a", "b"], "title": "One"} for at in range(150)}
    assert find_schema_problem({"type": "object", "properties": fields}) == ""


def test_a_question_whose_schema_has_too_many_parts_is_not_asked():
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"anyOf": [{}] * 32_000}}}}
    began = time.process_time()
    assert make_question("files", ElicitationRequest("r1.a", "elicitation/create", params)) is None
    assert time.process_time() - began < 1


def test_of_a_list_whose_schemas_have_too_many_parts_together_the_rest_is_left_out():
    schema = {"type": "object", "description": "x", "required": [f"a{at}" for at in range(1_500)]}
    tools, problems = read_tools([{"name": f"t{at}", "inputSchema": schema} for at in range(40)])
    assert len(tools) == 14
    assert "more than 20000 parts; those behind 14" in problems[-1]
