"""What it costs to read calls out of text: per piece of an answer, beside the same answer without a tool_format.

    python benchmarks/reading.py [--json FILE]

Both sides read the same chunks in the same process, in turns, so trust the ratios and the differences, not the seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import median
from time import process_time

from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.parts import TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, ToolSpec
from everturn.models.prompted import TOOL_FORMATS, PromptedModel

PROSE = "It is a fine day, and nothing in this line looks like a call.\n" * 300
TOOL = ToolSpec("write", "Write.", {"type": "object", "properties": {"text": {"type": "string"}}})
REPEATS = 7


class Canned:
    """A model that says the same, in pieces of this size."""

    name = "canned"

    def __init__(self, text: str, size: int) -> None:
        self.batches: list[list[Chunk]] = [[TextChunk(text[at : at + size])] for at in range(0, len(text), size)]

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Say it."""
        for batch in self.batches:
            yield batch
        yield [FinishChunk("stop")]


async def seconds(model: Model) -> float:
    """The CPU time of one answer."""
    request = ModelRequest("m", "", [RequestMessage("user", (TextPart("Hi."),))], [TOOL], {})
    begun = process_time()
    async for _ in model.stream(request):
        pass
    return process_time() - begun


async def compare(label: str, text: str, size: int, way: str) -> dict[str, object]:
    """One row: native and in a tool_format, in turns."""
    canned = Canned(text, size)
    prompted = PromptedModel(canned, way)
    pairs = [(await seconds(canned), await seconds(prompted)) for _ in range(REPEATS)]
    count = len(canned.batches)
    bare, read = (median(pair[side] for pair in pairs) / count * 1e6 for side in (0, 1))
    print(f"| {way} | {label} | {count} | {bare:.2f} | {read:.2f} | {read - bare:.2f} |")
    return {"format": way, "answer": label, "pieces": count, "bare": bare, "read": read}


async def measure() -> list[dict[str, object]]:
    """Print a table."""
    rows: list[dict[str, object]] = []
    print("| tool_format | answer | pieces | bare, μs a piece | read, μs a piece | above |\n|---|---|---|---|---|---|")
    for way in TOOL_FORMATS:
        rows.append(await compare("text, 4 characters a piece", PROSE, 4, way))
        for kib in (50, 100, 200):
            code = json.dumps({"text": 'if a["b"]:\n    c = {1: "}"}\n' * (kib * 1024 // 29)})
            call = TOOL_FORMATS[way].write([RequestCall("", "write", code)])
            rows.append(await compare(f"a call of {len(call) // 1024} KiB", call, 4, way))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    file: Path | None = parser.parse_args().json
    rows = asyncio.run(measure())
    if file is not None:
        file.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
