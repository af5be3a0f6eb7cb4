"""The lines of a stream in Ollama's own format → chunks.

A call comes whole: every entry of `tool_calls` is another call, whatever its number says. The last line is the one with
`done`; without it the stream was cut off. Of a prompt it still had in memory the server counts nothing, and older ones
do not send the field then: the input of such a request is 0.

The hot path is `feed` with a piece of text: one decode, one chunk.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.chunks import CallChunk, Chunk, FileChunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Usage
from everturn.models.failures import in_band, unread_call
from everturn.models.formats.loose import BROKEN, cut_off, loosely
from everturn.models.formats.think import Thinking
from everturn.models.profile import Origin, Profile

FINISHES: Mapping[str, Finish] = {"": "stop", "stop": "stop", "length": "length"}
LOADS = ("load", "unload")  # the model was loaded, or let go, and not asked

_IMAGES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


class _Function(Struct, gc=False):
    name: Any = None
    arguments: Any = None


class _Call(Struct, gc=False):
    id: Any = None
    function: _Function | None = None


class _Message(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None
    images: list[str] | None = None


class _Line(Struct, gc=False):
    message: _Message | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Line).decode


class OllamaDecoder:
    """Reads one answer."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._thinking = None if profile.think == "off" else Thinking(profile.think == "prefilled")
        self._calls = 0
        self._is_empty = True
        self._last = _Line()
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Read one line."""
        try:
            line = _decode(data)
        except BROKEN:
            line = loosely(data, _Line)
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
        """The stream is over."""
        if self._thinking is not None:
            self._thinking.end(out)
        last = self._last
        if last.prompt_eval_count is not None or last.eval_count is not None:
            out.append(UsageChunk(Usage(input=last.prompt_eval_count or 0, output=last.eval_count or 0)))
        if not self.is_done:
            raise cut_off()
        raw = last.done_reason or ""
        if raw in LOADS and self._is_empty:
            raise cut_off(f"the server says {raw!r}, and not a word more")
        reason: Finish = FINISHES.get(raw, "other")
        if reason == "stop" and self._calls:  # it has no word of its own for them
            reason = "tool_calls"
        out.append(FinishChunk(reason, raw))

    def _fail(self, error: object, out: list[Chunk]) -> None:
        """An error of the server, but for a call of the model that the server could not read: that is the model's."""
        broken = unread_call(error) if isinstance(error, str) else None
        if broken is None:
            # Only words are sent; where they say no more, it is what the server calls a 500 at other times.
            raise in_band({"code": 500, "message": error} if isinstance(error, str) else error, self._origin.names)
        self._call(_Call(function=_Function("malformed_call", broken)), out)
        self._last, self.is_done = _Line(done_reason="stop"), True

    def _say(self, content: str, thinking: Thinking, out: list[Chunk]) -> None:
        thinking.feed(content, out)
        if thinking.is_over:
            self._thinking = None

    def _reason(self, text: str, out: list[Chunk]) -> None:
        """Reasoning that has a field of its own."""
        if self._thinking is not None:
            self._thinking.end(out)  # then tags in the text are only text
            self._thinking = None
        self._is_empty = False
        out.append(ReasoningChunk(text))

    def _call(self, call: _Call, out: list[Chunk]) -> None:
        function = call.function
        if function is None:
            return
        arguments, name, given = function.arguments, function.name, call.id
        if type(arguments) is not str:
            arguments = "" if arguments is None else canonical(arguments)
        name = self._named(name) if name and isinstance(name, str) else ""
        out.append(CallChunk(self._calls, arguments, name, given if isinstance(given, str) else ""))
        self._calls += 1
        self._is_empty = False

    def _named(self, name: str) -> str:
        # gpt-oss leaks the channel into the name: `search<|channel|>commentary`.
        name = name.split("<|", 1)[0].strip()
        return self._names.get(name, name)

    def _show(self, image: str, out: list[Chunk]) -> None:
        """A picture that the model made; what it is nobody says, so its first bytes must."""
        try:
            data = base64.b64decode(image, validate=True)
        except ValueError:
            return
        kind = next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "application/octet-stream")
        if data:
            self._is_empty = False
            out.append(FileChunk(data, kind))
