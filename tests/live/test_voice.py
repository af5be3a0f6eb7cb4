"""A real voice and a real ear: a sentence goes out as sound and comes back as words, in two turns of one session."""

from __future__ import annotations

import wave
from io import BytesIO

import pytest
from tests.live.voice_server import SENTENCE, voice

from everturn import Chat, FilePart, get_model

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def test_what_is_spoken_is_heard() -> None:
    async with voice() as base_url:
        mouth = get_model("compatible:espeak@audio-tts", base_url=base_url)
        ear = get_model("compatible:pocketsphinx@audio-stt", base_url=base_url)
        async with Chat(mouth) as chat:
            spoken = await (await chat.send(SENTENCE, params={"response_format": "wav"}))
            assert spoken.message is not None
            sound = spoken.message.parts[0]
            assert isinstance(sound, FilePart)
            assert sound.media_type == "audio/wav"
            data = await chat.read(sound)
            with wave.open(BytesIO(data)) as recording:
                assert recording.getnframes() > recording.getframerate() / 2

            transcript = await (await chat.send([sound], model=ear))

            assert transcript.text.lower().strip(" .") == SENTENCE
            assert [message.role for message in await chat.messages()] == ["user", "assistant"] * 2
