"""Audio service: transcribes recordings and speaks texts for people, with the models of `[audio]` and their limits.

Both are requests outside of a turn: nothing of them is stored or logged, and errors that repeat a provider's response are
replaced, because it may repeat the text.
"""

from __future__ import annotations

import asyncio
import io
import logging
import wave
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.chunks import Chunk, FileChunk, TextChunk, UsageChunk
from everturn.core.parts import FilePart, TextPart, Usage
from everturn.core.ports import Model
from everturn.core.rate_limits import Sender
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import ConfigError, ModelError, TooMuch
from everturn.models.prices import AudioAmount, facts_of

log = logging.getLogger(__name__)

RATES: Final = range(8_000, 48_001)  # samples per second of a recording
SPEECH_LIMIT: Final = 16 * 2**20  # bytes of a spoken text
TRANSCRIPT_LIMIT: Final = 200_000  # characters
RETRY_AFTER: Final = 3.0  # seconds until a request may be over


CountUsage = Callable[[str, Usage], Awaitable[None]]
"""Counts what a request of a model used."""


class AudioLimits(Struct, frozen=True):
    """Limits of requests for audio."""

    max_seconds: float = 120.0  # of a recording
    max_characters: int = 4096  # of a text that is spoken
    timeout: float = 60.0  # seconds until the model must have answered
    concurrent: int = 4  # requests at once, in one process


class AudioModel(Struct, frozen=True):
    """A model for audio, and the parameters of its requests."""

    model: Model
    params: Mapping[str, Any] = {}


class AudioService:
    """Transcribes and speaks; either may not be configured."""

    def __init__(
        self,
        transcription: AudioModel | None = None,
        speech: AudioModel | None = None,
        limits: AudioLimits | None = None,
    ) -> None:
        self.transcription, self.speech, self.limits = transcription, speech, limits or AudioLimits()
        self._running = 0

    def check_recording(self, data: bytes) -> None:
        """Check the format and the duration of a recording.

        Raises:
            ConfigError: the recording is not a WAV file with one channel of 16 bits, or it is too long.
        """
        try:
            with wave.open(io.BytesIO(data)) as file:
                rate, frames = file.getframerate(), file.getnframes()
                is_supported = (file.getnchannels(), file.getsampwidth()) == (1, 2) and rate in RATES
        except (wave.Error, EOFError):
            is_supported, rate, frames = False, 1, 0
        if not is_supported or not frames:
            raise ConfigError("a recording is a WAV file with one channel of 16 bits, at 8,000 to 48,000 Hz")
        # The header may claim fewer samples than there are.
        if max(frames, len(data) // 2 - 1024) > self.limits.max_seconds * rate:
            raise ConfigError(f"a recording has at most {self.limits.max_seconds:g} seconds (audio.max_seconds)")

    def check_text(self, text: str) -> None:
        """Check the length of a text.

        Raises:
            ConfigError: it is too long, or empty.
        """
        if not text.strip():
            raise ConfigError("the text is empty: send what to speak in `text`")
        if len(text) > self.limits.max_characters:
            raise ConfigError(
                f"a text that is spoken has at most {self.limits.max_characters:,} characters (audio.max_characters)"
            )

    async def transcribe(self, data: bytes, sender: Sender | None = None, count: CountUsage | None = None) -> str:
        """The text of a recording. `count` is told what the request used, before anything is done with its result.

        Raises:
            ConfigError: transcription is not configured.
            TooMuch: too many requests are running.
            ModelError: the model failed.
        """
        part = FilePart("recording", "audio/wav", len(data), "recording.wav")
        amount = AudioAmount(seconds=recorded_seconds(data))
        chunks = await self._request("transcription", self.transcription, part, data, sender)
        await _count(count, self.transcription, chunks, amount)
        text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
        return text.strip()[:TRANSCRIPT_LIMIT]

    async def speak(
        self, text: str, sender: Sender | None = None, count: CountUsage | None = None
    ) -> tuple[bytes, str]:
        """The audio of a text, and its media type. `count` is told what the request used.

        Raises:
            ConfigError: speech is not configured.
            TooMuch: too many requests are running.
            ModelError: the model failed.
        """
        chunks = await self._request("speech", self.speech, TextPart(text), b"", sender)
        await _count(count, self.speech, chunks, AudioAmount(characters=len(text)))
        for chunk in chunks:
            if isinstance(chunk, FileChunk) and len(chunk.data) <= SPEECH_LIMIT:
                return chunk.data, chunk.media_type
        raise ModelError("audio.speech: the model sent no audio, or too much", kind="response")

    async def _request(
        self, setting: str, configured: AudioModel | None, part: FilePart | TextPart, data: bytes, sender: Sender | None
    ) -> list[Chunk]:
        if configured is None:
            raise ConfigError(f"this server has no {setting}; the operator configures it under [audio.{setting}]")
        request = ModelRequest(
            model="",
            system="",
            messages=[RequestMessage("user", (part,))],
            tools=[],
            params=dict(configured.params),
            files={part.blob: data} if isinstance(part, FilePart) else {},
            sender=sender,
        )
        if self._running >= self.limits.concurrent:
            raise TooMuch(
                f"{self._running} requests for audio are running, which is the limit (audio.concurrent)", RETRY_AFTER
            )
        self._running += 1
        try:
            async with asyncio.timeout(self.limits.timeout):
                return [chunk async for batch in configured.model.stream(request) for chunk in batch]
        except ModelError as error:
            problem = f"an error of the kind {error.kind!r}"
        except TimeoutError:
            problem = f"no answer within {self.limits.timeout:g} s (audio.timeout)"
        finally:
            self._running -= 1
        log.warning("a request of [audio.%s] failed: %s", setting, problem)
        raise ModelError(f"audio.{setting}: {problem}", kind="server")


def recorded_seconds(data: bytes) -> float:
    """The duration of a recording, by its bytes; 0 if it is none."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            return max(file.getnframes(), len(data) // 2 - 1024) / file.getframerate()
    except (wave.Error, EOFError):
        return 0.0


async def _count(
    count: CountUsage | None, configured: AudioModel | None, chunks: Sequence[Chunk], amount: AudioAmount
) -> None:
    """Tell what a request used: the tokens that the model reports, and a cost by tokens, seconds or characters."""
    if count is None or configured is None:
        return
    used = sum((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), Usage())
    price = (await facts_of(configured.model)).audio_price
    if used.cost is None and price is not None:
        used = replace(used, cost=price(amount))
    await count(configured.model.name, used)
