"""An agent to be served in a process of its own: its model does what it is told, and its tools leave a trace."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from everturn import tool
from everturn.cli.commands.mcp import _parser, serve
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest, RequestResult


class Obedient:
    """`call TOOL {…}` makes it call, `hang` makes it say nothing more, and anything else is repeated."""

    name = "obedient"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        last = request.messages[-1]
        if last.role == "tool":
            results = " ".join(part.text for part in last.parts if isinstance(part, RequestResult))
            yield [TextChunk(f"it came to: {results}"), FinishChunk("stop")]
            return
        words = last.text.split(" ", 2)
        if words[0] == "call":
            yield [CallChunk(0, words[2], words[1], "one"), FinishChunk("tool_calls")]
            return
        count = sum(message.role == "user" for message in request.messages)
        yield [TextChunk(f"message {count}: ")]
        if words[0] == "hang":
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)
        yield [TextChunk(last.text), FinishChunk("stop")]


def _trace(text: str) -> None:
    if place := os.environ.get("TRACE"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


@tool(read_only=True)
def look(what: str) -> str:
    """Look at something."""
    print("this is not protocol")  # and must not get where protocol goes
    os.write(1, b"nor is this\n")
    return f"{what} is fine"


@tool(approval="always")
def burn(what: str) -> str:
    """Burn something."""
    _trace(what)
    return f"{what} is ash"


@tool(approval="ask")
def warm(what: str) -> str:
    """Warm something."""
    _trace(what)
    return f"{what} is warm"


@tool
def forbidden() -> str:
    """Do what a rule denies."""
    _trace("forbidden")
    return "done"


@tool
def partly(path: str) -> str:
    """Do what a rule denies for some."""
    _trace(path)
    return f"did {path}"


if __name__ != "__main__":
    print("what is loaded may print")
else:
    os.write(2, json.dumps({"pid": os.getpid()}).encode() + b"\n")
    options = _parser().parse_args(["serve", "--tools", __file__, *sys.argv[1:]])
    sys.exit(asyncio.run(serve(Obedient(), options)))
