"""Speech models: text to speech and transcription with OpenAI's `/audio/speech` and `/audio/transcriptions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import replace_surrogates
from everturn.core.chunks import Chunk, FileChunk, TextChunk, UsageChunk
from everturn.core.parts import FilePart
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently
from everturn.models.formats.params import encode_body as encode_json
from everturn.models.media.file_types import DETECTED_AUDIO, detect_type, extension
from everturn.models.media.job import MediaJob, MediaPost, form_fields, message_text, read_usage, refuse_reserved_params
from everturn.models.multipart import MultipartFile, encode

VOICE = "alloy"  # a voice is required, and every compatible server has this one


class _Transcription(Struct):
    text: str | None = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Transcription).decode


def speak(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[MediaPost]:
    """Build the request for the speech of the message's text."""
    refuse_reserved_params(params, ("model", "input"))
    body = {"voice": VOICE, **params, "model": model, "input": message_text(request)}
    return [MediaPost("/audio/speech", encode_json(body), "application/json")]


def read_speech(body: bytes, content_type: str) -> list[Chunk]:
    """Decode the audio of a response."""
    file_type = detect_type(body)
    declared = content_type.partition(";")[0].strip()
    media_type = file_type.media_type or (
        declared if declared not in DETECTED_AUDIO else ""
    )  # a declared type that `look` would have detected is wrong
    if not body or not media_type.startswith("audio/") or not file_type.is_whole or _is_text(body):
        excerpt = replace_surrogates(body[:200].decode("utf-8", "replace"))
        raise ModelError(f"the response contains no audio, or only a part of it: {excerpt!r}", kind="response")
    return [FileChunk(body, media_type, f"speech.{extension(media_type)}")]


def _is_text(body: bytes) -> bool:
    """Return whether the body is HTML or a JSON error instead of audio."""
    return body.lstrip()[:1] in (b"<", b"{")


def transcribe(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[MediaPost]:
    """Build a transcription request for each recording; the text of the message becomes the prompt."""
    prompt = {"prompt": text} if (text := message_text(request)) else {}
    refuse_reserved_params(params, ("model", *prompt))
    fields = list(form_fields({"response_format": "json", **params, **prompt, "model": model}))
    posts: list[MediaPost] = []
    for part in request.messages[-1].parts:
        if isinstance(part, FilePart) and part.blob in request.files:
            kind = detect_type(request.files[part.blob]).media_type or part.media_type
            upload = MultipartFile("file", f"audio.{extension(kind)}", kind, request.files[part.blob])
            posts.append(MediaPost("/audio/transcriptions", *encode(fields, [upload])))
    if not posts:
        raise ModelError("the recording no longer exists; attach it again", kind="request")
    return posts


def read_transcript(body: bytes, content_type: str) -> list[Chunk]:
    """Decode the transcript of a response."""
    if content_type.startswith("text/plain"):
        return [TextChunk(replace_surrogates(body.decode("utf-8", "replace")).strip())]
    try:
        transcription = _decode(body)
    except DECODE_ERRORS:
        transcription = decode_leniently(body, _Transcription)
    if transcription.text is None:
        raise ModelError("the response contains no transcript", kind="response")
    chunks: list[Chunk] = [TextChunk(transcription.text.strip())]
    if (usage := read_usage(transcription.usage)) is not None:
        chunks.append(UsageChunk(usage))
    return chunks


SPEAK, TRANSCRIBE = MediaJob(speak, read_speech), MediaJob(transcribe, read_transcript)
