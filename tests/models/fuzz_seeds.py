"""Answers as servers send them, for `fuzz.py` to break: a few of every format, as whole as one can have them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.models.prompted.tool_format_writer import LOOSE, STRICT

from everturn.testing.provider import Call
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.media.sound import mp3, wav

QUIRKS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/openai_chat_quirks.json").read_text("utf-8"))
MEDIA = ("images", "transcript", "speech")
TOLD = ("told-json", "told-xml", "told-blocks", "told-bound")


class Seed(Struct, frozen=True):
    """An answer in the pieces that can be broken one by one, each with what ends it."""

    format: str
    events: tuple[bytes, ...]
    is_cut: bool = False
    status: int = 200
    content_type: str = ""


# Chat, messages, responses --------------------------------------------------------------------------------------------


def _chat(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def _call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments, **more}, "type": "function"}]}


_COUNTS = {"prompt_tokens": 9, "completion_tokens": 7, "cost": 0.5}
_SEALED = {"type": "reasoning.encrypted", "index": 0, "format": "f"}
_CHAT: list[list[Any]] = [
    [
        _chat({"role": "assistant", "reasoning": "hm"}),
        _chat({"reasoning_details": [{**_SEALED, "data": "AA"}]}),
        _chat({"reasoning_details": [{**_SEALED, "data": "BB", "text": "t", "summary": "s"}]}),
        _chat({"content": "so"}),
        _chat(_call(0, '{"q":', name="look_up", id="f")),
        _chat({**_call(0, "1}"), "content": [{"type": "text", "text": "x"}, {"thinking": [{"text": "y"}]}]}),
        _chat({"tool_calls": [{"id": "g", "function": {"name": "n"}, "extra_content": {"google": {"s": "t"}}}]}),
        _chat(finish="tool_calls"),
        {"choices": [], "usage": {**_COUNTS, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}}},
    ],
    [
        _chat({"content": "<think>hm"}),
        _chat(
            {"content": "m</think> so", "refusal": "no"}, usage={"completion_tokens_details": {"reasoning_tokens": 1}}
        ),
        _chat(finish="stop", usage=_COUNTS),
    ],
    [_chat({"content": "so"}), {"error": {"code": 429, "type": "rate_limit", "message": "slow down", "param": None}}],
]


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


_MESSAGES: list[list[Any]] = [
    [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "cache_read_input_tokens": 3}}},
        {"type": "ping"},
        *_block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "AA"},
        ),
        *_block(1, {"type": "redacted_thinking", "data": "BB"}),
        *_block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "so"}),
        *_block(
            3,
            {"type": "tool_use", "id": "t", "name": "look_up", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"q":'},
            {"type": "input_json_delta", "partial_json": "1}"},
        ),
        *_block(4, {"type": "tool_use", "id": "u", "name": "n", "input": {"q": [1]}}),
        *_block(5, {"type": "server_tool_use", "id": "s"}),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ],
    [
        *_block(0, {"type": "text", "text": "so"}),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ],
]


def _item(kind: str, index: int, **item: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": item}


_USED = {"input_tokens": 9, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 3}}
_RESPONSES: list[list[Any]] = [
    [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        _item("added", 0, type="reasoning", summary=[]),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
        _item("done", 0, type="reasoning", summary=[{"type": "summary_text"}], encrypted_content="AA"),
        {"type": "response.output_text.delta", "output_index": 1, "delta": "so"},
        {"type": "response.refusal.delta", "output_index": 1, "delta": "no"},
        _item("added", 2, type="function_call", call_id="c", name="look_up", arguments=""),
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"q":1}'},
        _item("done", 2, type="function_call", call_id="c", name="look_up", arguments='{"q":1}'),
        _item("done", 3, type="function_call", call_id="d", name="n", arguments="{}"),
        {
            "type": "response.completed",
            "response": {"usage": {**_USED, "output_tokens_details": {"reasoning_tokens": 1}}},
        },
    ],
    [
        {"type": "response.output_text.delta", "delta": "so"},
        {
            "type": "response.incomplete",
            "response": {"incomplete_details": {"reason": "max_output_tokens"}, "usage": _USED},
        },
    ],
    [{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oh"}}}],
    [{"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}],
]

_BODIES: list[Any] = [
    {"error": {"code": "tool_use_failed", "failed_generation": "<f>", "message": "no"}},
    {"error": {"type": "invalid_request_error", "code": 400, "message": "no"}},
    [{"error": {"code": 429, "message": "quota"}}],
    {"detail": [{"msg": "no", "type": "missing"}]},
    {"message": "no", "type": "e", "code": "1"},
    {"error": "error parsing tool call: raw='{', err=unexpected end of JSON input"},
    {
        "error": {
            "code": 429,
            "message": "slow down",
            "details": [{"retryDelay": "37s"}],
            "status": "RESOURCE_EXHAUSTED",
        }
    },
]

# Gemini, Ollama -------------------------------------------------------------------------------------------------------

PNG = draw_png(b"turtle")


def _part(**part: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]}


_TOKENS = {"promptTokenCount": 9, "candidatesTokenCount": 7, "thoughtsTokenCount": 2, "cachedContentTokenCount": 3}
_PICTURE = {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
_GEMINI: list[list[Any]] = [
    [
        _part(text="hm", thought=True),
        _part(text="hm", thought=True, thoughtSignature="AA"),
        {**_part(text="so"), "usageMetadata": _TOKENS, "modelVersion": "m", "responseId": "r"},
        _part(functionCall={"name": "look_up", "args": {"q": [1]}, "id": "c"}, thoughtSignature="BB"),
        _part(functionCall={"name": "n"}),
        {"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": _TOKENS},
    ],
    [
        _part(text="so", thoughtSignature="AA"),
        _part(inlineData=_PICTURE, thoughtSignature="BB"),
        _part(inlineData=_PICTURE, thought=True),
        _part(executableCode={"language": "PYTHON", "code": "1"}),
        {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "MAX_TOKENS"}]},
    ],
    [{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": _TOKENS}],
    [
        _part(text="so"),
        {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: f("}]},
    ],
    [_part(text="so"), {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}],
]


def _line(done: bool = False, /, **message: Any) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": done}


_OLLAMA: list[list[Any]] = [
    [
        _line(thinking="hm"),
        _line(content="so"),
        _line(tool_calls=[{"id": "c", "function": {"index": 0, "name": "look_up", "arguments": {"q": [1]}}}]),
        _line(tool_calls=[{"function": {"name": "n", "arguments": {}}}, {"function": {"name": "n<|channel|>x"}}]),
        {**_line(True), "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 7, "total_duration": 1},
    ],
    [
        _line(content="<think>hm"),
        _line(content="m</think> so"),
        _line(images=[base64.b64encode(PNG).decode()]),
        {**_line(True), "done_reason": "length"},
    ],
    [_line(content="so"), {"error": "an error was encountered while running the model"}],
    [_line(content="so"), {"error": "error parsing tool call: raw='{', err=unexpected end of JSON input"}],
    [{**_line(True), "done_reason": "load"}],
]


# Files ----------------------------------------------------------------------------------------------------------------

_SIZES = {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16}
_IMAGES: list[Any] = [
    {"created": 1, "data": [{"b64_json": _PICTURE["data"]}, {"b64_json": _PICTURE["data"]}], "usage": _SIZES},
    {"data": [{"url": f"data:image/png;base64,{_PICTURE['data']}"}]},
    {"data": [{"url": "http://127.0.0.1:9/a.png"}]},
    {"data": []},
]
_TRANSCRIPTS: list[Any] = [{"text": " So it is. ", "usage": {"type": "tokens", **_SIZES}}, {"text": ""}, {}]
_SOUNDS = [(wav("a")[:400], "audio/wav"), (wav("a"), ""), (mp3("a"), "audio/mpeg"), (b"OggS\0", ""), (b"fLaC", "")]


# In words -------------------------------------------------------------------------------------------------------------

_CALLS = [
    Call("look.up", '{"q": "a", "n": 1}'),
    Call("write", json.dumps({"text": 'x = {"a": 1}\n```\nEND\n', "list": [1, {"b": None}]})),
    Call("look.up", "{}"),
]
_WORDS = ("Let me see.\n\n", "<think>hm</think>\n", "```\n{code}\n```\n", "")


def _spoken(text: str, size: int) -> tuple[bytes, ...]:
    """A text as a chat model says it."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return (*_dumped([*(_chat({"content": piece}) for piece in pieces), _chat(finish="stop")]), b"data: [DONE]\n\n")


def _told() -> Iterable[Seed]:
    for at, words in enumerate(_WORDS):
        for way, write in [*STRICT.items(), *LOOSE.items()]:
            yield Seed(f"told-{way}", _spoken(words + write(_CALLS[: 1 + at % 3]) + "\nDone.", 40 * (at + 1)))
        calls = STRICT["json"](_CALLS)[1:]
        yield Seed("told-bound", _spoken(f'{{"answer": {json.dumps(words)}, {calls}', 50))
        yield Seed("told-bound", _spoken(json.dumps({"answer": words + "\U0001f422 \\u"}), 7))


# All of them ----------------------------------------------------------------------------------------------------------


def _dumped(events: Iterable[Any]) -> tuple[bytes, ...]:
    return tuple(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def _lines(events: Iterable[Any]) -> tuple[bytes, ...]:
    return tuple(json.dumps(event).encode() + b"\n" for event in events)


def _pieces(quirk: dict[str, Any]) -> Iterable[bytes]:
    for piece in quirk["chunks"]:
        yield piece.encode() if isinstance(piece, str) else base64.b64decode(piece["base64"])


SEEDS = [
    *(Seed("chat", tuple(_pieces(quirk)), quirk["abrupt_close"]) for quirk in QUIRKS),
    *(Seed("chat", (*_dumped(events), b"data: [DONE]\n\n")) for events in _CHAT * 6),
    *(Seed("messages", _dumped(events)) for events in _MESSAGES * 16),
    *(Seed("responses", _dumped(events)) for events in _RESPONSES * 8),
    *(Seed("gemini", _dumped(events)) for events in _GEMINI * 8),
    *(Seed("ollama", _lines(events)) for events in _OLLAMA * 8),
    *(Seed("images", _lines([body]), content_type="application/json") for body in _IMAGES * 5),
    *(Seed("transcript", _lines([body]), content_type="application/json") for body in _TRANSCRIPTS * 4),
    Seed("transcript", (b" So it is. ",), content_type="text/plain; charset=utf-8"),
    *(Seed("speech", (data,), content_type=kind) for data, kind in _SOUNDS * 2),
    *_told(),
    *(
        Seed(format, (json.dumps(body).encode(),), status=status)
        for body in _BODIES
        for status in (200, 400)
        for format in ("chat", "gemini", "ollama", "images", "speech")
    ),
]
