"""HTTP model: joins a profile, a wire format and a transport into a model.

    request → build → post → bytes → events → chunks

Every read from the wire becomes one batch. An empty batch means that the server is alive and has sent no content.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from everturn.core.canonical_json import replace_surrogates
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, UsageChunk
from everturn.core.modality import ProviderToolMix
from everturn.core.rate_limits import Permit, Sender
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models import failures
from everturn.models.endpoint import Endpoint
from everturn.models.formats import Decoder
from everturn.models.formats.files import fit_documents
from everturn.models.formats.lenient_json import truncated_error
from everturn.models.formats.provider_tools import supported_tools
from everturn.models.formats.reasoning_effort import reasoning_levels
from everturn.models.load import load
from everturn.models.prices import NO_FACTS, ModelFacts, has_tables, look_up
from everturn.models.profile import Profile, origin_of
from everturn.models.rate_headers import read_limits, refused_seconds
from everturn.models.structured_output import plan_output, read_output
from everturn.models.uploads import FileReferences
from everturn.models.wire_formats import get_wire_format
from everturn.transport import HttpResponse, StreamDecoder, StreamLimits, Transport

if TYPE_CHECKING:
    from everturn.models.clouds import CloudServer

EXCERPT = 200  # characters of an invalid response in the error
START_SIZE = 8192  # bytes of a response that are kept for the error, if it is no stream


class HttpModel:
    """A model behind HTTP. It sends a request once; `RetryModel` retries."""

    def __init__(
        self,
        model: str,
        profile: Profile,
        transport: Transport,
        *,
        key: str = "",
        host: str = "",
        limits: StreamLimits | None = None,
        facts: ModelFacts | None = None,
        bucket: str = "",
        cloud: CloudServer | None = None,
        upload_above: int | None = None,
    ) -> None:
        self._bucket = bucket  # of its rate limit
        self._profile = profile = profile.for_model(model)
        self._limits = limits
        self._facts = facts if facts is not None or (profile.prices and has_tables()) else NO_FACTS
        self._format = get_wire_format(profile.format)
        self._origin = origin_of(profile, model, key, host)
        self._endpoint = Endpoint(
            profile, self._origin, transport, key, self._format.key, self._format.stray_suffixes, cloud
        )
        self._uploads = None if upload_above is None else FileReferences(profile, self._endpoint, upload_above)

    @property
    def name(self) -> str:
        """The name that a UI shows: `vendor:model`."""
        return self._origin.name

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that its provider can run."""
        return supported_tools(self._profile)

    @property
    def provider_tool_mix(self) -> ProviderToolMix:
        """What such a tool can be beside in a request."""
        return self._profile.provider_tools or "mixed"

    @property
    def uploads(self) -> tuple[FileReferences, ...]:
        """The files that it uploads."""
        return () if self._uploads is None else (self._uploads,)

    async def facts(self) -> ModelFacts:
        """Return its price and context window, where they are known, and what its profile says."""
        if self._facts is None:
            self._facts = await asyncio.to_thread(look_up, self._profile.prices, self._origin.model)
        profile = self._profile
        has_native_tools = None if not profile.key else profile.tool_format == "native"
        is_chat = profile.modality == "chat"
        return replace(
            self._facts,
            vendor=profile.vendor,
            inputs=profile.inputs,
            has_native_tools=has_native_tools,
            has_temperature=is_chat and profile.has_temperature,
            reasoning_levels=reasoning_levels(profile) if is_chat else (),
        )

    def load(self) -> None:
        """Import what the first request needs: the HTTP client, and the tables of prices."""
        load(self._endpoint)
        if self._facts is None:
            self._facts = look_up(self._profile.prices, self._origin.model)

    def __repr__(self) -> str:
        """Without the key."""
        return f"<HttpModel {self.name} at {self._endpoint.place}>"

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, and yield the chunks of each read. With an output schema, their text is JSON that fits it."""
        return self._send_structured(request) if "output_schema" in request.params else self._send(request)

    async def _send_structured(self, request: ModelRequest) -> AsyncGenerator[Sequence[Chunk]]:
        plan = plan_output(request, self._profile)
        batches = read_output(plan.reader, self._send(plan.request))
        async with aclosing(batches):
            async for batch in batches:
                yield batch

    async def _send(self, request: ModelRequest) -> AsyncGenerator[Sequence[Chunk]]:
        if self._uploads is None or request.uploads is None:
            async with aclosing(self._send_once(request)) as batches:
                async for batch in batches:
                    yield batch
            return
        profile = fit_documents(request, replace(self._profile, pdf_bytes=0))
        with self._endpoint.redacting_key():
            sent = await self._uploads.add_to(request, profile)
        is_begun = False
        try:
            async with aclosing(self._send_once(sent)) as batches:
                async for batch in batches:
                    is_begun = True
                    yield batch
            return
        except ModelError as error:
            if is_begun or not await self._uploads.forget(sent, error):
                raise
        with self._endpoint.redacting_key():
            sent = await self._uploads.add_to(request, profile)
        async with aclosing(self._send_once(sent)) as batches:
            async for batch in batches:
                yield batch

    async def _send_once(self, request: ModelRequest) -> AsyncGenerator[Sequence[Chunk]]:
        built = self._format.build(request, fit_documents(request, self._profile), self._origin)
        with self._endpoint.redacting_key():
            async with self._endpoint.post(built.path, built.body) as reply:
                if request.sender is not None:
                    self._learn_limits(request.sender, reply)
                if reply.status != 200:
                    yield await self._refused(reply)
                    return
                decoder = self._format.decoder(self._profile, self._origin, built.names)
                answer = _ResponseReader(decoder, self._format.reader(self._limits))
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
            await add_costs(chunks, self.facts)
            if request.sender is not None and request.sender.permit is not None:
                settle(request.sender.permit, chunks)
            yield chunks
            if answer.error is not None:
                raise answer.error

    def _learn_limits(self, sender: Sender, reply: HttpResponse) -> None:
        """Tell the limiter what the headers say, if they say something."""
        limits, refused_for = read_limits(reply.headers), refused_seconds(reply.status, reply.headers)
        if limits is not None or refused_for is not None:
            sender.limiter.observe(self._bucket, self.name, limits, refused_for)

    async def _refused(self, reply: HttpResponse) -> Sequence[Chunk]:
        """Raise the error of a status other than 200; a call that the provider could not parse, and a prompt
        that its content filter stopped, become chunks.
        """
        body = await self._endpoint.read_error_body(reply)
        if (broken := failures.malformed_call(body)) is not None:
            return [CallChunk(0, broken, "malformed_call"), FinishChunk("tool_calls", "tool_use_failed")]
        if reply.status == 400 and failures.is_filtered(body):
            return [FinishChunk("content_filter", failures.CONTENT_FILTER)]
        raise self._endpoint.response_error(reply, body)

    def _no_stream(self, start: bytes) -> ModelError:
        code, text = failures.read_error(start)
        if text:
            return failures.stream_error({"code": code, "message": text}, self._origin.names)
        if all(not line or line.startswith(b":") for line in start.splitlines()):
            return truncated_error("there was not a word of it")
        if page := failures.html_page(start):
            return ModelError(f"{self._endpoint.place} sent {page} ({failures.PAGE_ADVICE})", kind="response")
        excerpt = replace_surrogates(start[:EXCERPT].decode("utf-8", "replace"))
        return ModelError(
            f"{self._endpoint.place} sent no stream, but {excerpt!r}; check the base URL",
            kind="response",
        )


def settle(permit: Permit, chunks: Sequence[Chunk]) -> None:
    """Tell the limiter what a request has used."""
    for chunk in chunks:
        if type(chunk) is UsageChunk:
            permit.settle(chunk.usage.input, chunk.usage.cached, chunk.usage.output)


async def add_costs(chunks: list[Chunk], facts: Callable[[], Awaitable[ModelFacts]]) -> None:
    """Add the cost to usage chunks, where the provider sent none and a price is known."""
    for at, chunk in enumerate(chunks):
        if type(chunk) is UsageChunk and chunk.usage.cost is None:
            model_price = (await facts()).price
            if model_price is not None:
                chunks[at] = UsageChunk(replace(chunk.usage, cost=model_price(chunk.usage)))


class _ResponseReader:
    """Decodes bytes into chunks, until the answer is complete, fails, or ends."""

    def __init__(self, decoder: Decoder, reader: StreamDecoder) -> None:
        self._decoder, self._reader = decoder, reader
        self._has_begun = False
        self.start = b""  # what came before the first event
        self.error: ModelError | None = None
        self.is_over = False

    @property
    def is_no_stream(self) -> bool:
        """Whether the response ended without a single event."""
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
        """End the response, normally or with an error. An answer that is marked as complete stays complete."""
        chunks: list[Chunk] = []
        self._has_begun = self._decode(self._reader.end(), chunks) or self._has_begun
        self.is_over = True
        if self._decoder.is_done:
            return chunks
        if self.error is not None and self.error.kind == "response":
            self.error = truncated_error("its last event is broken")
        elif self.error is not None:
            return chunks  # the provider's own error
        if broke is not None:
            self.error = truncated_error("the connection broke") if self._has_begun else broke
        if self._has_begun:
            reason, self.error = self.error, None
            self._finish(chunks)
            self.error = (reason or self.error) if self.error is not None else None
        return chunks

    def _decode(self, events: Sequence[bytes], chunks: list[Chunk]) -> bool:
        """Decode events; chunks before an error are kept, and events after the end are not read."""
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
