"""Streams as servers send them, broken in every way there is: nothing but a ModelError may come of it.

    python tests/models/fuzz.py --count 100000 [--seed N]

Every input has a number, and the same number is always the same input.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from everturn import wire
from everturn.core.canonical import clean
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.events import StepFinished
from everturn.core.requests import ModelRequest, ToolSpec
from everturn.errors import ModelError
from everturn.models.http import HttpModel
from everturn.models.prices import Facts, Price
from everturn.models.vendors import VENDORS
from everturn.transport import Limits
from everturn.transport.replay import Kept, Replay
from everturn.turn.stream import Assembly

QUIRKS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/openai_chat_quirks.json").read_text("utf-8"))
PROFILES = {
    "chat": replace(VENDORS["compatible"], base_url="http://127.0.0.1:9"),
    "messages": replace(VENDORS["anthropic"], base_url="http://127.0.0.1:9", prices=""),
    "responses": replace(VENDORS["openai"], base_url="http://127.0.0.1:9", prices=""),
}
REQUEST = ModelRequest("m", "", [], [ToolSpec("look.up", "", {})], {})
LIMITS = Limits(line=2**16, event=2**17, stream=2**18)


# Streams to begin with ------------------------------------------------------------------------------------------------


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
]


class Seed(Struct, frozen=True):
    format: str
    events: tuple[bytes, ...]  # with what ends them
    is_cut: bool = False
    status: int = 200


def _dumped(events: Iterable[Any]) -> tuple[bytes, ...]:
    return tuple(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def _pieces(quirk: dict[str, Any]) -> Iterable[bytes]:
    for piece in quirk["chunks"]:
        yield piece.encode() if isinstance(piece, str) else base64.b64decode(piece["base64"])


SEEDS = [
    *(Seed("chat", tuple(_pieces(quirk)), quirk["abrupt_close"]) for quirk in QUIRKS),
    *(Seed("chat", (*_dumped(events), b"data: [DONE]\n\n")) for events in _CHAT * 6),
    *(Seed("messages", _dumped(events)) for events in _MESSAGES * 16),
    *(Seed("responses", _dumped(events)) for events in _RESPONSES * 8),
    *(Seed("chat", (json.dumps(body).encode(),), status=status) for body in _BODIES for status in (200, 400)),
]


# Ways to break them ---------------------------------------------------------------------------------------------------

_RAW = {
    "@deep": b"[" * 5000 + b"]" * 5000,
    "@shallow": b"[" * 300 + b"]" * 300,
    "@digits": b"7" * 5000,
    "@bad": b"\xff",
}
ODD: list[Any] = [
    *(None, True, False, 0, -1, 3, 2**63, 10**30, 10**400, -(2**70), 0.5, 1e308, float("nan"), float("inf")),
    *("", " ", "x", "²", "٣", "429", "7" * 5000, "\ud800", "\udc00x", "\0", "{", "<think>", "[DONE]", "error", "stop"),
    *("function_call", "reasoning", "tool_use", "text", "tool_use_failed", "é" * 300, *_RAW),
    *([], {}, [[]], [None], [1, 2], ["\ud800"], [{}], {"text": 1}, {"text": [1]}, {"type": "text", "text": "x"}),
    *(
        {"a": "\ud800"},
        {"\ud800": 1},
        {"code": "²"},
        {"data": ["x", 1]},
        {"": float("nan")},
        [{"type": None, "data": []}],
    ),
]


def _spots(value: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("list[Any]", value))
    for key, item in items:
        yield from _spots(item, (*path, key))


def _change(value: Any, path: Sequence[Any], dice: random.Random) -> Any:
    """Put something odd in one place, or take it away, or double it."""
    if not path:
        return (
            deepcopy(dice.choice(ODD)) if dice.random() < 0.7 else [value] if dice.random() < 0.5 else {"error": value}
        )
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    match dice.randrange(10):
        case 0:
            del holder[path[-1]]
        case 1 if isinstance(holder, list):
            cast("list[Any]", holder).append(deepcopy(holder[path[-1]]))
        case 2 if isinstance(holder, dict):
            holder[dice.choice(["error", "type", "index", "id", "usage", "text", "data"])] = deepcopy(holder[path[-1]])
        case _:
            holder[path[-1]] = deepcopy(dice.choice(ODD))
    return value


def _break_json(event: bytes, dice: random.Random) -> bytes:
    start = event.find(b"{")
    try:
        value = json.loads(event[start:])
    except (ValueError, RecursionError):
        return _break_bytes(event, dice)
    for _ in range(dice.choice([1, 1, 1, 1, 3])):
        value = _change(value, dice.choice(list(_spots(value))), dice)
        if not isinstance(value, dict | list):
            break
    text = json.dumps(value).encode()
    for name, raw in _RAW.items():
        text = text.replace(b'"%b"' % name.encode(), raw)
    return event[:start] + text + b"\n\n"


def _break_bytes(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice([1, 1, 2, 5])):
        at, size = dice.randrange(len(data) + 1), dice.choice([1, 1, 1, 3, 30])
        odd = dice.choice(
            [b"\n", b"\r", b"\n\n", b"\0", b"\xff", b'"', b"}", b"[", b"\\", b"data: ", b"\xef\xbb\xbf", b"9" * 99]
        )
        match dice.randrange(5):
            case 0:
                data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + odd + data[at:]
            case 2:
                data = data[:at] + data[at + size :]
            case 3:
                data = data[: at + size] + data[at:]
            case _:
                data = data[:at] + bytes(byte ^ 1 << dice.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]
    return data


def _break_events(events: list[bytes], dice: random.Random) -> None:
    at, other = dice.randrange(len(events)), dice.randrange(len(events))
    match dice.randrange(5):
        case 0:
            events.insert(other, events[at])
        case 1:
            del events[at]
        case 2:
            events[at], events[other] = events[other], events[at]
        case 3:
            events[at] *= dice.choice([2, 50])
        case _:
            events.insert(at, dice.choice(dice.choice(SEEDS).events))


def case(seed: int, number: int) -> tuple[str, Kept]:
    """The input of that number."""
    dice = random.Random(f"{seed}/{number}")
    start = dice.choice(SEEDS)
    events = list(start.events)
    for _ in range(dice.choice([1, 1, 1, 2])):
        if not events or dice.random() < 0.15:
            if events:
                _break_events(events, dice)
            continue
        at = dice.randrange(len(events))
        events[at] = (_break_json if dice.random() < 0.7 else _break_bytes)(events[at], dice)
    data = b"".join(events)
    if dice.random() < 0.1:
        data = data[: dice.randrange(len(data) + 1)]
    split = cut(data, dice)
    return start.format, Kept(split, status=start.status, is_cut=start.is_cut or dice.random() < 0.05)


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    if len(data) < 4000 and dice.random() < 0.1:
        return [data[at : at + 1] for at in range(len(data))]
    edges = sorted({0, len(data), *(dice.randrange(len(data) + 1) for _ in range(dice.choice([0, 1, 5, 40])))})
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


# What must be true ----------------------------------------------------------------------------------------------------

_TYPES: dict[type, Callable[[Any], bool]] = {
    TextChunk: lambda chunk: isinstance(chunk.text, str),
    ReasoningChunk: lambda chunk: isinstance(chunk.text, str),
    CallChunk: lambda chunk: all(isinstance(text, str) for text in (chunk.arguments, chunk.name, chunk.id)),
    OpaqueChunk: lambda chunk: bool(chunk.opaque.data.encode()),
    UsageChunk: lambda chunk: isinstance(chunk.usage.input, int) and isinstance(chunk.usage.output, int),
    FinishChunk: lambda chunk: isinstance(chunk.raw, str) and bool(chunk.reason),
}


class Broken(Exception):
    """A stream of chunks that no model may give."""


def check(chunks: Sequence[Chunk], error: ModelError | None) -> None:
    calls = 0
    for at, chunk in enumerate(chunks):
        if not _TYPES[type(chunk)](chunk):
            raise Broken(f"a chunk of the wrong type: {chunk!r:.200}")
        match chunk:
            case CallChunk(slot=slot):
                if slot > calls:
                    raise Broken(f"slot {slot} comes after {calls} calls")
                calls = max(calls, slot + 1)
            case OpaqueChunk(part="call", slot=slot):
                if slot >= calls:
                    raise Broken(f"a seal for a call that never was, {slot}")
            case FinishChunk():
                if error is not None or at < len(chunks) - 1:
                    raise Broken("a finish that is not the last")
            case _:
                pass
    if error is not None:
        _check_error(error)
    elif not chunks or not isinstance(chunks[-1], FinishChunk):
        raise Broken("neither a finish nor an error")


def _check_error(error: ModelError) -> None:
    if not error.kind or not str(error):
        raise Broken("an error that says nothing")
    if clean(str(error)) != str(error):
        raise Broken("an error that cannot be stored")


async def play(format: str, kept: Kept) -> tuple[list[Chunk], ModelError | None]:
    model = HttpModel("m", PROFILES[format], Replay([kept]), limits=LIMITS, facts=Facts(Price(1.0, 2.0)))
    chunks: list[Chunk] = []
    error: ModelError | None = None
    assembly = Assembly("t", 1, 1)
    stream = model.stream(REQUEST)
    try:
        async for batch in stream:
            chunks += batch
            for frame in assembly.feed(batch):
                wire.dump_frame(frame)
    except ModelError as caught:
        error = caught
    if error is not None:
        try:
            await anext(stream)
        except StopAsyncIteration:
            pass
        else:
            raise Broken("a chunk after an error")
    check(chunks, error)
    wire.dump(StepFinished(turn="t", step=1, parts=assembly.parts(), finish="stop", usage=assembly.usage))
    return chunks, error


async def tell(format: str, kept: Kept) -> list[str]:
    """What somebody saw in the end, however it came: text, reasoning, arguments, and the end itself."""
    chunks, error = await play(format, kept)
    seen: dict[str, str] = {}
    for chunk in chunks:
        match chunk:
            case TextChunk(text=text) | ReasoningChunk(text=text):
                seen[type(chunk).__name__] = seen.get(type(chunk).__name__, "") + text
            case CallChunk(slot=slot, arguments=text):
                seen[f"call {slot}"] = seen.get(f"call {slot}", "") + text
            case _:
                pass
    return [*(f"{name}: {text}" for name, text in sorted(seen.items())), error.kind if error is not None else "answer"]


class Finding(Struct, frozen=True):
    """What escaped, where from, and the numbers of the inputs that showed it."""

    what: str
    where: str

    @classmethod
    def of(cls, error: Exception) -> Finding:
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/everturn/" in frame.filename]
        last = ours[-1] if ours and not isinstance(error, Broken) else None
        where = f"{Path(last.filename).name}:{last.name}" if last is not None else str(error)[:60]
        return cls(type(error).__name__, where)


async def fuzz(count: int, seed: int = 0) -> tuple[dict[Finding, list[int]], Counter[str]]:
    """Try so many inputs; what was found, and what came of the rest."""
    found: dict[Finding, list[int]] = {}
    outcomes: Counter[str] = Counter()
    for number in range(count):
        format, kept = case(seed, number)
        try:
            _, error = await play(format, kept)
        except Exception as escaped:
            found.setdefault(Finding.of(escaped), []).append(number)
        else:
            outcomes[error.kind if error is not None else "answer"] += 1
    return found, outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, help="the number of one input to show")
    options = parser.parse_args()
    if options.show is not None:
        format, kept = case(options.seed, options.show)
        print(format, kept.status, "cut" if kept.is_cut else "", b"".join(kept.pieces), len(kept.pieces))
        print(asyncio.run(play(format, kept)))
        return 0
    began = time.perf_counter()
    found, outcomes = asyncio.run(fuzz(options.count, options.seed))
    print(f"{options.count:,} inputs in {time.perf_counter() - began:.0f} s:", dict(outcomes.most_common()))
    for finding, numbers in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"  {len(numbers):6,} × {finding.what} in {finding.where}, for example --show {numbers[0]}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
