"""A profile, a wire format and a transport, joined into a model.

    request → build → post → bytes → events → chunks

Every read from the wire becomes one batch. An empty batch means that the server is alive and has nothing to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical import clean
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, UsageChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models import failures
from everturn.models.formats import Built, Decoder, chat_request, messages_request, responses_request
from everturn.models.formats.chat_stream import ChatDecoder
from everturn.models.formats.loose import cut_off
from everturn.models.formats.messages_stream import MessagesDecoder
from everturn.models.formats.responses_stream import ResponsesDecoder
from everturn.models.prices import NO_FACTS, Facts, has_tables, look_up
from everturn.models.profile import Origin, Profile
from everturn.transport import Limits, Post, Reply, Transport
from everturn.transport.sse import SseReader

REFUSAL_SIZE = 64 * 1024  # bytes of a refusal that are worth reading
EXCERPT = 200  # characters of it that are shown
START_SIZE = 8192  # bytes of an answer kept to say what it was, if it was no stream


class Format(Struct, frozen=True):
    """A wire format: how a request is written and how an answer is read."""

    build: Callable[[ModelRequest, Profile, Origin], Built]
    decoder: Callable[[Profile, Origin, Mapping[str, str]], Decoder]


FORMATS: Final[Mapping[str, Format]] = {
    "chat": Format(chat_request.build, ChatDecoder),
    "messages": Format(messages_request.build, MessagesDecoder),
    "responses": Format(responses_request.build, ResponsesDecoder),
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
        limits: Limits | None = None,
        facts: Facts | None = None,
    ) -> None:
        self._profile = profile = profile.of(model)
        self._transport, self._limits = transport, limits
        self._facts = facts if facts is not None or (profile.prices and has_tables()) else NO_FACTS
        self._format = FORMATS[profile.format]
        host = "" if profile.key else urlsplit(profile.base_url).netloc
        self._origin = Origin(profile.vendor, model, profile.key, host)
        self._headers = {"content-type": "application/json", "accept-encoding": "identity", **profile.headers}
        if key and profile.format == "messages":
            self._headers["x-api-key"] = key
        elif key:
            self._headers["authorization"] = f"Bearer {key}"

    @property
    def name(self) -> str:
        """The badge a face shows: `vendor:model`."""
        return self._origin.issuer

    async def facts(self) -> Facts:
        """What it costs and how much it can read, where that is known."""
        if self._facts is None:
            self._facts = await asyncio.to_thread(look_up, self._profile.prices, self._origin.model)
        return self._facts

    def __repr__(self) -> str:
        """Without the key."""
        return f"<HttpModel {self.name} at {self._profile.base_url}>"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, and give the chunks of every read."""
        built = self._format.build(request, self._profile, self._origin)
        post = Post(self._profile.base_url.rstrip("/") + built.path, self._headers, built.body)
        async with self._transport.post(post) as reply:
            if reply.status != 200:
                yield await self._refused(reply)
                return
            decoder = self._format.decoder(self._profile, self._origin, built.names)
            reader = SseReader(self._limits)
            start: bytes | None = b""  # of what came before the first event
            chunks: list[Chunk] = []
            async for data in reply.read():
                chunks = []
                events = reader.feed(data)
                if start is not None:
                    start = None if events else (start + data)[:START_SIZE]
                error = _decode(decoder, events, chunks) or reader.error
                if error is not None:
                    yield chunks
                    raise error
                if decoder.is_done:
                    break
                yield chunks
            else:
                chunks = []
                if (error := _decode(decoder, reader.end(), chunks)) is not None:
                    raise cut_off("its last event is broken") from error
                if start is not None and not chunks:
                    raise self._no_stream(start)
            error = _end(decoder, chunks)
        await self._price(chunks)
        yield chunks
        if error is not None:
            raise error

    async def _refused(self, reply: Reply) -> Sequence[Chunk]:
        """Another status than 200: an error, but for a call the provider itself could not read."""
        body = bytearray()
        async for data in reply.read():
            body += data
            if len(body) > REFUSAL_SIZE:
                break
        if (broken := failures.malformed_call(bytes(body))) is not None:
            return [CallChunk(0, broken, "malformed_call"), FinishChunk("tool_calls", "tool_use_failed")]
        raise failures.refused(reply.status, reply.headers, bytes(body), self._origin.names)

    def _no_stream(self, start: bytes) -> ModelError:
        code, text = failures.read_error(start)
        if code or text:
            return failures.in_band({"code": code, "message": text}, self._origin.names)
        if not start.strip():
            return cut_off("there was not a word of it")
        seen = clean(start[:EXCERPT].decode("utf-8", "replace"))
        return ModelError(
            f"{self._profile.base_url} sent no stream but {seen!r}; is the base URL that of a model?", kind="response"
        )

    async def _price(self, chunks: list[Chunk]) -> None:
        for at, chunk in enumerate(chunks):
            if type(chunk) is UsageChunk and chunk.usage.cost is None:
                price = (await self.facts()).price
                if price is not None:
                    chunks[at] = UsageChunk(replace(chunk.usage, cost=price(chunk.usage)))


def _decode(decoder: Decoder, events: Sequence[bytes], chunks: list[Chunk]) -> ModelError | None:
    """Decode events into chunks; what came before an error is good."""
    try:
        for event in events:
            decoder.feed(event, chunks)
    except ModelError as error:
        return error
    return None


def _end(decoder: Decoder, chunks: list[Chunk]) -> ModelError | None:
    try:
        decoder.end(chunks)
    except ModelError as error:
        return error
    return None
