"""Media models: images, speech and transcripts, as models.

    request → posts → bytes → files and text

They run in a turn as any other model, and call no tools. `core.modality` has what each needs; the request holds exactly
that: one message, with the text and the files to work on. A file is emitted when it is complete, or not at all.

    images      image generation and editing
    speech      text to speech, and transcription
    command     both by a local program
    job         what they share
    file_types  detection of file types
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from everturn.core.chunks import Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.modality import Modality
from everturn.core.parts import Usage
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.endpoint import Endpoint
from everturn.models.failures import read_error, stream_error
from everturn.models.http_model import add_costs
from everturn.models.load import load
from everturn.models.media import images, speech
from everturn.models.media.job import MediaJob
from everturn.models.prices import NO_FACTS, ModelFacts, has_tables, look_up
from everturn.models.profile import Profile, origin_of
from everturn.transport import HttpResponse, Transport
from everturn.transport.limits import too_long_error

T = TypeVar("T")

LARGE = 2**20  # bytes from which encoding and decoding run in a thread
FILE_LIMIT = 64 * 2**20  # bytes of an answer
_NEUTRAL = frozenset(
    {
        "max_tokens",
        "output_schema",
        "output_mode",
        "tool_choice",
        "cache",
        "tool_format",
        "constrained_decoding",
        "parallel_tool_calls",
    }
)  # parameters of chat
_WORK: Final[Mapping[Modality, MediaJob]] = {
    "image-gen": images.GENERATE,
    "image-edit": images.EDIT,
    "audio-tts": speech.SPEAK,
    "audio-stt": speech.TRANSCRIBE,
}


class MediaModel:
    """A model behind HTTP that is not for chat, with OpenAI's API. It sends a request once; `RetryModel` retries."""

    def __init__(
        self,
        model: str,
        profile: Profile,
        transport: Transport,
        *,
        modality: Modality,
        key: str = "",
        host: str = "",
        name: str = "",
        facts: ModelFacts | None = None,
        limit: int = FILE_LIMIT,
    ) -> None:
        self._profile = profile = profile.for_model(model)
        check_vendor(profile, modality)
        self.modality: Modality = modality
        self._origin = origin_of(profile, model, key, host)
        self._endpoint = Endpoint(profile, self._origin, transport, key)
        self._facts = facts if facts is not None or (profile.prices and has_tables()) else NO_FACTS
        self._name, self._limit = name or self._origin.name, limit

    @property
    def name(self) -> str:
        """The name that a UI shows."""
        return self._name

    def __repr__(self) -> str:
        """Without the key."""
        return f"<MediaModel {self.name} ({self.modality}) at {self._endpoint.place}>"

    async def facts(self) -> ModelFacts:
        """Return its price, where it is known."""
        if self._facts is None:
            self._facts = await asyncio.to_thread(look_up, self._profile.prices, self._origin.model)
        return self._facts

    def load(self) -> None:
        """Import what the first request needs: the HTTP client, and the tables of prices."""
        load(self._endpoint)
        if self._facts is None:
            self._facts = look_up(self._profile.prices, self._origin.model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request, and yield the result once it is complete; before that, an empty batch for each read."""
        job = _WORK[self.modality]
        if not request.messages:  # a plugin may have removed it
            raise ModelError("there is no message to work on: a plugin has removed it", kind="request")
        defaults: Mapping[str, Any] = self._profile.image_params if self.modality in ("image-gen", "image-edit") else {}
        merged = {**defaults, **self._profile.params, **request.params}
        params = {key: value for key, value in merged.items() if key not in _NEUTRAL}
        used = Usage()
        has_written = False
        with self._endpoint.redacting_key():
            size = sum(map(len, request.files.values()))
            for post in await _aside(size, lambda: job.build(request, params, self._origin.model)):
                body = bytearray()
                async with self._endpoint.post(post.path, post.body, post.content_type) as reply:
                    async for data in self._checked(reply):
                        body += data
                        if len(body) > self._limit:
                            raise too_long_error("stream", self._limit)
                        yield ()
                content_type = reply.headers.get("content-type", "")
                chunks = await _aside(len(body), lambda: self._made(job, bytes(body), content_type))  # noqa: B023
                if has_written and isinstance(chunks[0], TextChunk):
                    chunks[0] = TextChunk("\n\n" + chunks[0].text)
                has_written = True
                used = sum((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), used)
                batch: list[Chunk] = [chunk for chunk in chunks if not isinstance(chunk, UsageChunk)]
                batch += [UsageChunk(used)] if used != Usage() else []
                await add_costs(batch, self.facts)
                yield batch
        yield [FinishChunk("stop")]

    def _made(self, work: MediaJob, body: bytes, content_type: str) -> list[Chunk]:
        """Read the result; an error with status 200 is still an error."""
        try:
            return work.read(body, content_type)
        except ModelError:
            code, text = read_error(body)
            if not text:
                raise
            raise stream_error({"code": code, "message": text}, self._origin.names) from None

    async def _checked(self, reply: HttpResponse) -> AsyncIterator[bytes]:
        """Yield the body of a successful response; raise the error of another."""
        if reply.status != 200:
            raise self._endpoint.response_error(reply, await self._endpoint.read_error_body(reply))
        try:
            async for data in reply.read():
                yield data
        except ModelError as broke:  # the result was paid for already, and a retry would be charged again
            raise ModelError(str(broke), broke.kind) from None


def check_vendor(profile: Profile, modality: Modality) -> None:
    """Check that models of this modality are implemented for a vendor.

    Raises:
        ConfigError: they are not.
    """
    if profile.format not in ("chat", "responses") or profile.cloud:
        raise ConfigError(
            f"{profile.vendor} has no supported models of the type {modality}; "
            f"for an OpenAI-compatible server, set a base_url: compatible:model@{modality}"
        )


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Run the work, in a thread if it has so many bytes that it would block the event loop."""
    return await asyncio.to_thread(work) if size > LARGE else work()


__all__ = ["FILE_LIMIT", "MediaModel", "check_vendor"]
