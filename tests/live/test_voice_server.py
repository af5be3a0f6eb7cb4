"""The voice and the ear of the live tests, over plain HTTP: what the one says, the other hears."""

from __future__ import annotations

import io
import wave
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
from tests.live.voice_server import SENTENCE, voice

pytestmark = [pytest.mark.live, pytest.mark.timeout(300), pytest.mark.xdist_group("local-voice")]


class Client:
    """Asks the two endpoints."""

    def __init__(self, http: aiohttp.ClientSession, base: str) -> None:
        self._http, self._base = http, base

    async def speech(self, **body: Any) -> tuple[int, bytes]:
        async with self._http.post(f"{self._base}/audio/speech", json={"model": "espeak", **body}) as reply:
            return reply.status, await reply.read()

    async def transcription(self, sound: bytes, field: str = "file", **fields: str) -> tuple[int, str]:
        form = aiohttp.FormData({"model": "pocketsphinx", **fields})
        form.add_field(field, sound, filename="a.wav", content_type="audio/wav")
        async with self._http.post(f"{self._base}/audio/transcriptions", data=form) as reply:
            return reply.status, await reply.text()

    async def said_and_heard(self, text: str, speed: float = 1) -> str:
        status, sound = await self.speech(input=text, voice="any", response_format="wav", speed=speed)
        assert status == 200
        status, transcript = await self.transcription(sound, response_format="text")
        assert status == 200
        return transcript.strip()


@pytest.fixture
async def client() -> AsyncGenerator[Client]:
    async with voice() as base, aiohttp.ClientSession() as http:
        yield Client(http, base)


async def test_what_is_said_is_heard(client: Client) -> None:
    for speed in (0.93, 1, 1.07):
        assert await client.said_and_heard(SENTENCE, speed) == SENTENCE
    # Another sentence is heard as another, so it listens.
    assert await client.said_and_heard("my brother lives in london") == "my brother lives in london"


async def test_the_sound_is_a_whole_wav_that_lasts_as_long_as_the_text(client: Client) -> None:
    lengths: list[float] = []
    for text in ("hello", "hello, and how are you today?"):
        _, data = await client.speech(input=text, response_format="wav")
        with wave.open(io.BytesIO(data)) as sound:
            assert len(sound.readframes(sound.getnframes())) == sound.getnframes() * 2
            lengths.append(sound.getnframes() / sound.getframerate())
    assert 0.2 < lengths[0] < lengths[1] < 5


async def test_what_cannot_be_done_is_refused_in_words(client: Client) -> None:
    status, body = await client.speech(input="hello", response_format="mp3")
    assert (status, b"this voice speaks wav" in body) == (400, True)
    status, body = await client.speech(response_format="wav")
    assert (status, b"Missing required parameter: 'input'." in body) == (400, True)
    status, text = await client.transcription(b"no sound")
    assert (status, "might be corrupted" in text) == (400, True)
    status, text = await client.transcription(b"no sound", field="sound")
    assert (status, "Missing required parameter: 'file'." in text) == (400, True)
