"""Wire formats: build the body of a vendor's request from a neutral one, and decode its stream into neutral chunks.

No I/O: bytes in, chunks out. One pair of modules per format, `*_request` and `*_stream`:

    chat_request, chat_stream          OpenAI Chat Completions, and all compatible servers
    responses_request, responses_stream  OpenAI Responses
    messages_request, messages_stream  Anthropic Messages
    gemini_request, gemini_stream      Google Gemini
    ollama_request, ollama_stream      Ollama's own format
    converse_request, converse_stream  Amazon Bedrock Converse

What they share:

    params         the parameters that mean the same everywhere
    reasoning_effort  a reasoning effort, in the words of each vendor
    valid_history  a history that no vendor refuses: every call with its one result
    tool_names     tool names and call ids as the vendor accepts them
    tool_schemas   tool schemas that every vendor accepts
    gemini_schema  tool schemas for Gemini
    files          how a model reads a file
    notices        texts that the runtime adds to a conversation
    provider_tools  tools that the provider runs: declarations, and what of them goes back
    messages_server_tools, responses_server_tools, gemini_server_tools  their blocks, items and parts
    turn_cache     messages that were converted in an earlier request of the turn
    memo           a cache for converted tools
    think_tags     reasoning in <think> tags
    call_slots     which call a piece belongs to, when the vendor does not say
    lenient_json   decoding of invalid JSON from servers
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from everturn.core.chunks import Chunk


class BuiltRequest(Struct, frozen=True):
    """A vendor's request, and the tool names that had to change for it."""

    path: str
    body: bytes
    names: dict[str, str]  # the vendor's name -> ours


class Decoder(Protocol):
    """Decodes one answer."""

    is_done: bool
    """Whether the answer is complete; nothing more need be read."""

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event.

        Raises:
            ModelError: the provider reports an error, or the event is invalid.
        """
        ...

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append what is pending, the usage and the finish reason.

        Raises:
            ModelError: the stream was cut off; kind `truncated`.
        """
        ...
