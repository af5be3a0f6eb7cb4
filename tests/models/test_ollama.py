"""Ollama's own format: what goes out, and what its streams mean, however their bytes are split."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.messages import assistant_message, tool_message

from everturn.core.chunks import CallChunk, Chunk, FileChunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.history import NO_RESULT
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart, Usage
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.errors import ModelError
from everturn.models.formats.files import as_note
from everturn.models.formats.ollama_request import DEPTH, SCHEMAS
from everturn.models.formats.valid_history import EMPTY_TEXT
from everturn.models.http_model import HttpModel
from everturn.models.profile import Profile
from everturn.models.registry import get_model
from everturn.models.vendors import VENDORS
from everturn.testing.provider.strict.request import check as strict
from everturn.transport.replay import RecordedResponse, ReplayTransport

Json = dict[str, Any]
OLLAMA = VENDORS["ollama"]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
TOOLS = [ToolSpec("look", "Looks.", {"type": "object", "properties": {"q": {"type": "string"}}})]
SIZES = pytest.mark.parametrize("size", [0, 1, 7])  # of the pieces; 0 is the whole at once


# What goes out --------------------------------------------------------------------------------------------------------


def user(*parts: RequestPart | str) -> RequestMessage:
    return RequestMessage("user", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def call(id: str = "c1", arguments: str = '{"q":"x"}') -> RequestCall:
    return RequestCall(id, "look", arguments)


def result(id: str = "c1", text: str = "found", **more: Any) -> RequestResult:
    return RequestResult(id, "look", text, **more)


async def request_body(*messages: RequestMessage, profile: Profile = OLLAMA, **request: Any) -> Json:
    """The body of a request, as it goes out, and as the provider of its format takes it."""
    fields: Json = {"system": "", "tools": [], "params": {}, **request}
    transport = ReplayTransport([RecordedResponse([b'{"done":true}'])])
    async for _ in HttpModel("m", profile, transport).stream(ModelRequest("m", messages=list(messages), **fields)):
        pass
    body = json.loads(transport.posts[0].body)
    strict("ollama", body, {})
    return body


async def test_a_request_says_no_more_than_it_must() -> None:
    assert await request_body(user("hi"), system="Be brief.") == {
        "model": "m",
        "stream": True,
        "truncate": False,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


async def test_44_options_of_the_model_go_where_it_looks_for_them() -> None:
    options = {"num_ctx": 32_768, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7}
    options |= {"repeat_penalty": 1.1, "num_predict": 9, "stop": ["END"]}
    body = await request_body(user("hi"), params=options)

    assert body["options"] == options
    assert not options.keys() & body.keys()


async def test_44_what_concerns_the_request_stays_beside_them() -> None:
    params = {"think": "low", "keep_alive": "10m", "format": "json", "truncate": True, "shift": False, "new_field": 1}
    body = await request_body(user("hi"), params=params)

    assert {name: body[name] for name in params} == params
    assert "options" not in body


async def test_options_can_be_given_as_they_are_and_the_nearer_word_counts() -> None:
    params = {"options": {"num_ctx": 1, "new_option": 1, "num_predict": 1}, "num_ctx": 2, "max_tokens": 3}

    assert (await request_body(user("hi"), params=params))["options"] == {
        "num_ctx": 2,
        "new_option": 1,
        "num_predict": 3,
    }
    always = replace(OLLAMA, params={"num_ctx": 8192})
    assert (await request_body(user("hi"), profile=always))["options"] == {"num_ctx": 8192}
    assert (await request_body(user("hi"), profile=always, params={"num_ctx": 9}))["options"] == {"num_ctx": 9}


async def test_a_single_stop_is_a_list_here() -> None:
    assert (await request_body(user("hi"), params={"stop": "END"}))["options"] == {"stop": ["END"]}


async def test_a_schema_for_the_answer_is_its_format() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    assert (await request_body(user("hi"), params={"output_schema": schema}))["format"] == schema


@pytest.mark.parametrize(("choice", "offered"), [("auto", 1), ("required", 1), ("look", 1), ("none", 0)])
async def test_of_a_choice_of_tools_only_none_is_heard(choice: str, offered: int) -> None:
    body = await request_body(user("hi"), tools=TOOLS, params={"tool_choice": choice})

    assert len(body.get("tools", [])) == offered
    assert "tool_choice" not in body


async def test_calls_and_results_find_each_other_by_name_and_by_id() -> None:
    body = await request_body(
        user("hi"),
        assistant_message(ReasoningPart("I should look."), "Looking.", call("c1"), call("c2", "")),
        tool_message(result("c1"), result("c2", "")),
        assistant_message(ReasoningPart("I know."), "It is so."),
        user("thanks"),
        tools=TOOLS,
    )

    assert body["messages"][1:4] == [
        {
            "role": "assistant",
            "content": "Looking.",
            "thinking": "I should look.",
            "tool_calls": [
                {"id": "c1", "function": {"name": "look", "arguments": {"q": "x"}}},
                {"id": "c2", "function": {"name": "look", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "look", "tool_call_id": "c1", "content": "found"},
        {"role": "tool", "tool_name": "look", "tool_call_id": "c2", "content": EMPTY_TEXT},
    ]
    assert body["messages"][4] == {"role": "assistant", "content": "It is so."}  # what led to no call stays behind


async def test_a_result_bears_the_name_of_its_call_whatever_it_calls_itself() -> None:
    memo: dict[str, Any] = {}
    odd = tool_message(RequestResult("c1", "another", "found"))
    await request_body(user("hi"), assistant_message(call()), odd, memo=memo)
    body = await request_body(
        user("hi"), assistant_message(call()), odd, assistant_message(call("c2")), tool_message(result("c2")), memo=memo
    )

    assert [message["tool_name"] for message in body["messages"] if message["role"] == "tool"] == ["look", "look"]


async def test_a_thought_that_another_sealed_is_not_told() -> None:
    sealed = ReasoningPart("secret", Opaque("anthropic:claude", "{}"))
    body = await request_body(user("hi"), assistant_message(sealed, call()), tool_message(result()))

    assert "thinking" not in body["messages"][1]


@pytest.mark.parametrize("arguments", ['{"q":', "[1]", "null", "nonsense", '{"q":"\ud800"', "\udfff"])
async def test_arguments_are_an_object_whatever_the_model_wrote(arguments: str) -> None:
    body = await request_body(user("\ud800"), assistant_message(call("c1", arguments)), tool_message(result()))

    assert list(body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == ["invalid_json"]


async def test_a_picture_is_bare_base64_and_what_cannot_be_read_is_a_note() -> None:
    png, wav = FilePart("b1", "image/png", 48, "a.png"), FilePart("b2", "audio/wav", 4, "a.wav")
    pdf, txt = FilePart("b3", "application/pdf", 4, "a.pdf"), FilePart("b4", "text/plain", 4, "a.txt")
    files = {"b1": PNG, "b2": b"RIFF", "b3": b"%PDF", "b4": b"text"}
    body = await request_body(user("See:", png, wav, pdf, txt, NoticePart("k", "n")), files=files)

    notice = "<notice kind='k'>\nn\n</notice>"
    content = "\n\n".join(["See:", as_note(wav), as_note(pdf), "[a.txt]\ntext", notice])
    assert body["messages"] == [{"role": "user", "content": content, "images": [base64.b64encode(PNG).decode()]}]
    blind = replace(OLLAMA, inputs=frozenset[str]())
    assert (await request_body(user(png), files=files, profile=blind))["messages"][0]["content"] == as_note(png)


async def test_a_picture_needs_no_words() -> None:
    body = await request_body(user(FilePart("b1", "image/png", 48)), files={"b1": PNG})

    assert [*body["messages"][0]] == ["role", "content", "images"]


async def test_the_files_of_results_come_behind_all_results() -> None:
    png = FilePart("b1", "image/png", 48)
    body = await request_body(
        user("hi"),
        assistant_message(call("c1"), call("c2")),
        tool_message(result("c1", files=(png,)), result("c2")),
        files={"b1": PNG},
    )

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert len(body["messages"][-1]["images"]) == 1


async def test_a_picture_that_the_model_made_is_shown_to_it() -> None:
    png = FilePart("b1", "image/png", 48, "cat.png")
    body = await request_body(user("Draw."), assistant_message("Here:", png), user("Larger."), files={"b1": PNG})

    assert [len(message.get("images", ())) for message in body["messages"]] == [0, 0, 1, 0]


@pytest.mark.parametrize("history", [[], [assistant_message("so")], [user("hi"), assistant_message("so")], [user("")]])
async def test_a_history_that_ends_with_the_models_own_words_is_led_on(history: list[RequestMessage]) -> None:
    assert (await request_body(*history))["messages"][-1]["role"] == "user"


async def test_two_answers_in_a_row_are_one_for_the_server_would_lose_the_calls() -> None:
    body = await request_body(
        user("hi"), assistant_message("a"), assistant_message("b", call()), tool_message(result())
    )

    merged = body["messages"][1]
    assert (merged["content"], len(merged["tool_calls"])) == ("a\n\nb", 1)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]


async def test_what_an_abort_left_behind_is_repaired() -> None:
    body = await request_body(
        user("hi"),
        tool_message(result("orphan")),
        assistant_message("a", call("c1"), call("c2")),
        user("stop"),
        tool_message(result("c2", "late")),
    )

    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in body["messages"][2:4]] == [NO_RESULT, "late"]


async def test_a_turn_that_goes_on_writes_what_a_fresh_one_would() -> None:
    memo: dict[str, Any] = {}
    history = [user("hi"), assistant_message("a"), assistant_message("b", call("c1")), tool_message(result("c1"))]
    await request_body(*history[:2], memo=memo)
    grown = await request_body(*history, memo=memo)

    assert grown == await request_body(*history)
    changed = [user("ho"), *history[1:]]
    assert await request_body(*changed, memo=memo) == await request_body(*changed)


# Tools ----------------------------------------------------------------------------------------------------------------


async def offered(schema: Json, name: str = "look") -> Json:
    (tool,) = (await request_body(user("hi"), tools=[ToolSpec(name, "Looks.", schema)]))["tools"]
    assert (tool["type"], tool["function"]["description"]) == ("function", "Looks.")
    return tool["function"]


async def test_a_plain_schema_goes_out_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {
            "q": {"type": ["string", "null"], "description": "What."},
            "n": {"anyOf": [{"type": "integer"}]},
        },
        "required": ["q"],
    }

    assert (await offered(schema))["parameters"] == schema


async def test_what_the_server_would_drop_or_choke_on_is_said_in_its_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"$ref": "#/$defs/City", "description": "Where."},
            "cities": {"type": "array", "items": {"$ref": "#/$defs/City"}},
            "any": True,
            "one": {"oneOf": [{"type": "string"}, True]},
            "all": {"allOf": [{"$ref": "#/$defs/City"}, {"properties": {"zip": {"type": "string"}}}]},
            "const": {"const": "a"},
        },
        "$defs": {"City": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    city = {"type": "object", "properties": {"name": {"type": "string"}}}

    assert (await offered(schema))["parameters"] == {
        "type": "object",
        "properties": {
            "city": {**city, "description": "Where."},
            "cities": {"type": "array", "items": city},
            "any": {},
            "one": {"anyOf": [{"type": "string"}, {}]},
            "all": {"type": "object", "properties": {"name": {"type": "string"}, "zip": {"type": "string"}}},
            "const": {"enum": ["a"]},
        },
    }


async def test_a_circle_of_references_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}}}
    schema = {"type": "object", "properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}

    first = (await offered(schema))["parameters"]["properties"]["first"]
    assert first == {"type": "object", "properties": {"next": {}, "name": {"type": "string"}}}


async def test_a_schema_that_doubles_with_every_reference_is_cut() -> None:
    def twice(of: int) -> Json:
        return {"properties": {side: {"$ref": f"#/$defs/{of}"} for side in ("left", "right")}}

    schema = {"type": "object", **twice(0), "$defs": {str(at): twice(at + 1) for at in range(40)}}

    assert json.dumps(await offered(schema)).count("left") < SCHEMAS


async def test_a_long_way_of_references_is_not_gone_to_its_end() -> None:
    def beyond(at: int) -> Json:
        return {"properties": {"next": {"$ref": f"#/$defs/{at}"}}}

    schema = {"type": "object", **beyond(0), "$defs": {str(at): beyond(at + 1) for at in range(1_000)}}

    assert 5 < json.dumps(await offered(schema)).count("next") < DEPTH


async def test_a_name_that_had_to_change_comes_back_as_it_was() -> None:
    tools = [ToolSpec("files.read", "", {})]
    line = b'{"message":{"tool_calls":[{"function":{"name":"files_read","arguments":{}}}]},"done":true}\n'
    transport = ReplayTransport([RecordedResponse([line])])
    request = ModelRequest("m", "", [user("hi")], tools, {})
    chunks = [chunk async for batch in HttpModel("m", OLLAMA, transport).stream(request) for chunk in batch]

    assert json.loads(transport.posts[0].body)["tools"][0]["function"]["name"] == "files_read"
    assert chunks[0] == CallChunk(0, "{}", "files.read")


# Where it goes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base_url", "url"),
    [
        ("ollama:qwen3:8b", "", "http://127.0.0.1:11434/api/chat"),
        ("ollama:qwen3:8b", "http://gpu:11434", "http://gpu:11434/api/chat"),
        ("ollama:qwen3:8b", "http://gpu:11434/v1", "http://gpu:11434/api/chat"),
        ("ollama:qwen3:8b", "http://gpu:11434/v1/", "http://gpu:11434/api/chat"),
        ("ollama:qwen3:8b", "https://gpu/ollama/api", "https://gpu/ollama/api/chat"),
        ("ollama-chat:qwen3:8b", "", "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)
async def test_a_base_url_of_the_other_endpoint_leads_to_this_one(name: str, base_url: str, url: str) -> None:
    transport = ReplayTransport([RecordedResponse([b"{}"], status=400)])
    with pytest.raises(ModelError):
        async for _ in get_model(name, base_url=base_url, transport=transport, environ={}).stream(
            ModelRequest("m", "", [user("hi")], [], {})
        ):
            pass
    assert transport.posts[0].url == url
    assert json.loads(transport.posts[0].body)["model"] == "qwen3:8b"


# What comes back ------------------------------------------------------------------------------------------------------


def line(content: object = "", done: bool = False, **more: Any) -> Json:
    """A line as a server writes it; what belongs to the message is told apart by name."""
    message = {"role": "assistant", "content": content}
    message |= {name: more.pop(name) for name in ("thinking", "tool_calls", "images") if name in more}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done, **more}


def last(reason: str = "stop", **more: Any) -> Json:
    return line(done=True, done_reason=reason, total_duration=5, prompt_eval_count=11, eval_count=7, **more)


def tool_call(name: str, arguments: object, **more: Any) -> Json:
    return {"function": {"name": name, "arguments": arguments}, **more}


def data_of(*lines: Json, end: str = "\n") -> bytes:
    return "".join(json.dumps(line) + end for line in lines).encode()


async def read_chunks(
    data: bytes, size: int = 0, *, status: int = 200, is_cut: bool = False, **how: Any
) -> list[Chunk]:
    """All chunks of an answer, with texts and thoughts joined."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    model = HttpModel(
        "m", replace(OLLAMA, **how), ReplayTransport([RecordedResponse(pieces, status=status, is_cut=is_cut)])
    )
    chunks: list[Chunk] = []
    async for batch in model.stream(ModelRequest("m", "", [user("hi")], [], {})):
        for chunk in batch:
            before = chunks[-1] if chunks else None
            if isinstance(chunk, TextChunk) and isinstance(before, TextChunk):
                chunks[-1] = TextChunk(before.text + chunk.text)
            elif isinstance(chunk, ReasoningChunk) and isinstance(before, ReasoningChunk):
                chunks[-1] = ReasoningChunk(before.text + chunk.text)
            else:
                chunks.append(chunk)
    return chunks


USAGE, STOP = UsageChunk(Usage(input=11, output=7)), FinishChunk("stop", "stop")
CALLED = FinishChunk("tool_calls", "stop")
STREAMS: dict[str, tuple[list[Json], list[Chunk]]] = {
    "text": ([line("Hel"), line("lo "), line("wörld 🌍"), last()], [TextChunk("Hello wörld 🌍"), USAGE, STOP]),
    "text in the last line": ([line("Hello", True, done_reason="stop")], [TextChunk("Hello"), STOP]),
    "a thought": (
        [line(thinking="Hm"), line(thinking="m."), line("So."), last()],
        [ReasoningChunk("Hmm."), TextChunk("So."), USAGE, STOP],
    ),
    "a thought in tags": (
        [line("<thi"), line("nk>\nHmm.</th"), line("ink>\n\nSo."), last()],
        [ReasoningChunk("Hmm."), TextChunk("So."), USAGE, STOP],
    ),
    "tags after a thought are text": (
        [line(thinking="Hmm."), line("<think>is a tag</think>"), last()],
        [ReasoningChunk("Hmm."), TextChunk("<think>is a tag</think>"), USAGE, STOP],
    ),
    "half a tag in front of a thought": (
        [line("<thi"), line(thinking="Hmm."), line("So."), last()],
        [TextChunk("<thi"), ReasoningChunk("Hmm."), TextChunk("So."), USAGE, STOP],
    ),
    "a thought that does not end": ([line("<think>Hmm."), last("length")], [ReasoningChunk("Hmm."), USAGE]),
    "a call": (
        [line("Looking."), line(tool_calls=[tool_call("look", {"q": "x", "a": [1]})]), last()],
        [TextChunk("Looking."), CallChunk(0, '{"a":[1],"q":"x"}', "look"), USAGE, CALLED],
    ),
    "calls in one line, without ids": (
        [line(tool_calls=[tool_call("look", {"q": 1}), tool_call("look", {"q": 1})]), last()],
        [CallChunk(0, '{"q":1}', "look"), CallChunk(1, '{"q":1}', "look"), USAGE, CALLED],
    ),
    "calls on several lines that have all the number 0": (
        [
            line(tool_calls=[{"id": f"call_{n}", "function": {"index": 0, "name": "look", "arguments": {}}}])
            for n in "ab"
        ]
        + [last()],
        [CallChunk(0, "{}", "look", "call_a"), CallChunk(1, "{}", "look", "call_b"), USAGE, CALLED],
    ),
    "a call in the last line": (
        [last(tool_calls=[tool_call("look", {}, id="call_a")])],
        [CallChunk(0, "{}", "look", "call_a"), USAGE, CALLED],
    ),
    "arguments as text, as nothing, and not at all": (
        [
            line(
                tool_calls=[tool_call("look", '{"q":1}'), tool_call("look", None), {"function": {"name": "look"}}, {}]
            ),
            last(),
        ],
        [CallChunk(0, '{"q":1}', "look"), CallChunk(1, "", "look"), CallChunk(2, "", "look"), USAGE, CALLED],
    ),
    "an id that is none, and no name": (
        [line(tool_calls=[tool_call("look", {}, id=7), tool_call("", {}), tool_call("look", {}, id=None)]), last()],
        [CallChunk(0, "{}", "look"), CallChunk(1, "{}"), CallChunk(2, "{}", "look"), USAGE, CALLED],
    ),
    "a name with a channel": (
        [line(tool_calls=[tool_call("look<|channel|>commentary", {})]), last()],
        [CallChunk(0, "{}", "look"), USAGE, CALLED],
    ),
    "a call that was cut by the limit": (
        [line(tool_calls=[tool_call("look", {})]), last("length")],
        [CallChunk(0, "{}", "look"), USAGE, FinishChunk("length", "length")],
    ),
    "a picture": (
        [line(images=[base64.b64encode(PNG).decode(), "no base64!", ""]), last()],
        [FileChunk(PNG, "image/png"), USAGE, STOP],
    ),
    "nothing at all": ([last()], [USAGE, STOP]),
    "a reason nobody knows": ([line("a"), last("tired")], [TextChunk("a"), USAGE, FinishChunk("other", "tired")]),
    "no reason, of an old server": ([line("a"), line(done=True)], [TextChunk("a"), FinishChunk("stop")]),
    "a prompt it had in memory": (
        [line("a"), line(done=True, done_reason="stop", eval_count=7)],
        [TextChunk("a"), UsageChunk(Usage(output=7)), STOP],
    ),
    "nulls wherever they fit": (
        [line(None, thinking=None, tool_calls=None, images=None), {"message": None, "done": None}, last()],
        [USAGE, STOP],
    ),
    "loaded, and answered": (
        [line("a"), line(done=True, done_reason="load")],
        [TextChunk("a"), FinishChunk("other", "load")],
    ),
}


@SIZES
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_understood_however_its_bytes_are_split(name: str, end: str, size: int) -> None:
    lines, chunks = STREAMS[name]
    if not any(isinstance(chunk, FinishChunk) for chunk in chunks):
        chunks = [*chunks, FinishChunk("length", "length")]

    assert await read_chunks(data_of(*lines, end=end), size) == chunks
    assert await read_chunks(b"\xef\xbb\xbf" + data_of(*lines, end=end).rstrip(), size) == chunks


async def test_a_template_that_opens_the_thought_itself_and_one_that_never_thinks() -> None:
    data = data_of(line("Hmm.</think>So."), last())

    assert await read_chunks(data, think="prefilled") == [ReasoningChunk("Hmm."), TextChunk("So."), USAGE, STOP]
    assert await read_chunks(data_of(line("<think>So."), last()), think="off") == [TextChunk("<think>So."), USAGE, STOP]


async def test_a_piece_of_text_is_one_chunk() -> None:
    transport = ReplayTransport(
        [RecordedResponse([data_of(line("a")), data_of(line("b"), line("c")), data_of(last())])]
    )
    stream = HttpModel("m", OLLAMA, transport).stream(ModelRequest("m", "", [user("hi")], [], {}))

    assert [list(batch) async for batch in stream] == [
        *([TextChunk("a")], [TextChunk("b"), TextChunk("c")], [USAGE, STOP])
    ]


async def test_what_comes_after_the_end_is_not_read() -> None:
    assert await read_chunks(data_of(line("a"), last(), line("b"), {"error": "late"})) == [TextChunk("a"), USAGE, STOP]


# What goes wrong ------------------------------------------------------------------------------------------------------


async def failed(data: bytes, size: int = 0, **how: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await read_chunks(data, size, **how)
    return caught.value


@SIZES
@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_stream_without_its_last_line_was_cut_off(size: int, is_cut: bool) -> None:
    whole = data_of(line("a"), line(tool_calls=[tool_call("look", {"q": 1})]), last())
    for data in (data_of(line("a")), whole[:-2], whole[:-40], data_of(line("a"), line("b"))[:-9]):
        error = await failed(data, size, is_cut=is_cut)
        assert (error.kind, error.retryable) == ("truncated", True)


@pytest.mark.parametrize("reason", ["load", "unload"])
async def test_a_model_that_was_only_loaded_has_not_answered(reason: str) -> None:
    error = await failed(data_of(line(done=True, done_reason=reason)))

    assert (error.kind, error.retryable) == ("truncated", True)
    assert repr(reason) in str(error)


@SIZES
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("model runner has unexpectedly stopped, this may be due to an internal error", "server"),
        ("the input length exceeds the context length", "context"),
        ("nobody knows", "server"),
        ({"message": "slow down", "code": 429}, "rate"),  # of somebody in between
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_the_servers_own(words: Any, kind: str, size: int) -> None:
    error = await failed(data_of(line("a"), {"error": words}), size)

    assert error.kind == kind
    assert (words if isinstance(words, str) else words["message"]) in str(error)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (404, "model 'm' not found", "unknown_model"),
        (404, 'model "m" not found, try pulling it first', "unknown_model"),
        (400, "registry.ollama.ai/library/m:latest does not support tools", "request"),
        (400, '"m" does not support thinking', "request"),
        (400, "the input length exceeds the context length", "context"),
        (400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", "context"),
        (400, "the prompt is longer than the context length currently available to the model", "context"),
        (503, "server busy, please try again.  maximum pending requests exceeded", "server"),
        (500, "llama runner process has terminated: signal: killed", "server"),
        (401, "unauthorized", "key"),
    ],
)
async def test_a_refusal_says_who_must_act(status: int, words: str, kind: str) -> None:
    error = await failed(json.dumps({"error": words}).encode(), status=status)

    assert error.kind == kind
    assert words in str(error)


async def test_a_call_that_the_server_could_not_read_is_the_models_fault() -> None:
    raw = "{\"q\": 'it''s'"
    words = f"error parsing tool call: raw='{raw}', err=invalid character '\\'' looking for beginning of value"

    assert await read_chunks(data_of(line("a"), {"error": words})) == [
        TextChunk("a"),
        CallChunk(0, raw, "malformed_call"),
        CALLED,
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"Ollama is running",
        b'data: {"choices":[]}\n\ndata: [DONE]\n\n',
        b"[1]\n",
        b"null\n",
        b"[" * 100_000 + b"\n",
    ],
)
async def test_what_is_no_stream_is_shown(data: bytes) -> None:
    error = await failed(data)

    assert (error.kind, error.retryable) == ("response", False)
    assert f"sent no stream, but {data[:200].decode()!r}" in str(error)


@pytest.mark.parametrize(
    "data",
    [
        b"{this is no JSON}",
        b'{"message":{"content":[1]},"done":true}',
        b'{"message":"hi","done":true}',
        b'{"message":{"tool_calls":{}},"done":true}',
        b'{"done":[]}',
        b'{"message":{"tool_calls":[{"function":{"arguments":' + b'{"a":' * 5_000,
        data_of(line("a")) + b"<html>",
    ],
)
async def test_a_line_that_no_model_sends_is_said_to_be_that(data: bytes) -> None:
    error = await failed(data + b"\n")

    assert (error.kind, error.retryable) == ("response", False)
    assert "is not that of a model" in str(error)


async def test_an_answer_without_a_word_was_cut_off() -> None:
    for data in (b"", b"\n\n", b"\r\n"):
        assert (await failed(data)).kind == "truncated"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(["content", "thinking", "tool_calls", "images"])
CALLS = st.lists(
    st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": VALUES, "arguments": VALUES}), "id": VALUES}),
    max_size=3,
)
LINES = st.fixed_dictionaries(
    {"message": VALUES | st.dictionaries(FIELDS, VALUES | CALLS, max_size=2)},
    optional=dict.fromkeys(("done", "done_reason", "prompt_eval_count", "eval_count", "error"), VALUES),
)


@given(st.lists(LINES.map(json.dumps).map(str.encode) | st.binary(max_size=20), max_size=4), st.booleans())
async def test_whatever_comes_is_an_answer_or_a_typed_error(lines: list[bytes], is_cut: bool) -> None:
    try:
        chunks = await read_chunks(b"\n".join(lines), is_cut=is_cut)
    except ModelError:
        return
    assert isinstance(chunks[-1], FinishChunk)
    for chunk in chunks:
        if isinstance(chunk, CallChunk):
            (chunk.arguments + chunk.name + chunk.id).encode()


async def test_a_call_of_two_megabytes_comes_in_one_line_and_is_read() -> None:
    large = {"text": "x" * 2_000_000}
    call = {"message": {"tool_calls": [{"function": {"name": "put", "arguments": large}}]}}

    chunks = await read_chunks(data_of(call, {"done": True, "done_reason": "stop"}))

    assert [chunk.name for chunk in chunks if isinstance(chunk, CallChunk)] == ["put"]
