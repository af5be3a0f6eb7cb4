"""Bytes from strangers into every parser of ours: each may refuse them with its own error, and with no other.

    python tests/security/fuzz_parsers.py TARGET [corpus directory] [-max_total_time=60 …]

This takes atheris, which is in no list of requirements: `uv pip install atheris` into an environment of its own, with this
project's on its path. `test_parser_corpus.py` runs the same functions over `parser_corpus.txt`, where what was found is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from everturn import wire
from everturn.bus.remote.codec import age_of, plausible_frames, unpack
from everturn.calls.arguments import try_repair_arguments
from everturn.core.chunks import CallChunk, Chunk, ReasoningChunk, TextChunk
from everturn.core.deltas import Cursor, TextDelta, TurnReader
from everturn.core.events import Entry, StepStarted
from everturn.core.projections.session_reader import SessionCursor
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, ModelError, ToolError, UnreadableLog
from everturn.models.formats.chat_stream import ChatDecoder
from everturn.models.formats.gemini_stream import GeminiDecoder
from everturn.models.formats.messages_stream import MessagesDecoder
from everturn.models.formats.ollama_stream import OllamaDecoder
from everturn.models.formats.responses_stream import ResponsesDecoder
from everturn.models.profile import Origin
from everturn.models.prompted.blocks import BlocksFormat
from everturn.models.prompted.json import JsonFormat
from everturn.models.prompted.tool_format import OfferedTools
from everturn.models.prompted.xml import XmlFormat
from everturn.models.vendors import VENDORS
from everturn.permissions.rule_text import parse_rule
from everturn.permissions.shell.command_line import read_command
from everturn.transport.ndjson import NdjsonReader
from everturn.transport.sse import SseReader

ORIGIN = Origin("compatible", "m", "", "h")
DECODERS: dict[str, tuple[Any, str]] = {
    "chat": (ChatDecoder, "compatible"),
    "messages": (MessagesDecoder, "anthropic"),
    "responses": (ResponsesDecoder, "openai"),
    "gemini": (GeminiDecoder, "gemini"),
    "ollama": (OllamaDecoder, "ollama"),
}
OFFER = OfferedTools([ToolSpec("look", "", {"type": "object", "properties": {"path": {"type": "string"}}})])
LONGEST_COMMAND = 400  # beyond that a run finds only that a long line takes long


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def stream(reader: Callable[[], Any], data: bytes) -> None:
    """A stream comes to the same events however it is cut."""
    cut = data[0] if data else 0
    data = data[1:]
    whole, parts = reader(), reader()
    events = [*whole.feed(data), *whole.end()]
    pieces = [*parts.feed(data[:cut]), *parts.feed(data[cut:]), *parts.end()]
    assert events == pieces
    assert whole.error is None or isinstance(whole.error, ModelError)


def decoder(name: str, data: bytes) -> None:
    """Lines are the events of one answer."""
    kind, vendor = DECODERS[name]
    reading, out = kind(VENDORS[vendor], ORIGIN, {}), list[Chunk]()
    try:
        for event in data.split(b"\n"):
            reading.feed(event, out)
        reading.end(out)
    except ModelError:
        pass


def _said(out: Sequence[Chunk]) -> list[tuple[str, Any, str]]:
    """What chunks say, in as few pieces as there are parts."""
    merged: list[tuple[str, Any, str]] = []
    for chunk in out:
        match chunk:
            case TextChunk(text=text) | ReasoningChunk(text=text):
                key: Any = ""
            case CallChunk(slot=slot, arguments=text):
                key = slot
            case _:
                continue
        if merged and merged[-1][:2] == (type(chunk).__name__, key):
            merged[-1] = (*merged[-1][:2], merged[-1][2] + text)
        elif text:
            merged.append((type(chunk).__name__, key, text))
    return merged


def prompted(tool_format: Any, data: bytes) -> None:
    """An answer with calls in it comes to the same however it is cut."""
    cut, text = (data[0] if data else 0), _text(data[1:])
    results: list[list[tuple[str, Any, str]]] = []
    for pieces in ((text,), (text[:cut], text[cut:])):
        reading, out = tool_format.answer(OFFER), list[Chunk]()
        for piece in pieces:
            reading.feed(piece, out)
        reading.end(out)
        results.append(_said(out))
    assert results[0] == results[1], results


def stored(data: bytes) -> None:
    """What a database, an import or another node may hold."""
    readers = (
        wire.load_event,
        wire.load_message,
        wire.load_command,
        wire.load_gate,
        wire.load_resolution,
        wire.load_claim,
    )
    for read in (*readers, wire.load_frames, wire.load_log):
        try:
            read(data)
        except UnreadableLog:
            pass


def frames(data: bytes) -> None:
    """A message on NATS, to the end of its way: a reader."""
    reader = TurnReader("t")
    list(reader.entry(Entry(1, StepStarted(turn="t", step=1))))
    try:
        age_of(data)
        for frame in plausible_frames(unpack(data), "t"):
            if isinstance(frame, TextDelta):
                reader.delta(frame)
    except UnreadableLog:
        pass
    assert Cursor.parse(str(reader.cursor)) == reader.cursor


def cursors(data: bytes) -> None:
    """A cursor that a client sends: any text is one."""
    for kind in (Cursor, SessionCursor):
        parsed = kind.parse(_text(data))
        assert kind.parse(str(parsed)) == parsed


def command(data: bytes) -> None:
    """A command line is read whole, or refused."""
    try:
        read_command(_text(data[:LONGEST_COMMAND]))
    except ToolError:
        pass


def rule(data: bytes) -> None:
    """A rule as it is written on the command line."""
    try:
        parse_rule(_text(data), "allow", "--allow")
    except ConfigError:
        pass


def arguments(data: bytes) -> None:
    """Arguments that are mended are arguments that need no mending."""
    found = try_repair_arguments(_text(data))
    if found is not None:
        again = try_repair_arguments(wire_json(found.value))
        assert again is not None
        assert (again.value, again.repaired) == (found.value, "")


def wire_json(value: Any) -> str:
    """As it is written down."""
    from everturn.core.canonical_json import encode_canonical

    return encode_canonical(value)


@cache
def targets() -> dict[str, Callable[[bytes], None]]:
    """Every parser, by a name."""

    def bound(function: Any, *parameters: Any) -> Callable[[bytes], None]:
        return lambda data: function(*parameters, data)

    return {
        "sse": bound(stream, SseReader),
        "ndjson": bound(stream, NdjsonReader),
        **{f"decoder-{name}": bound(decoder, name) for name in DECODERS},
        **{
            f"prompted-{tool_format.name}": bound(prompted, tool_format)
            for tool_format in (JsonFormat(), XmlFormat(), BlocksFormat())
        },
        "stored": stored,
        "frames": frames,
        "cursors": cursors,
        "command": command,
        "rule": rule,
        "arguments": arguments,
    }


def main() -> None:
    """Fuzz one of them."""
    atheris: Any = import_module("atheris")
    target = targets()[sys.argv.pop(1)]
    prefixes = (
        "everturn.wire",
        "everturn.models",
        "everturn.permissions",
        "everturn.transport",
        "everturn.calls",
        "everturn.turn",
        "everturn.core",
        "everturn.bus",
    )
    for name, module in list(sys.modules.items()):
        if not name.startswith(prefixes):
            continue
        for value in vars(module).values():
            functions = vars(value).values() if isinstance(value, type) else (value,)
            for function in functions:
                if type(function).__name__ == "function" and function.__module__ == name:
                    atheris.instrument_func(function)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
