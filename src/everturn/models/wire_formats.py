"""Wire formats by name. Each is imported when a model first needs it: a program uses one or two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from everturn.core.requests import ModelRequest
from everturn.models.formats import BuiltRequest, Decoder
from everturn.models.profile import FormatName, Origin, Profile
from everturn.transport import StreamDecoder, StreamLimits
from everturn.transport.sse import SseReader


class WireFormat(Struct, frozen=True):
    """A wire format: how to build a request and how to decode the response."""

    build: Callable[[ModelRequest, Profile, Origin], BuiltRequest]
    decoder: Callable[[Profile, Origin, Mapping[str, str]], Decoder]
    key: tuple[str, str] = ("authorization", "Bearer ")  # the header for the key, and the prefix of its value
    reader: Callable[[StreamLimits | None], StreamDecoder] = SseReader
    stray_suffixes: tuple[str, ...] = ()  # suffixes of base URLs that users add out of habit


def get_wire_format(name: FormatName) -> WireFormat:
    """Return a wire format."""
    match name:
        case "chat":
            from everturn.models.formats import chat_request
            from everturn.models.formats.chat_stream import ChatDecoder

            return WireFormat(chat_request.build, ChatDecoder)
        case "messages":
            from everturn.models.formats import messages_request
            from everturn.models.formats.messages_stream import MessagesDecoder

            return WireFormat(messages_request.build, MessagesDecoder, key=("x-api-key", ""))
        case "responses":
            from everturn.models.formats import responses_request
            from everturn.models.formats.responses_stream import ResponsesDecoder

            return WireFormat(responses_request.build, ResponsesDecoder)
        case "gemini":
            from everturn.models.formats import gemini_request
            from everturn.models.formats.gemini_stream import GeminiDecoder, GeminiReader

            return WireFormat(gemini_request.build, GeminiDecoder, key=("x-goog-api-key", ""), reader=GeminiReader)
        case "ollama":
            return _ollama()
        case "converse":
            from everturn.models.formats import converse_request
            from everturn.models.formats.converse_stream import ConverseDecoder
            from everturn.transport.event_stream import EventStreamReader

            return WireFormat(converse_request.build, ConverseDecoder, reader=EventStreamReader)


def _ollama() -> WireFormat:
    from everturn.models.formats import ollama_request
    from everturn.models.formats.ollama_stream import OllamaDecoder
    from everturn.transport.limits import WHOLE_LINE_LIMITS
    from everturn.transport.ndjson import NdjsonReader

    return WireFormat(
        ollama_request.build,
        OllamaDecoder,
        reader=lambda limits: NdjsonReader(limits or WHOLE_LINE_LIMITS),
        stray_suffixes=("/v1", "/api"),
    )
