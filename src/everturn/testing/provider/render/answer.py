"""Rendering of answers: turns the items of a step into an `Answer` in the format of the request.

The walk over the items is here, once: which block opens, what its pieces are, when it closes, where the stream breaks.
A `Writer`, one per format, decides how each of these looks on the wire.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, Protocol

from msgspec import Struct, field

from everturn.testing.provider.answers import Answer, Part, StreamChunk, make_answer, make_streamed_answer
from everturn.testing.provider.faults import Format, error_body, plain_refusal
from everturn.testing.provider.render.event_frames import CONTENT_TYPE as FRAMES
from everturn.testing.provider.script import (
    Call,
    Cite,
    Cut,
    CutAt,
    Finish,
    Hang,
    HostedTool,
    InBandError,
    Item,
    Pause,
    Raw,
    Reason,
    Redacted,
    Refuse,
    Say,
    ScriptedUsage,
    Status,
    Think,
    split,
)

Kind = Literal["text", "thinking", "redacted", "refusal", "call", "server", "cited"]
EVENT_STREAM = "text/event-stream; charset=utf-8"
LINES = "application/x-ndjson"
_CONTENT_TYPES: dict[Format, str] = {"ollama": LINES, "converse": FRAMES}


class AnswerBlock(Struct):
    """A piece of an answer: a content block, an output item, or a slot of tool calls, depending on the format."""

    kind: Kind
    index: int
    name: str = ""
    id: str = ""
    item: HostedTool | Cite | None = None
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The text of the block so far."""
        return "".join(self.pieces)


class Ending(Struct, frozen=True):
    """How an answer ends, known from its beginning."""

    reason: Reason
    usage: ScriptedUsage


class Writer(Protocol):
    """How one format puts an answer on the wire."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of blocks that the format shows; others are left out."""
        ...

    def start(self) -> Iterable[StreamChunk]: ...
    def open(self, block: AnswerBlock) -> Iterable[StreamChunk]: ...
    def piece(self, block: AnswerBlock, text: str) -> Iterable[StreamChunk]: ...
    def close(self, block: AnswerBlock) -> Iterable[StreamChunk]: ...
    def fail(self, error: InBandError) -> Iterable[StreamChunk]: ...
    def finish(self) -> Iterable[StreamChunk]: ...


def ending_of(items: Sequence[Item]) -> Ending:
    """The finish reason and the usage of a step, or their defaults."""
    reason: Reason = "stop"
    if any(isinstance(item, Refuse) for item in items):
        reason = "refusal"
    if any(isinstance(item, Call) for item in items):
        reason = "tool_calls"
    usage = ScriptedUsage()
    for item in items:
        if isinstance(item, Finish):
            reason = item.reason
        elif isinstance(item, ScriptedUsage):
            usage = item
    return Ending(reason, usage)


def render(
    items: Sequence[Item], writer: Writer, format: Format, model: str, pace: float, ids: Sequence[str]
) -> Answer:
    """Make the answer of a step; `ids` are for its calls, in order."""
    pauses = list[float]()
    for item in items:
        if isinstance(item, Pause):
            pauses.append(item.seconds)
        elif isinstance(item, Status):
            body = item.body.encode() if isinstance(item.body, str) else item.body
            return make_answer(
                item.code,
                body or error_body(format, model, plain_refusal(item.code, format)),
                item.headers,
                pauses=pauses,
            )
    cut_at = next((item.byte for item in items if isinstance(item, CutAt)), None)
    raw = [item for item in items if isinstance(item, Raw)]
    if raw:
        parts = [StreamChunk(item.data) if isinstance(item, Raw) else item for item in items]
        return make_streamed_answer(
            (p for p in parts if isinstance(p, StreamChunk | Pause | Cut | Hang)), raw[0].content_type, 0, cut_at
        )
    parts = _walk(items, writer, iter(ids), has_whole_calls=format in ("gemini", "ollama"))
    return make_streamed_answer(parts, _CONTENT_TYPES.get(format, EVENT_STREAM), pace, cut_at)


def _walk(items: Sequence[Item], writer: Writer, ids: Iterator[str], *, has_whole_calls: bool) -> Iterator[Part]:
    if not (items and isinstance(items[0], Cut)):
        yield from writer.start()
    block: AnswerBlock | None = None
    count = 0
    for item in items:
        if isinstance(item, Pause):
            yield item
        elif isinstance(item, Cut | Hang):
            yield item
            return
        elif isinstance(item, InBandError):
            yield from writer.fail(item)
            return
        elif (made := _block(item, count, ids)) and made.kind in writer.kinds:
            if block is None or block.kind != made.kind or made.kind in ("call", "redacted", "server", "cited"):
                if block is not None:
                    yield from writer.close(block)
                block, count = made, count + 1
                yield from writer.open(block)
            for piece in _pieces(item):
                block.pieces.append(piece)
                yield from writer.piece(block, piece)
            if has_whole_calls and block.kind == "call":
                yield from writer.close(block)
                block = None
    if block is not None:
        yield from writer.close(block)
    yield from writer.finish()


def _block(item: Item, index: int, ids: Iterator[str]) -> AnswerBlock | None:
    match item:
        case Say():
            return AnswerBlock("text", index)
        case Think():
            return AnswerBlock("thinking", index)
        case Redacted():
            return AnswerBlock("redacted", index)
        case Refuse():
            return AnswerBlock("refusal", index)
        case Call():
            return AnswerBlock("call", index, item.name, item.id or next(ids))
        case HostedTool():
            return AnswerBlock("server", index, item.name, item.id, item)
        case Cite():
            return AnswerBlock("cited", index, item=item)
        case _:
            return None


def _pieces(item: Item) -> list[str]:
    if isinstance(item, Call):
        return split(item.arguments, item.pieces)
    if isinstance(item, HostedTool):
        return split(item.arguments, 2) if item.part == "call" else []
    return split(item.text, item.pieces) if isinstance(item, Say | Think | Refuse | Cite) else []


# ------------------------------------------------------------------------------------------------------ ids

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@lru_cache(maxsize=4096)
def seeded_token(seed: str, size: int) -> str:
    """Letters and digits that look random and are not."""
    return "".join(_ALPHABET[byte % 62] for byte in hashlib.blake2b(seed.encode(), digest_size=64).digest()[:size])


@lru_cache(maxsize=4096)
def _id(format: Format, model: str, name: str, number: int) -> str:
    seed = f"{format}\0{model}\0{number}"
    if format == "messages":
        return "toolu_01" + seeded_token(seed, 22)
    if format == "converse":
        return "tooluse_" + seeded_token(seed, 22)
    if format == "gemini":
        return seeded_token(seed, 8).lower()
    if format == "ollama":
        return "call_" + seeded_token(seed, 8).lower()
    if format == "chat" and model.startswith("kimi-"):
        return f"functions.{name}:{number}"
    if format == "chat" and model.startswith("mistral-"):
        return seeded_token(seed, 9)
    return "call_" + seeded_token(seed, 24)


def make_call_ids(format: Format, model: str, names: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """Ids for calls in the style of the provider: new to this conversation, and the same for a repeated request."""
    first = len(taken)
    while True:
        ids = tuple(_id(format, model, name, first + i) for i, name in enumerate(names))
        if not any(call_id in taken for call_id in ids):
            return ids
        first += 1
