"""Random conversations in the shapes of other libraries: valid ones, and ones that no vendor would accept."""

import base64
import random
from typing import Any

from everturn.testing.provider.media.png import draw_png

Json = dict[str, Any]
PNG = base64.b64encode(draw_png(b"a")).decode()
TEXTS = ("Hello.", "", "  ", "Ünï 🐢 cödé", "half a surrogate \ud83d", "a\0b", "<notice>hm</notice>", "line\nline")
ARGUMENTS = ('{"path": "a"}', "{}", "", "{", "[]", "null", '{"a": NaN}', '{"path": "\\ud800"}', '{"a": 1, "a": 2}')
NAMES = ("look", "look", "no such tool", "", "x" * 90, "functions.look", "änder")
IDS = ("c1", "c2", "c1", "", "a b", "functions.look:0", "call_" + "y" * 70)
RESULTS: tuple[Any, ...] = ("found", "", " ", "line\nline", "\ud800")
IMAGES = (PNG, "", "iVBOR", "not base64!", base64.b64encode(b"no picture").decode())


def openai(seed: int) -> list[Json]:
    """Chat Completions messages, and now and then items of the Responses API."""
    dice = random.Random(f"openai/{seed}")
    return [_openai_message(dice) for _ in range(dice.randint(1, 9))]


def _openai_message(dice: random.Random) -> Json:
    text = dice.choice(TEXTS)
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{dice.choice(IMAGES)}"}}
    link = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    call = {"name": dice.choice(NAMES), "arguments": dice.choice(ARGUMENTS)}
    calls = [{"id": dice.choice(IDS), "type": "function", "function": call} for _ in range(dice.randint(1, 3))]
    audio = {"type": "input_audio", "input_audio": {"data": dice.choice(IMAGES), "format": "wav"}}
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}}
    return dice.choice(
        [
            {"role": "system", "content": text},
            {"role": "user", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}, dice.choice((image, link, audio, file))]},
            {"role": "user", "content": dice.choice((None, [], 7, [7], {"type": "text"}))},
            {"role": "assistant", "content": text},
            {"role": "assistant", "content": None, "refusal": text},
            {"role": "assistant", "content": text, "tool_calls": calls},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "tool", "tool_call_id": dice.choice(IDS), "content": dice.choice(RESULTS)},
            {"role": "tool", "tool_call_id": dice.choice(IDS), "content": [{"type": "text", "text": text}, image]},
            {"role": "function", "name": "look", "content": dice.choice(RESULTS)},
            {"type": "function_call", "call_id": dice.choice(IDS), **call},
            {"type": "function_call_output", "call_id": dice.choice(IDS), "output": dice.choice(RESULTS)},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "x"},
            {"type": "web_search_call", "id": "w"},
        ]
    )


def anthropic(seed: int) -> list[Json]:
    """Messages with content blocks."""
    dice = random.Random(f"anthropic/{seed}")
    messages: list[Json] = []
    for _ in range(dice.randint(1, 9)):
        role = dice.choice(("user", "assistant"))
        blocks = [_block(dice) for _ in range(dice.randint(0, 4))]
        messages.append({"role": role, "content": dice.choice((dice.choice(TEXTS), blocks, blocks, blocks))})
    return messages


def _block(dice: random.Random) -> Json:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": dice.choice(IMAGES)}}
    return dice.choice(
        [
            {"type": "text", "text": dice.choice(TEXTS)},
            image,
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": dice.choice(TEXTS)}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
            {"type": "tool_use", "id": dice.choice(IDS), "name": dice.choice(NAMES), "input": {"path": "a"}},
            {"type": "tool_use", "id": dice.choice(IDS), "name": dice.choice(NAMES), "input": dice.choice((None, []))},
            {"type": "tool_result", "tool_use_id": dice.choice(IDS), "content": dice.choice(RESULTS)},
            {"type": "tool_result", "tool_use_id": dice.choice(IDS), "content": [image], "is_error": True},
            {"type": "thinking", "thinking": dice.choice(TEXTS), "signature": "of somebody"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        ]
    )


def pydantic_ai(seed: int) -> list[Json]:
    """The JSON of `ModelMessagesTypeAdapter`."""
    dice = random.Random(f"pydantic_ai/{seed}")
    messages: list[Json] = []
    for _ in range(dice.randint(1, 9)):
        kind = dice.choice(("request", "response"))
        make = _request_part if kind == "request" else _response_part
        messages.append({"kind": kind, "parts": [make(dice) for _ in range(dice.randint(0, 3))], "instructions": None})
    return messages


def _request_part(dice: random.Random) -> Json:
    called = {"tool_name": dice.choice(NAMES), "tool_call_id": dice.choice(IDS)}
    binary = {"kind": "binary", "data": dice.choice(IMAGES), "media_type": "image/png"}
    link = {"kind": "image-url", "url": "https://example.com/a.png"}
    return dice.choice(
        [
            {"part_kind": "system-prompt", "content": "Be brief."},
            {"part_kind": "user-prompt", "content": dice.choice(TEXTS)},
            {"part_kind": "user-prompt", "content": [dice.choice(TEXTS), binary, link]},
            {"part_kind": "tool-return", "content": dice.choice((*RESULTS, {"a": 1}, None)), **called},
            {"part_kind": "retry-prompt", "content": [{"type": "missing", "loc": ["a"]}], **called},
            {"part_kind": "retry-prompt", "content": "Plain text is not permitted.", "tool_name": None},
            {"part_kind": "something new"},
        ]
    )


def _response_part(dice: random.Random) -> Json:
    called = {"tool_name": dice.choice(NAMES), "tool_call_id": dice.choice(IDS)}
    return dice.choice(
        [
            {"part_kind": "text", "content": dice.choice(TEXTS)},
            {"part_kind": "thinking", "content": dice.choice(TEXTS), "signature": "of somebody"},
            {"part_kind": "tool-call", "args": dice.choice((*ARGUMENTS, {"path": "a"}, None)), **called},
            {"part_kind": "builtin-tool-call", "args": None, **called},
            {"part_kind": "file", "content": {"kind": "binary", "data": PNG, "media_type": "image/png"}},
        ]
    )


SHAPES = {"openai": openai, "anthropic": anthropic, "pydantic_ai": pydantic_ai}
