"""Answers as servers send them, broken in every way there is: nothing but a ModelError may come of it.

    python tests/models/fuzz.py --count 100000 [--seed N]

Every input has a number, and the same number is always the same input. What they are before they are broken is in
`fuzz_seeds.py`.
"""

from __future__ import annotations

import argparse
import asyncio
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
from everturn.core.canonical_json import replace_surrogates
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    TextChunk,
    TextEndChunk,
    UsageChunk,
)
from everturn.core.events import StepFinished
from everturn.core.modality import Modality
from everturn.core.parts import FilePart, TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import ModelError
from everturn.models.http_model import HttpModel
from everturn.models.media import MediaModel
from everturn.models.prices import ModelFacts, Price
from everturn.models.prompted import PromptedModel
from everturn.models.vendors import VENDORS
from everturn.testing import MemoryStore
from everturn.transport import StreamLimits
from everturn.transport.replay import RecordedResponse, ReplayTransport
from everturn.turn.stream import StepAssembly

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script, too

from tests.models.fuzz_seeds import SEEDS, TOLD

COMPATIBLE = replace(VENDORS["compatible"], base_url="http://127.0.0.1:9")
PROFILES = {
    "chat": COMPATIBLE,
    **{
        profile.format: replace(profile, base_url="http://127.0.0.1:9", prices="")
        for profile in (VENDORS[vendor] for vendor in ("anthropic", "openai", "gemini", "ollama"))
    },
}
MODALITIES: dict[str, Modality] = {"images": "image-gen", "transcript": "audio-stt", "speech": "audio-tts"}
SAID = RequestMessage("user", (TextPart("A turtle."), FilePart("sound", "audio/wav", 4, "a.wav")))
REQUEST = ModelRequest("m", "", [SAID], [ToolSpec("look.up", "", {})], {}, {"sound": b"RIFF"})
LIMITS = StreamLimits(line=2**16, event=2**17, stream=2**18)


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
    return event[:start] + text + (b"\n\n" if event.endswith(b"\n\n") else b"\n")


MARKERS = (
    *("```", "~~~~", "<think>", "</think>", "{", "}", "[", '"', '"tool_calls"', '{"answer": ', '{"tool_call_result"'),
    *(
        "<tool_code>",
        "</tool_code>",
        "=== call ",
        "=== end ===",
        "<<END",
        "END",
        "\n",
        "\r\n",
        "\t",
        "\\",
        '\\"',
        "\\u",
    ),
    *("\\ud83d", "\u2028", "\0", "\U0001f422", " " * 300, "[" * 3000, "9" * 300, "name", "=", ":", ","),
)


def _break_words(event: bytes, dice: random.Random) -> bytes:
    """Break what a chat model says, and leave its event whole."""
    try:
        value = json.loads(event[event.find(b"{") :])
        text: str = value["choices"][0]["delta"]["content"] + ""
    except (ValueError, LookupError, TypeError, RecursionError):
        return event  # it is broken already, or the last one
    for _ in range(dice.choice([1, 1, 2, 4])):
        at, size = dice.randrange(len(text) + 1), dice.choice([0, 0, 1, 5, 30])
        text = text[:at] + (dice.choice(MARKERS) if dice.random() < 0.8 else "") + text[at + size :]
    value["choices"][0]["delta"]["content"] = text
    return b"data: %b\n\n" % json.dumps(value).encode()


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


def case(seed: int, number: int) -> tuple[str, RecordedResponse]:
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
        breaking = _break_json if dice.random() < 0.7 else _break_bytes
        if start.format in TOLD and dice.random() < 0.8:
            breaking = _break_words
        events[at] = breaking(events[at], dice)
    data = b"".join(events)
    if dice.random() < 0.1:
        data = data[: dice.randrange(len(data) + 1)]
    split = cut(data, dice)
    kind = (
        start.content_type if dice.random() < 0.9 else dice.choice(["", "text/html", "audio/x", "text/plain", "\xff/;"])
    )
    is_cut = start.is_cut or dice.random() < 0.05
    return start.format, RecordedResponse(
        split, status=start.status, headers={"content-type": kind} if kind else {}, is_cut=is_cut
    )


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    if len(data) < 4000 and dice.random() < 0.1:
        return [data[at : at + 1] for at in range(len(data))]
    edges = sorted({0, len(data), *(dice.randrange(len(data) + 1) for _ in range(dice.choice([0, 1, 5, 40])))})
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


OWN_CALLS = 1_000_000  # slots from here on are of calls that a prompted model makes natively all the same

# What must be true ----------------------------------------------------------------------------------------------------


def _is_citation(citation: Any) -> bool:
    texts = (citation.source, citation.title, citation.quote)
    return 0 <= citation.start <= citation.end and all(isinstance(text, str) for text in texts)


_TYPES: dict[type, Callable[[Any], bool]] = {
    TextChunk: lambda chunk: isinstance(chunk.text, str),
    ReasoningChunk: lambda chunk: isinstance(chunk.text, str),
    CallChunk: lambda chunk: all(isinstance(text, str) for text in (chunk.arguments, chunk.name, chunk.id)),
    OpaqueChunk: lambda chunk: bool(chunk.opaque.data.encode()),
    UsageChunk: lambda chunk: isinstance(chunk.usage.input, int) and isinstance(chunk.usage.output, int),
    FinishChunk: lambda chunk: isinstance(chunk.raw, str) and bool(chunk.reason),
    FileChunk: lambda chunk: isinstance(chunk.data, bytes) and bool(chunk.data) and bool(chunk.media_type),
    TextEndChunk: lambda chunk: True,
    CitationChunk: lambda chunk: _is_citation(chunk.citation),
    ProviderToolChunk: lambda chunk: all(
        isinstance(text, str) for text in (chunk.part.name, chunk.part.title, chunk.part.text)
    ),
}


class Broken(Exception):
    """A stream of chunks that no model may give."""


def check(chunks: Sequence[Chunk], error: ModelError | None) -> None:
    calls = [0, 0]  # those read in words, or all; and those a model makes by itself that was told of tools in words
    for at, chunk in enumerate(chunks):
        if not _TYPES[type(chunk)](chunk):
            raise Broken(f"a chunk of the wrong type: {chunk!r:.200}")
        match chunk:
            case CallChunk(slot=slot):
                own, slot = divmod(slot, OWN_CALLS)
                if slot > calls[own]:
                    raise Broken(f"slot {slot} comes after {calls[own]} calls")
                calls[own] = max(calls[own], slot + 1)
            case OpaqueChunk(part="call", slot=slot):
                if slot % OWN_CALLS >= calls[slot // OWN_CALLS]:
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
    if replace_surrogates(str(error)) != str(error):
        raise Broken("an error that cannot be stored")


def model_of(format: str, recording: RecordedResponse) -> Model:
    """A model that gets this answer."""
    transport, facts = ReplayTransport([recording]), ModelFacts(Price(1.0, 2.0))
    if (modality := MODALITIES.get(format)) is not None:
        return MediaModel("m", COMPATIBLE, transport, modality=modality, facts=facts, limit=LIMITS.stream)
    way = format.removeprefix("told-")
    model = HttpModel("m", PROFILES.get(format, COMPATIBLE), transport, limits=LIMITS, facts=facts)
    if format == "told-bound":
        return PromptedModel(model, "json", "schema")
    return PromptedModel(model, way) if format in TOLD else model


async def play(format: str, recording: RecordedResponse) -> tuple[list[Chunk], ModelError | None]:
    model, keep = model_of(format, recording), MemoryStore().put_blob
    chunks: list[Chunk] = []
    error: ModelError | None = None
    assembly = StepAssembly("t", 1, 1)
    stream = model.stream(REQUEST)
    try:
        async for batch in stream:
            chunks += batch
            for frame in assembly.feed(batch):
                wire.dump_frames([frame])
            await assembly.store_files(keep)
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
    wire.dump_event(StepFinished(turn="t", step=1, parts=assembly.parts(), finish="stop", usage=assembly.usage))
    return chunks, error


async def tell(format: str, recording: RecordedResponse) -> list[str]:
    """What somebody saw in the end, however it came: text, reasoning, arguments, and the end itself."""
    chunks, error = await play(format, recording)
    seen: dict[str, str] = {}
    for chunk in chunks:
        match chunk:
            case TextChunk(text=text) | ReasoningChunk(text=text):
                seen[type(chunk).__name__] = seen.get(type(chunk).__name__, "") + text
            case FileChunk(data=data, media_type=kind):
                seen["files"] = seen.get("files", "") + f"{kind} {data!r} "
            case ProviderToolChunk(part=part):
                seen["provider tools"] = (
                    seen.get("provider tools", "") + f"{part.name} {part.state} {part.title} {part.text} "
                )
            case CitationChunk(citation=citation):
                seen["citations"] = seen.get("citations", "") + f"{citation} "
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
        format, recording = case(seed, number)
        try:
            _, error = await play(format, recording)
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
        format, recording = case(options.seed, options.show)
        print(
            format,
            recording.status,
            "cut" if recording.is_cut else "",
            b"".join(recording.pieces),
            len(recording.pieces),
        )
        print(asyncio.run(play(format, recording)))
        return 0
    began = time.perf_counter()
    found, outcomes = asyncio.run(fuzz(options.count, options.seed))
    print(f"{options.count:,} inputs in {time.perf_counter() - began:.0f} s:", dict(outcomes.most_common()))
    for finding, numbers in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"  {len(numbers):6,} × {finding.what} in {finding.where}, for example --show {numbers[0]}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
