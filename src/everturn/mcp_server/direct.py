"""A call that a client makes itself → a turn that makes just that call, so that rules, gates and log hold for it as well.

Nobody is asked what to say: the message of the turn is the call, and the model reads it there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from everturn.core.canonical import JsonObject, canonical, parse_object
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError

NAME = "mcp-client"


def written(tool: str, arguments: JsonObject) -> str:
    """The message that stands for a call."""
    return canonical({"tool": tool, "arguments": arguments})


class ClientModel:
    """Makes the call that the last message of the person stands for, and has nothing to add to what came of it."""

    name = NAME

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Call; then end."""
        if request.messages and request.messages[-1].role == "tool":
            yield [TextChunk("done"), FinishChunk("stop")]
            return
        asked = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        call = parse_object(asked)
        if call is None or not isinstance(call.get("tool"), str):
            raise ModelError(f"{NAME} makes calls of MCP clients, and this is none; ask another model", kind="request")
        yield [CallChunk(0, canonical(call["arguments"]), call["tool"], "direct"), FinishChunk("tool_calls")]
