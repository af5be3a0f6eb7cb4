"""Models that make one thing out of another, as models: pictures, voices, transcripts.

    request → posts → bytes → files and words

They go through the same turn as any other model, and call nothing. What each needs is in `core.modality`; the request
holds exactly that: one message, with the words and the files to work on. A file goes out when it is whole, or not at all.

    images.py     pictures from words, and from pictures
    speech.py     a voice from words, and words from a voice
    work.py       what they share
    kinds.py      what kind of file some bytes are
    multipart.py  forms with files
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
from everturn.models.failures import in_band, read_error
from everturn.models.http import price
from everturn.models.media import images, speech
from everturn.models.media.work import Work
from everturn.models.prices import NO_FACTS, Facts, has_tables, look_up
from everturn.models.profile import Origin, Profile
from everturn.transport import Reply, Transport
from everturn.transport.limits import too_long

T = TypeVar("T")

LARGE = 2**20  # bytes that take a while to be read or written as text
FILE_LIMIT = 64 * 2**20  # bytes of an answer
_NEUTRAL = frozenset(
    {"max_tokens", "output_schema", "tool_choice", "cache", "paradigm", "bind", "parallel_tool_calls"}
)  # words of chat
_WORK: Final[Mapping[Modality, Work]] = {
    "image-gen": images.GENERATE,
    "image-edit": images.EDIT,
    "audio-tts": speech.SPEAK,
    "audio-stt": speech.TRANSCRIBE,
}


class MediaModel:
    """A model behind HTTP that is not for chat, in the shape OpenAI gave it. It asks once; `Retrying` asks again."""

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
        facts: Facts | None = None,
        limit: int = FILE_LIMIT,
    ) -> None:
        self._profile = profile = profile.of(model)
        check_vendor(profile, modality)
        self.modality: Modality = modality
        self._origin = Origin(profile.vendor, model, profile.key, host)
        self._endpoint = Endpoint(profile, self._origin, transport, key)
        self._facts = facts if facts is not None or (profile.prices and has_tables()) else NO_FACTS
        self._name, self._limit = name or self._origin.name, limit

    @property
    def name(self) -> str:
        """The badge a face shows."""
        return self._name

    def __repr__(self) -> str:
        """Without the key."""
        return f"<MediaModel {self.name} ({self.modality}) at {self._endpoint.place}>"

    async def facts(self) -> Facts:
        """What it costs, where that is known."""
        if self._facts is None:
            self._facts = await asyncio.to_thread(look_up, self._profile.prices, self._origin.model)
        return self._facts

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask, and give what was made once all of it is there; until then a sign of life with every read."""
        work = _WORK[self.modality]
        if not request.messages:  # a plugin may have taken it away
            raise ModelError("there is nothing to work on: a plugin has taken the message away", kind="request")
        usual: Mapping[str, Any] = self._profile.pictures if self.modality in ("image-gen", "image-edit") else {}
        given = {**usual, **self._profile.params, **request.params}
        params = {key: value for key, value in given.items() if key not in _NEUTRAL}
        used = Usage()
        has_written = False
        with self._endpoint.discreet():
            size = sum(map(len, request.files.values()))
            for asked in await _aside(size, lambda: work.ask(request, params, self._origin.model)):
                body = bytearray()
                async with self._endpoint.post(asked.path, asked.body, asked.content_type) as reply:
                    async for data in self._checked(reply):
                        body += data
                        if len(body) > self._limit:
                            raise too_long("stream", self._limit)
                        yield ()
                content_type = reply.headers.get("content-type", "")
                chunks = await _aside(len(body), lambda: self._made(work, bytes(body), content_type))  # noqa: B023
                if has_written and isinstance(chunks[0], TextChunk):
                    chunks[0] = TextChunk("\n\n" + chunks[0].text)
                has_written = True
                used = sum((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), used)
                made: list[Chunk] = [chunk for chunk in chunks if not isinstance(chunk, UsageChunk)]
                made += [UsageChunk(used)] if used != Usage() else []
                await price(made, self.facts)
                yield made
        yield [FinishChunk("stop")]

    def _made(self, work: Work, body: bytes, content_type: str) -> list[Chunk]:
        """What an answer brought; an error that comes with a 200 is one all the same."""
        try:
            return work.read(body, content_type)
        except ModelError:
            code, text = read_error(body)
            if not text:
                raise
            raise in_band({"code": code, "message": text}, self._origin.names) from None

    async def _checked(self, reply: Reply) -> AsyncIterator[bytes]:
        """The body of an answer that is none of a refusal."""
        if reply.status != 200:
            raise self._endpoint.refused(reply, await self._endpoint.read_refusal(reply))
        try:
            async for data in reply.read():
                yield data
        except ModelError as broke:  # what was made is paid for, and to ask again would be to pay again
            raise ModelError(str(broke), broke.kind) from None


def check_vendor(profile: Profile, modality: Modality) -> None:
    """See whether a vendor's models of this type can be spoken to.

    Raises:
        ConfigError: nobody here knows their form.
    """
    if profile.format not in ("chat", "responses"):
        raise ConfigError(
            f"{profile.vendor} has no models of the type {modality} in a form that is known here; a server that speaks as "
            f"OpenAI's does can be had with a base_url: compatible:model@{modality}"
        )


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Do it, in a thread if there are so many bytes that everybody else would have to wait."""
    return await asyncio.to_thread(work) if size > LARGE else work()


__all__ = ["FILE_LIMIT", "MediaModel", "check_vendor"]
