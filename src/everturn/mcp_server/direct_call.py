"""Direct tool call: runs a call that an MCP client makes as a turn with just that call, so that rules, gates and the
log apply.

No language model is involved: the message of the turn is the call itself, and `ClientModel` reads it there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError

CLIENT_MODEL_NAME = "mcp-client"


def encode_call(tool: str, arguments: JsonObject) -> str:
    """Encode a call as the text of a message."""
    return encode_canonical({"tool": tool, "arguments": arguments})


class ClientModel:
    """Model that makes the call in the last user message, and adds nothing to its result."""

    name = CLIENT_MODEL_NAME

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Request the call; after its result, finish."""
        if request.messages and request.messages[-1].role == "tool":
            yield [TextChunk("done"), FinishChunk("stop")]
            return
        text = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        call = parse_object(text)
        if call is None or not isinstance(call.get("tool"), str):
            raise ModelError(f"{CLIENT_MODEL_NAME} only makes calls for MCP clients; use another model", kind="request")
        yield [CallChunk(0, encode_canonical(call["arguments"]), call["tool"], "direct"), FinishChunk("tool_calls")]
