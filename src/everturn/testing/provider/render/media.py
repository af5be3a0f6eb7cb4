"""Media rendering: turns the items of a step into an `Answer` with an image, a sound or a text, in pieces that can be
paced and cut.

An item without content is made for the request: an image of its prompt, a sound of its text, a text about its file.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from everturn.testing.provider.answers import Answer, Part, StreamChunk, make_answer, make_streamed_answer
from everturn.testing.provider.faults import Refused, error_body, is_list, is_object, plain_refusal
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.media.requests import MediaRequest
from everturn.testing.provider.media.sound import mp3, pcm, wav
from everturn.testing.provider.render.chat import CREATED
from everturn.testing.provider.script import (
    Cut,
    CutAt,
    Hang,
    Image,
    Item,
    Pause,
    Raw,
    ScriptedUsage,
    Speech,
    Status,
    Transcription,
    split,
)
from everturn.testing.provider.strict.images import count_of, family_of

PIECES = 8
"""How many pieces a file comes in."""

Keep = Callable[[bytes], str]
_SOUNDS = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_SPEAK = {"wav": wav, "pcm": pcm, "mp3": mp3}
_JSON, _TEXT, _EVENTS = "application/json", "text/plain; charset=utf-8", "text/event-stream; charset=utf-8"


def render_media(request: MediaRequest, items: Sequence[Item], pace: float, keep: Keep) -> Answer:
    """Make the answer of a step; `keep` stores an image and returns its URL."""
    pauses = [item.seconds for item in items if isinstance(item, Pause)]
    for item in items:
        if isinstance(item, Status):
            body = item.body.encode() if isinstance(item.body, str) else item.body
            body = body or error_body("responses", request.body["model"], plain_refusal(item.code))
            return make_answer(item.code, body, item.headers, pauses)
    cut_at = next((item.byte for item in items if isinstance(item, CutAt)), None)
    content_type, parts = _JSON, _raw(items)
    raw = next((item for item in items if isinstance(item, Raw)), None)
    if raw is not None:
        content_type = raw.content_type
    elif request.media == "speech":
        content_type, parts = _sound_type(request, items), _sound(request, items)
    elif request.media == "transcriptions":
        content_type, parts = _text_type(request), _text(request, items)
    else:
        parts = _pictures(request, items, keep)
    return make_streamed_answer(list(parts), content_type, pace, cut_at)


def _raw(items: Iterable[Item]) -> Iterator[Part]:
    for item in items:
        if isinstance(item, Raw):
            yield StreamChunk(item.data)
        elif isinstance(item, Pause | Cut | Hang):
            yield item


def _cut(data: bytes, pieces: int = PIECES) -> Iterator[StreamChunk]:
    size = max(1, -(-len(data) // pieces))
    yield from (StreamChunk(data[at : at + size]) for at in range(0, len(data), size))


def _usage(items: Iterable[Item]) -> ScriptedUsage | None:
    return next((item for item in items if isinstance(item, ScriptedUsage)), None)


# ---------------------------------------------------------------------------------------------- pictures


def _pictures(request: MediaRequest, items: Sequence[Item], keep: Keep) -> Iterator[Part]:
    """The JSON with the images; the last one is repeated until there are as many as requested."""
    images = [item for item in items if isinstance(item, Image)]
    missing = max(0, (count_of(request.body) or 1) - len(images))
    if not (items and isinstance(items[0], Cut)):
        yield StreamChunk(b'{"created":%d,"data":[' % CREATED, is_beat=False)
    number = 0
    for item in items:
        if isinstance(item, Image):
            number += 1
            for again in range(1 + missing * (number == len(images))):
                at = number - 1 + again
                yield from _cut(b"," * bool(at) + msgspec.json.encode(_picture(request, item, at, keep)))
        elif isinstance(item, Pause | Cut | Hang):
            yield item
    facts = _facts(request, items)
    yield StreamChunk(b"]" + (b"," + msgspec.json.encode(facts)[1:] if facts else b"}"))


def _picture(request: MediaRequest, image: Image, at: int, keep: Keep) -> dict[str, Any]:
    body = request.body
    if not image.png and body.get("output_format") not in (None, "png"):
        raise Refused("This provider draws nothing but PNG; a script has to bring the picture.", "output_format")
    data = image.png or draw_png(_seed(body, at))
    revised = {"revised_prompt": image.revised_prompt} if image.revised_prompt else {}
    default = "url" if family_of(body["model"]).startswith("dall-e") else "b64_json"
    if body.get("response_format", default) == "url":
        return {**revised, "url": keep(data)}
    return {**revised, "b64_json": base64.b64encode(data).decode()}


def _seed(body: dict[str, Any], at: int) -> bytes:
    """The seed of an image: the prompt, the images it is made from, and its index."""
    image = body.get("image")
    files: list[Any] = image if is_list(image) else [image]
    sources = [str(file["sha256"]) for file in files if is_object(file)]
    return "\0".join([str(body.get("prompt")), str(at), *sources]).encode()


def _facts(request: MediaRequest, items: Sequence[Item]) -> dict[str, Any]:
    """The fields after the images: `gpt-image-…` counts its tokens, and others do when a script says so."""
    body, usage = request.body, _usage(items)
    if family_of(body["model"]) != "gpt-image" and usage is None:
        return {}
    usage = usage or ScriptedUsage()
    of_files = usage.input // 2 if request.files else 0
    return {
        "background": "opaque",
        "output_format": body.get("output_format") or "png",
        "quality": "low",
        "size": "1024x1024",
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"image_tokens": of_files, "text_tokens": usage.input - of_files},
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        },
    }


# ------------------------------------------------------------------------------------------------ sounds


def _sound_type(request: MediaRequest, items: Sequence[Item]) -> str:
    content_type = next((item.content_type for item in items if isinstance(item, Speech) and item.content_type), "")
    return content_type or _SOUNDS.get(str(request.body.get("response_format") or "mp3"), "application/octet-stream")


def _sound(request: MediaRequest, items: Sequence[Item]) -> Iterator[Part]:
    for item in items:
        if isinstance(item, Speech):
            yield from _cut(item.data or _speech(request.body))
        elif isinstance(item, Pause | Cut | Hang):
            yield item


def _speech(body: dict[str, Any]) -> bytes:
    wanted = body.get("response_format") or "mp3"
    speak = _SPEAK.get(wanted)
    if speak is None:
        text = f"This provider speaks {', '.join(_SPEAK)}; a script has to bring a sound in {wanted}."
        raise Refused(text, "response_format")
    return speak(str(body.get("input")))


# ------------------------------------------------------------------------------------------------- texts


def _is_streamed(request: MediaRequest) -> bool:
    """Whether the text is sent as events; `whisper-1` ignores the request for it."""
    return request.body.get("stream") == "true" and not request.body["model"].startswith("whisper")


def _text_type(request: MediaRequest) -> str:
    if _is_streamed(request):
        return _EVENTS
    return _TEXT if request.body.get("response_format") in ("text", "srt", "vtt") else _JSON


def _text(request: MediaRequest, items: Sequence[Item]) -> Iterator[Part]:
    usage = _usage(items)
    for item in items:
        if isinstance(item, Transcription):
            text = item.text or _transcript(request)
            if _is_streamed(request):
                yield from _events(text, usage)
            else:
                yield from _cut(_written(request, text, usage))
        elif isinstance(item, Pause | Cut | Hang):
            yield item


def _transcript(request: MediaRequest) -> str:
    """The text about a recording from a model that cannot listen."""
    file = request.files_in("file")
    return f"I heard {len(file[0].data)} bytes of {file[0].content_type or 'sound'}." if file else "I heard nothing."


def _written(request: MediaRequest, text: str, usage: ScriptedUsage | None) -> bytes:
    match request.body.get("response_format"):
        case "text":
            return text.encode() + b"\n"
        case "srt":
            return f"1\n00:00:00,000 --> 00:00:01,000\n{text}\n\n".encode()
        case "vtt":
            return f"WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n{text}\n\n".encode()
        case "verbose_json":
            facts: dict[str, Any] = {
                "task": "transcribe",
                "language": "english",
                "duration": 1.0,
                "text": text,
                "segments": [],
            }
            return msgspec.json.encode({**facts, "usage": {"type": "duration", "seconds": 1}})
        case _:
            return msgspec.json.encode({"text": text} | _tokens(usage))


def _events(text: str, usage: ScriptedUsage | None) -> Iterator[StreamChunk]:
    for piece in split(text, 0):
        yield _event({"type": "transcript.text.delta", "delta": piece})
    yield _event({"type": "transcript.text.done", "text": text} | _tokens(usage))


def _event(data: dict[str, Any]) -> StreamChunk:
    return StreamChunk(b"event: %s\ndata: %s\n\n" % (data["type"].encode(), msgspec.json.encode(data)))


def _tokens(usage: ScriptedUsage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    details = {"text_tokens": 0, "audio_tokens": usage.input}
    counts = {"input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.input + usage.output}
    return {"usage": {"type": "tokens", "input_token_details": details, **counts}}
