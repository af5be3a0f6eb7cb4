"""Ollama stream: decodes the lines of Ollama's own format into chunks.

A call arrives whole: every entry of `tool_calls` is another call, whatever its index. The last line is the one with
`done`; without it the stream was cut off. The server counts no tokens for a prompt that it has cached, and older
servers leave the field out: the input of such a request is 0.

The hot path is `feed` with a piece of text: one decode, one chunk.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import CallChunk, Chunk, FileChunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Usage
from everturn.models.failures import stream_error, unparsed_call
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.formats.think_tags import ThinkTagReader
from everturn.models.profile import Origin, Profile

FINISHES: Mapping[str, Finish] = {"": "stop", "stop": "stop", "length": "length"}
LOADS = ("load", "unload")  # the model was loaded or unloaded, and generated nothing

_IMAGES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


class _OllamaFunction(Struct, gc=False):
    name: Any = None
    arguments: Any = None


class _OllamaCall(Struct, gc=False):
    id: Any = None
    function: _OllamaFunction | None = None


class _OllamaMessage(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_OllamaCall] | None = None
    images: list[str] | None = None


class _OllamaLine(Struct, gc=False):
    message: _OllamaMessage | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_OllamaLine).decode


class OllamaDecoder:
    """Decodes one answer."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._thinking = None if profile.think == "off" else ThinkTagReader(profile.think == "prefilled")
        self._calls = 0
        self._is_empty = True
        self._last = _OllamaLine()
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one line."""
        try:
            line = _decode(data)
        except DECODE_ERRORS:
            line = decode_leniently(data, _OllamaLine)
        if line.error:
            self._fail(line.error, out)
            return
        message = line.message
        if message is not None:
            if message.thinking:
                self._reason(message.thinking, out)
            if content := message.content:
                self._is_empty = False
                if self._thinking is None:
                    out.append(TextChunk(content))
                else:
                    self._say(content, self._thinking, out)
            for call in message.tool_calls or ():
                self._call(call, out)
            for image in message.images or ():
                self._show(image, out)
        if line.done:
            self._last, self.is_done = line, True

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append what is pending, the usage and the finish reason."""
        if self._thinking is not None:
            self._thinking.end(out)
        last = self._last
        if last.prompt_eval_count is not None or last.eval_count is not None:
            out.append(UsageChunk(Usage(input=last.prompt_eval_count or 0, output=last.eval_count or 0)))
        if not self.is_done:
            raise truncated_error()
        raw = last.done_reason or ""
        if raw in LOADS and self._is_empty:
            raise truncated_error(f"the server says {raw!r}, and not a word more")
        reason: Finish = FINISHES.get(raw, "other")
        if reason == "stop" and self._calls:  # it has no finish reason for calls
            reason = "tool_calls"
        out.append(FinishChunk(reason, raw))

    def _fail(self, error: object, out: list[Chunk]) -> None:
        """Raise an error of the server; a call that the server could not parse becomes a malformed call instead."""
        broken = unparsed_call(error) if isinstance(error, str) else None
        if broken is None:
            # The error is only a message; without more information it counts as HTTP 500.
            raise stream_error({"code": 500, "message": error} if isinstance(error, str) else error, self._origin.names)
        self._call(_OllamaCall(function=_OllamaFunction("malformed_call", broken)), out)
        self._last, self.is_done = _OllamaLine(done_reason="stop"), True

    def _say(self, content: str, thinking: ThinkTagReader, out: list[Chunk]) -> None:
        thinking.feed(content, out)
        if thinking.is_over:
            self._thinking = None

    def _reason(self, text: str, out: list[Chunk]) -> None:
        """Read reasoning from its own field."""
        if self._thinking is not None:
            self._thinking.end(out)  # then think tags in the text are plain text
            self._thinking = None
        self._is_empty = False
        out.append(ReasoningChunk(text))

    def _call(self, call: _OllamaCall, out: list[Chunk]) -> None:
        function = call.function
        if function is None:
            return
        arguments, name, call_id = function.arguments, function.name, call.id
        if type(arguments) is not str:
            arguments = "" if arguments is None else encode_canonical(arguments)
        name = self._named(name) if name and isinstance(name, str) else ""
        out.append(CallChunk(self._calls, arguments, name, call_id if isinstance(call_id, str) else ""))
        self._calls += 1
        self._is_empty = False

    def _named(self, name: str) -> str:
        # gpt-oss leaks the channel into the name: `search<|channel|>commentary`.
        name = name.split("<|", 1)[0].strip()
        return self._names.get(name, name)

    def _show(self, image: str, out: list[Chunk]) -> None:
        """Append an image that the model made; its type is detected from its first bytes."""
        try:
            data = base64.b64decode(image, validate=True)
        except ValueError:
            return
        kind = next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "application/octet-stream")
        if data:
            self._is_empty = False
            out.append(FileChunk(data, kind))
