"""OpenAI Audio validation: refuses what it refuses, with its messages, which are those of its validation library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.testing.provider.faults import Refused, is_object
from everturn.testing.provider.media.requests import MediaRequest, Upload
from everturn.testing.provider.strict.openai import check_fields

FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
VOICES = (
    "alloy",
    "ash",
    "ballad",
    "coral",
    "echo",
    "fable",
    "onyx",
    "nova",
    "sage",
    "shimmer",
    "verse",
    "marin",
    "cedar",
)
EXTENSIONS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
TEXT_FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
_SPEECH = frozenset("input instructions model response_format speed stream_format voice".split())
_TRANSCRIPTION = frozenset(
    "chunking_strategy file include language model prompt response_format stream temperature "
    "timestamp_granularities".split()
)
_LONGEST_INPUT = 4096
_LARGEST_FILE = 25 * 1024 * 1024
_MAGIC = (b"fLaC", b"OggS", b"ID3", b"\x1aE\xdf\xa3")


def check_speech(request: MediaRequest) -> None:
    """Raise `Refused` for a speech request that the real one would refuse."""
    body = request.body
    check_fields(body, _SPEECH)
    _check_input(body)
    _check_voice(body)
    wanted = body.get("response_format")
    if wanted is not None and wanted not in FORMATS:
        raise _not_in("response_format", wanted, FORMATS)
    speed = body.get("speed")
    if speed is not None:
        if isinstance(speed, bool) or not isinstance(speed, int | float):
            raise _bad("float_type", "speed", "Input should be a valid number", speed)
        if speed < 0.25:
            raise _bad("greater_than_equal", "speed", "Input should be greater than or equal to 0.25", speed)
        if speed > 4:
            raise _bad("less_than_equal", "speed", "Input should be less than or equal to 4", speed)
    if body.get("stream_format") not in (None, "audio"):
        # Our own rule.
        raise Refused("This provider sends bare audio: 'stream_format' must be 'audio'.", "stream_format")


def _check_input(body: dict[str, Any]) -> None:
    """The input has text, and not too much."""
    text = body.get("input")
    if "input" not in body:
        raise _bad("missing", "input", "Field required", body)
    if not isinstance(text, str):
        raise _bad("string_type", "input", "Input should be a valid string", text)
    if not text:
        raise _bad("string_too_short", "input", "String should have at least 1 character", text, min_length=1)
    if len(text) > _LONGEST_INPUT:
        words = f"String should have at most {_LONGEST_INPUT} characters"
        raise _bad("string_too_long", "input", words, text, max_length=_LONGEST_INPUT)


def _check_voice(body: dict[str, Any]) -> None:
    """There is a voice: OpenAI's models know their own voices, and others have others."""
    voice = body.get("voice")
    if "voice" not in body:
        raise _bad("missing", "voice", "Field required", body)
    if is_object(voice) and isinstance(voice.get("id"), str):  # a custom voice
        return
    if not isinstance(voice, str):
        raise _bad("string_type", "voice", "Input should be a valid string", voice)
    is_theirs = body["model"].startswith(("tts-1", "gpt-"))
    if not voice or (is_theirs and voice not in VOICES):
        raise _not_in("voice", voice, VOICES)


# --------------------------------------------------------------------------------------------- recordings


def check_transcription(request: MediaRequest) -> None:
    """Raise `Refused` for a transcription request that the real one would refuse."""
    body = request.body
    check_fields(body, _TRANSCRIPTION)
    _check_file(request)
    wanted = body.get("response_format")
    if wanted is not None and wanted not in TEXT_FORMATS:
        raise _not_in("response_format", wanted, TEXT_FORMATS)
    model: str = body["model"]
    if model.startswith("gpt-4o") and wanted not in (None, "json", "text"):
        text = f"response_format '{wanted}' is not compatible with model '{model}'. Use 'json' or 'text' instead."
        raise Refused(text, "response_format", "unsupported_value")
    _check_temperature(body.get("temperature"))
    language = body.get("language")
    if language is not None and not (isinstance(language, str) and len(language) in (2, 3) and language.isalpha()):
        text = f"Invalid language '{language}'. Language parameter must be specified in ISO-639-1 format."
        raise Refused(text, "language", "invalid_language_format")
    if body.get("stream") not in (None, "true", "false"):
        words = "Input should be a valid boolean, unable to interpret input"
        raise _bad("bool_parsing", "stream", words, body["stream"])


def _check_file(request: MediaRequest) -> None:
    """There is a file, with the extension and the content of a recording."""
    if "file" not in request.body:
        raise _bad("missing", "file", "Field required", None)
    files = request.files_in("file")
    if not files:
        words = "Value error, Expected UploadFile, received: <class 'str'>"
        raise _bad("value_error", "file", words, request.body["file"])
    file = files[0]
    if len(file.data) > _LARGEST_FILE:
        text = f"Maximum content size limit ({_LARGEST_FILE}) exceeded ({len(file.data)} bytes read)"
        raise Refused(text, status=413)
    if extension_of(file) not in EXTENSIONS:
        raise Refused(f"Unrecognized file format. Supported formats: {list(EXTENSIONS)}")
    if not is_audio(file.data):
        raise Refused("Audio file might be corrupted or unsupported", "file", "invalid_value")


def _check_temperature(temperature: Any) -> None:
    if temperature is None:
        return
    try:
        value = float(temperature)
    except (TypeError, ValueError):
        words = "Input should be a valid number, unable to parse string as a number"
        raise _bad("float_parsing", "temperature", words, temperature) from None
    if not 0 <= value <= 1:
        raise _bad("less_than_equal", "temperature", "Input should be less than or equal to 1", temperature)


def extension_of(file: Upload) -> str:
    """The extension of a file, by which it is validated."""
    return file.filename.rpartition(".")[2].lower() if "." in file.filename else ""


def is_audio(data: bytes) -> bool:
    """Whether the first bytes of a file are those of a recording."""
    if data.startswith(_MAGIC) or data[4:8] == b"ftyp":
        return True
    if data[:4] == b"RIFF":
        return data[8:12] == b"WAVE"
    return len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0  # a frame of MPEG audio


def _not_in(field: str, value: Any, supported: Sequence[str]) -> Refused:
    expected = ", ".join(f"'{name}'" for name in supported[:-1]) + f" or '{supported[-1]}'"
    return _bad("enum", field, f"Input should be {expected}", value, expected=expected)


def _bad(kind: str, field: str, words: str, value: Any, **context: Any) -> Refused:
    problem: dict[str, Any] = {"type": kind, "loc": ("body", field), "msg": words, "input": value}
    return Refused(str([problem | {"ctx": context} if context else problem]))
