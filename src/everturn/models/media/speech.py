"""Words → a voice, and a voice → words: OpenAI's `/audio/speech` and `/audio/transcriptions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical import clean
from everturn.core.chunks import Chunk, FileChunk, TextChunk, UsageChunk
from everturn.core.parts import FilePart
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.formats.loose import BROKEN, loosely
from everturn.models.formats.params import encode as encode_json
from everturn.models.media.kinds import SEEN, extension, look
from everturn.models.media.multipart import Upload, encode
from everturn.models.media.work import Asked, Work, counted, fields_of, refuse_ours, said

VOICE = "alloy"  # one must be named, and every server that is compatible knows this one


class _Heard(Struct):
    text: str | None = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Heard).decode


def speak(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[Asked]:
    """Ask for what was said, spoken."""
    refuse_ours(params, ("model", "input"))
    body = {"voice": VOICE, **params, "model": model, "input": said(request)}
    return [Asked("/audio/speech", encode_json(body), "application/json")]


def read_speech(body: bytes, content_type: str) -> list[Chunk]:
    """Read the sound."""
    seen = look(body)
    told = content_type.partition(";")[0].strip()
    media_type = seen.media_type or (told if told not in SEEN else "")  # one we would know is not one we do not
    if not body or not media_type.startswith("audio/") or not seen.is_whole or _is_text(body):
        shown = clean(body[:200].decode("utf-8", "replace"))
        raise ModelError(f"the server sent no sound, or only a part of it: {shown!r}", kind="response")
    return [FileChunk(body, media_type, f"speech.{extension(media_type)}")]


def _is_text(body: bytes) -> bool:
    """Whether it is a page, or an error, that somebody sent under the name of a sound."""
    return body.lstrip()[:1] in (b"<", b"{")


def transcribe(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[Asked]:
    """Ask what is said in each recording; words that came with them say what it is about."""
    about = {"prompt": text} if (text := said(request)) else {}
    refuse_ours(params, ("model", *about))
    fields = list(fields_of({"response_format": "json", **params, **about, "model": model}))
    asked: list[Asked] = []
    for part in request.messages[-1].parts:
        if isinstance(part, FilePart) and part.blob in request.files:
            kind = look(request.files[part.blob]).media_type or part.media_type
            upload = Upload("file", f"audio.{extension(kind)}", kind, request.files[part.blob])
            asked.append(Asked("/audio/transcriptions", *encode(fields, [upload])))
    if not asked:
        raise ModelError("the recording is gone; attach it again", kind="request")
    return asked


def read_transcript(body: bytes, content_type: str) -> list[Chunk]:
    """Read what was heard."""
    if content_type.startswith("text/plain"):
        return [TextChunk(clean(body.decode("utf-8", "replace")).strip())]
    try:
        heard = _decode(body)
    except BROKEN:
        heard = loosely(body, _Heard)
    if heard.text is None:
        raise ModelError("the server answered without a word of what it heard", kind="response")
    chunks: list[Chunk] = [TextChunk(heard.text.strip())]
    if (usage := counted(heard.usage)) is not None:
        chunks.append(UsageChunk(usage))
    return chunks


SPEAK, TRANSCRIBE = Work(speak, read_speech), Work(transcribe, read_transcript)
