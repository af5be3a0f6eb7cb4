"""A profile, a wire format and a transport, joined into a model.

    request → build → post → bytes → events → chunks

Every read from the wire becomes one batch. An empty batch means that the server is alive and has nothing to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical import clean
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, UsageChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models import failures
from everturn.models.endpoint import Endpoint
from everturn.models.formats import (
    Built,
    Decoder,
    chat_request,
    gemini_request,
    messages_request,
    ollama_request,
    responses_request,
)
from everturn.models.formats.chat_stream import ChatDecoder
from everturn.models.formats.gemini_stream import GeminiDecoder, GeminiReader
from everturn.models.formats.loose import cut_off
from everturn.models.formats.messages_stream import MessagesDecoder
from everturn.models.formats.ollama_stream import OllamaDecoder
from everturn.models.formats.responses_stream import ResponsesDecoder
from everturn.models.prices import NO_FACTS, Facts, has_tables, look_up
from everturn.models.profile import Origin, Profile
from everturn.transport import Limits, Reader, Reply, Transport
from everturn.transport.limits import WHOLE
from everturn.transport.ndjson import NdjsonReader
from everturn.transport.sse import SseReader

EXCERPT = 200  # characters of what was no stream that are shown
START_SIZE = 8192  # bytes of an answer kept to say what it was, if it was no stream


class Format(Struct, frozen=True):
    """A wire format: how a request is written and how an answer is read."""

    build: Callable[[ModelRequest, Profile, Origin], Built]
    decoder: Callable[[Profile, Origin, Mapping[str, str]], Decoder]
    key: tuple[str, str] = ("authorization", "Bearer ")  # the header that holds the key, and what stands before it
    reader: Callable[[Limits | None], Reader] = SseReader
    strays: tuple[str, ...] = ()  # ends of base URLs that are given out of habit, and lead elsewhere


FORMATS: Final[Mapping[str, Format]] = {
    "chat": Format(chat_request.build, ChatDecoder),
    "messages": Format(messages_request.build, MessagesDecoder, key=("x-api-key", "")),
    "responses": Format(responses_request.build, ResponsesDecoder),
    "gemini": Format(gemini_request.build, GeminiDecoder, key=("x-goog-api-key", ""), reader=GeminiReader),
    "ollama": Format(
        ollama_request.build, OllamaDecoder, reader=lambda limits: NdjsonReader(limits or WHOLE), strays=("/v1", "/api")
    ),
}


class HttpModel:
    """A model behind HTTP. It asks once; `Retrying` asks again."""

    def __init__(
        self,
        model: str,
        profile: Profile,
        transport: Transport,
        *,
        key: str = "",
        host: str = "",
        limits: Limits | None = None,
        facts: Facts | None = None,
    ) -> None:
        self._profile = profile = profile.of(model)
        self._limits = limits
        self._facts = facts if facts is not None or (profile.prices and has_tables()) else NO_FACTS
        self._format = FORMATS[profile.format]
        self._origin = Origin(profile.vendor, model, profile.key, host)
        self._endpoint = Endpoint(profile, self._origin, transport, key, self._format.key, self._format.strays)

    @property
    def name(self) -> str:
        """The badge a face shows: `vendor:model`."""
        return self._origin.name

    async def facts(self) -> Facts:
        """What it costs and how much it can read, where that is known."""
        if self._facts is None:
            self._facts = await asyncio.to_thread(look_up, self._profile.prices, self._origin.model)
        return self._facts

    def __repr__(self) -> str:
        """Without the key."""
        return f"<HttpModel {self.name} at {self._endpoint.place}>"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, and give the chunks of every read."""
        built = self._format.build(request, self._profile, self._origin)
        with self._endpoint.discreet():
            async with self._endpoint.post(built.path, built.body) as reply:
                if reply.status != 200:
                    yield await self._refused(reply)
                    return
                decoder = self._format.decoder(self._profile, self._origin, built.names)
                answer = _Answer(decoder, self._format.reader(self._limits))
                try:
                    async for data in reply.read():
                        chunks = answer.feed(data)
                        if answer.is_over:
                            break
                        yield chunks
                    else:
                        chunks = answer.end()
                except ModelError as broke:  # only the reading raises here
                    chunks = answer.end(broke)
                if answer.error is None:
                    await reply.finish()
            if answer.is_no_stream:
                answer.error = self._no_stream(answer.start)
            await price(chunks, self.facts)
            yield chunks
            if answer.error is not None:
                raise answer.error

    async def _refused(self, reply: Reply) -> Sequence[Chunk]:
        """Another status than 200: an error, but for a call the provider itself could not read."""
        body = await self._endpoint.read_refusal(reply)
        if (broken := failures.malformed_call(body)) is not None:
            return [CallChunk(0, broken, "malformed_call"), FinishChunk("tool_calls", "tool_use_failed")]
        raise self._endpoint.refused(reply, body)

    def _no_stream(self, start: bytes) -> ModelError:
        code, text = failures.read_error(start)
        if text:
            return failures.in_band({"code": code, "message": text}, self._origin.names)
        if all(not line or line.startswith(b":") for line in start.splitlines()):
            return cut_off("there was not a word of it")
        seen = clean(start[:EXCERPT].decode("utf-8", "replace"))
        return ModelError(
            f"{self._endpoint.place} sent no stream but {seen!r}; is the base URL that of a model?",
            kind="response",
        )


async def price(chunks: list[Chunk], facts: Callable[[], Awaitable[Facts]]) -> None:
    """Put a price on what was used, where the provider did not and one is known."""
    for at, chunk in enumerate(chunks):
        if type(chunk) is UsageChunk and chunk.usage.cost is None:
            its = (await facts()).price
            if its is not None:
                chunks[at] = UsageChunk(replace(chunk.usage, cost=its(chunk.usage)))


class _Answer:
    """Bytes → chunks, until the answer says that it is complete, breaks, or ends."""

    def __init__(self, decoder: Decoder, reader: Reader) -> None:
        self._decoder, self._reader = decoder, reader
        self._has_begun = False
        self.start = b""  # of what came before the first event
        self.error: ModelError | None = None
        self.is_over = False

    @property
    def is_no_stream(self) -> bool:
        """Whether it ended, and was something else all the time."""
        return self.is_over and not self._has_begun and self.error is None

    def feed(self, data: bytes) -> list[Chunk]:
        events = self._reader.feed(data)
        if not self._has_begun:
            self._has_begun = bool(events)
            self.start = b"" if events else (self.start + data)[:START_SIZE]
        chunks: list[Chunk] = []
        self._decode(events, chunks)
        if not self.is_over and self._reader.error is not None:
            self.error, self.is_over = self._reader.error, True
        return chunks

    def end(self, broke: ModelError | None = None) -> list[Chunk]:
        """There is nothing more, or the connection broke. An answer that has said it is finished is one all the same."""
        chunks: list[Chunk] = []
        self._has_begun = self._decode(self._reader.end(), chunks) or self._has_begun
        self.is_over = True
        if self._decoder.is_done:
            return chunks
        if self.error is not None and self.error.kind == "response":
            self.error = cut_off("its last event is broken")
        elif self.error is not None:
            return chunks  # the provider's own words
        if broke is not None:
            self.error = cut_off("the connection broke") if self._has_begun else broke
        if self._has_begun:
            why, self.error = self.error, None
            self._finish(chunks)
            self.error = (why or self.error) if self.error is not None else None
        return chunks

    def _decode(self, events: Sequence[bytes], chunks: list[Chunk]) -> bool:
        """Decode events; what came before an error is good, and what comes after the end is not read."""
        decoder = self._decoder
        try:
            for event in events:
                decoder.feed(event, chunks)
                if decoder.is_done:
                    self.is_over = True
                    self._finish(chunks)
                    break
        except ModelError as error:
            self.error, self.is_over = error, True
        return bool(events)

    def _finish(self, chunks: list[Chunk]) -> None:
        try:
            self._decoder.end(chunks)
        except ModelError as error:
            self.error = error
